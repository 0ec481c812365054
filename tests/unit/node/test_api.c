/* SPDX-License-Identifier: MIT */
#include <sluice.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/api_fixture.h"

enum {
    KEPT_MAX = 64
};

/* What the callbacks of one node leave behind. */
struct box {
    atomic_size_t messages;
    atomic_size_t outcomes;
    atomic_int outcome;
    atomic_size_t peers;
    char reason[64]; /* written before outcomes is raised */
    char last[64];   /* payload, written before messages is raised */
    atomic_bool may_go_on;
    atomic_bool is_over; /* no callback may come any more */
    struct sluice_node *node;
    struct sluice_subscription *subscription;
    struct sluice_envelope *kept[KEPT_MAX];
    size_t kept_count;
    int results[4];
};

static void take_message(void *context, struct sluice_envelope *envelope)
{
    struct box *box = context;
    struct sluice_bytes payload = sluice_envelope_payload(envelope);
    assert_false(atomic_load(&box->is_over));
    snprintf(box->last, sizeof(box->last), "%.*s", (int)payload.size, (const char *)payload.data);
    atomic_fetch_add(&box->messages, 1);
}

static void take_outcome(
        void *context, enum sluice_outcome outcome, size_t peer_count, const char *reason)
{
    struct box *box = context;
    snprintf(box->reason, sizeof(box->reason), "%s", reason);
    atomic_store(&box->outcome, (int)outcome);
    atomic_store(&box->peers, peer_count);
    atomic_fetch_add(&box->outcomes, 1);
}

static struct sluice_subscription *subscribed(struct sluice_node *node, const char *topic,
        sluice_message_callback *callback, struct box *box)
{
    struct sluice_subscription *subscription = NULL;
    assert_int_equal(sluice_node_subscribe(node, topic, callback, box, &subscription), SLUICE_OK);
    return subscription;
}

static enum sluice_outcome outcome_of(
        struct sluice_node *node, struct box *box, const struct sluice_message *message)
{
    size_t before = atomic_load(&box->outcomes);
    assert_int_equal(sluice_node_publish(node, message, take_outcome, box), SLUICE_OK);
    api_wait_count(&box->outcomes, before + 1);
    return (enum sluice_outcome)atomic_load(&box->outcome);
}

static void check_vector(void *context, struct sluice_envelope *envelope)
{
    struct box *box = context;
    struct sluice_bytes hash = sluice_envelope_hash(envelope);
    struct sluice_bytes meta = sluice_envelope_meta(envelope);
    char text[65];
    for (size_t i = 0; i < hash.size; i++) {
        snprintf(text + 2 * i, 3, "%02x", hash.data[i]);
    }
    snprintf(box->last, sizeof(box->last), "%.63s", text);
    assert_int_equal(hash.size, 32);
    assert_int_equal(meta.size, 12);
    assert_memory_equal(meta.data, "super-secret", 12);
    assert_int_equal(sluice_envelope_timestamp(envelope), 1681964442000000000);
    assert_false(sluice_envelope_is_ephemeral(envelope));
    assert_int_equal(sluice_envelope_version(envelope), 0);
    assert_true(sluice_envelope_received(envelope) > 1681964442000000000);
    struct sluice_bytes topic = sluice_envelope_pubsub_topic(envelope);
    assert_memory_equal(topic.data, "/waku/2/default-waku/proto", topic.size);
    atomic_fetch_add(&box->messages, 1);
}

