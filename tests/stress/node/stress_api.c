/* SPDX-License-Identifier: MIT */

/*
 * Threads publish, others subscribe and end, and the node stops in the middle of it: every publish
 * that was taken is told of once, and nothing is called after its end.
 */

#include <sluice.h>

#include <pthread.h>

#include "tests/support/api_fixture.h"

enum {
    PUBLISHERS = 3,
    SUBSCRIBERS = 3,
    ROUNDS = 20,
    OUTCOMES_BEFORE_STOP = 100
};

struct life {
    struct sluice_node *node;
    atomic_size_t taken;
    atomic_size_t told;
    atomic_size_t called;
    atomic_bool is_stopped;
};

static void take_outcome(
        void *context, enum sluice_outcome outcome, size_t peer_count, const char *reason)
{
    struct life *life = context;
    assert_true(outcome == SLUICE_SENT || outcome == SLUICE_DUPLICATE);
    assert_int_equal(peer_count, 0);
    assert_non_null(reason);
    assert_false(atomic_load(&life->is_stopped));
    atomic_fetch_add(&life->told, 1);
}

static void *publish(void *context)
{
    struct life *life = context;
    struct sluice_message message = api_message("a message");
    for (;;) {
        enum sluice_result result = sluice_node_publish(life->node, &message, take_outcome, life);
        if (result == SLUICE_NOT_RUNNING) {
            return NULL;
        }
        assert_true(result == SLUICE_OK || result == SLUICE_LIMIT_REACHED);
        if (result == SLUICE_OK) {
            atomic_fetch_add(&life->taken, 1);
        } else {
            sched_yield();
        }
    }
}

/* One subscription from its begin to its end. */
struct spell {
    struct life *life;
    atomic_bool is_over;
};

static void take_message(void *context, struct sluice_envelope *envelope)
{
    struct spell *spell = context;
    assert_false(atomic_load(&spell->is_over));
    struct sluice_envelope *kept = sluice_envelope_ref(envelope);
    atomic_fetch_add(&spell->life->called, 1);
    sluice_envelope_unref(kept);
}

static void *subscribe(void *context)
{
    struct life *life = context;
    for (;;) {
        struct spell spell = {.life = life};
        struct sluice_subscription *subscription = NULL;
        size_t before = atomic_load(&life->called);
        enum sluice_result result =
                sluice_node_subscribe(life->node, API_TOPIC, take_message, &spell, &subscription);
        if (result == SLUICE_NOT_RUNNING) {
            return NULL;
        }
        assert_int_equal(result, SLUICE_OK);
        while (atomic_load(&life->called) == before && !atomic_load(&life->is_stopped)) {
            sched_yield();
        }
        sluice_subscription_end(&subscription);
        atomic_store(&spell.is_over, true);
    }
}

static void live(void)
{
    static const char *const values[] = {
            "memory-budget", "1MiB", "publish-limit", "256", "event-ring", "64", NULL};
    struct life life = {.node = api_made(values)};
    pthread_t threads[PUBLISHERS + SUBSCRIBERS];
    struct sluice_subscription *always = NULL;
    struct spell spell = {.life = &life};
    assert_int_equal(
            sluice_node_subscribe(life.node, API_TOPIC, take_message, &spell, &always), SLUICE_OK);
    api_start(life.node);
    for (size_t i = 0; i < PUBLISHERS + SUBSCRIBERS; i++) {
        assert_int_equal(
                pthread_create(&threads[i], NULL, i < PUBLISHERS ? publish : subscribe, &life), 0);
    }
    api_wait_count(&life.told, OUTCOMES_BEFORE_STOP);
    assert_int_equal(sluice_node_stop(life.node), SLUICE_OK);
    atomic_store(&life.is_stopped, true);
    for (size_t i = 0; i < PUBLISHERS + SUBSCRIBERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&life.taken), atomic_load(&life.told));
    assert_true(atomic_load(&life.called) > 0);
    api_destroy(&life.node);
}

static void every_publish_is_told_of_once_and_nothing_is_called_after_its_end(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        live();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_publish_is_told_of_once_and_nothing_is_called_after_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
