/* SPDX-License-Identifier: MIT */

/* What a filter service answers. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rcu.h"
#include "tests/support/cmocka.h"
#include "tests/unit/net/protocols/filter_fixture.h"

#define PING            WIRE__FILTER_SUBSCRIBE_TYPE__SUBSCRIBER_PING
#define SUBSCRIBE       WIRE__FILTER_SUBSCRIBE_TYPE__SUBSCRIBE
#define UNSUBSCRIBE     WIRE__FILTER_SUBSCRIBE_TYPE__UNSUBSCRIBE
#define UNSUBSCRIBE_ALL WIRE__FILTER_SUBSCRIBE_TYPE__UNSUBSCRIBE_ALL

static char request_id[] = "id";
static char pubsub_topic[] = FIXTURE_PUBSUB;
static char content_topic[] = FIXTURE_CONTENT;

static void expect(struct fixture_answer answer, uint32_t code, const char *description)
{
    assert_int_equal(answer.code, code);
    assert_string_equal(answer.description, description);
}

static const char no_subscription[] = "NOT_FOUND: peer has no subscriptions";

static void each_type_of_request_has_its_codes(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    const char *topic = FIXTURE_PUBSUB;
    const char *content = FIXTURE_CONTENT;
    expect(fixture_request(&fixture, 0, PING, NULL, NULL), 404, no_subscription);
    expect(fixture_request(&fixture, 0, UNSUBSCRIBE, topic, content), 404, no_subscription);
    expect(fixture_request(&fixture, 0, UNSUBSCRIBE_ALL, NULL, NULL), 404, no_subscription);
    expect(fixture_request(&fixture, 0, SUBSCRIBE, topic, content), 200, "OK");
    expect(fixture_request(&fixture, 0, SUBSCRIBE, topic, content), 200, "OK");
    expect(fixture_request(&fixture, 0, PING, NULL, NULL), 200, "OK");
    expect(fixture_request(&fixture, 0, PING, "", NULL), 200, "OK"); /* as js-waku writes it */
    expect(fixture_request(&fixture, 0, UNSUBSCRIBE, topic, "/not/1/mine/x"), 404, no_subscription);
    expect(fixture_request(&fixture, 0, SUBSCRIBE, topic, "/other/1/one/proto"), 200, "OK");
    expect(fixture_request(&fixture, 0, UNSUBSCRIBE, topic, content), 200, "OK");
    expect(fixture_request(&fixture, 0, PING, NULL, NULL), 200, "OK");
    expect(fixture_request(&fixture, 0, UNSUBSCRIBE_ALL, NULL, NULL), 200, "OK");
    expect(fixture_request(&fixture, 0, PING, NULL, NULL), 404, no_subscription);
    assert_int_equal(subscriptions_peer_count(fixture.subscriptions), 0);
    fixture_fini(&fixture);
}