/* The first vector of tests/vectors/message_hash.json, which is RFC 14's. */
static void a_published_message_comes_back_with_its_fields_and_hash(void **state)
{
    static const uint8_t payload[] = {1, 2, 3, 4, 0x54, 0x45, 0x53, 0x54, 5, 6, 7, 8};
    static const char topic[] = "/waku/2/default-waku/proto";
    struct sluice_message message = {.pubsub_topic = topic,
            .content_topic = "/waku/2/default-content/proto",
            .payload = {payload, sizeof(payload)},
            .meta = api_bytes("super-secret"),
            .timestamp_ns = 1681964442000000000};
    static struct box box;
    struct sluice_node *node = api_made(NULL);
    (void)state;
    (void)subscribed(node, topic, check_vector, &box);
    api_start(node);
    assert_int_equal(outcome_of(node, &box, &message), SLUICE_SENT);
    assert_int_equal(atomic_load(&box.peers), 0);
    assert_int_equal(outcome_of(node, &box, &message), SLUICE_DUPLICATE);
    assert_string_equal(box.reason, "duplicate");
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(atomic_load(&box.messages), 1);
    assert_memory_equal(
            box.last, "64cce733fed134e83da02b02c6f689814872b1a0ac97ea56b76095c3c72bfe05", 63);
    api_destroy(&node);
}

static void a_refusal_says_why(void **state)
{
    static const char *const values[] = {"max-msg-size", "1KiB", NULL};
    static struct box box;
    static char large[2048];
    struct sluice_node *node = api_made(values);
    struct sluice_message message = api_message(large);
    (void)state;
    memset(large, 'x', sizeof(large) - 1);
    message.payload.size = sizeof(large) - 1;
    (void)subscribed(node, API_TOPIC, take_message, &box);
    api_start(node);
    assert_int_equal(outcome_of(node, &box, &message), SLUICE_REFUSED);
    assert_string_equal(box.reason, "too_large");
    message = api_message("x");
    message.content_topic = "";
    assert_int_equal(outcome_of(node, &box, &message), SLUICE_REFUSED);
    assert_string_equal(box.reason, "content_topic_missing");
    api_destroy(&node);
}

static void what_cannot_be_queued_is_refused_at_once(void **state)
{
    static struct box box;
    struct sluice_node *node = api_made(NULL);
    struct sluice_message message = api_message("x");
    uint8_t meta[65] = {0};
    (void)state;
    assert_int_equal(sluice_node_publish(node, &message, take_outcome, &box), SLUICE_NOT_RUNNING);
    api_start(node);
    assert_int_equal(sluice_node_publish(node, &message, take_outcome, &box), SLUICE_NOT_FOUND);
    message.pubsub_topic = NULL; /* no autosharding is set up */
    assert_int_equal(sluice_node_publish(node, &message, take_outcome, &box), SLUICE_BAD_ARGUMENT);
    message = api_message("x");
    message.meta = (struct sluice_bytes){meta, sizeof(meta)};
    assert_int_equal(sluice_node_publish(node, &message, take_outcome, &box), SLUICE_BAD_ARGUMENT);
    message.meta.size = 0;
    message.content_topic = NULL;
    assert_int_equal(sluice_node_publish(node, &message, take_outcome, &box), SLUICE_BAD_ARGUMENT);
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    message = api_message("x");
    assert_int_equal(sluice_node_publish(node, &message, take_outcome, &box), SLUICE_NOT_RUNNING);
    assert_int_equal(atomic_load(&box.outcomes), 0);
    api_destroy(&node);
}

/* "/toychat/2/huilong/proto" is on shard 3 of 8: tests/vectors/autosharding.json. */
static void without_a_pubsub_topic_the_content_topic_decides(void **state)
{
    static const char *const values[] = {"cluster-id", "16", "num-shards-in-network", "8", NULL};
    static struct box box;
    struct sluice_node *node = api_made(values);
    struct sluice_message message = {
            .content_topic = "/toychat/2/huilong/proto", .payload = api_bytes("x")};
    (void)state;
    (void)subscribed(node, "/waku/2/rs/16/3", take_message, &box);
    api_start(node);
    assert_int_equal(outcome_of(node, &box, &message), SLUICE_SENT);
    api_wait_count(&box.messages, 1);
    message.content_topic = "/myapp/1/latest/proto"; /* shard 0, which nobody joined */
    assert_int_equal(sluice_node_publish(node, &message, NULL, NULL), SLUICE_NOT_FOUND);
    api_destroy(&node);
}

