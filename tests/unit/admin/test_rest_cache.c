/* SPDX-License-Identifier: MIT */
#include "admin/rest_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/rest_format.h"
#include "base/metrics.h"
#include "tests/support/cmocka.h"

enum {
    MESSAGES_MAX = 4,
    BYTES_MAX = 64 * 1024,
    TOPICS_MAX = 3
};

static struct rest_cache *made_cache(void)
{
    struct rest_cache_options options = {
            .messages_max = MESSAGES_MAX, .bytes_max = BYTES_MAX, .topics_max = TOPICS_MAX};
    struct rest_cache *cache;
    assert_int_equal(rest_cache_create(&cache, &options), STATUS_OK);
    return cache;
}

static void subscribe(struct rest_cache *cache, enum rest_topic_kind kind, const char *topic)
{
    assert_int_equal(rest_cache_subscribe(cache, kind, span_of_text(topic)), STATUS_OK);
}

static void add(struct rest_cache *cache, const char *pubsub, const char *content, size_t payload)
{
    static uint8_t bytes[2 * BYTES_MAX];
    static uint8_t filler[BYTES_MAX];
    struct waku_message_view fields = {.payload = span_of(filler, payload),
            .content_topic = span_of_text(content),
            .timestamp_ns = (int64_t)payload,
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true};
    size_t length = waku_message_encode(bytes, sizeof(bytes), &fields);
    assert_true(length > 0);
    rest_cache_add_bytes(cache, span_of_text(pubsub), span_of(bytes, length));
}

/* How many there are of the topic, and the first one's payload length. */
static size_t fetched(
        struct rest_cache *cache, enum rest_topic_kind kind, const char *topic, size_t *first)
{
    struct rest_cached *batch;
    size_t count = 0;
    assert_int_equal(rest_cache_fetch(cache, kind, span_of_text(topic), &batch), STATUS_OK);
    *first = batch != NULL ? batch->fields.payload.length : 0;
    for (struct rest_cached *cached = batch; cached != NULL; cached = cached->next) {
        count++;
    }
    rest_cached_destroy(&batch);
    return count;
}

static void messages_are_kept_until_they_are_fetched_once(void **state)
{
    struct rest_cache *cache = made_cache();
    struct rest_cached *batch;
    size_t first;
    (void)state;
    add(cache, "p", "c", 1); /* nobody asked for it */
    subscribe(cache, REST_PUBSUB_TOPIC, "p");
    add(cache, "p", "c", 2);
    add(cache, "p", "d", 3);
    add(cache, "q", "c", 4);
    assert_int_equal(fetched(cache, REST_PUBSUB_TOPIC, "p", &first), 2);
    assert_int_equal(first, 2);
    assert_int_equal(fetched(cache, REST_PUBSUB_TOPIC, "p", &first), 0);
    assert_int_equal(rest_cache_fetch(cache, REST_PUBSUB_TOPIC, span_of_text("q"), &batch),
            STATUS_NOT_FOUND);
    rest_cache_destroy(&cache);
}

static void the_oldest_go_first_by_number_and_by_bytes(void **state)
{
    struct rest_cache *cache = made_cache();
    size_t first;
    (void)state;
    subscribe(cache, REST_CONTENT_TOPIC, "c");
    uint64_t before = metrics_sum(NULL, METRIC_REST_CACHE_EVICTED);
    for (size_t i = 1; i <= MESSAGES_MAX + 2; i++) {
        add(cache, "p", "c", i);
    }
    assert_int_equal(metrics_sum(NULL, METRIC_REST_CACHE_EVICTED) - before, 2);
    assert_int_equal(fetched(cache, REST_CONTENT_TOPIC, "c", &first), MESSAGES_MAX);
    assert_int_equal(first, 3);
    add(cache, "p", "c", 1000);
    add(cache, "p", "c", BYTES_MAX - 2000);
    add(cache, "p", "c", 2000);
    assert_int_equal(fetched(cache, REST_CONTENT_TOPIC, "c", &first), 1);
    assert_int_equal(first, 2000);
    rest_cache_destroy(&cache);
}

