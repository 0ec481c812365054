/* SPDX-License-Identifier: MIT */
#include "node/push_client.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "codec/topics.h"
#include "net/protocols/exchange.h"
#include "net/protocols/service_code.h"

enum {
    PEERS_MAX = 16, /* that serve lightpush and are remembered, of each version */
    REQUEST_ID_SIZE = 24,
    VERSIONS = 2
};

struct push_client {
    struct net_switch *net_switch;
    bool has_service;
    struct multiaddr service;
    size_t pushes_max;
    uint16_t cluster_id;
    uint16_t network_shards;
    atomic_size_t pending;
    _Atomic uint64_t request_ids;
    /* Connections whose peers have said that they serve; 0: none. One may be gone. */
    atomic_size_t next_peer[VERSIONS];
    _Atomic uint64_t peers[VERSIONS][PEERS_MAX];
};

/* One push, from the call to done. One thread at a time works on it. */
struct push {
    struct io_task task;
    struct push_client *client;
    node_pushed *done;
    void *context;
    enum lightpush_version version;
    uint64_t deadline_ns;
    size_t peers_tried; /* of client->peers */
    struct switch_dial dial;
    char request_id[REQUEST_ID_SIZE];
    struct node_push_outcome outcome;
    size_t length;
    uint8_t request[];
};

static const char *const v3[] = {LIGHTPUSH_PROTOCOL_ID};
static const char *const legacy[] = {LIGHTPUSH_LEGACY_PROTOCOL_ID};

static void set_outcome(struct push *push, uint32_t code, struct span description)
{
    size_t length = description.length < NODE_PUSH_DESCRIPTION_SIZE - 1
                            ? description.length
                            : NODE_PUSH_DESCRIPTION_SIZE - 1;
    push->outcome.code = code;
    if (length > 0) {
        memcpy(push->outcome.description, description.bytes, length);
    }
    push->outcome.description[length] = '\0';
}

static void finish(struct push *push)
{
    struct push_client *client = push->client;
    metrics_add(
            push->outcome.code == SERVICE_OK ? METRIC_PUSH_CLIENT_OK : METRIC_PUSH_CLIENT_FAILED,
            1);
    push->done(push->context, &push->outcome);
    memory_free(push);
    /* release: whoever sees nothing pending may free what done used */
    atomic_fetch_sub_explicit(&client->pending, 1, memory_order_release);
}

static void finish_with(struct push *push, uint32_t code, const char *description)
{
    set_outcome(push, code, span_of_text(description));
    finish(push);
}

static void finish_failed(struct push *push, uint32_t code, const char *what, enum status status)
{
    char text[NODE_PUSH_DESCRIPTION_SIZE];
    if (status == STATUS_TIMED_OUT) {
        finish_with(push, SERVICE_UNAVAILABLE, "Push request timed out");
        return;
    }
    snprintf(text, sizeof(text), "%s: %s", what, status_text(status));
    finish_with(push, code, text);
}

static uint64_t left_ms(const struct push *push)
{
    uint64_t now_ns = clock_monotonic_ns();
    return now_ns >= push->deadline_ns
                   ? 1
                   : (push->deadline_ns - now_ns) / NANOSECONDS_PER_MILLISECOND + 1;
}

/* Published to nobody is no success, whatever the service calls it. */
static void take_v3(struct push *push, const struct lightpush_answer *answer)
{
    set_outcome(push, answer->code, answer->description);
    push->outcome.has_relay_peer_count = answer->has_relay_peer_count;
    push->outcome.relay_peer_count = answer->relay_peer_count;
    if (answer->code == SERVICE_OK && answer->relay_peer_count == 0) {
        push->outcome.code = SERVICE_NO_RELAY_PEERS;
    }
}

static void take_legacy(struct push *push, const struct lightpush_answer *answer)
{
    bool is_rate = span_equal(answer->description, span_of_text("TOO_MANY_REQUESTS"));
    uint32_t code = is_rate ? SERVICE_TOO_MANY_REQUESTS : SERVICE_UNAVAILABLE;
    set_outcome(push, answer->code == SERVICE_OK ? SERVICE_OK : code, answer->description);
}