static void nodes_of_one_process_share_nothing(void **state)
{
    static struct box boxes[3];
    struct sluice_node *nodes[3];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        nodes[i] = api_made(NULL);
        (void)subscribed(nodes[i], API_TOPIC, take_message, &boxes[i]);
        api_start(nodes[i]);
    }
    api_publish(nodes[1], "for the second");
    api_publish(nodes[2], "for the third");
    api_publish(nodes[2], "for the third again");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sluice_node_stop(nodes[i]), SLUICE_OK);
        assert_int_equal(atomic_load(&boxes[i].messages), i);
        assert_int_equal(api_counter(nodes[i], "sluice_message_hashes_total"), i);
    }
    assert_string_equal(boxes[1].last, "for the second");
    for (size_t i = 0; i < 3; i++) {
        api_destroy(&nodes[i]);
    }
}

static void topics_have_callbacks_of_their_own_and_all_has_every_one(void **state)
{
    static struct box one;
    static struct box other;
    static struct box all;
    struct sluice_node *node = api_made(NULL);
    struct sluice_message message = api_message("on the other topic");
    (void)state;
    (void)subscribed(node, API_TOPIC, take_message, &one);
    (void)subscribed(node, "/waku/2/rs/0/2", take_message, &other);
    (void)subscribed(node, NULL, take_message, &all);
    api_start(node);
    api_publish(node, "on the one");
    message.pubsub_topic = "/waku/2/rs/0/2";
    assert_int_equal(sluice_node_publish(node, &message, NULL, NULL), SLUICE_OK);
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(atomic_load(&one.messages), 1);
    assert_int_equal(atomic_load(&other.messages), 1);
    assert_int_equal(atomic_load(&all.messages), 2);
    assert_string_equal(other.last, "on the other topic");
    api_destroy(&node);
}

static void block(void *context, struct sluice_envelope *envelope)
{
    struct box *box = context;
    (void)envelope;
    atomic_fetch_add(&box->messages, 1);
    while (!atomic_load(&box->may_go_on)) {
        sched_yield();
    }
}

/*
 * While the first callback blocks, a thousand messages go through decode, archive and filter; those
 * that find the callbacks' ring of 16 full are dropped, counted.
 */
static void a_blocking_callback_holds_up_nothing_but_callbacks(void **state)
{
    static const char *const values[] = {"event-ring", "16", "archive", "memory", NULL};
    static struct box box;
    char payload[32];
    struct sluice_node *node = api_made(values);
    (void)state;
    (void)subscribed(node, API_TOPIC, block, &box);
    api_start(node);
    api_publish(node, "the first");
    api_wait_count(&box.messages, 1);
    for (int i = 0; i < 1000; i++) {
        snprintf(payload, sizeof(payload), "message %d", i);
        api_publish(node, payload);
    }
    api_wait_counter(node, API_STAGE("intake", "delivered", "delivered"), 1001);
    api_wait_counter(node, API_STAGE("archive", "delivered", "delivered"), 1001);
    api_wait_counter(node, API_STAGE("filter", "delivered", "delivered"), 1001);
    assert_int_equal(atomic_load(&box.messages), 1);
    assert_true(api_counter(node, API_STAGE("event", "dropped", "ring_full")) > 0);
    atomic_store(&box.may_go_on, true);
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    uint64_t delivered = api_counter(node, API_STAGE("event", "delivered", "delivered"));
    uint64_t dropped = api_counter(node, API_STAGE("event", "dropped", "ring_full"));
    assert_int_equal(delivered + dropped, 1001);
    assert_int_equal(atomic_load(&box.messages), delivered);
    api_destroy(&node);
}

static void keep(void *context, struct sluice_envelope *envelope)
{
    struct box *box = context;
    struct sluice_envelope *kept = sluice_envelope_ref(envelope);
    if (kept != NULL) {
        box->kept[box->kept_count++] = kept;
    }
    atomic_fetch_add(&box->messages, 1);
}