static void what_is_missing_or_wrong_is_refused_with_400_and_why(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    struct fixture_answer answer;
    static const uint8_t cut[] = {0x0a, 0x05, 'a'};
    static const uint8_t unknown_type[] = {0x0a, 0x01, 'a', 0x10, 0x04};
    static char longest[1025 + 1];
    static const char missing[] = "BAD_REQUEST: pubsubTopic and contentTopics must be specified";
    static const char bad_topic[] = "BAD_REQUEST: a content topic is empty or too long";
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    expect(fixture_request(&fixture, 0, SUBSCRIBE, NULL, FIXTURE_CONTENT), 400, missing);
    expect(fixture_request(&fixture, 0, SUBSCRIBE, "", FIXTURE_CONTENT), 400, missing);
    expect(fixture_request(&fixture, 0, SUBSCRIBE, FIXTURE_PUBSUB, NULL), 400, missing);
    expect(fixture_request(&fixture, 0, UNSUBSCRIBE, FIXTURE_PUBSUB, NULL), 400, missing);
    expect(fixture_request(&fixture, 0, UNSUBSCRIBE, NULL, FIXTURE_CONTENT), 400, missing);
    expect(fixture_request(&fixture, 0, SUBSCRIBE, FIXTURE_PUBSUB, ""), 400, bad_topic);
    memset(longest, 'x', sizeof(longest) - 1);
    expect(fixture_request(&fixture, 0, SUBSCRIBE, FIXTURE_PUBSUB, longest), 400, bad_topic);
    longest[1024] = '\0';
    expect(fixture_request(&fixture, 0, SUBSCRIBE, FIXTURE_PUBSUB, longest), 200, "OK");

    Wire__FilterSubscribeRequest request = WIRE__FILTER_SUBSCRIBE_REQUEST__INIT;
    answer = fixture_request_packed(&fixture, 0, &request);
    expect(answer, 400, "BAD_REQUEST: request_id is missing");
    request.request_id = longest; /* 1,024 bytes: the longest */
    expect(fixture_request_packed(&fixture, 0, &request), 200, "OK");

    fixture_ask(&fixture, 0, &answer, span_of(unknown_type, sizeof(unknown_type)));
    fixture_turn(&fixture, 2000);
    expect(answer, 400, "BAD_REQUEST: unknown filter_subscribe_type");
    assert_string_equal(answer.id, "a");
    fixture_ask(&fixture, 0, &answer, span_of(cut, sizeof(cut)));
    fixture_turn(&fixture, 2000);
    assert_int_equal(answer.code, 400);
    fixture_fini(&fixture);
}

static void expect_bad_topic(struct filter_fixture *fixture, const char *topic, const char *why)
{
    char description[128];
    snprintf(description, sizeof(description), "BAD_REQUEST: pubsub topic is %s", why);
    expect(fixture_request(fixture, 0, SUBSCRIBE, topic, FIXTURE_CONTENT), 400, description);
    assert_null(subscriptions_find_list(
            fixture->subscriptions, span_of_text(topic), span_of_text(FIXTURE_CONTENT)));
}

static void any_shard_of_our_network_is_taken_and_no_other(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    static const char no_shard[] = "neither a shard nor one that this node takes part in";
    static const char own[] = "/my/own/topic";
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    expect(fixture_request(&fixture, 0, SUBSCRIBE, "/waku/2/rs/16/6", "/a"), 200, "OK");
    expect(fixture_request(&fixture, 0, SUBSCRIBE, "/waku/2/rs/16/1023", "/a"), 200, "OK");
    expect_bad_topic(
            &fixture, "/waku/2/rs/16/1024", "of shard 1024, the last one of this network is 1023");
    expect_bad_topic(&fixture, "/waku/2/rs/1/5", "of cluster 1, this node is of cluster 16");
    expect_bad_topic(&fixture, "/waku/2/rs/16/05", no_shard);
    expect_bad_topic(&fixture, own, no_shard);
    /* Whatever its name is: what we take part in can be subscribed to. */
    assert_int_equal(topic_registry_subscribe(fixture.topics, NULL, span_of_text(own)), STATUS_OK);
    expect(fixture_request(&fixture, 0, SUBSCRIBE, own, FIXTURE_CONTENT), 200, "OK");
    assert_int_equal(topic_registry_unsubscribe(fixture.topics, span_of_text(own)), STATUS_OK);
    expect(fixture_request(&fixture, 0, UNSUBSCRIBE, own, FIXTURE_CONTENT), 200, "OK");
    fixture_fini(&fixture);

    choice.network_shards = 8;
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    expect(fixture_request(&fixture, 0, SUBSCRIBE, "/waku/2/rs/16/7", "/a"), 200, "OK");
    expect_bad_topic(&fixture, "/waku/2/rs/16/8", "of shard 8, the last one of this network is 7");
    fixture_fini(&fixture);
}

