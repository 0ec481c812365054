/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/tsan.h"
#include "hash/id_tree.h"

/* The model is a sorted array, changed and searched from end to end. */

enum {
    MODEL_MOST = 6000,
    STEPS = 16000,
#if defined(TSAN_ON) || defined(__SANITIZE_ADDRESS__)
    MANY = 100000
#else
    MANY = 1000000
#endif
};

static uint64_t random_state;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

struct model {
    struct id_entry entries[MODEL_MOST];
    size_t count;
};

static struct model model;
static struct id_tree *tree;

static int start(void **state)
{
    (void)state;
    random_state = 0x2545f4914f6cdd1d;
    model.count = 0;
    return id_tree_create(&tree) == STATUS_OK ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    id_tree_destroy(&tree);
    assert_null(tree);
    return 0;
}

/* Few timestamps, so that many are equal; few different hashes, so that many keys repeat. */
static struct id_key random_key(uint64_t timestamps)
{
    struct id_key key = {
            .timestamp_ns = (int64_t)(random_number() % timestamps) - (int64_t)(timestamps / 2)};
    key.hash[0] = (uint8_t)random_number();
    key.hash[31] = (uint8_t)(random_number() % 4);
    return key;
}

static struct id_entry entry_of(struct id_key key)
{
    struct id_entry entry = {.key = key, .scope = (uint32_t)random_number()};
    entry.value = (void *)(uintptr_t)random_number();
    return entry;
}

/* Timestamps in order, hashes as random as real ones. */
static struct id_key key_number(uint64_t number)
{
    struct id_key key = {.timestamp_ns = (int64_t)number};
    for (size_t i = 0; i < ID_HASH_BYTES; i++) {
        number = number * 6364136223846793005u + 1442695040888963407u;
        key.hash[i] = (uint8_t)(number >> 56);
    }
    return key;
}

static size_t model_rank(const struct id_key *key)
{
    size_t low = 0;
    size_t high = model.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct id_key *at = &model.entries[middle].key;
        bool is_below = at->timestamp_ns != key->timestamp_ns
                                ? at->timestamp_ns < key->timestamp_ns
                                : memcmp(at->hash, key->hash, ID_HASH_BYTES) < 0;
        low = is_below ? middle + 1 : low;
        high = is_below ? high : middle;
    }
    return low;
}

static bool model_has(size_t rank, const struct id_key *key)
{
    return rank < model.count && model.entries[rank].key.timestamp_ns == key->timestamp_ns &&
           memcmp(model.entries[rank].key.hash, key->hash, ID_HASH_BYTES) == 0;
}

static void assert_entry(struct id_entry entry, size_t rank)
{
    assert_true(model_has(rank, &entry.key));
    assert_ptr_equal(entry.value, model.entries[rank].value);
    assert_int_equal(entry.scope, model.entries[rank].scope);
}

static void insert_in_both(struct id_key key)
{
    struct id_entry entry = entry_of(key);
    size_t rank = model_rank(&key);
    if (model_has(rank, &key)) {
        assert_int_equal(id_tree_insert(tree, &entry), STATUS_ALREADY_THERE);
        return;
    }
    assert_int_equal(id_tree_insert(tree, &entry), STATUS_OK);
    memmove(&model.entries[rank + 1], &model.entries[rank], (model.count - rank) * sizeof(entry));
    model.entries[rank] = entry;
    model.count++;
}

static void model_erase(size_t rank, size_t count)
{
    memmove(&model.entries[rank], &model.entries[rank + count],
            (model.count - rank - count) * sizeof(struct id_entry));
    model.count -= count;
}

static void remove_from_both(struct id_key key)
{
    size_t rank = model_rank(&key);
    struct id_entry removed;
    if (!model_has(rank, &key)) {
        assert_false(id_tree_find(tree, &key, &removed));
        assert_false(id_tree_remove(tree, &key, &removed));
        return;
    }
    assert_true(id_tree_find(tree, &key, &removed));
    assert_entry(removed, rank);
    assert_true(id_tree_remove(tree, &key, &removed));
    assert_entry(removed, rank);
    model_erase(rank, 1);
}

