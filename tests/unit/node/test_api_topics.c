/* SPDX-License-Identifier: MIT */
#include <sluice.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/api_fixture.h"

/* include/sluice.h: interests, hashes, what a node shows of itself, and options from a file. */

struct box {
    atomic_size_t messages;
    char last[64]; /* payload, written before messages is raised */
};

static void take_message(void *context, struct sluice_envelope *envelope)
{
    struct box *box = context;
    struct sluice_bytes payload = sluice_envelope_payload(envelope);
    snprintf(box->last, sizeof(box->last), "%.*s", (int)payload.size, (const char *)payload.data);
    atomic_fetch_add(&box->messages, 1);
}

static struct sluice_subscription *interested(
        struct sluice_node *node, struct sluice_interest interest, struct box *box)
{
    struct sluice_subscription *subscription = NULL;
    assert_int_equal(
            sluice_node_subscribe_to(node, &interest, take_message, box, &subscription), SLUICE_OK);
    return subscription;
}

static void publish_on(struct sluice_node *node, const char *pubsub_topic,
        const char *content_topic, const char *payload)
{
    struct sluice_message message = {.pubsub_topic = pubsub_topic,
            .content_topic = content_topic,
            .payload = api_bytes(payload)};
    assert_int_equal(sluice_node_publish(node, &message, NULL, NULL), SLUICE_OK);
}

static void a_content_topic_is_told_of_alone(void **state)
{
    static struct box chat;
    static struct box elsewhere;
    static struct box anywhere;
    static struct box all;
    struct sluice_node *node = api_made(NULL);
    (void)state;
    (void)interested(node,
            (struct sluice_interest){.pubsub_topic = API_TOPIC, .content_topic = "/a/1/chat/proto"},
            &chat);
    (void)interested(node,
            (struct sluice_interest){
                    .pubsub_topic = "/waku/2/rs/0/2", .content_topic = "/a/1/chat/proto"},
            &elsewhere);
    (void)interested(node, (struct sluice_interest){.content_topic = "/a/1/chat/proto"}, &anywhere);
    (void)interested(node, (struct sluice_interest){.pubsub_topic = NULL}, &all);
    api_start(node);
    publish_on(node, API_TOPIC, "/a/1/chat/proto", "here");
    publish_on(node, API_TOPIC, "/a/1/chat/prot", "shorter");
    publish_on(node, API_TOPIC, "/a/1/chat/protobuf", "longer");
    publish_on(node, "/waku/2/rs/0/2", "/a/1/chat/proto", "there");
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(atomic_load(&chat.messages), 1);
    assert_string_equal(chat.last, "here");
    assert_int_equal(atomic_load(&elsewhere.messages), 1);
    assert_string_equal(elsewhere.last, "there");
    assert_int_equal(atomic_load(&anywhere.messages), 2);
    assert_int_equal(atomic_load(&all.messages), 4);
    api_destroy(&node);
}

/* "/toychat/2/huilong/proto" is on shard 3 of 8: tests/vectors/autosharding.json. */
static void with_autosharding_the_content_topic_joins_its_shard(void **state)
{
    static const char *const values[] = {"cluster-id", "16", "num-shards-in-network", "8", NULL};
    static struct box before;
    static struct box after;
    static struct box shard;
    struct sluice_interest huilong = {.content_topic = "/toychat/2/huilong/proto"};
    (void)state;
    struct sluice_node *node = api_made(values);
    struct sluice_subscription *subscription = interested(node, huilong, &before);
    api_start(node);
    (void)interested(node, huilong, &after);
    (void)interested(node, (struct sluice_interest){.pubsub_topic = "/waku/2/rs/16/3"}, &shard);
    publish_on(node, NULL, "/toychat/2/huilong/proto", "first");
    publish_on(node, NULL, "/toychat/2/other/proto", "of the same shard"); /* same app, version */
    api_wait_count(&shard.messages, 2);
    assert_int_equal(atomic_load(&before.messages), 1);
    assert_int_equal(atomic_load(&after.messages), 1);
    sluice_subscription_end(&subscription);
    publish_on(node, NULL, "/toychat/2/huilong/proto", "second");
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(atomic_load(&before.messages), 1);
    assert_string_equal(after.last, "second");
    api_destroy(&node);
}

static void an_interest_that_makes_no_sense_is_refused(void **state)
{
    static const char *const values[] = {"cluster-id", "16", "num-shards-in-network", "8", NULL};
    static const struct sluice_interest bad[] = {{.content_topic = "huilong"},
            {.content_topic = ""}, {.pubsub_topic = ""}, {.pubsub_topic = "", .is_pushed = true}};
    struct box box = {0};
    struct sluice_subscription *none = NULL;
    struct sluice_node *node = api_made(values);
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(sluice_node_subscribe_to(node, &bad[i], take_message, &box, &none),
                SLUICE_BAD_ARGUMENT);
        assert_null(none);
    }
    api_start(node);
    /* Nothing is left of them. */
    for (size_t i = 0; i < 64; i++) {
        (void)interested(node, (struct sluice_interest){.content_topic = "/a/1/b/c"}, &box);
    }
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(
            sluice_node_subscribe_to(node, &bad[0], take_message, &box, &none), SLUICE_NOT_RUNNING);
    api_destroy(&node);
}

