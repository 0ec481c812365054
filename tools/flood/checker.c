/* SPDX-License-Identifier: MIT */
#include "tools/flood/checker.h"

#include <stdlib.h>
#include <string.h>

#include "tools/flood/generator.h"

struct checker {
    uint64_t count;
    struct checker_result result;
    uint64_t *seen; /* a bit a number */
};

enum {
    WORD_BITS = 64
};

enum status checker_create(struct checker **out, uint64_t count)
{
    struct checker *checker = calloc(1, sizeof(*checker));
    if (checker == NULL || checker_expect(checker, count) != STATUS_OK) {
        free(checker);
        return STATUS_NO_MEMORY;
    }
    *out = checker;
    return STATUS_OK;
}

enum status checker_expect(struct checker *checker, uint64_t count)
{
    size_t words = (size_t)(count / WORD_BITS + 1);
    size_t before = checker->seen != NULL ? (size_t)(checker->count / WORD_BITS + 1) : 0;
    if (words > before) {
        uint64_t *seen = realloc(checker->seen, words * sizeof(*seen));
        if (seen == NULL) {
            return STATUS_NO_MEMORY;
        }
        memset(seen + before, 0, (words - before) * sizeof(*seen));
        checker->seen = seen;
    }
    checker->count = count;
    return STATUS_OK;
}

void checker_destroy(struct checker **checker)
{
    if (*checker != NULL) {
        free((*checker)->seen);
    }
    free(*checker);
    *checker = NULL;
}

bool checker_take_number(struct checker *checker, uint64_t number)
{
    if (number >= checker->count) {
        checker->result.strange++;
        return false;
    }
    uint64_t bit = 1ULL << number % WORD_BITS;
    uint64_t *word = &checker->seen[number / WORD_BITS];
    if ((*word & bit) != 0) {
        checker->result.doubled++;
        return false;
    }
    *word |= bit;
    checker->result.seen++;
    return true;
}

void checker_take(struct checker *checker, struct span payload)
{
    uint64_t number;
    if (generator_check(&number, payload)) {
        (void)checker_take_number(checker, number);
    } else {
        checker->result.torn++;
    }
}

struct checker_result checker_result(const struct checker *checker)
{
    return checker->result;
}