static void assert_same_range(const struct id_key *lower, const struct id_key *upper)
{
    size_t from = lower == NULL ? 0 : model_rank(lower);
    size_t to = upper == NULL ? model.count : model_rank(upper);
    struct id_summary right = {.count = to > from ? to - from : 0};
    for (size_t i = from; i < to; i++) {
        for (size_t byte = 0; byte < ID_HASH_BYTES; byte++) {
            right.fingerprint[byte] ^= model.entries[i].key.hash[byte];
        }
    }
    struct id_summary summary;
    id_tree_summarise(tree, lower, upper, &summary);
    assert_int_equal(summary.count, right.count);
    assert_memory_equal(summary.fingerprint, right.fingerprint, ID_HASH_BYTES);
}

static void assert_same_seeks(const struct id_key *key)
{
    size_t rank = model_rank(key);
    struct id_cursor first = id_tree_seek_first(tree, key);
    assert_int_equal(id_cursor_is_valid(&first), rank < model.count);
    if (rank < model.count) {
        assert_entry(id_cursor_entry(&first), rank);
    }
    struct id_cursor last = id_tree_seek_last(tree, key);
    assert_int_equal(id_cursor_is_valid(&last), rank > 0);
    if (rank > 0) {
        assert_entry(id_cursor_entry(&last), rank - 1);
    }
}

static void assert_same_walks(void)
{
    assert_int_equal(id_tree_count(tree), model.count);
    size_t seen = 0;
    struct id_cursor cursor = id_tree_seek_first(tree, NULL);
    for (; id_cursor_is_valid(&cursor); id_cursor_next(&cursor)) {
        assert_entry(id_cursor_entry(&cursor), seen++);
    }
    assert_int_equal(seen, model.count);
    cursor = id_tree_seek_last(tree, NULL);
    for (; id_cursor_is_valid(&cursor); id_cursor_previous(&cursor)) {
        assert_entry(id_cursor_entry(&cursor), --seen);
    }
    assert_int_equal(seen, 0);
}

static void assert_visit_in_order(const struct id_entry *entry, void *context)
{
    size_t *rank = context;
    assert_entry(*entry, (*rank)++);
}

static void prune_both(const struct id_key *bound, size_t max_ids)
{
    size_t below = bound == NULL ? model.count : model_rank(bound);
    size_t right = below < max_ids ? below : max_ids;
    size_t visited = 0;
    assert_int_equal(
            id_tree_prune_below(tree, bound, max_ids, assert_visit_in_order, &visited), right);
    assert_int_equal(visited, right);
    model_erase(0, right);
}

/* grow: of 10 steps that change the set, how many insert. */
static void run_random_steps(size_t steps, unsigned grow, uint64_t timestamps)
{
    for (size_t step = 0; step < steps; step++) {
        struct id_key key = random_key(timestamps);
        bool has_room = model.count < MODEL_MOST;
        if (random_number() % 10 < grow && has_room) {
            insert_in_both(key);
        } else if (random_number() % 50 == 0) {
            prune_both(&key, random_number() % 200);
        } else {
            bool is_of_model = model.count > 0 && random_number() % 2 == 0;
            remove_from_both(is_of_model ? model.entries[random_number() % model.count].key : key);
        }
        if (step % 128 == 0) {
            struct id_key other = random_key(timestamps);
            assert_same_seeks(&key);
            assert_same_range(&key, &other);
            assert_same_range(NULL, &other);
            assert_same_range(&key, NULL);
            assert_same_range(NULL, NULL);
        }
        if (step % 4096 == 0) {
            assert_same_walks();
        }
    }
    assert_same_walks();
}

static void does_as_a_sorted_array_under_random_operations(void **state)
{
    (void)state;
    run_random_steps(STEPS, 8, 3000);
    run_random_steps(STEPS, 3, 3000);
    run_random_steps(STEPS / 4, 8, 100000);
    prune_both(NULL, SIZE_MAX);
    assert_same_walks();
    run_random_steps(1000, 6, 50);
}

