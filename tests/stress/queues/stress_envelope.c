/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/metrics.h"
#include "tests/stress/queues/messages.h"

/*
 * A table of shared envelopes: its writer keeps replacing them, readers find them inside read-side
 * sections and try to take references, some of which they keep while they are offline.
 */

enum {
    READERS = 3,
    SLOTS = 4
};

struct table {
    struct envelope *slots[SLOTS]; /* RCU */
    struct frame_budget *budget;
    uint64_t replacements;
    atomic_bool is_done;
    atomic_ullong references_taken;
};

struct reader {
    struct table *table;
    uint64_t seed;
    pthread_t thread;
};

static void look_up_one(struct reader *reader, struct envelope **kept)
{
    struct table *table = reader->table;
    struct envelope **slot = &table->slots[random_next(&reader->seed) % SLOTS];
    struct envelope *found = rcu_read(slot);
    if (found == NULL) {
        return;
    }
    /* The section alone keeps it readable, even when its last reference is gone. */
    check_message(found);
    if (*kept == NULL && envelope_try_ref(found)) {
        *kept = found;
        atomic_fetch_add_explicit(&table->references_taken, 1, memory_order_relaxed);
    }
    check_message(found);
}

/* A counted reference is all that may be held here. */
static void pause_offline(const struct envelope *kept)
{
    rcu_offline();
    sched_yield();
    if (kept != NULL) {
        check_message(kept);
    }
    rcu_online();
}

static void *read_table(void *argument)
{
    struct reader *reader = argument;
    struct envelope *kept = NULL;
    rcu_register();
    while (!atomic_load_explicit(&reader->table->is_done, memory_order_acquire)) {
        look_up_one(reader, &kept);
        if (one_in(&reader->seed, 8)) {
            pause_offline(kept);
        }
        if (kept != NULL && one_in(&reader->seed, 2)) {
            check_message(kept);
            envelope_unref(kept);
            kept = NULL;
        }
        rcu_turn_over();
    }
    rcu_offline();
    if (kept != NULL) {
        check_message(kept);
        envelope_unref(kept);
    }
    rcu_online();
    rcu_unregister();
    return NULL;
}

static struct envelope *replace(struct table *table, size_t slot, struct envelope *next)
{
    if (next != NULL) {
        envelope_mark_shared(next);
    }
    return rcu_publish(&table->slots[slot], next);
}

static void replace_many(struct table *table)
{
    uint64_t seed = 99;
    for (uint64_t number = 0; number < table->replacements; number++) {
        struct envelope *next = try_make_message(table->budget, number);
        while (next == NULL) { /* the reclaimer has not come round to what was retired */
            rcu_offline();
            sched_yield();
            rcu_online();
            next = try_make_message(table->budget, number);
        }
        struct envelope *old = replace(table, random_next(&seed) % SLOTS, next);
        if (old != NULL) {
            envelope_unref(old);
        }
        rcu_turn_over();
    }
    for (size_t slot = 0; slot < SLOTS; slot++) {
        struct envelope *old = replace(table, slot, NULL);
        if (old != NULL) {
            envelope_unref(old);
        }
    }
}

static void a_reader_takes_a_live_envelope_or_none(void **state)
{
    (void)state;
    struct table table = {.replacements = rounds(200000)};
    assert_int_equal(frame_budget_create(&table.budget, 1 << 20, 0), STATUS_OK);
    uint64_t made = metrics_sum(NULL, METRIC_ENVELOPES);
    uint64_t freed = metrics_sum(NULL, METRIC_ENVELOPES_FREED);
    struct reader readers[READERS];
    for (uint64_t i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.table = &table, .seed = i + 1};
        start_thread(&readers[i].thread, read_table, &readers[i]);
    }
    rcu_register();
    replace_many(&table);
    rcu_unregister();
    atomic_store_explicit(&table.is_done, true, memory_order_release);
    for (int i = 0; i < READERS; i++) {
        join_thread(readers[i].thread);
    }
    rcu_drain();
    assert_true(table.references_taken > 0);
    assert_int_equal(metrics_sum(NULL, METRIC_ENVELOPES) - made, table.replacements);
    assert_int_equal(metrics_sum(NULL, METRIC_ENVELOPES_FREED) - freed, table.replacements);
    assert_int_equal(frame_budget_used(table.budget), 0);
    frame_budget_destroy(&table.budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_reader_takes_a_live_envelope_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
