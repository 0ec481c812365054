/* SPDX-License-Identifier: MIT */
#include "tests/support/cmocka.h"

#include <string.h>
#include <unistd.h>

#include "base/rcu.h"
#include "node/node_private.h"

enum {
    PATIENCE_S = 60 /* a node that hangs ends the test */
};

static struct options *make_options(void)
{
    static const struct option_spec *const tables[] = {options_of_node, NULL};
    struct options *options;
    assert_int_equal(options_create(&options, tables), STATUS_OK);
    return options;
}

static void set(struct options *options, const char *name, const char *value)
{
    struct options_error error;
    assert_int_equal(options_set(options, name, value, &error), STATUS_OK);
}

static void has_room_for_all_lanes_and_filter_threads_that_the_options_allow(void **state)
{
    (void)state;
    struct node *node;
    struct node_error error;
    struct node_hooks hooks = {.event = NULL};
    struct options *options = make_options();
    set(options, "decode-lanes", "16");
    set(options, "filter-threads", "16");
    set(options, "filter-ring", "16");
    assert_int_equal(node_create(&node, options, &hooks, &error), STATUS_OK);
    node_destroy(&node);
    options_destroy(&options);
}

static void limits_come_from_the_options(void **state)
{
    (void)state;
    struct node *node;
    struct node_error error;
    struct node_hooks hooks = {.event = NULL};
    struct options *options = make_options();
    set(options, "decode-lanes", "2");
    set(options, "filter-threads", "3");
    set(options, "filter-max-peers-to-serve", "10");
    set(options, "filter-max-criteria", "7");
    set(options, "filter-subscription-timeout", "90s");
    set(options, "timestamp-tolerance", "5s");
    set(options, "seen-window", "30s");
    set(options, "memory-budget", "16MiB");
    set(options, "relay-cache-limit", "1MiB");
    assert_int_equal(node_create(&node, options, &hooks, &error), STATUS_OK);
    const struct node_settings *settings = &node->settings;
    assert_int_equal(settings->filter.peers_max, 10);
    assert_int_equal(settings->filter.criteria_per_peer_max, 7);
    assert_int_equal(settings->filter.expiry_ns, UINT64_C(90000000000));
    assert_int_equal(settings->lane.timestamp_tolerance_ns, UINT64_C(5000000000));
    assert_int_equal(settings->lane.seen_window_ns, UINT64_C(30000000000));
    assert_int_equal(settings->relay_cache_bytes, 1 << 20);
    assert_int_equal(settings->lane.recent_limit_bytes, 2 << 20); /* a quarter of the budget */
    node_destroy(&node);
    options_destroy(&options);
}

static struct node *node_with_queries(struct options **options, const char *threads)
{
    struct node *node;
    struct node_error error;
    struct node_hooks hooks = {.has_network = true};
    *options = make_options();
    set(*options, "archive", "memory");
    set(*options, "store", "true");
    set(*options, "listen-address", "127.0.0.1");
    set(*options, "tcp-port", "0");
    set(*options, "query-threads", threads);
    assert_int_equal(node_create(&node, *options, &hooks, &error), STATUS_OK);
    return node;
}

static size_t threads_of(const struct node *node, enum node_role role)
{
    size_t count = 0;
    for (size_t i = 0; i < node->thread_count; i++) {
        count += node->threads[i].role == role;
    }
    return count;
}

static void has_as_many_query_threads_as_it_is_told_or_as_the_machine_is_large(void **state)
{
    (void)state;
    struct options *options;
    struct cpu_set cpus;
    struct node *node = node_with_queries(&options, "16");
    assert_int_equal(threads_of(node, NODE_ROLE_QUERY), 16);
    node_destroy(&node);
    options_destroy(&options);

    assert_int_equal(cpu_set_allowed(&cpus), STATUS_OK);
    node = node_with_queries(&options, "0");
    assert_int_equal(threads_of(node, NODE_ROLE_QUERY), cpu_set_count(&cpus) > 4 ? 2 : 1);
    node_destroy(&node);
    options_destroy(&options);
}

static enum status refuse_to_start(void *context)
{
    (void)context;
    return STATUS_SYSTEM;
}

static size_t do_nothing(void *context)
{
    (void)context;
    return 0;
}

/* By one that does not start. */
static void replace_thread(struct node *node, struct node_thread *thread)
{
    static struct parking parking;
    struct worker_role broken = {
            .name = "broken", .start = refuse_to_start, .turn = do_nothing, .parking = &parking};
    struct worker_options options = {.idle = IDLE_PARK, .metrics = node->metrics};
    parking_init(&parking);
    worker_destroy(&thread->worker);
    assert_int_equal(worker_create(&thread->worker, &broken, &options), STATUS_OK);
}

/* The first thread of the role does not start. */
static void break_role(struct node *node, enum node_role role)
{
    size_t i = 0;
    while (node->threads[i].role != role) {
        i++;
    }
    replace_thread(node, &node->threads[i]);
}

static void end_with_broken(enum node_role role)
{
    struct node *node;
    struct node_error error;
    struct node_hooks hooks = {.has_network = true};
    struct options *options = make_options();
    set(options, "archive", "none");
    set(options, "listen-address", "127.0.0.1");
    set(options, "tcp-port", "0");
    set(options, "io-threads", "2");
    assert_int_equal(node_create(&node, options, &hooks, &error), STATUS_OK);
    break_role(node, role);
    alarm(PATIENCE_S);
    assert_int_equal(node_start(node, &error), STATUS_SYSTEM);
    node_stop(node);
    node_destroy(&node);
    alarm(0);
    options_destroy(&options);
}

static void ends_in_order_when_a_thread_before_the_network_does_not_start(void **state)
{
    (void)state;
    end_with_broken(NODE_ROLE_FILTER);
}

static void ends_in_order_when_the_last_query_thread_does_not_start(void **state)
{
    (void)state;
    struct options *options;
    struct node_error error;
    struct node *node = node_with_queries(&options, "3");
    struct node_thread *last = &node->threads[node->thread_count - 1];
    while (last->role != NODE_ROLE_QUERY) {
        last--;
    }
    replace_thread(node, last);
    alarm(PATIENCE_S);
    assert_int_equal(node_start(node, &error), STATUS_SYSTEM);
    node_stop(node);
    node_destroy(&node);
    alarm(0);
    options_destroy(&options);
}

static void ends_in_order_when_a_thread_of_the_network_does_not_start(void **state)
{
    (void)state;
    end_with_broken(NODE_ROLE_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(has_room_for_all_lanes_and_filter_threads_that_the_options_allow),
            cmocka_unit_test(limits_come_from_the_options),
            cmocka_unit_test(ends_in_order_when_a_thread_before_the_network_does_not_start),
            cmocka_unit_test(has_as_many_query_threads_as_it_is_told_or_as_the_machine_is_large),
            cmocka_unit_test(ends_in_order_when_the_last_query_thread_does_not_start),
            cmocka_unit_test(ends_in_order_when_a_thread_of_the_network_does_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