static void orders_equal_timestamps_by_hash(void **state)
{
    (void)state;
    run_random_steps(STEPS / 2, 7, 1);
    run_random_steps(STEPS / 4, 7, 2);
}

static void answers_for_an_empty_set(void **state)
{
    (void)state;
    struct id_key key = random_key(10);
    assert_same_walks();
    assert_same_seeks(&key);
    assert_same_range(NULL, NULL);
    assert_same_range(&key, NULL);
    assert_same_range(NULL, &key);
    remove_from_both(key);
    prune_both(NULL, 10);
    insert_in_both(key);
    remove_from_both(key);
    assert_same_walks();
}

static void says_zero_for_a_range_that_ends_before_it_begins(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        insert_in_both(key_number(i));
    }
    struct id_key lower = key_number(60);
    struct id_key upper = key_number(40);
    struct id_summary summary;
    static const uint8_t zeros[ID_HASH_BYTES];
    id_tree_summarise(tree, &lower, &upper, &summary);
    assert_int_equal(summary.count, 0);
    assert_memory_equal(summary.fingerprint, zeros, ID_HASH_BYTES);
    assert_same_range(&lower, &lower);
}

/* Inserts the numbers below count, stride apart; a stride without a common divisor meets each once. */
static void insert_many(uint64_t count, uint64_t stride)
{
    size_t inserted = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number = i * stride % count;
        struct id_entry entry = {.key = key_number(number), .scope = (uint32_t)number};
        inserted += id_tree_insert(tree, &entry) == STATUS_OK;
    }
    assert_int_equal(inserted, count);
}

static void holds_very_many_ids_in_order_in_little_memory(void **state)
{
    (void)state;
    insert_many(MANY, 1);
    assert_int_equal(id_tree_count(tree), MANY);
    assert_true(id_tree_bytes(tree) < (size_t)MANY * 60);
    struct id_key lower = key_number(1234);
    struct id_key upper = key_number(MANY - 346);
    struct id_summary summary;
    id_tree_summarise(tree, &lower, &upper, &summary);
    assert_int_equal(summary.count, MANY - 346 - 1234);
    struct id_cursor cursor = id_tree_seek_first(tree, NULL);
    uint64_t in_order = 0;
    for (; id_cursor_is_valid(&cursor); id_cursor_next(&cursor)) {
        in_order += id_cursor_entry(&cursor).scope == in_order;
    }
    assert_int_equal(in_order, MANY);
}

static void holds_very_many_ids_in_any_order_and_uses_freed_nodes_again(void **state)
{
    (void)state;
    enum {
        STRIDE = 611953
    };
    insert_many(MANY, STRIDE);
    size_t full_bytes = id_tree_bytes(tree);
    assert_true(full_bytes < (size_t)MANY * 100);
    size_t removed = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        struct id_key key = key_number((i * STRIDE) % MANY);
        removed += i % 3 != 0 && id_tree_remove(tree, &key, NULL);
    }
    assert_int_equal(removed, MANY - (MANY / 3 + 1));
    assert_int_equal(id_tree_count(tree), MANY / 3 + 1);
    struct id_key bound = key_number(MANY);
    size_t pruned = 0;
    while (id_tree_prune_below(tree, &bound, 1000, NULL, NULL) > 0) {
        pruned++;
    }
    assert_int_equal(pruned, (MANY / 3 + 1 + 999) / 1000);
    insert_many(MANY / 2, 1);
    assert_int_equal(id_tree_bytes(tree), full_bytes);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
            TEST(does_as_a_sorted_array_under_random_operations),
            TEST(orders_equal_timestamps_by_hash),
            TEST(answers_for_an_empty_set),
            TEST(says_zero_for_a_range_that_ends_before_it_begins),
            TEST(holds_very_many_ids_in_order_in_little_memory),
            TEST(holds_very_many_ids_in_any_order_and_uses_freed_nodes_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