static void drop_kept(struct box *box)
{
    while (box->kept_count > 0) {
        sluice_envelope_unref(box->kept[--box->kept_count]);
    }
}

static void a_kept_envelope_outlives_callback_and_stop_but_not_the_node(void **state)
{
    static struct box box;
    struct sluice_node *node = api_made(NULL);
    (void)state;
    (void)subscribed(node, API_TOPIC, keep, &box);
    api_start(node);
    api_publish(node, "to be kept");
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(box.kept_count, 1);
    struct sluice_envelope *again = sluice_envelope_ref(box.kept[0]);
    assert_ptr_equal(again, box.kept[0]);
    drop_kept(&box);
    assert_int_equal(sluice_node_destroy(&node), SLUICE_HELD);
    struct sluice_bytes payload = sluice_envelope_payload(again);
    assert_int_equal(payload.size, strlen("to be kept"));
    assert_memory_equal(payload.data, "to be kept", payload.size);
    sluice_envelope_unref(again);
    api_destroy(&node);
}

static void keeps_no_more_than_the_limit_and_counts_what_it_refuses(void **state)
{
    static const char *const values[] = {"event-hold-limit", "8KiB", NULL};
    static struct box box;
    static char payload[1001];
    struct sluice_node *node = api_made(values);
    (void)state;
    memset(payload, 'x', sizeof(payload) - 1);
    (void)subscribed(node, API_TOPIC, keep, &box);
    api_start(node);
    for (int i = 0; i < 20; i++) {
        payload[0] = (char)('a' + i);
        api_publish(node, payload);
    }
    api_wait_count(&box.messages, 20);
    assert_true(box.kept_count >= 5);
    assert_true(box.kept_count <= 8);
    assert_int_equal(api_counter(node, "sluice_event_hold_refused_total"), 20 - box.kept_count);
    drop_kept(&box);
    api_publish(node, "room again");
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(box.kept_count, 1);
    drop_kept(&box);
    api_destroy(&node);
}

static void *publish_until_told(void *context)
{
    struct box *box = context;
    struct sluice_message message = api_message("again and again");
    enum sluice_result result;
    for (;;) {
        result = sluice_node_publish(box->node, &message, NULL, NULL);
        if (result == SLUICE_NOT_RUNNING) {
            return NULL;
        }
        assert_true(result == SLUICE_OK || result == SLUICE_LIMIT_REACHED);
    }
}

/* Another thread publishes all the time; is_over is set as soon as end, and then stop, has returned. */
static void no_callback_comes_after_the_end_or_the_stop(void **state)
{
    static struct box ended;
    static struct box stopped;
    pthread_t publisher;
    struct sluice_node *node = api_made(NULL);
    struct sluice_subscription *subscription = subscribed(node, API_TOPIC, take_message, &ended);
    (void)state;
    (void)subscribed(node, NULL, take_message, &stopped);
    ended.node = node;
    api_start(node);
    assert_int_equal(pthread_create(&publisher, NULL, publish_until_told, &ended), 0);
    api_wait_count(&ended.messages, 10);
    sluice_subscription_end(&subscription);
    atomic_store(&ended.is_over, true);
    assert_null(subscription);
    api_wait_count(&stopped.messages, atomic_load(&stopped.messages) + 10);
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    atomic_store(&stopped.is_over, true);
    assert_int_equal(pthread_join(publisher, NULL), 0);
    api_destroy(&node);
}

enum {
    TURNS_OF_A_SLOW_CALLBACK = 1000
};

static void take_long(void *context, struct sluice_envelope *envelope)
{
    struct box *box = context;
    (void)envelope;
    atomic_fetch_add(&box->messages, 1);
    for (int i = 0; i < TURNS_OF_A_SLOW_CALLBACK; i++) {
        sched_yield();
    }
    atomic_store(&box->may_go_on, true); /* the callback is over */
}

