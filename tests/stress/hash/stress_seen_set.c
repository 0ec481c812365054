/* SPDX-License-Identifier: MIT */

/*
 * One writer inserts, renews, expires and evicts at the least limit while two readers look messages
 * up. Time is the number of the message: a reader that does not find one must see that its time had come.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/rcu.h"
#include "hash/fast_key.h"
#include "hash/seen_set.h"

enum {
    MESSAGES = 150000,
    READERS = 2,
    SHORT_WINDOW = 90,
    RENEWED_EVERY = 2
};

static struct seen_set *set;
static uint64_t window;   /* in messages, of the set and of the test */
static bool is_by_window; /* else the limit is what makes messages go */

/*
 * NOW: release store before the writer forgets -> acquire load after a reader did not find.
 * INSERTED: release store after the writer has inserted -> acquire load before a reader looks.
 */
static _Atomic uint64_t now;
static _Atomic uint64_t inserted;
static atomic_bool is_done;
static atomic_size_t found;
static atomic_size_t wrong;

struct message {
    uint32_t topic;
    uint8_t id[SHA256_BYTES];
    uint64_t key;
};

static struct message message_number(uint64_t number)
{
    struct message message = {.topic = (uint32_t)(number % 3)};
    uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9;
        message.id[i] = (uint8_t)(mixed >> 56);
    }
    message.key = fast_key(message.topic, span_of(message.id, SHA256_BYTES));
    return message;
}

static bool is_renewed(uint64_t number)
{
    return is_by_window && number % RENEWED_EVERY == 0;
}

/* The message at or after number that is renewed: with luck it is being queued again right now. */
static uint64_t next_renewed(uint64_t number)
{
    return (number + RENEWED_EVERY - 1) / RENEWED_EVERY * RENEWED_EVERY;
}

static uint64_t end_of(uint64_t number)
{
    return number + (is_renewed(number) ? 2 * window : window);
}

static void look_up(uint64_t number)
{
    struct message message = message_number(number);
    if (seen_set_contains(set, message.topic, message.id)) {
        atomic_fetch_add_explicit(&found, 1, memory_order_relaxed); /* relaxed: only a count */
    } else if (atomic_load_explicit(&now, memory_order_acquire) < end_of(number)) { /* NOW */
        atomic_fetch_add_explicit(&wrong, 1, memory_order_relaxed);
    }
    message.id[5] ^= 1;
    if (seen_set_contains(set, message.topic, message.id)) {
        atomic_fetch_add_explicit(&wrong, 1, memory_order_relaxed);
    }
}

static void look_up_one(uint64_t random, bool is_at_its_end)
{
    uint64_t newest = atomic_load_explicit(&inserted, memory_order_acquire); /* INSERTED */
    if (newest > 2 * window) {
        look_up(is_at_its_end ? next_renewed(newest + 1 - window) : newest - random % (2 * window));
    }
}

static void *read_all_the_while(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    rcu_register();
    while (!atomic_load_explicit(&is_done, memory_order_relaxed)) { /* relaxed: only a flag */
        for (int i = 0; i < 16; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            look_up_one(random >> 33, i > 0);
        }
        rcu_turn_over();
    }
    rcu_unregister();
    return NULL;
}

static void write_all(void)
{
    for (uint64_t number = 1; number <= MESSAGES; number++) {
        struct message message = message_number(number);
        atomic_store_explicit(&now, number, memory_order_release); /* NOW */
        if (seen_set_expire(set, number) ||
                seen_set_insert(set, message.topic, message.id, message.key, number) != STATUS_OK) {
            atomic_fetch_add_explicit(&wrong, 1, memory_order_relaxed);
        }
        if (is_renewed(number)) {
            seen_set_renew(set, message.topic, message.key);
        }
        if (seen_set_find_fast(set, message.topic, message.key) == NULL) {
            atomic_fetch_add_explicit(&wrong, 1, memory_order_relaxed);
        }
        atomic_store_explicit(&inserted, number, memory_order_release); /* INSERTED */
        rcu_turn_over();
    }
}

static void run(uint64_t window_of_set)
{
    pthread_t readers[READERS];
    rcu_register();
    assert_int_equal(seen_set_create(&set, SEEN_SET_MIN_LIMIT_BYTES, window_of_set), STATUS_OK);
    window = is_by_window ? window_of_set : seen_set_capacity(set);
    assert_true(!is_by_window || 2 * window < seen_set_capacity(set));
    atomic_store(&now, 0);
    atomic_store(&inserted, 0);
    atomic_store(&is_done, false);
    atomic_store(&found, 0);
    atomic_store(&wrong, 0);
    for (uintptr_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&readers[i], NULL, read_all_the_while, (void *)i), 0);
    }
    write_all();
    atomic_store(&is_done, true);
    rcu_offline();
    for (size_t i = 0; i < READERS; i++) {
        pthread_join(readers[i], NULL);
    }
    rcu_online();
    assert_int_equal(atomic_load(&wrong), 0);
    assert_true(atomic_load(&found) > 0);
    seen_set_destroy(&set);
    rcu_drain();
    rcu_unregister();
}

static void readers_find_every_message_until_its_window_has_passed(void **state)
{
    (void)state;
    is_by_window = true;
    run(SHORT_WINDOW);
}

static void readers_find_every_message_until_newer_ones_fill_the_set(void **state)
{
    (void)state;
    is_by_window = false;
    run((uint64_t)MESSAGES * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(readers_find_every_message_until_its_window_has_passed),
            cmocka_unit_test(readers_find_every_message_until_newer_ones_fill_the_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
