/* SPDX-License-Identifier: MIT */

/*
 * sluice subscribe MULTIADDR: prints messages as a node pushes them (filter), until it is told to
 * stop. It pings to keep its subscription, and subscribes again after the node was gone.
 */

#include <inttypes.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "codec/topics.h"
#include "codec/waku_message.h"
#include "hash/message_hash.h"
#include "net/protocols/filter_client.h"
#include "net/protocols/service_code.h"
#include "tools/sluice/command_options.h"
#include "tools/sluice/commands.h"
#include "tools/sluice/message_printer.h"
#include "tools/sluice/service_client.h"

static const char usage[] = "subscribe MULTIADDR --content-topic=TOPIC [OPTIONS]";

enum {
    TOPICS_MAX = 10000,
    REQUEST_TOPICS_MAX = 100, /* of one request */
    MESSAGE_BYTES_MAX = 64 * 1024 * 1024,
    LOOK_MS = 100,
    RETRY_MS = 1000, /* doubles up to */
    RETRY_MAX_MS = 30 * 1000
};

static const struct option_spec specs[] = {
        {"content-topic", OPTION_LIST, "", 0, 0, "Subscription",
                "content topic; may be given several times"},
        {"pubsub-topic", OPTION_TEXT, "", 0, 0, "Subscription",
                "pubsub topic of all of them; without it that of each one's shard"},
        {"cluster-id", OPTION_NUMBER, "0", 0, 65535, "Subscription",
                "cluster of the network, with num-shards-in-network"},
        {"num-shards-in-network", OPTION_NUMBER, "0", 0, 65535, "Subscription",
                "for a node that does not find the shards by itself, as the reference; 0: it does"},
        {"ping-interval", OPTION_SECONDS, "60s", 100, 86400000, "Subscription",
                "how often the subscription is kept alive"},
        {"count", OPTION_NUMBER, "0", 0, 1000000000, "Subscription",
                "end after so many messages; 0: go on"},
        {"json", OPTION_BOOL, "false", 0, 0, "Subscription", "a JSON object on a line each"},
        SERVICE_CLIENT_OPTIONS,
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

/* The content topics of one request. */
struct group {
    char pubsub_topic[1100];
    struct span topics[REQUEST_TOPICS_MAX];
    size_t count;
};

struct subscription {
    const struct options *options;
    const char *address;
    struct service_client *client;
    struct filter_client *filter;
    uint64_t timeout_ms;
    uint64_t ping_ms;
    struct message_printer printer;
    uint64_t limit;
    _Atomic uint64_t count;
    bool was_subscribed;

    /* The request under way. */
    sem_t answered;
    struct filter_request_fields fields;
    uint32_t code;
    char description[256];
};

/* On the io thread. */

static void on_received(
        void *context, struct connection *connection, const struct filter_push_view *push)
{
    struct subscription *subscription = context;
    struct waku_message_view view;
    uint8_t hash[SHA256_BYTES];
    (void)connection;
    if (atomic_load(&subscription->count) >= subscription->limit ||
            waku_message_decode(&view, push->message) != STATUS_OK) {
        return;
    }
    struct message_hash_input input = {.pubsub_topic = push->pubsub_topic,
            .payload = view.payload,
            .content_topic = view.content_topic,
            .meta = view.meta,
            .timestamp_ns = view.timestamp_ns};
    message_hash(hash, &input);
    if (message_printer_add(&subscription->printer, span_of(hash, sizeof(hash)), push->pubsub_topic,
                push->message) == STATUS_OK) {
        fflush(stdout);
        atomic_fetch_add(&subscription->count, 1);
    }
}

static void on_answered(void *context, uint32_t code, struct span description)
{
    struct subscription *subscription = context;
    subscription->code = code;
    snprintf(subscription->description, sizeof(subscription->description), "%.*s",
            (int)description.length, (const char *)description.bytes);
    sem_post(&subscription->answered);
}

static void ask_on_connection(void *context, struct connection *connection)
{
    struct subscription *subscription = context;
    if (connection == NULL) {
        on_answered(subscription, FILTER_CODE_UNREACHABLE, span_of_text("connection is gone"));
        return;
    }
    filter_client_ask(
            connection, &subscription->fields, subscription->timeout_ms, on_answered, subscription);
}

/* On the main thread. */

/* The code of the answer; a topic-less request is a ping. */
static uint32_t ask(
        struct subscription *subscription, enum filter_verb verb, const struct group *group)
{
    subscription->fields = (struct filter_request_fields){.verb = verb};
    if (group != NULL) {
        subscription->fields.pubsub_topic = span_of_text(group->pubsub_topic);
        subscription->fields.content_topics = group->topics;
        subscription->fields.content_topic_count = group->count;
    }
    enum status status = switch_run_on_connection(service_client_switch(subscription->client),
            service_client_connection(subscription->client), ask_on_connection, subscription);
    if (status != STATUS_OK) {
        return FILTER_CODE_UNREACHABLE;
    }
    while (sem_wait(&subscription->answered) != 0) {
    }
    return subscription->code;
}

/* The topic that the options give a content topic; false: it has no shard. */
static bool find_pubsub_topic(
        const struct options *options, const char *content_topic, char *out, size_t size)
{
    struct content_topic parsed;
    char name[SHARD_TOPIC_MAX_BYTES] = "";
    struct shard shard = {.cluster = (uint16_t)options_number(options, "cluster-id")};
    uint16_t shards = (uint16_t)options_number(options, "num-shards-in-network");
    const char *named = options_text(options, "pubsub-topic");
    if (named[0] == '\0' && shards > 0) {
        if (content_topic_parse(&parsed, span_of_text(content_topic)) != STATUS_OK ||
                content_topic_shard(&shard.index, &parsed, shards) != STATUS_OK) {
            return false;
        }
        (void)shard_format(name, shard);
        named = name;
    }
    snprintf(out, size, "%s", named);
    return true;
}

/* The content topics from *next on that go into one request; *next is the first that does not. */
static bool take_group(const struct options *options, bool taken[], struct group *group)
{
    size_t count = options_list_count(options, "content-topic");
    group->count = 0;
    for (size_t i = 0; i < count && group->count < REQUEST_TOPICS_MAX; i++) {
        char topic[sizeof(group->pubsub_topic)];
        const char *content_topic = options_list_item(options, "content-topic", i);
        if (taken[i] || !find_pubsub_topic(options, content_topic, topic, sizeof(topic))) {
            continue;
        }
        if (group->count == 0) {
            memcpy(group->pubsub_topic, topic, sizeof(topic));
        }
        if (strcmp(topic, group->pubsub_topic) == 0) {
            group->topics[group->count++] = span_of_text(content_topic);
            taken[i] = true;
        }
    }
    return group->count > 0;
}

/* The same request for all content topics; the first code that is not 200. */
static uint32_t ask_for_all(struct subscription *subscription, enum filter_verb verb)
{
    static bool taken[TOPICS_MAX];
    static struct group group;
    uint32_t code = SERVICE_OK;
    memset(taken, 0, sizeof(taken));
    while (code == SERVICE_OK && take_group(subscription->options, taken, &group)) {
        code = ask(subscription, verb, &group);
    }
    return code;
}

static void complain(const struct subscription *subscription, const char *what, uint32_t code)
{
    fprintf(stderr, "sluice subscribe: %s: %" PRIu32 " %s\n", what, code,
            subscription->description);
}

/* Connects and subscribes; false: not this time. */
static bool subscribe(struct subscription *subscription)
{
    if (service_client_connection(subscription->client) == 0) {
        enum status status = service_client_connect(subscription->client, subscription->address);
        if (status != STATUS_OK) {
            fprintf(stderr, "sluice subscribe: connect: %s\n", status_text(status));
            return false;
        }
    }
    uint32_t code = ask_for_all(subscription, FILTER_SUBSCRIBE);
    if (code != SERVICE_OK) {
        complain(subscription, "refused", code);
        return false;
    }
    fprintf(stderr, "sluice subscribe: subscribed\n");
    subscription->was_subscribed = true;
    return true;
}

static uint64_t now_ms(void)
{
    return clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
}

/* True: the command is to end. */
static bool wait_until(
        const struct subscription *subscription, uint64_t deadline_ms, bool ends_with_connection)
{
    struct timespec slice = {.tv_nsec = LOOK_MS * (long)NANOSECONDS_PER_MILLISECOND};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    while (now_ms() < deadline_ms) {
        if (sigtimedwait(&signals, NULL, &slice) > 0 ||
                atomic_load(&subscription->count) >= subscription->limit) {
            return true;
        }
        if (ends_with_connection && service_client_connection(subscription->client) == 0) {
            fprintf(stderr, "sluice subscribe: the node is gone\n");
            return false;
        }
    }
    return atomic_load(&subscription->count) >= subscription->limit;
}

/* While the subscription stands. True: the command is to end. */
static bool receive(struct subscription *subscription)
{
    for (;;) {
        if (wait_until(subscription, now_ms() + subscription->ping_ms, true)) {
            return true;
        }
        if (service_client_connection(subscription->client) == 0) {
            return false;
        }
        uint32_t code = ask(subscription, FILTER_SUBSCRIBER_PING, NULL);
        if (code != SERVICE_OK) {
            complain(subscription, "ping", code);
            return false;
        }
    }
}

/* A first attempt that fails is the caller's fault; later ones are tried again, later and later. */
static int run(struct subscription *subscription)
{
    uint64_t retry_ms = RETRY_MS;
    bool is_over = false;
    while (!is_over) {
        if (subscribe(subscription)) {
            retry_ms = RETRY_MS;
            is_over = receive(subscription);
        } else if (!subscription->was_subscribed) {
            return 1;
        } else {
            is_over = wait_until(subscription, now_ms() + retry_ms, false);
            retry_ms = retry_ms * 2 < RETRY_MAX_MS ? retry_ms * 2 : RETRY_MAX_MS;
        }
    }
    if (service_client_connection(subscription->client) != 0) {
        uint32_t code = ask_for_all(subscription, FILTER_UNSUBSCRIBE);
        if (code != SERVICE_OK) {
            complain(subscription, "unsubscribe", code);
        }
    }
    return 0;
}

static enum status open_client(struct subscription *subscription)
{
    enum status status =
            service_client_create(&subscription->client, subscription->options, "subscribe");
    if (status != STATUS_OK) {
        return status;
    }
    struct filter_client_options filter = {
            .net_switch = service_client_switch(subscription->client),
            .message_bytes_max = MESSAGE_BYTES_MAX,
            .received = on_received,
            .context = subscription};
    status = filter_client_create(&subscription->filter, &filter);
    if (status != STATUS_OK) {
        fprintf(stderr, "sluice subscribe: %s\n", status_text(status));
    }
    return status;
}

static bool check(const struct options *options)
{
    size_t count = options_list_count(options, "content-topic");
    if (options_positional_count(options) != 1 || count == 0 || count > TOPICS_MAX) {
        fprintf(stderr, "usage: sluice %s\n", usage);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        char topic[1100];
        const char *content_topic = options_list_item(options, "content-topic", i);
        if (!find_pubsub_topic(options, content_topic, topic, sizeof(topic))) {
            fprintf(stderr, "sluice subscribe: --content-topic=%s has no shard\n", content_topic);
            return false;
        }
    }
    return command_start_log(options_text(options, "log-level"));
}

static int run_subscribe(const struct options *options)
{
    struct subscription subscription = {.options = options,
            .timeout_ms = options_number(options, "timeout"),
            .ping_ms = options_number(options, "ping-interval"),
            .limit = options_number(options, "count")};
    sigset_t signals;
    if (!check(options)) {
        return 2;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    /* Before the threads start, which inherit it. */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    subscription.address = options_positional(options, 0);
    subscription.limit = subscription.limit == 0 ? UINT64_MAX : subscription.limit;
    sem_init(&subscription.answered, 0, 0);
    message_printer_init_lines(&subscription.printer, options_flag(options, "json"));
    int result = open_client(&subscription) == STATUS_OK ? run(&subscription) : 1;
    service_client_close(&subscription.client);
    filter_client_destroy(&subscription.filter);
    message_printer_fini(&subscription.printer);
    sem_destroy(&subscription.answered);
    return result;
}

int command_subscribe(int argc, char **argv)
{
    int exit_status;
    struct options *options = command_parse(usage, specs, argc, argv, &exit_status);
    if (options == NULL) {
        return exit_status;
    }
    exit_status = run_subscribe(options);
    options_destroy(&options);
    return exit_status;
}
