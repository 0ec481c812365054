/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "router/topic_registry.h"

static struct topic_registry *create(uint32_t max_topics, uint32_t lanes)
{
    struct topic_registry *registry = NULL;
    struct topic_registry_options options = {.max_topics = max_topics, .lane_count = lanes};
    assert_int_equal(topic_registry_create(&registry, &options), STATUS_OK);
    return registry;
}

static const struct topic *subscribe(struct topic_registry *registry, const char *name)
{
    const struct topic *topic = NULL;
    assert_int_equal(topic_registry_subscribe(registry, &topic, span_of_text(name)), STATUS_OK);
    return topic;
}

static void interns_a_name_once_with_a_dense_index(void **state)
{
    (void)state;
    struct topic_registry *registry = create(8, 1);
    char name[] = "/waku/2/rs/1/0";
    const struct topic *first = subscribe(registry, name);
    name[0] = 'x'; /* the registry has a copy of its own */
    const struct topic *second = subscribe(registry, "/waku/2/rs/1/1");
    assert_int_equal(first->index, 0);
    assert_int_equal(second->index, 1);
    assert_ptr_equal(subscribe(registry, "/waku/2/rs/1/0"), first);
    assert_int_equal(topic_registry_count(registry), 2);
    assert_ptr_equal(topic_registry_at(registry, 1), second);
    assert_string_equal((const char *)first->name.bytes, "/waku/2/rs/1/0");
    assert_int_equal(first->name.length, strlen("/waku/2/rs/1/0"));
    topic_registry_destroy(&registry);
    assert_null(registry);
}

static void finds_nothing_that_is_not_subscribed_now(void **state)
{
    (void)state;
    struct topic_registry *registry = create(8, 1);
    struct span name = span_of_text("/waku/2/rs/1/0");
    assert_null(topic_registry_find_subscribed(registry, name));
    assert_int_equal(topic_registry_unsubscribe(registry, name), STATUS_NOT_FOUND);
    const struct topic *topic = subscribe(registry, "/waku/2/rs/1/0");
    assert_ptr_equal(topic_registry_find_subscribed(registry, name), topic);
    assert_int_equal(topic_registry_unsubscribe(registry, name), STATUS_OK);
    assert_null(topic_registry_find_subscribed(registry, name));
    assert_ptr_equal(topic_registry_find_interned(registry, name), topic);
    assert_false(topic_registry_is_subscribed(registry, topic));
    assert_string_equal((const char *)topic->name.bytes, "/waku/2/rs/1/0");
    assert_int_equal(topic_registry_unsubscribe(registry, name), STATUS_NOT_FOUND);
    assert_ptr_equal(subscribe(registry, "/waku/2/rs/1/0"), topic);
    assert_true(topic_registry_is_subscribed(registry, topic));
    topic_registry_destroy(&registry);
}

static void an_interned_topic_is_known_but_not_subscribed(void **state)
{
    (void)state;
    struct topic_registry *registry = create(1, 1);
    struct span name = span_of_text("/waku/2/rs/1/0");
    assert_int_equal(topic_registry_intern(registry, name), STATUS_OK);
    assert_int_equal(topic_registry_intern(registry, name), STATUS_OK);
    const struct topic *topic = topic_registry_find_interned(registry, name);
    assert_non_null(topic);
    assert_null(topic_registry_find_subscribed(registry, name));
    assert_ptr_equal(subscribe(registry, "/waku/2/rs/1/0"), topic);
    assert_int_equal(topic_registry_intern(registry, name), STATUS_OK);
    assert_true(topic_registry_is_subscribed(registry, topic));
    assert_int_equal(topic_registry_intern(registry, span_of_text("/t")), STATUS_LIMIT_REACHED);
    assert_int_equal(topic_registry_intern(registry, span_of_text("")), STATUS_BAD_TOPIC);
    topic_registry_destroy(&registry);
}

