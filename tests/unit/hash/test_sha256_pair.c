/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "hash/sha256.h"
#include "hash/sha256_pair.h"

/* OpenSSL's one-call SHA-256 over the bytes in one piece is the oracle of every case. */

enum {
    LONGEST = 300000,
    MOST_PIECES = 40,
    RANDOM_PAIRS = 400
};

static uint8_t bytes_a[LONGEST + 64];
static uint8_t bytes_b[LONGEST + 64];
static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static size_t random_below(size_t bound)
{
    return (size_t)(random_number() % bound);
}

static int fill(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bytes_a); i++) {
        bytes_a[i] = (uint8_t)random_number();
        bytes_b[i] = (uint8_t)random_number();
    }
    return 0;
}

/* Cuts length bytes into pieces at random places; some are empty. */
static size_t cut(struct span pieces[MOST_PIECES], const uint8_t *bytes, size_t length)
{
    size_t count = 0;
    while (length > 0 && count < MOST_PIECES - 1) {
        size_t bound = random_below(3) == 0 ? length + 1 : 200;
        size_t part = random_below(bound < length + 1 ? bound : length + 1);
        pieces[count++] = span_of(bytes, part);
        bytes += part;
        length -= part;
    }
    pieces[count++] = span_of(length == 0 ? NULL : bytes, length);
    return count;
}

static void assert_pair(struct sha256_pieces a, const uint8_t *whole_a, struct sha256_pieces b,
        const uint8_t *whole_b)
{
    uint8_t digest_a[SHA256_BYTES];
    uint8_t digest_b[SHA256_BYTES];
    uint8_t right[SHA256_BYTES];
    sha256_both(digest_a, a, digest_b, b);
    SHA256(whole_a, sha256_pieces_length(a), right);
    assert_memory_equal(digest_a, right, SHA256_BYTES);
    sha256(digest_a, a);
    assert_memory_equal(digest_a, right, SHA256_BYTES);
    SHA256(whole_b, sha256_pieces_length(b), right);
    assert_memory_equal(digest_b, right, SHA256_BYTES);
}

static void assert_random_cuts(const uint8_t *a, size_t length_a, const uint8_t *b, size_t length_b)
{
    struct span spans_a[MOST_PIECES];
    struct span spans_b[MOST_PIECES];
    struct sha256_pieces pieces_a = {.spans = spans_a, .count = cut(spans_a, a, length_a)};
    struct sha256_pieces pieces_b = {.spans = spans_b, .count = cut(spans_b, b, length_b)};
    assert_pair(pieces_a, a, pieces_b, b);
}

static void equals_openssl_for_random_lengths_cuts_and_alignments(void **state)
{
    (void)state;
    for (int i = 0; i < RANDOM_PAIRS; i++) {
        size_t bound = i % 4 == 0 ? LONGEST : 2000;
        assert_random_cuts(bytes_a + random_below(64), random_below(bound),
                bytes_b + random_below(64), random_below(bound));
    }
}

static void equals_openssl_for_every_short_length_against_another(void **state)
{
    (void)state;
    for (size_t length = 0; length <= 260; length++) {
        assert_random_cuts(bytes_a + length % 64, length, bytes_b, 260 - length);
        assert_random_cuts(bytes_a, length, bytes_b + 3, 5000);
        assert_random_cuts(bytes_a, 5000, bytes_b + 3, length);
    }
}

static void equals_openssl_at_every_alignment_of_both(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 64; shift++) {
        assert_random_cuts(bytes_a + shift, 1000 + shift, bytes_b + 63 - shift, 1100);
    }
}

static void concatenate(uint8_t *to, const struct span *spans, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (spans[i].length > 0) {
            memcpy(to + used, spans[i].bytes, spans[i].length);
            used += spans[i].length;
        }
    }
}

