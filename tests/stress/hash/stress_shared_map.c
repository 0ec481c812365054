/* SPDX-License-Identifier: MIT */

/* Two writers add and remove objects under few names while two readers find and walk them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "hash/shared_map.h"

enum {
    NAMES = 200,
    STEPS = 120000,
    WRITERS = 2,
    READERS = 2,
    ALIVE = 0x5eed,
    DEAD = 0xdead
};

struct object {
    struct shared_map_node node;
    struct rcu_head reclaim;
    uint32_t name;
    uint32_t name_inverted;
    uint32_t state; /* constant while anybody can find it */
};

static struct shared_map *map;
static atomic_bool is_done;
static atomic_size_t found;
static atomic_size_t wrong;
static atomic_size_t created;
static atomic_size_t freed;

static void count(atomic_size_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed); /* relaxed: only a count */
}

static struct object *object_of(const struct shared_map_node *node)
{
    return (struct object *)((char *)(uintptr_t)node - offsetof(struct object, node));
}

static struct span key_of(const uint32_t *name)
{
    return span_of(name, sizeof(*name));
}

static bool matches(const struct shared_map_node *node, struct span key)
{
    return span_equal(key_of(&object_of(node)->name), key);
}

static void free_object(struct rcu_head *head)
{
    rcu_reclaim_begin();
    struct object *object = (struct object *)((char *)head - offsetof(struct object, reclaim));
    object->state = DEAD;
    free(object);
    count(&freed);
}

static void check(const struct object *object)
{
    if (object->state != ALIVE || object->name != ~object->name_inverted) {
        count(&wrong);
    }
    count(&found);
}

static bool check_visited(struct shared_map_node *node, void *context)
{
    (void)context;
    check(object_of(node));
    return true;
}

static uint32_t next_random(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33);
}

static void find_and_check(uint32_t name)
{
    struct shared_map_node *node = shared_map_find(map, key_of(&name));
    if (node != NULL) {
        check(object_of(node));
    }
}

static void *read_all_the_while(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    rcu_register();
    while (!atomic_load_explicit(&is_done, memory_order_relaxed)) { /* relaxed: only a flag */
        for (int i = 0; i < 16; i++) {
            find_and_check(next_random(&random) % NAMES);
        }
        if (next_random(&random) % 64 == 0) {
            shared_map_for_each(map, check_visited, NULL);
        }
        rcu_turn_over();
    }
    rcu_unregister();
    return NULL;
}

static void add(uint32_t name)
{
    struct object *object = malloc(sizeof(*object));
    if (object == NULL) {
        count(&wrong);
        return;
    }
    object->name = name;
    object->name_inverted = ~name;
    object->state = ALIVE;
    if (shared_map_add_unique(map, key_of(&object->name), &object->node) == &object->node) {
        count(&created);
    } else {
        free(object);
    }
}

static void remove_if_there(uint32_t name)
{
    struct shared_map_node *node = shared_map_find(map, key_of(&name));
    if (node != NULL && shared_map_remove(map, node)) {
        rcu_retire(&object_of(node)->reclaim, free_object);
    }
}

static void *write_all(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument + 100;
    rcu_register();
    for (int step = 0; step < STEPS; step++) {
        uint32_t name = next_random(&random) % NAMES;
        if (next_random(&random) % 2 == 0) {
            add(name);
        } else {
            remove_if_there(name);
        }
        rcu_turn_over();
    }
    rcu_unregister();
    return NULL;
}

static void objects_are_whole_while_found_and_freed_once_after(void **state)
{
    (void)state;
    pthread_t readers[READERS];
    pthread_t writers[WRITERS];
    rcu_register();
    assert_int_equal(shared_map_create(&map, matches), STATUS_OK);
    rcu_offline();
    for (uintptr_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&readers[i], NULL, read_all_the_while, (void *)i), 0);
    }
    for (uintptr_t i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_create(&writers[i], NULL, write_all, (void *)i), 0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        pthread_join(writers[i], NULL);
    }
    atomic_store(&is_done, true);
    for (size_t i = 0; i < READERS; i++) {
        pthread_join(readers[i], NULL);
    }
    rcu_online();
    assert_true(atomic_load(&found) > 0);
    assert_true(shared_map_count(map) <= NAMES);
    for (uint32_t name = 0; name < NAMES; name++) {
        remove_if_there(name);
    }
    assert_int_equal(shared_map_count(map), 0);
    shared_map_destroy(&map);
    rcu_turn_over();
    rcu_drain();
    rcu_unregister();
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(atomic_load(&freed), atomic_load(&created));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(objects_are_whole_while_found_and_freed_once_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