static void refuses_one_topic_past_the_limit_and_keeps_the_others(void **state)
{
    (void)state;
    enum {
        LIMIT = 1024
    };
    struct topic_registry *registry = create(LIMIT, 3);
    char name[64];
    for (int i = 0; i < LIMIT; i++) {
        (void)snprintf(name, sizeof(name), "/waku/2/rs/1/%d", i);
        assert_int_equal(subscribe(registry, name)->index, i);
    }
    assert_int_equal(topic_registry_subscribe(registry, NULL, span_of_text("/waku/2/rs/2/0")),
            STATUS_LIMIT_REACHED);
    for (int i = 0; i < LIMIT; i++) {
        (void)snprintf(name, sizeof(name), "/waku/2/rs/1/%d", i);
        const struct topic *topic = topic_registry_find_subscribed(registry, span_of_text(name));
        assert_non_null(topic);
        assert_int_equal(topic->index, i);
        assert_int_equal(topic->lane, i % 3);
    }
    topic_registry_destroy(&registry);
}

static void refuses_names_that_no_topic_has(void **state)
{
    (void)state;
    struct topic_registry *registry = create(8, 1);
    uint8_t name[TOPIC_NAME_MAX_BYTES + 1];
    memset(name, 't', sizeof(name));
    assert_int_equal(topic_registry_subscribe(registry, NULL, span_of(NULL, 0)), STATUS_BAD_TOPIC);
    assert_int_equal(
            topic_registry_subscribe(registry, NULL, span_of("a\0b", 3)), STATUS_BAD_TOPIC);
    assert_int_equal(topic_registry_subscribe(registry, NULL, span_of(name, sizeof(name))),
            STATUS_BAD_TOPIC);
    assert_int_equal(topic_registry_subscribe(registry, NULL, span_of(name, TOPIC_NAME_MAX_BYTES)),
            STATUS_OK);
    assert_null(topic_registry_find_subscribed(registry, span_of(name, sizeof(name))));
    assert_null(topic_registry_find_subscribed(registry, span_of(NULL, 0)));
    assert_int_equal(topic_registry_count(registry), 1);
    topic_registry_destroy(&registry);
}

static void assigns_lanes_by_name_alone_when_told_to_hash(void **state)
{
    (void)state;
    struct topic_registry_options options = {
            .max_topics = 256, .lane_count = 4, .lane_policy = TOPIC_LANE_BY_HASH};
    struct topic_registry *one = NULL;
    struct topic_registry *other = NULL;
    assert_int_equal(topic_registry_create(&one, &options), STATUS_OK);
    assert_int_equal(topic_registry_create(&other, &options), STATUS_OK);
    unsigned used[4] = {0};
    char name[64];
    for (int i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof(name), "/waku/2/rs/1/%d", i);
        used[subscribe(one, name)->lane]++;
    }
    for (int i = 199; i >= 0; i--) {
        (void)snprintf(name, sizeof(name), "/waku/2/rs/1/%d", i);
        const struct topic *topic = topic_registry_find_interned(one, span_of_text(name));
        assert_int_equal(subscribe(other, name)->lane, topic->lane);
    }
    for (int lane = 0; lane < 4; lane++) {
        assert_true(used[lane] > 0);
    }
    topic_registry_destroy(&one);
    topic_registry_destroy(&other);
}

static void refuses_options_that_make_no_sense(void **state)
{
    (void)state;
    struct topic_registry *registry = NULL;
    struct topic_registry_options options = {.max_topics = 0, .lane_count = 1};
    assert_int_equal(topic_registry_create(&registry, &options), STATUS_BAD_ARGUMENT);
    options = (struct topic_registry_options){.max_topics = 1, .lane_count = 0};
    assert_int_equal(topic_registry_create(&registry, &options), STATUS_BAD_ARGUMENT);
    options = (struct topic_registry_options){.max_topics = 65537, .lane_count = 1};
    assert_int_equal(topic_registry_create(&registry, &options), STATUS_BAD_ARGUMENT);
    assert_null(registry);
    topic_registry_destroy(&registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(interns_a_name_once_with_a_dense_index),
            cmocka_unit_test(finds_nothing_that_is_not_subscribed_now),
            cmocka_unit_test(an_interned_topic_is_known_but_not_subscribed),
            cmocka_unit_test(refuses_one_topic_past_the_limit_and_keeps_the_others),
            cmocka_unit_test(refuses_names_that_no_topic_has),
            cmocka_unit_test(assigns_lanes_by_name_alone_when_told_to_hash),
            cmocka_unit_test(refuses_options_that_make_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
