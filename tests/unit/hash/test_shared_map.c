/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash/shared_map.h"

enum {
    OBJECTS = 3000
};

struct object {
    struct shared_map_node node;
    struct rcu_head reclaim;
    bool is_visited;
    char name[24];
};

static struct shared_map *map;
static atomic_size_t freed; /* by the reclaimer thread */

static struct object *object_of(const struct shared_map_node *node)
{
    return (struct object *)((char *)(uintptr_t)node - offsetof(struct object, node));
}

static bool matches(const struct shared_map_node *node, struct span key)
{
    return span_equal(span_of_text(object_of(node)->name), key);
}

static void free_object(struct rcu_head *head)
{
    rcu_reclaim_begin();
    atomic_fetch_add(&freed, 1);
    free((char *)head - offsetof(struct object, reclaim));
}

static struct object *object_number(int number)
{
    struct object *object = calloc(1, sizeof(*object));
    assert_non_null(object);
    snprintf(object->name, sizeof(object->name), "object %d", number);
    return object;
}

static struct object *find(int number)
{
    char name[24];
    snprintf(name, sizeof(name), "object %d", number);
    struct shared_map_node *node = shared_map_find(map, span_of_text(name));
    return node == NULL ? NULL : object_of(node);
}

static struct object *add(int number)
{
    struct object *object = object_number(number);
    struct span name = span_of_text(object->name);
    assert_ptr_equal(shared_map_add_unique(map, name, &object->node), &object->node);
    return object;
}

static int start(void **state)
{
    (void)state;
    rcu_register();
    atomic_store(&freed, 0);
    return shared_map_create(&map, matches) == STATUS_OK ? 0 : -1;
}

static bool retire_all(struct shared_map_node *node, void *context)
{
    (void)context;
    assert_true(shared_map_remove(map, node));
    rcu_retire(&object_of(node)->reclaim, free_object);
    return true;
}

static int stop(void **state)
{
    (void)state;
    shared_map_for_each(map, retire_all, NULL);
    shared_map_destroy(&map);
    assert_null(map);
    rcu_drain();
    rcu_unregister();
    return 0;
}

static void finds_by_name_what_was_added(void **state)
{
    (void)state;
    for (int i = 0; i < OBJECTS; i++) {
        add(i);
    }
    assert_int_equal(shared_map_count(map), OBJECTS);
    for (int i = 0; i < OBJECTS; i++) {
        char name[24];
        snprintf(name, sizeof(name), "object %d", i);
        assert_string_equal(find(i)->name, name);
    }
    assert_null(find(OBJECTS));
}

static void keeps_the_first_object_of_a_name(void **state)
{
    (void)state;
    struct object *first = add(1);
    struct object *second = object_number(1);
    struct span name = span_of_text(second->name);
    assert_ptr_equal(shared_map_add_unique(map, name, &second->node), &first->node);
    assert_int_equal(shared_map_count(map), 1);
    free(second);
}

static void removes_an_object_once(void **state)
{
    (void)state;
    struct object *object = add(1);
    assert_true(shared_map_remove(map, &object->node));
    assert_false(shared_map_remove(map, &object->node));
    assert_null(find(1));
    assert_int_equal(shared_map_count(map), 0);
    rcu_retire(&object->reclaim, free_object);
    rcu_turn_over();
    rcu_drain();
    assert_int_equal(atomic_load(&freed), 1);
}

static bool visit_once(struct shared_map_node *node, void *context)
{
    size_t *visits = context;
    assert_false(object_of(node)->is_visited);
    object_of(node)->is_visited = true;
    return ++*visits < OBJECTS / 2;
}

static void walks_every_object_once_until_told_to_stop(void **state)
{
    (void)state;
    size_t visits = 0;
    for (int i = 0; i < OBJECTS / 2 - 1; i++) {
        add(i);
    }
    shared_map_for_each(map, visit_once, &visits);
    assert_int_equal(visits, OBJECTS / 2 - 1);
    for (int i = 0; i < OBJECTS / 2 - 1; i++) {
        find(i)->is_visited = false;
    }
    for (int i = OBJECTS / 2 - 1; i < OBJECTS; i++) {
        add(i);
    }
    visits = 0;
    shared_map_for_each(map, visit_once, &visits);
    assert_int_equal(visits, OBJECTS / 2);
}

static void tells_keys_apart_that_hold_zero_bytes_or_nothing(void **state)
{
    (void)state;
    struct object *empty = object_number(0);
    empty->name[0] = '\0';
    struct span name = span_of(NULL, 0);
    assert_ptr_equal(shared_map_add_unique(map, name, &empty->node), &empty->node);
    assert_ptr_equal(shared_map_find(map, name), &empty->node);
    assert_null(shared_map_find(map, span_of("\0", 1)));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
            TEST(finds_by_name_what_was_added),
            TEST(keeps_the_first_object_of_a_name),
            TEST(removes_an_object_once),
            TEST(walks_every_object_once_until_told_to_stop),
            TEST(tells_keys_apart_that_hold_zero_bytes_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