static void on_answered(void *context, enum status status, const char *protocol, struct span bytes)
{
    struct push *push = context;
    struct lightpush_answer answer;
    (void)protocol;
    if (status == STATUS_NO_COMMON_PROTOCOL) {
        finish_failed(push, SERVICE_NO_RELAY_PEERS,
                "dial_failure: the service peer serves no lightpush", status);
        return;
    }
    if (status != STATUS_OK) {
        finish_failed(push, SERVICE_INTERNAL_ERROR, "no answer", status);
        return;
    }
    status = lightpush_answer_read(&answer, bytes, push->version);
    if (status != STATUS_OK) {
        finish_failed(push, SERVICE_INTERNAL_ERROR, "malformed answer", status);
        return;
    }
    /* Who refuses for the rate may not have read so far. */
    if (!span_equal(answer.request_id, span_of_text(push->request_id)) &&
            answer.code == SERVICE_OK) {
        finish_with(push, SERVICE_INTERNAL_ERROR, "the answer belongs to another request");
        return;
    }
    if (push->version == LIGHTPUSH_V3) {
        take_v3(push, &answer);
    } else {
        take_legacy(push, &answer);
    }
    finish(push);
}

static enum status ask(struct push *push, struct connection *connection)
{
    struct exchange_call call = {.protocols = push->version == LIGHTPUSH_V3 ? v3 : legacy,
            .protocol_count = 1,
            .request = span_of(push->request, push->length),
            .answer_max = LIGHTPUSH_ANSWER_MAX,
            .timeout_ms = left_ms(push),
            .done = on_answered,
            .context = push};
    return exchange_call(connection, &call);
}

/* By dialling. */

static void ask_dialled(void *context, struct connection *connection)
{
    struct push *push = context;
    enum status status = connection == NULL ? STATUS_CLOSED : ask(push, connection);
    if (status != STATUS_OK) {
        finish_failed(push, SERVICE_NO_RELAY_PEERS,
                "dial_failure: the service peer cannot be asked", status);
    }
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    struct push *push = context;
    if (status == STATUS_OK) {
        status = switch_run_on_connection(push->client->net_switch, connection, ask_dialled, push);
    }
    if (status != STATUS_OK) {
        finish_failed(push, SERVICE_NO_RELAY_PEERS,
                "dial_failure: the service peer cannot be reached", status);
    }
}

/* By what is connected. */

static void try_next_peer(struct push *push);

static void ask_peer(void *context, struct connection *connection)
{
    struct push *push = context;
    if (connection == NULL || ask(push, connection) != STATUS_OK) {
        try_next_peer(push);
    }
}

static void try_next_peer(struct push *push)
{
    struct push_client *client = push->client;
    while (push->peers_tried < PEERS_MAX) {
        /* relaxed: a number that says by itself what it names */
        uint64_t connection = atomic_load_explicit(
                &client->peers[push->version][push->peers_tried++], memory_order_relaxed);
        if (connection != 0 && switch_run_on_connection(client->net_switch, connection, ask_peer,
                                       push) == STATUS_OK) {
            return;
        }
    }
    finish_with(push, SERVICE_UNAVAILABLE, "No suitable service peer & no discovery method");
}

static void start(struct io_task *task)
{
    struct push *push = (struct push *)((char *)task - offsetof(struct push, task));
    if (push->outcome.code != 0) {
        finish(push);
        return;
    }
    if (push->dial.done == NULL) {
        try_next_peer(push);
        return;
    }
    enum status status = switch_dial(push->client->net_switch, &push->dial);
    if (status != STATUS_OK) {
        on_dialled(push, status, 0);
    }
}

/* The topic to name in the request; empty: *push has the outcome. */
static struct span find_topic(
        struct push *push, const struct node_push *asked, char name[SHARD_TOPIC_MAX_BYTES])
{
    const struct push_client *client = push->client;
    struct content_topic content_topic;
    struct shard shard = {.cluster = client->cluster_id};
    if (asked->pubsub_topic.length > 0) {
        return asked->pubsub_topic;
    }
    if (client->network_shards == 0) {
        set_outcome(push, SERVICE_INVALID_MESSAGE,
                span_of_text("Pubsub topic must be specified when static sharding is enabled"));
        return asked->pubsub_topic;
    }
    if (content_topic_parse(&content_topic, lightpush_content_topic(asked->message)) != STATUS_OK ||
            content_topic_shard(&shard.index, &content_topic, client->network_shards) !=
                    STATUS_OK) {
        set_outcome(push, SERVICE_INVALID_MESSAGE,
                span_of_text("Invalid content-topic: it has no shard"));
        return asked->pubsub_topic;
    }
    return span_of(name, shard_format(name, shard));
}