static void a_topic_that_was_left_can_be_joined_again(void **state)
{
    static struct box box;
    struct sluice_node *node = api_made(NULL);
    struct sluice_message message = api_message("nobody");
    (void)state;
    assert_int_equal(sluice_node_leave(node, API_TOPIC), SLUICE_NOT_RUNNING);
    (void)interested(node, (struct sluice_interest){.pubsub_topic = API_TOPIC}, &box);
    api_start(node);
    assert_int_equal(sluice_node_leave(node, "/waku/2/rs/0/9"), SLUICE_NOT_FOUND);
    assert_int_equal(sluice_node_leave(node, API_TOPIC), SLUICE_OK);
    assert_int_equal(sluice_node_leave(node, API_TOPIC), SLUICE_NOT_FOUND);
    assert_int_equal(sluice_node_publish(node, &message, NULL, NULL), SLUICE_NOT_FOUND);
    struct sluice_subscription *again =
            interested(node, (struct sluice_interest){.pubsub_topic = API_TOPIC}, &box);
    sluice_subscription_end(&again);
    api_publish(node, "the first one hears it");
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(atomic_load(&box.messages), 1);
    assert_int_equal(sluice_node_leave(node, API_TOPIC), SLUICE_NOT_RUNNING);
    api_destroy(&node);
}

/* The first vector of tests/vectors/message_hash.json, which is RFC 14's. */
static void the_hash_is_known_before_the_message_is_sent(void **state)
{
    static const uint8_t payload[] = {1, 2, 3, 4, 0x54, 0x45, 0x53, 0x54, 5, 6, 7, 8};
    struct sluice_message message = {.pubsub_topic = "/waku/2/default-waku/proto",
            .content_topic = "/waku/2/default-content/proto",
            .payload = {payload, sizeof(payload)},
            .meta = api_bytes("super-secret"),
            .timestamp_ns = 1681964442000000000};
    static const char *const values[] = {"cluster-id", "16", "num-shards-in-network", "8", NULL};
    struct sluice_node *node = api_made(values);
    uint8_t hash[SLUICE_HASH_BYTES];
    uint8_t other[SLUICE_HASH_BYTES];
    char text[SLUICE_HASH_TEXT_SIZE];
    (void)state;
    assert_int_equal(sluice_message_hash(node, &message, hash), SLUICE_OK);
    assert_string_equal(sluice_hash_text(text, hash),
            "0x64cce733fed134e83da02b02c6f689814872b1a0ac97ea56b76095c3c72bfe05");
    /* Without a topic it is the shard's: 3, see above. */
    message.content_topic = "/toychat/2/huilong/proto";
    message.pubsub_topic = "/waku/2/rs/16/3";
    assert_int_equal(sluice_message_hash(node, &message, hash), SLUICE_OK);
    message.pubsub_topic = NULL;
    assert_int_equal(sluice_message_hash(node, &message, other), SLUICE_OK);
    assert_memory_equal(hash, other, sizeof(hash));
    message.content_topic = "huilong";
    assert_int_equal(sluice_message_hash(node, &message, hash), SLUICE_BAD_ARGUMENT);
    message = api_message("at some time");
    assert_int_equal(sluice_message_hash(node, &message, hash), SLUICE_BAD_ARGUMENT);
    api_destroy(&node);
}

static void expect_texts(struct sluice_node *node, const char *health)
{
    char *text = NULL;
    assert_int_equal(sluice_node_metrics(&text, node), SLUICE_OK);
    assert_non_null(strstr(text, "# TYPE sluice_message_hashes_total counter\n"));
    assert_non_null(strstr(text, "\nsluice_event_peers_dropped_total 0\n")); /* zeros, too */
    assert_non_null(strstr(text, "\nwaku_version{"));
    sluice_text_destroy(&text);
    assert_null(text);
    assert_int_equal(sluice_node_health(&text, node), SLUICE_OK);
    assert_non_null(strstr(text, "\"degraded\":["));
    assert_non_null(strstr(text, health));
    sluice_text_destroy(&text);
    sluice_text_destroy(&text);
}