/* count content topics from number first on. */
static struct fixture_answer subscribe_many(
        struct filter_fixture *fixture, size_t client, size_t first, size_t count)
{
    char(*names)[32] = calloc(count, sizeof(*names));
    char **topics = calloc(count, sizeof(*topics));
    assert_true(names != NULL && topics != NULL);
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), "/many/1/%zu/proto", first + i);
        topics[i] = names[i];
    }
    Wire__FilterSubscribeRequest request = WIRE__FILTER_SUBSCRIBE_REQUEST__INIT;
    request.request_id = request_id;
    request.has_filter_subscribe_type = 1;
    request.filter_subscribe_type = SUBSCRIBE;
    request.pubsub_topic = pubsub_topic;
    request.content_topics = topics;
    request.n_content_topics = count;
    struct fixture_answer answer = fixture_request_packed(fixture, client, &request);
    free(topics);
    free(names);
    return answer;
}

static void content_topics_and_criteria_are_counted_to_the_last(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    expect(subscribe_many(&fixture, 0, 0, 101), 400,
            "BAD_REQUEST: exceeds maximum content topics: 100");
    expect(fixture_request(&fixture, 0, PING, NULL, NULL), 404, no_subscription);
    expect(subscribe_many(&fixture, 0, 0, 100), 200, "OK");
    expect(subscribe_many(&fixture, 0, 0, 100), 200, "OK"); /* the same ones count once */
    expect(subscribe_many(&fixture, 0, 100, 51), 503,
            "SERVICE_UNAVAILABLE: peer has reached maximum number of filter criteria");
    expect(subscribe_many(&fixture, 0, 100, 50), 200, "OK");
    expect(subscribe_many(&fixture, 0, 150, 1), 503,
            "SERVICE_UNAVAILABLE: peer has reached maximum number of filter criteria");
    expect(fixture_request(&fixture, 0, UNSUBSCRIBE, FIXTURE_PUBSUB, "/many/1/7/proto"), 200, "OK");
    expect(subscribe_many(&fixture, 0, 150, 1), 200, "OK");
    fixture_fini(&fixture);
}

/* A peer that came and went, in the place of a third client. */
static void take_place(struct filter_fixture *fixture, uint64_t number)
{
    struct span content = span_of_text(FIXTURE_CONTENT);
    struct subscription_request request = {.pubsub_topic = span_of_text(FIXTURE_PUBSUB),
            .content_topics = &content,
            .content_topic_count = 1};
    bool is_new;
    assert_int_equal(
            subscriptions_subscribe(fixture->subscriptions, (struct subscriber_entry){.id = number},
                    &request, clock_monotonic_ns(), &is_new),
            SUBSCRIPTION_OK);
}

static void peers_are_counted_to_the_last_and_a_place_is_free_again(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    fixture_connect(&fixture, 1);
    take_place(&fixture, 1);
    const char *topic = FIXTURE_PUBSUB;
    expect(fixture_request(&fixture, 0, SUBSCRIBE, topic, FIXTURE_CONTENT), 200, "OK");
    expect(fixture_request(&fixture, 1, SUBSCRIBE, topic, FIXTURE_CONTENT), 503,
            "SERVICE_UNAVAILABLE: node has reached maximum number of subscriptions: 2");
    expect(fixture_request(&fixture, 0, SUBSCRIBE, topic, "/one/1/more/proto"), 200, "OK");
    expect(fixture_request(&fixture, 0, UNSUBSCRIBE_ALL, NULL, NULL), 200, "OK");
    expect(fixture_request(&fixture, 1, SUBSCRIBE, topic, FIXTURE_CONTENT), 200, "OK");
    fixture_fini(&fixture);
}

static bool has_passed(void *context)
{
    return clock_monotonic_ns() >= *(uint64_t *)context;
}

