/* SPDX-License-Identifier: MIT */

/*
 * One thread interns topics and subscribes to others while readers look them up. One kind of reader
 * follows what is interned, the other what is subscribed, so that neither ordering covers for the
 * other: who finds a new topic reads its name, who finds one subscribed reads what was set up before.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "router/topic_registry.h"

enum {
    EARLY = 500, /* interned before the readers start, subscribed while they run */
    LATE = 500,  /* interned while they run */
    PAUSE = 200
};

#define CHECK(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

static void fail(const char *condition, int line)
{
    fprintf(stderr, "%s:%d: %s\n", __FILE__, line, condition);
    abort();
}

static struct topic_registry *registry;
static char early[EARLY][32];
static char late[LATE][32];
static unsigned prepared[EARLY]; /* written before the topic is subscribed */
static atomic_bool stopping;
static atomic_uint turns; /* of all readers */

static bool is_stopping(void)
{
    /* relaxed, both: they order nothing, the join does */
    atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
    return atomic_load_explicit(&stopping, memory_order_relaxed);
}

static void *follow_interned(void *argument)
{
    size_t *found = argument;
    while (!is_stopping()) {
        for (int i = 0; i < LATE; i++) {
            const struct topic *topic =
                    topic_registry_find_interned(registry, span_of_text(late[i]));
            CHECK(topic == NULL || topic->index == (uint32_t)(EARLY + i));
            *found += topic != NULL;
        }
    }
    return NULL;
}

static void *follow_subscribed(void *argument)
{
    size_t *found = argument;
    while (!is_stopping()) {
        for (int i = 0; i < EARLY; i++) {
            const struct topic *topic =
                    topic_registry_find_subscribed(registry, span_of_text(early[i]));
            CHECK(topic == NULL || prepared[i] == 7);
            *found += topic != NULL;
        }
    }
    return NULL;
}

static void prepare_early(void)
{
    for (int i = 0; i < EARLY; i++) {
        (void)snprintf(early[i], sizeof(early[i]), "/waku/2/rs/7/%d", i);
        CHECK(topic_registry_subscribe(registry, NULL, span_of_text(early[i])) == STATUS_OK);
        CHECK(topic_registry_unsubscribe(registry, span_of_text(early[i])) == STATUS_OK);
    }
    for (int i = 0; i < LATE; i++) {
        (void)snprintf(late[i], sizeof(late[i]), "/waku/2/rs/8/%d", i);
    }
}

/* Long enough that readers meet most of the states. */
static void let_readers_turn(void)
{
    /* relaxed: see is_stopping */
    unsigned before = atomic_load_explicit(&turns, memory_order_relaxed);
    for (int i = 0; i < PAUSE; i++) {
        if (atomic_load_explicit(&turns, memory_order_relaxed) != before) {
            return;
        }
    }
}

int main(void)
{
    pthread_t readers[2];
    size_t found[2] = {0};
    struct topic_registry_options options = {.max_topics = EARLY + LATE, .lane_count = 2};
    CHECK(topic_registry_create(&registry, &options) == STATUS_OK);
    prepare_early();
    CHECK(pthread_create(&readers[0], NULL, follow_interned, &found[0]) == 0);
    CHECK(pthread_create(&readers[1], NULL, follow_subscribed, &found[1]) == 0);
    for (int i = 0; i < EARLY; i++) {
        prepared[i] = 7;
        CHECK(topic_registry_subscribe(registry, NULL, span_of_text(early[i])) == STATUS_OK);
        CHECK(topic_registry_subscribe(registry, NULL, span_of_text(late[i])) == STATUS_OK);
        let_readers_turn();
    }
    unsigned done = atomic_load_explicit(&turns, memory_order_relaxed);
    while (atomic_load_explicit(&turns, memory_order_relaxed) < done + 6) {
        let_readers_turn(); /* both see the final state */
    }
    atomic_store_explicit(&stopping, true, memory_order_relaxed);
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(readers[i], NULL) == 0);
    }
    CHECK(topic_registry_count(registry) == EARLY + LATE);
    CHECK(found[0] + found[1] > 0);
    topic_registry_destroy(&registry);
    printf("%zu interned and %zu subscribed topics seen\n", found[0], found[1]);
    return 0;
}