static void equals_openssl_when_both_streams_share_the_message_bytes(void **state)
{
    (void)state;
    static uint8_t concatenated[LONGEST];
    for (size_t length = 40; length < 200000; length = length * 2 + 1) {
        struct span message = span_of(bytes_a + 1, length);
        struct span spans[5] = {
                span_of_text("/waku/2/rs/1/0"),
                span_of(message.bytes + 5, length - 39),
                span_of(message.bytes + length - 33, 20),
                span_of(NULL, 0),
                span_of("\0\1\2\3\4\5\6\7", 8),
        };
        concatenate(concatenated, spans, 5);
        assert_pair((struct sha256_pieces){.spans = &message, .count = 1}, message.bytes,
                (struct sha256_pieces){.spans = spans, .count = 5}, concatenated);
    }
}

static void hashes_no_pieces_as_no_bytes(void **state)
{
    (void)state;
    struct sha256_pieces none = {.spans = NULL, .count = 0};
    assert_pair(none, (const uint8_t *)"", none, (const uint8_t *)"");
}

enum {
    TASKS = 9
};

struct test_task {
    struct sha256_task task;
    struct span spans[MOST_PIECES];
    uint8_t digest[SHA256_BYTES];
    const uint8_t *start;
};

static void start(struct sha256_pair *pair, struct test_task *task, size_t length)
{
    task->start = bytes_a + random_below(64);
    task->task.pieces = (struct sha256_pieces){
            .spans = task->spans, .count = cut(task->spans, task->start, length)};
    task->task.digest = task->digest;
    sha256_pair_start(pair, &task->task);
}

static void assert_done(const struct test_task *task)
{
    uint8_t right[SHA256_BYTES];
    assert_true(task->task.is_done);
    SHA256(task->start, sha256_pieces_length(task->task.pieces), right);
    assert_memory_equal(task->digest, right, SHA256_BYTES);
}

/* Of all lengths, none among them, each beside others; finished in any order, or by those behind them. */
static void equals_openssl_for_tasks_started_and_finished_in_any_order(void **state)
{
    struct sha256_pair *pair = NULL;
    static struct test_task tasks[TASKS];
    (void)state;
    assert_int_equal(sha256_pair_create(&pair), STATUS_OK);
    for (size_t round = 0; round < 200; round++) {
        size_t count = 1 + round % TASKS;
        size_t undone = 0;
        for (size_t i = 0; i < count; i++) {
            start(pair, &tasks[i], random_below(round % 8 == 0 ? 50000 : 300));
        }
        for (size_t i = 0; i < count; i++) {
            undone += !tasks[i].task.is_done;
        }
        assert_true(undone <= 2);
        for (size_t i = 0, at = random_below(count); i < count; i++, at = (at + 1) % count) {
            sha256_pair_finish(pair, &tasks[at].task);
            assert_done(&tasks[at]);
        }
    }
    sha256_pair_destroy(&pair);
    assert_null(pair);
}

/* The short ones pass by; the long one goes on beside all of them. */
static void a_long_task_does_not_hold_up_those_behind_it(void **state)
{
    struct sha256_pair *pair = NULL;
    static struct test_task tasks[TASKS];
    (void)state;
    assert_int_equal(sha256_pair_create(&pair), STATUS_OK);
    for (size_t i = 0; i < TASKS; i++) {
        start(pair, &tasks[i], i == 0 ? LONGEST : 100);
    }
    for (size_t i = 1; i < TASKS - 1; i++) {
        assert_done(&tasks[i]);
    }
    assert_int_equal(tasks[0].task.is_done, !sha256_pair_is_side_by_side());
    sha256_pair_finish(pair, &tasks[0].task);
    sha256_pair_finish(pair, &tasks[TASKS - 1].task);
    assert_done(&tasks[0]);
    assert_done(&tasks[TASKS - 1]);
    sha256_pair_destroy(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(equals_openssl_for_random_lengths_cuts_and_alignments),
            cmocka_unit_test(equals_openssl_for_every_short_length_against_another),
            cmocka_unit_test(equals_openssl_at_every_alignment_of_both),
            cmocka_unit_test(equals_openssl_when_both_streams_share_the_message_bytes),
            cmocka_unit_test(hashes_no_pieces_as_no_bytes),
            cmocka_unit_test(equals_openssl_for_tasks_started_and_finished_in_any_order),
            cmocka_unit_test(a_long_task_does_not_hold_up_those_behind_it),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