static struct push *make_push(struct push_client *client, const struct node_push *asked)
{
    struct lightpush_request sizes = {.pubsub_topic = asked->pubsub_topic};
    size_t head_max = lightpush_request_head_max(&sizes) + SHARD_TOPIC_MAX_BYTES + REQUEST_ID_SIZE;
    struct push *push = memory_allocate(sizeof(*push) + head_max + asked->message.length);
    char name[SHARD_TOPIC_MAX_BYTES];
    if (push == NULL) {
        return NULL;
    }
    memset(push, 0, sizeof(*push));
    push->client = client;
    push->version = asked->version;
    uint64_t timeout_ms = asked->timeout_ms == 0 ? NODE_PUSH_TIMEOUT_MS : asked->timeout_ms;
    push->deadline_ns = clock_monotonic_ns() + timeout_ms * NANOSECONDS_PER_MILLISECOND;
    /* relaxed: each is drawn once */
    snprintf(push->request_id, sizeof(push->request_id), "sluice-%" PRIu64,
            atomic_fetch_add_explicit(&client->request_ids, 1, memory_order_relaxed));
    struct lightpush_request request = {.request_id = span_of_text(push->request_id),
            .pubsub_topic = find_topic(push, asked, name),
            .has_pubsub_topic = true,
            .message = asked->message};
    size_t head = lightpush_request_write_head(push->request, &request, push->version);
    if (asked->message.length > 0) {
        memcpy(push->request + head, asked->message.bytes, asked->message.length);
    }
    push->length = head + asked->message.length;
    const struct multiaddr *peer = asked->peer;
    peer = peer == NULL && client->has_service ? &client->service : peer;
    if (peer != NULL) {
        push->dial = (struct switch_dial){
                .address = *peer, .timeout_ms = timeout_ms, .done = on_dialled, .context = push};
    }
    return push;
}

enum status push_client_push(
        struct push_client *client, const struct node_push *asked, node_pushed *done, void *context)
{
    /* relaxed: it bounds and orders nothing */
    if (atomic_fetch_add_explicit(&client->pending, 1, memory_order_relaxed) >=
            client->pushes_max) {
        atomic_fetch_sub_explicit(&client->pending, 1, memory_order_relaxed);
        return STATUS_BUSY;
    }
    struct push *push = make_push(client, asked);
    if (push == NULL) {
        atomic_fetch_sub_explicit(&client->pending, 1, memory_order_relaxed);
        return STATUS_NO_MEMORY;
    }
    push->done = done;
    push->context = context;
    push->task.run = start;
    io_loop_post(switch_control_loop(client->net_switch), &push->task);
    return STATUS_OK;
}

const struct multiaddr *push_client_service(const struct push_client *client)
{
    return client->has_service ? &client->service : NULL;
}

void push_client_note_peer(
        struct push_client *client, struct connection *connection, const struct identify_info *info)
{
    static const char *const ids[VERSIONS] = {[LIGHTPUSH_LEGACY] = LIGHTPUSH_LEGACY_PROTOCOL_ID,
            [LIGHTPUSH_V3] = LIGHTPUSH_PROTOCOL_ID};
    uint64_t id = connection_id(connection);
    for (size_t version = 0; version < VERSIONS; version++) {
        if (!identify_info_has_protocol(info, ids[version])) {
            continue;
        }
        /* relaxed: as in try_next_peer */
        bool is_known = false;
        for (size_t i = 0; i < PEERS_MAX; i++) {
            is_known = is_known ||
                       atomic_load_explicit(&client->peers[version][i], memory_order_relaxed) == id;
        }
        if (!is_known) {
            size_t place =
                    atomic_fetch_add_explicit(&client->next_peer[version], 1, memory_order_relaxed);
            atomic_store_explicit(
                    &client->peers[version][place % PEERS_MAX], id, memory_order_relaxed);
        }
    }
}

enum status push_client_create(struct push_client **out, const struct push_client_options *options)
{
    struct push_client *client = memory_allocate_zeroed(sizeof(*client));
    if (client == NULL) {
        return STATUS_NO_MEMORY;
    }
    client->net_switch = options->net_switch;
    client->pushes_max = options->pushes_max;
    client->cluster_id = options->cluster_id;
    client->network_shards = options->network_shards;
    client->has_service = options->service != NULL;
    if (client->has_service) {
        client->service = *options->service;
    }
    *out = client;
    return STATUS_OK;
}

void push_client_destroy(struct push_client **client)
{
    assert(*client == NULL || push_client_pending(*client) == 0);
    memory_free(*client);
    *client = NULL;
}

size_t push_client_pending(struct push_client *client)
{
    /* acquire: pairs with the release in finish */
    return atomic_load_explicit(&client->pending, memory_order_acquire);
}