static void metrics_and_health_can_be_read_from_create_to_destroy(void **state)
{
    struct sluice_node *node = api_made(NULL);
    (void)state;
    expect_texts(node, "INITIALIZING");
    api_start(node);
    expect_texts(node, "\"nodeHealth\":\"READY\"");
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    expect_texts(node, "nodeHealth");
    api_destroy(&node);
    assert_non_null(strchr(sluice_version(), '.'));
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static enum sluice_result make_of_file(
        struct sluice_node **out, const char *path, struct sluice_error *error)
{
    struct sluice_options *options = NULL;
    assert_int_equal(sluice_options_create(&options), SLUICE_OK);
    assert_int_equal(sluice_options_set(options, "config-file", path, error), SLUICE_OK);
    assert_int_equal(sluice_options_set(options, "network", "false", error), SLUICE_OK);
    enum sluice_result result = sluice_node_create(out, options, error);
    if (result != SLUICE_OK) {
        sluice_options_destroy(&options);
    }
    return result;
}

static void options_come_from_a_file_too(void **state)
{
    char path[] = "/tmp/sluice-api-XXXXXX";
    struct sluice_error error = {""};
    struct sluice_node *node = NULL;
    static struct box box;
    (void)state;
    assert_true(mkstemp(path) >= 0);
    write_file(path, "max-msg-size = \"1KiB\"\nnetwork = true\n");
    assert_int_equal(make_of_file(&node, path, &error), SLUICE_OK); /* "false" prevails */
    char id[64];
    assert_int_equal(sluice_node_peer_id(node, id, sizeof(id)), SLUICE_NOT_FOUND);
    (void)interested(node, (struct sluice_interest){.pubsub_topic = API_TOPIC}, &box);
    api_start(node);
    char large[2048] = {0};
    memset(large, 'x', sizeof(large) - 1);
    api_publish(node, large);
    api_wait_counter(node, API_STAGE("intake", "refused", "too_large"), 1);
    api_destroy(&node);

    write_file(path, "max-msg-size = \"1KiB\"\nmax-topics = 0\n");
    assert_int_equal(make_of_file(&node, path, &error), SLUICE_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "max-topics"));
    assert_non_null(strstr(error.text, path));
    assert_int_equal(unlink(path), 0);
    assert_int_not_equal(make_of_file(&node, path, &error), SLUICE_OK);
    assert_non_null(strstr(error.text, path));
    assert_null(node);
}

/* What a node without network says to the calls that need one. */
static void a_node_without_network_says_so(void **state)
{
    struct sluice_node *node = api_made(NULL);
    struct sluice_message message = api_message("x");
    struct sluice_filter_request ping = {.verb = SLUICE_FILTER_PING};
    struct sluice_query query = {0};
    struct sluice_service service = {
            .peer = "/ip4/127.0.0.1/tcp/1/p2p/"
                    "16Uiu2HAm4v86W3bmT1BiH6oSPzcsSr24iDQpSN5Qa992BCjjwgrD"};
    char text[1024];
    (void)state;
    assert_int_equal(sluice_node_address(node, 0, text, sizeof(text)), SLUICE_NOT_FOUND);
    assert_int_equal(sluice_node_peer_id(node, text, sizeof(text)), SLUICE_NOT_FOUND);
    assert_int_equal(sluice_node_set_peer_callback(node, NULL, NULL), SLUICE_NOT_FOUND);
    assert_int_equal(sluice_node_peers(node, NULL, NULL), SLUICE_NOT_RUNNING);
    assert_int_equal(sluice_node_push(node, &message, NULL, NULL, NULL), SLUICE_NOT_RUNNING);
    api_start(node);
    assert_int_equal(sluice_node_peers(node, NULL, NULL), SLUICE_NOT_FOUND);
    assert_int_equal(sluice_node_push(node, &message, NULL, NULL, NULL), SLUICE_NOT_FOUND);
    assert_int_equal(sluice_node_filter(node, &ping, NULL, NULL, NULL), SLUICE_NOT_FOUND);
    assert_int_equal(sluice_node_dial(node, service.peer, NULL, NULL), SLUICE_NOT_FOUND);
    assert_int_equal(sluice_node_disconnect(node, "x"), SLUICE_NOT_FOUND);
    sluice_page_callback *never = (sluice_page_callback *)abort;
    assert_int_equal(sluice_node_query(node, &query, &service, never, NULL), SLUICE_NOT_FOUND);
    api_destroy(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_content_topic_is_told_of_alone),
            cmocka_unit_test(with_autosharding_the_content_topic_joins_its_shard),
            cmocka_unit_test(an_interest_that_makes_no_sense_is_refused),
            cmocka_unit_test(a_topic_that_was_left_can_be_joined_again),
            cmocka_unit_test(the_hash_is_known_before_the_message_is_sent),
            cmocka_unit_test(metrics_and_health_can_be_read_from_create_to_destroy),
            cmocka_unit_test(options_come_from_a_file_too),
            cmocka_unit_test(a_node_without_network_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