static void a_ping_renews_and_silence_ends_a_subscription(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {.expiry_ns = UINT64_C(400) * NANOSECONDS_PER_MILLISECOND};
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    expect(fixture_request(&fixture, 0, SUBSCRIBE, FIXTURE_PUBSUB, FIXTURE_CONTENT), 200, "OK");
    uint64_t end_ns = clock_monotonic_ns() + choice.expiry_ns * 3 / 2;
    uint64_t next_ns = 0;
    bool is_alive = true;
    /* A slow machine may miss the time between two pings, which the test must allow for. */
    while (clock_monotonic_ns() < end_ns) {
        uint64_t before_ns = clock_monotonic_ns();
        is_alive = fixture_request(&fixture, 0, PING, NULL, NULL).code == 200;
        next_ns = clock_monotonic_ns() + choice.expiry_ns / 8;
        fixture_run(&fixture, has_passed, &next_ns);
        if (clock_monotonic_ns() - before_ns > choice.expiry_ns / 2) {
            skip();
        }
    }
    assert_true(is_alive);
    /* What is pushed meanwhile does not renew it. */
    size_t received = fixture.clients[0].received;
    uint64_t silent_since_ns = clock_monotonic_ns();
    fixture_publish(&fixture, FIXTURE_CONTENT, 0, 20);
    fixture_wait_received(&fixture, 0, received + 1);
    next_ns = silent_since_ns + choice.expiry_ns + NANOSECONDS_PER_MILLISECOND;
    fixture_run(&fixture, has_passed, &next_ns);
    expect(fixture_request(&fixture, 0, PING, NULL, NULL), 404, no_subscription);
    fixture_fini(&fixture);
}

static void without_a_pubsub_topic_it_is_that_of_the_shard(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {.network_shards = 8};
    struct span topic = span_of_text(FIXTURE_PUBSUB);
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    expect(fixture_request(&fixture, 0, SUBSCRIBE, NULL, FIXTURE_CONTENT), 200, "OK");
    assert_non_null(
            subscriptions_find_list(fixture.subscriptions, topic, span_of_text(FIXTURE_CONTENT)));
    expect(fixture_request(&fixture, 0, SUBSCRIBE, NULL, "no/shard"), 400,
            "BAD_REQUEST: content topic has no shard");
    expect(fixture_request(&fixture, 0, UNSUBSCRIBE, NULL, FIXTURE_CONTENT), 200, "OK");
    expect(fixture_request(&fixture, 0, PING, NULL, NULL), 404, no_subscription);
    fixture_fini(&fixture);
}

static void a_million_content_topics_are_too_large_and_the_connection_stays(void **state)
{
    (void)state;
    enum {
        TOPICS = 1000000
    };
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    struct fixture_answer answer;
    static const uint8_t head[] = {0x0a, 0x02, 'i', 'd', 0x10, 0x01};
    static const uint8_t topic[] = {0x5a, 0x03, '/', 'a', '/'};
    uint8_t *bytes = malloc(sizeof(head) + TOPICS * sizeof(topic));
    assert_non_null(bytes);
    memcpy(bytes, head, sizeof(head));
    for (size_t i = 0; i < TOPICS; i++) {
        memcpy(bytes + sizeof(head) + i * sizeof(topic), topic, sizeof(topic));
    }
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    fixture_ask(&fixture, 0, &answer, span_of(bytes, sizeof(head) + TOPICS * sizeof(topic)));
    while (answer.done == 0) {
        fixture_turn(&fixture, 100);
    }
    expect(answer, 400, "BAD_REQUEST: request is too large");
    assert_string_equal(answer.id, "id");
    expect(fixture_request(&fixture, 0, PING, NULL, NULL), 404, no_subscription);
    assert_int_equal(fixture.server.disconnected, 0);
    free(bytes);
    fixture_fini(&fixture);
}

static void more_than_the_rate_is_refused_with_429(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {
            .rate = {.volume = 3, .period_ns = UINT64_C(3600) * NANOSECONDS_PER_SECOND}};
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    fixture_connect(&fixture, 1);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(fixture_request(&fixture, 0, PING, NULL, NULL).code, 404);
    }
    for (size_t i = 0; i < 50; i++) {
        expect(fixture_request(&fixture, 0, PING, NULL, NULL), 429,
                "filter request rejected due rate limit exceeded");
    }
    assert_int_equal(fixture_request(&fixture, 1, PING, NULL, NULL).code, 404);
    fixture_fini(&fixture);
}

