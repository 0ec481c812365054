/* SPDX-License-Identifier: MIT */

#include "router/sync_sent.h"

#include "tests/support/cmocka.h"
#include "tests/support/sync_ids.h"

enum {
    MAX = 1000,
    PATIENCE_MS = 100
};

static struct sync_sent_account account;
static struct sync_sent sent;
static struct id_key ids[2 * MAX];

static int set_up(void **state)
{
    (void)state;
    account = (struct sync_sent_account){.max = MAX, .patience_ms = PATIENCE_MS};
    sent = (struct sync_sent){.next_sweep_ms = 0};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sync_sent_fini(&sent, &account);
    assert_int_equal(account.count, 0);
    return 0;
}

static size_t queue(uint64_t first, size_t count, uint64_t now_ms)
{
    struct topic topic = {.index = 0};
    for (uint64_t i = 0; i < count; i++) {
        struct id_record record = make_record(0, first + i, &topic, "/a/1/x/proto");
        ids[i] = key_of(&record);
    }
    return sync_sent_queue(&sent, &account, ids, count, now_ms);
}

static void mark_all(size_t count, uint64_t now_ms)
{
    for (size_t i = 0; i < count; i++) {
        sync_sent_mark(&sent, &ids[i], now_ms);
    }
}

static void what_is_queued_is_not_queued_again_however_long_it_takes(void **state)
{
    (void)state;
    assert_int_equal(queue(0, 10, 0), 10);
    assert_int_equal(queue(0, 10, 1000 * PATIENCE_MS), 0);
    assert_int_equal(queue(5, 10, 1000 * PATIENCE_MS), 5);
    struct topic topic = {.index = 0};
    struct id_record first = make_record(0, 10, &topic, "/a/1/x/proto");
    struct id_key key = key_of(&first);
    assert_memory_equal(&ids[0], &key, sizeof(key)); /* those that are new, in their order */
}

static void what_was_sent_is_sent_again_after_the_patience(void **state)
{
    (void)state;
    assert_int_equal(queue(0, 10, 0), 10);
    mark_all(5, 1000);
    assert_int_equal(queue(0, 10, 1000 + PATIENCE_MS - 1), 0);
    assert_int_equal(queue(0, 10, 1000 + PATIENCE_MS), 5);
}

static void what_was_not_sent_is_queued_again_at_once(void **state)
{
    (void)state;
    assert_int_equal(queue(0, 10, 0), 10);
    sync_sent_forget(&sent, &account, &ids[3]);
    assert_int_equal(queue(0, 10, 1), 1);
    sync_sent_fini(&sent, &account);
    assert_int_equal(queue(0, 10, 2), 10);
}

static void what_is_not_kept_in_mind_is_sent_all_the_same(void **state)
{
    (void)state;
    struct sync_sent other = {.next_sweep_ms = 0};
    assert_int_equal(queue(0, 2 * MAX, 0), 2 * MAX);
    assert_int_equal(account.count, MAX);
    struct id_key own = ids[0];
    assert_int_equal(sync_sent_queue(&other, &account, &own, 1, 0), 1);
    assert_int_equal(sync_sent_queue(&other, &account, &own, 1, 0), 1);
    assert_int_equal(queue(0, 2 * MAX, 0), MAX);
    sync_sent_fini(&other, &account);
}

static void what_was_sent_long_ago_takes_no_place(void **state)
{
    (void)state;
    assert_int_equal(queue(0, MAX, 0), MAX);
    mark_all(MAX, 0);
    assert_int_equal(queue(MAX, 10, 5000), 10);
    assert_int_equal(account.count, 10);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(what_is_queued_is_not_queued_again_however_long_it_takes),
            CASE(what_was_sent_is_sent_again_after_the_patience),
            CASE(what_was_not_sent_is_queued_again_at_once),
            CASE(what_is_not_kept_in_mind_is_sent_all_the_same),
            CASE(what_was_sent_long_ago_takes_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