static void the_end_waits_for_a_callback_that_runs(void **state)
{
    static struct box box;
    struct sluice_node *node = api_made(NULL);
    struct sluice_subscription *subscription = subscribed(node, API_TOPIC, take_long, &box);
    (void)state;
    api_start(node);
    api_publish(node, "takes long");
    api_wait_count(&box.messages, 1);
    sluice_subscription_end(&subscription);
    assert_true(atomic_load(&box.may_go_on));
    api_destroy(&node);
}

/* Large, so that there is time to stop the node while the message is being copied. */
struct large_publish {
    struct sluice_node *node;
    struct box box;
    struct sluice_bytes payload;
    atomic_bool has_begun;
    enum sluice_result result;
};

static void *publish_large(void *context)
{
    struct large_publish *publish = context;
    struct sluice_message message = api_message("");
    message.payload = publish->payload;
    atomic_store(&publish->has_begun, true);
    publish->result = sluice_node_publish(publish->node, &message, take_outcome, &publish->box);
    return NULL;
}

static void stop_while_publishing(struct sluice_bytes payload)
{
    static const char *const values[] = {"max-msg-size", "64MiB", NULL};
    struct large_publish publish = {.node = api_made(values), .payload = payload};
    struct box none = {0};
    pthread_t thread;
    (void)subscribed(publish.node, API_TOPIC, take_message, &none);
    api_start(publish.node);
    assert_int_equal(pthread_create(&thread, NULL, publish_large, &publish), 0);
    while (!atomic_load(&publish.has_begun)) {
        sched_yield();
    }
    assert_int_equal(sluice_node_stop(publish.node), SLUICE_OK);
    size_t told = atomic_load(&publish.box.outcomes);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(publish.result == SLUICE_OK || publish.result == SLUICE_NOT_RUNNING);
    assert_int_equal(told, publish.result == SLUICE_OK);
    api_destroy(&publish.node);
}

static void whatever_was_taken_is_told_of_before_stop_returns(void **state)
{
    enum {
        ROUNDS = 10,
        SIZE = 16 * 1024 * 1024
    };
    uint8_t *payload = calloc(1, SIZE);
    (void)state;
    assert_non_null(payload);
    for (int i = 0; i < ROUNDS; i++) {
        stop_while_publishing((struct sluice_bytes){payload, SIZE});
    }
    free(payload);
}

static void call_everything(void *context, struct sluice_envelope *envelope)
{
    struct box *box = context;
    struct sluice_message message = api_message("from inside");
    (void)envelope;
    if (atomic_fetch_add(&box->messages, 1) > 0) {
        return;
    }
    box->results[0] = (int)sluice_node_stop(box->node);
    box->results[1] = (int)sluice_node_publish(box->node, &message, take_outcome, box);
    struct sluice_subscription *more = subscribed(box->node, "/waku/2/rs/0/7", take_message, box);
    sluice_subscription_end(&more);
    sluice_subscription_end(&box->subscription);
}

static void a_callback_may_use_the_node_but_not_stop_it(void **state)
{
    static struct box box;
    struct sluice_node *node = api_made(NULL);
    (void)state;
    box.node = node;
    box.subscription = subscribed(node, API_TOPIC, call_everything, &box);
    api_start(node);
    api_publish(node, "the first");
    api_wait_count(&box.outcomes, 1);
    api_publish(node, "after the end");
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(atomic_load(&box.messages), 1);
    assert_int_equal(box.results[0], SLUICE_WRONG_THREAD);
    assert_int_equal(box.results[1], SLUICE_OK);
    api_destroy(&node);
}

