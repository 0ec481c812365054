/* SPDX-License-Identifier: MIT */

/*
 * One thread subscribes and unsubscribes, others look names up. Whatever a reader finds has the name
 * that it asked for, and what the writer made before subscribing is visible to who finds it.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "router/topic_registry.h"

enum {
    TOPICS = 64,
    READERS = 3,
    ROUNDS = 400
};

#define CHECK(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

static void fail(const char *condition, int line)
{
    fprintf(stderr, "%s:%d: %s\n", __FILE__, line, condition);
    abort();
}

static struct topic_registry *registry;
static char names[TOPICS][32];
static unsigned prepared[TOPICS]; /* written before the topic is first subscribed */
static atomic_bool stopping;

static uint64_t check_topic(int i)
{
    const struct topic *topic = topic_registry_find_subscribed(registry, span_of_text(names[i]));
    if (topic == NULL) {
        return 0;
    }
    CHECK(span_equal(topic->name, span_of_text(names[i])));
    CHECK(topic == topic_registry_at(registry, topic->index));
    CHECK(prepared[i] == 7);
    return 1;
}

static void *look_up(void *argument)
{
    uint64_t *found = argument;
    /* relaxed: the flag orders nothing, the join does */
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        for (int i = 0; i < TOPICS; i++) {
            *found += check_topic(i);
        }
    }
    return NULL;
}

static void prepare(int i, int round)
{
    if (round == 0) {
        prepared[i] = 7;
    }
}

int main(void)
{
    pthread_t readers[READERS];
    uint64_t found[READERS] = {0};
    struct topic_registry_options options = {.max_topics = TOPICS, .lane_count = 2};
    CHECK(topic_registry_create(&registry, &options) == STATUS_OK);
    for (int i = 0; i < TOPICS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "/waku/2/rs/7/%d", i);
    }
    for (int i = 0; i < READERS; i++) {
        CHECK(pthread_create(&readers[i], NULL, look_up, &found[i]) == 0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < TOPICS; i++) {
            prepare(i, round);
            CHECK(topic_registry_subscribe(registry, NULL, span_of_text(names[i])) == STATUS_OK);
        }
        for (int i = round % 2; i < TOPICS; i += 2) {
            CHECK(topic_registry_unsubscribe(registry, span_of_text(names[i])) == STATUS_OK);
            CHECK(topic_registry_find_subscribed(registry, span_of_text(names[i])) == NULL);
        }
    }
    atomic_store_explicit(&stopping, true, memory_order_relaxed);
    uint64_t total = 0;
    for (int i = 0; i < READERS; i++) {
        CHECK(pthread_join(readers[i], NULL) == 0);
        total += found[i];
    }
    CHECK(topic_registry_count(registry) == TOPICS);
    topic_registry_destroy(&registry);
    printf("%llu lookups found their topic\n", (unsigned long long)total);
    return 0;
}
