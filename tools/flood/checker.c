/* SPDX-License-Identifier: MIT */
#include "tools/flood/checker.h"

#include <stdlib.h>

#include "tools/flood/generator.h"

struct checker {
    uint64_t count;
    struct checker_result result;
    uint64_t seen[]; /* a bit a number */
};

enum {
    WORD_BITS = 64
};

enum status checker_create(struct checker **out, uint64_t count)
{
    size_t words = (size_t)(count / WORD_BITS + 1);
    struct checker *checker = calloc(1, sizeof(*checker) + words * sizeof(checker->seen[0]));
    if (checker == NULL) {
        return STATUS_NO_MEMORY;
    }
    checker->count = count;
    *out = checker;
    return STATUS_OK;
}

void checker_destroy(struct checker **checker)
{
    free(*checker);
    *checker = NULL;
}

void checker_take(struct checker *checker, struct span payload)
{
    uint64_t number;
    if (!generator_check(&number, payload)) {
        checker->result.torn++;
        return;
    }
    if (number >= checker->count) {
        checker->result.strange++;
        return;
    }
    uint64_t bit = 1ULL << number % WORD_BITS;
    uint64_t *word = &checker->seen[number / WORD_BITS];
    if ((*word & bit) != 0) {
        checker->result.doubled++;
        return;
    }
    *word |= bit;
    checker->result.seen++;
}

struct checker_result checker_result(const struct checker *checker)
{
    return checker->result;
}
