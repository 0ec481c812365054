/* SPDX-License-Identifier: MIT */

/*
 * One writer subscribes, unsubscribes, drops and expires; readers look criteria up and use the
 * contexts they find. A context is poisoned when it is released, so that a reader that comes too late
 * is seen, and every context is released exactly once.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rcu.h"
#include "router/subscriptions.h"

enum {
    TOPICS = 8,
    PEERS = 12,
    READERS = 2,
    ROUNDS = 20000,
    ALIVE = 0x600D,
    DEAD = 0xDEAD
};

#define CHECK(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

static void fail(const char *condition, int line)
{
    fprintf(stderr, "%s:%d: %s\n", __FILE__, line, condition);
    abort();
}

struct context {
    uint64_t id;
    unsigned mark;
};

static struct subscriptions *subscriptions;
static char names[TOPICS][32];
static atomic_bool stopping;
static atomic_ulong made;
static atomic_ulong released;

static void release(void *context)
{
    struct context *old = context;
    CHECK(old->mark == ALIVE);
    old->mark = DEAD;
    free(old);
    atomic_fetch_add(&released, 1);
}

static uint64_t use_list_of(int topic)
{
    const struct subscriber_list *list = subscriptions_find_list(
            subscriptions, span_of_text("/waku/2/rs/7/0"), span_of_text(names[topic]));
    size_t count = list == NULL ? 0 : list->count;
    for (size_t i = 0; i < count; i++) {
        const struct context *context = list->entries[i].context;
        CHECK(context->mark == ALIVE);
        CHECK(context->id == list->entries[i].id);
    }
    return count;
}

static void *look_up(void *argument)
{
    uint64_t *found = argument;
    rcu_register();
    /* relaxed: the flag orders nothing, the join does */
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        for (int i = 0; i < TOPICS; i++) {
            *found += use_list_of(i);
        }
        rcu_turn_over();
    }
    rcu_unregister();
    return NULL;
}

static void subscribe(uint64_t id, const struct subscription_request *request, uint64_t now_ns)
{
    struct context *context = malloc(sizeof(*context));
    CHECK(context != NULL);
    *context = (struct context){.id = id, .mark = ALIVE};
    struct subscriber_entry entry = {.id = id, .context = context};
    bool is_new = false;
    CHECK(subscriptions_subscribe(subscriptions, entry, request, now_ns, &is_new) ==
            SUBSCRIPTION_OK);
    if (is_new) {
        atomic_fetch_add(&made, 1);
    } else {
        free(context);
    }
}

static void change(unsigned *random, uint64_t now_ns)
{
    struct span wanted[2];
    uint64_t id = (uint64_t)rand_r(random) % PEERS;
    wanted[0] = span_of_text(names[rand_r(random) % TOPICS]);
    wanted[1] = span_of_text(names[rand_r(random) % TOPICS]);
    struct subscription_request request = {span_of_text("/waku/2/rs/7/0"), wanted, 2, NULL};
    switch (rand_r(random) % 8) {
    case 0:
        (void)subscriptions_drop(subscriptions, id);
        break;
    case 1:
        (void)subscriptions_expire(subscriptions, now_ns, 1);
        break;
    case 2:
    case 3:
        CHECK(subscriptions_unsubscribe(subscriptions, id, &request, now_ns) !=
                SUBSCRIPTION_BAD_REQUEST);
        break;
    default:
        subscribe(id, &request, now_ns);
        break;
    }
}

int main(void)
{
    pthread_t readers[READERS];
    uint64_t found[READERS] = {0};
    unsigned random = 42;
    struct subscriptions_options options = subscriptions_defaults;
    options.release_context = release;
    options.expiry_ns = 20;
    rcu_register();
    CHECK(subscriptions_create(&subscriptions, &options) == STATUS_OK);
    for (int i = 0; i < TOPICS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "/app/1/%d/proto", i);
    }
    for (int i = 0; i < READERS; i++) {
        CHECK(pthread_create(&readers[i], NULL, look_up, &found[i]) == 0);
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        change(&random, round);
        rcu_turn_over();
    }
    atomic_store_explicit(&stopping, true, memory_order_relaxed);
    rcu_offline();
    uint64_t total = 0;
    for (int i = 0; i < READERS; i++) {
        CHECK(pthread_join(readers[i], NULL) == 0);
        total += found[i];
    }
    rcu_online();
    subscriptions_destroy(&subscriptions);
    rcu_drain();
    rcu_unregister();
    CHECK(atomic_load(&made) == atomic_load(&released));
    printf("%lu contexts released, %llu seen by readers\n", atomic_load(&released),
            (unsigned long long)total);
    return 0;
}