static void a_message_of_two_subscriptions_is_there_for_either(void **state)
{
    struct rest_cache *cache = made_cache();
    size_t first;
    (void)state;
    subscribe(cache, REST_PUBSUB_TOPIC, "p");
    subscribe(cache, REST_CONTENT_TOPIC, "c");
    add(cache, "p", "c", 1);
    add(cache, "p", "d", 2);
    rest_cache_unsubscribe(cache, REST_PUBSUB_TOPIC, span_of_text("p"));
    assert_false(rest_cache_is_subscribed(cache, REST_PUBSUB_TOPIC, span_of_text("p")));
    assert_int_equal(fetched(cache, REST_CONTENT_TOPIC, "c", &first), 1);
    assert_int_equal(first, 1);
    rest_cache_destroy(&cache);
}

static void what_came_before_a_subscription_is_not_given_for_it(void **state)
{
    struct rest_cache *cache = made_cache();
    size_t first;
    (void)state;
    subscribe(cache, REST_PUBSUB_TOPIC, "p");
    add(cache, "p", "c", 1);
    subscribe(cache, REST_CONTENT_TOPIC, "c");
    add(cache, "p", "c", 2);
    assert_int_equal(fetched(cache, REST_CONTENT_TOPIC, "c", &first), 1);
    assert_int_equal(first, 2);
    assert_int_equal(fetched(cache, REST_PUBSUB_TOPIC, "p", &first), 1);
    assert_int_equal(first, 1);
    rest_cache_destroy(&cache);
}

static void topics_are_bounded_and_found_in_any_order(void **state)
{
    struct rest_cache *cache = made_cache();
    (void)state;
    subscribe(cache, REST_CONTENT_TOPIC, "b");
    subscribe(cache, REST_CONTENT_TOPIC, "a");
    subscribe(cache, REST_CONTENT_TOPIC, "ab");
    subscribe(cache, REST_CONTENT_TOPIC, "a");
    assert_int_equal(rest_cache_subscribe(cache, REST_CONTENT_TOPIC, span_of_text("c")),
            STATUS_LIMIT_REACHED);
    assert_true(rest_cache_is_subscribed(cache, REST_CONTENT_TOPIC, span_of_text("ab")));
    rest_cache_unsubscribe(cache, REST_CONTENT_TOPIC, span_of_text("a"));
    assert_false(rest_cache_is_subscribed(cache, REST_CONTENT_TOPIC, span_of_text("a")));
    assert_true(rest_cache_is_subscribed(cache, REST_CONTENT_TOPIC, span_of_text("b")));
    rest_cache_clear(cache);
    assert_false(rest_cache_is_subscribed(cache, REST_CONTENT_TOPIC, span_of_text("b")));
    rest_cache_destroy(&cache);
}

static void forms_differ_as_the_reference_s_do(void **state)
{
    struct waku_message_view fields = {.payload = span_of("\x00\xff", 2),
            .content_topic = span_of_text("/a\"\\\x01\xff"),
            .meta = span_of_text("m"),
            .timestamp_ns = 9007199254740993,
            .version = 1,
            .ephemeral = true};
    static const char *const texts[] = {
            "{\"payload\":\"AP8=\",\"contentTopic\":\"/a\\\"\\\\\\u0001?\",\"version\":1,"
            "\"timestamp\":9007199254740993,\"meta\":\"bQ==\",\"ephemeral\":true,\"proof\":\"\"}",
            "{\"payload\":\"AP8=\",\"contentTopic\":\"/a\\\"\\\\\\u0001?\",\"version\":1,"
            "\"timestamp\":9007199254740993,\"meta\":\"bQ==\",\"ephemeral\":true}",
            "{\"payload\":\"AP8=\",\"contentTopic\":\"/a\\\"\\\\\\u0001?\",\"meta\":\"bQ==\","
            "\"version\":1,\"timestamp\":9007199254740993,\"ephemeral\":true}"};
    (void)state;
    for (int form = REST_FORM_RELAY; form <= REST_FORM_STORE; form++) {
        struct rest_text text = {0};
        size_t length;
        rest_add_message(&text, &fields, (enum rest_form)form);
        char *out = rest_text_take(&text, &length);
        assert_string_equal(out, texts[form]);
        free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(messages_are_kept_until_they_are_fetched_once),
            cmocka_unit_test(the_oldest_go_first_by_number_and_by_bytes),
            cmocka_unit_test(a_message_of_two_subscriptions_is_there_for_either),
            cmocka_unit_test(what_came_before_a_subscription_is_not_given_for_it),
            cmocka_unit_test(topics_are_bounded_and_found_in_any_order),
            cmocka_unit_test(forms_differ_as_the_reference_s_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