static void who_has_too_many_under_way_is_told_so_and_others_are_served(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    struct fixture_answer answers[FIXTURE_REQUESTS_MAX + 1];
    struct fixture_answer other;
    static const uint8_t ping[] = {0x0a, 0x02, 'i', 'd'};
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    fixture_connect(&fixture, 1);
    fixture.is_stalled = true;
    for (size_t i = 0; i < FIXTURE_REQUESTS_MAX; i++) {
        fixture_ask(&fixture, 0, &answers[i], span_of(ping, sizeof(ping)));
    }
    while (filter_pending(fixture.filter) < FIXTURE_REQUESTS_MAX) {
        fixture_turn(&fixture, 1);
    }
    fixture_ask(&fixture, 0, &answers[FIXTURE_REQUESTS_MAX], span_of(ping, sizeof(ping)));
    fixture_ask(&fixture, 1, &other, span_of(ping, sizeof(ping)));
    while (answers[FIXTURE_REQUESTS_MAX].done == 0) {
        fixture_turn(&fixture, 1);
    }
    expect(answers[FIXTURE_REQUESTS_MAX], 429, "too many requests at a time");
    fixture.is_stalled = false;
    while (other.done == 0 || answers[0].done == 0) {
        fixture_turn(&fixture, 1);
    }
    assert_int_equal(other.code, 404);
    assert_int_equal(answers[0].code, 404);
    fixture_fini(&fixture);
}

/* A client that goes before its answer, while the filter thread has the request. */
static void a_request_whose_peer_has_gone_leaves_nothing_behind(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    struct fixture_answer answer;
    Wire__FilterSubscribeRequest request = WIRE__FILTER_SUBSCRIBE_REQUEST__INIT;
    uint8_t bytes[256];
    char *topics[] = {content_topic};
    request.request_id = request_id;
    request.has_filter_subscribe_type = 1;
    request.filter_subscribe_type = SUBSCRIBE;
    request.pubsub_topic = pubsub_topic;
    request.content_topics = topics;
    request.n_content_topics = 1;
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    fixture.is_stalled = true;
    size_t length = wire__filter_subscribe_request__pack(&request, bytes);
    fixture_ask(&fixture, 0, &answer, span_of(bytes, length));
    while (filter_pending(fixture.filter) == 0) {
        fixture_turn(&fixture, 1);
    }
    connection_close(fixture.clients[0].node.last_connection, CLOSE_REQUESTED);
    while (fixture.server.disconnected == 0) {
        fixture_turn(&fixture, 1);
    }
    fixture.is_stalled = false;
    while (filter_pending(fixture.filter) > 0) {
        fixture_turn(&fixture, 1);
    }
    fixture_publish(&fixture, FIXTURE_CONTENT, 0, 10);
    fixture_turn(&fixture, 100);
    assert_int_equal(subscriptions_peer_count(fixture.subscriptions), 1);
    assert_int_equal(filter_held(fixture.filter), 0);
    fixture_fini(&fixture);
}

static int enter_rcu(void **state)
{
    (void)state;
    rcu_register();
    return 0;
}

static int leave_rcu(void **state)
{
    (void)state;
    rcu_drain();
    rcu_unregister();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(each_type_of_request_has_its_codes),
            cmocka_unit_test(what_is_missing_or_wrong_is_refused_with_400_and_why),
            cmocka_unit_test(any_shard_of_our_network_is_taken_and_no_other),
            cmocka_unit_test(content_topics_and_criteria_are_counted_to_the_last),
            cmocka_unit_test(peers_are_counted_to_the_last_and_a_place_is_free_again),
            cmocka_unit_test(a_ping_renews_and_silence_ends_a_subscription),
            cmocka_unit_test(without_a_pubsub_topic_it_is_that_of_the_shard),
            cmocka_unit_test(a_million_content_topics_are_too_large_and_the_connection_stays),
            cmocka_unit_test(more_than_the_rate_is_refused_with_429),
            cmocka_unit_test(who_has_too_many_under_way_is_told_so_and_others_are_served),
            cmocka_unit_test(a_request_whose_peer_has_gone_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, enter_rcu, leave_rcu);
}