static void a_place_in_the_table_is_used_again(void **state)
{
    static struct box box;
    struct sluice_subscription *subscriptions[64];
    struct sluice_subscription *extra = NULL;
    struct sluice_node *node = api_made(NULL);
    (void)state;
    api_start(node);
    for (size_t i = 0; i < 64; i++) {
        subscriptions[i] = subscribed(node, API_TOPIC, take_message, &box);
    }
    assert_int_equal(sluice_node_subscribe(node, API_TOPIC, take_message, &box, &extra),
            SLUICE_LIMIT_REACHED);
    assert_null(extra);
    sluice_subscription_end(&subscriptions[20]);
    extra = subscribed(node, API_TOPIC, take_message, &box);
    api_publish(node, "to all of them");
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(atomic_load(&box.messages), 64);
    api_destroy(&node);
}

static void hold_up(
        void *context, enum sluice_outcome outcome, size_t peer_count, const char *reason)
{
    struct box *box = context;
    take_outcome(context, outcome, peer_count, reason);
    while (!atomic_load(&box->may_go_on)) {
        sched_yield();
    }
}

static void publishes_whose_outcome_is_not_told_have_a_limit(void **state)
{
    static const char *const values[] = {"publish-limit", "3", NULL};
    static struct box box;
    struct sluice_node *node = api_made(values);
    struct sluice_message message = api_message("x");
    (void)state;
    (void)subscribed(node, API_TOPIC, take_message, &box);
    api_start(node);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sluice_node_publish(node, &message, hold_up, &box), SLUICE_OK);
    }
    assert_int_equal(sluice_node_publish(node, &message, hold_up, &box), SLUICE_LIMIT_REACHED);
    api_publish(node, "nobody is told of this one");
    atomic_store(&box.may_go_on, true);
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(atomic_load(&box.outcomes), 3);
    api_destroy(&node);
}

static void options_that_are_wrong_say_so(void **state)
{
    struct sluice_options *options = NULL;
    struct sluice_node *node = NULL;
    struct sluice_error error = {""};
    (void)state;
    assert_int_equal(sluice_options_create(&options), SLUICE_OK);
    assert_int_equal(sluice_options_set(options, "max-topic", "3", &error), SLUICE_NOT_FOUND);
    assert_non_null(strstr(error.text, "--max-topics"));
    assert_int_equal(sluice_options_set(options, "max-topics", "0", &error), SLUICE_BAD_ARGUMENT);
    assert_int_equal(sluice_options_set(options, "max-topics", "0", NULL), SLUICE_BAD_ARGUMENT);
    assert_int_equal(sluice_options_set(options, "rln-relay", "true", &error), SLUICE_OK);
    assert_int_equal(sluice_node_create(&node, options, &error), SLUICE_UNSUPPORTED);
    assert_non_null(strstr(error.text, "--rln-relay: "));
    assert_null(node);
    sluice_options_destroy(&options);
    assert_null(options);
}

static void a_node_starts_once(void **state)
{
    struct sluice_node *node = api_made(NULL);
    struct sluice_error error = {""};
    (void)state;
    api_start(node);
    assert_int_equal(sluice_node_start(node, &error), SLUICE_BAD_ARGUMENT);
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(sluice_node_start(node, &error), SLUICE_BAD_ARGUMENT);
    api_destroy(&node);
    struct sluice_node *never_started = api_made(NULL);
    api_destroy(&never_started);
    api_destroy(&never_started);
}

static void every_counter_that_is_named_can_be_read(void **state)
{
    struct sluice_node *node = api_made(NULL);
    const char *name;
    size_t count = 0;
    uint64_t value;
    (void)state;
    for (; (name = sluice_counter_name(count)) != NULL; count++) {
        assert_int_equal(sluice_node_counter(node, name, &value), SLUICE_OK);
    }
    assert_true(count > 50);
    assert_int_equal(sluice_node_counter(node, "sluice_nonsense", &value), SLUICE_NOT_FOUND);
    api_destroy(&node);
}

/* The mask in /proc of every thread of this process but the caller's. */
static size_t count_threads_that_take(int signal_number, pid_t self)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    size_t count = 0;
    assert_non_null(tasks);
    while ((entry = readdir(tasks)) != NULL) {
        char path[300];
        char line[256];
        snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
        FILE *status = fopen(path, "r");
        unsigned long long blocked = 0;
        while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
            (void)sscanf(line, "SigBlk: %llx", &blocked);
        }
        if (status != NULL) {
            assert_int_equal(fclose(status), 0);
        }
        bool is_other = entry->d_name[0] != '.' && atoi(entry->d_name) != self;
        count += is_other && (blocked >> (signal_number - 1) & 1) == 0;
    }
    assert_int_equal(closedir(tasks), 0);
    return count;
}

#if defined(__SANITIZE_THREAD__) || defined(__has_feature)
enum {
    HAS_THREADS_OF_ITS_OWN = 1 /* a sanitizer's */
};
#else
enum {
    HAS_THREADS_OF_ITS_OWN = 0
};
#endif

/* SIGUSR1 is not asked for: a thread of liburcu takes that one itself. */
static void a_nodes_threads_take_no_signal_of_the_host(void **state)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR2, SIGALRM};
    struct sluice_node *node = api_made(NULL);
    (void)state;
    api_start(node);
    for (size_t i = 0; !HAS_THREADS_OF_ITS_OWN && i < sizeof(signals) / sizeof(signals[0]); i++) {
        assert_int_equal(count_threads_that_take(signals[i], getpid()), 0);
    }
    sigset_t ours;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &ours), 0);
    assert_false(sigismember(&ours, SIGTERM));
    api_destroy(&node);
}

static void count_line(
        void *context, enum sluice_log_level level, const char *module, const char *line)
{
    atomic_size_t *count = context;
    assert_true(level >= SLUICE_LOG_NOTICE);
    assert_non_null(module);
    assert_non_null(line);
    atomic_fetch_add(count, 1);
}

static void the_log_is_the_hosts(void **state)
{
    static atomic_size_t count;
    (void)state;
    sluice_log_set_sink(count_line, &count, SLUICE_LOG_NOTICE);
    struct sluice_node *node = api_made(NULL); /* notes what the reference has on by default */
    api_destroy(&node);
    assert_true(atomic_load(&count) > 0);
    size_t before = atomic_load(&count);
    sluice_log_set_sink(NULL, NULL, SLUICE_LOG_NOTICE);
    node = api_made(NULL);
    api_destroy(&node);
    assert_int_equal(atomic_load(&count), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_published_message_comes_back_with_its_fields_and_hash),
            cmocka_unit_test(a_refusal_says_why),
            cmocka_unit_test(what_cannot_be_queued_is_refused_at_once),
            cmocka_unit_test(without_a_pubsub_topic_the_content_topic_decides),
            cmocka_unit_test(nodes_of_one_process_share_nothing),
            cmocka_unit_test(topics_have_callbacks_of_their_own_and_all_has_every_one),
            cmocka_unit_test(a_blocking_callback_holds_up_nothing_but_callbacks),
            cmocka_unit_test(a_kept_envelope_outlives_callback_and_stop_but_not_the_node),
            cmocka_unit_test(keeps_no_more_than_the_limit_and_counts_what_it_refuses),
            cmocka_unit_test(no_callback_comes_after_the_end_or_the_stop),
            cmocka_unit_test(the_end_waits_for_a_callback_that_runs),
            cmocka_unit_test(whatever_was_taken_is_told_of_before_stop_returns),
            cmocka_unit_test(a_callback_may_use_the_node_but_not_stop_it),
            cmocka_unit_test(a_place_in_the_table_is_used_again),
            cmocka_unit_test(publishes_whose_outcome_is_not_told_have_a_limit),
            cmocka_unit_test(options_that_are_wrong_say_so),
            cmocka_unit_test(a_node_starts_once),
            cmocka_unit_test(every_counter_that_is_named_can_be_read),
            cmocka_unit_test(a_nodes_threads_take_no_signal_of_the_host),
            cmocka_unit_test(the_log_is_the_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
