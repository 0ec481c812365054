/* SPDX-License-Identifier: MIT */
#include "node/subscribe_client.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "codec/topics.h"
#include "net/protocols/filter_client.h"
#include "net/protocols/service_code.h"

enum {
    TIMEOUT_MS = 5000,
    SERVING_MAX = 16,   /* connected peers that serve filter and are remembered */
    ACCEPTED_MAX = 64,  /* peers that we have subscribed with; the oldest gives way */
    TOPICS_MAX = 65536, /* in one call */
    NO_GROUP = UINT16_MAX + 1
};

/*
 * Ordering:
 *
 *   RECEIVER  release store of received -> acquire load of it. Who sees it sees its context.
 *
 * Peers are remembered by a number each that says by itself what it names, so that all accesses are
 * relaxed: connections for those that serve, the beginning of the peer id's digest for the accepted.
 */
struct subscribe_client {
    struct net_switch *net_switch;
    struct filter_client *filter;
    bool has_service;
    struct multiaddr service;
    uint16_t cluster_id;
    uint16_t network_shards;
    _Atomic(node_filter_received *) received; /* RECEIVER */
    void *received_context;                   /* written before it, once */
    atomic_size_t pending;
    atomic_size_t next_serving;
    _Atomic uint64_t serving[SERVING_MAX];
    atomic_size_t next_accepted;
    _Atomic uint64_t accepted[ACCEPTED_MAX];
};

/* A content topic and the shard that it belongs to; NO_GROUP: already asked for. */
struct wanted {
    struct span topic;
    uint32_t shard;
};

/* From the call to answered. One thread at a time works on it. */
struct asking {
    struct io_task task;
    struct subscribe_client *client;
    node_filter_answered *answered;
    void *context;
    enum filter_verb verb;
    uint64_t timeout_ms;
    struct switch_dial dial;
    size_t serving_tried; /* of client->serving */
    uint64_t connection;
    bool is_asked; /* at least once */
    uint32_t code; /* 0: nothing is known yet */
    char description[NODE_FILTER_DESCRIPTION_SIZE];
    struct span pubsub_topic;
    char shard_name[SHARD_TOPIC_MAX_BYTES];
    size_t wanted_count;
    struct span *request_topics; /* of the request that is under way */
    struct wanted *wanted;
};

static void note_outcome(struct asking *asking, uint32_t code, struct span description)
{
    size_t max = NODE_FILTER_DESCRIPTION_SIZE - 1;
    size_t length = description.length < max ? description.length : max;
    if (asking->code != 0 && code == SERVICE_OK) {
        return; /* what failed is told */
    }
    asking->code = code;
    if (length > 0) {
        memcpy(asking->description, description.bytes, length);
    }
    asking->description[length] = '\0';
}

static void finish(struct asking *asking)
{
    struct subscribe_client *client = asking->client;
    asking->answered(asking->context, asking->code, asking->description);
    memory_free(asking);
    /* release: whoever sees nothing pending may free what answered used */
    atomic_fetch_sub_explicit(&client->pending, 1, memory_order_release);
}

static void finish_with(struct asking *asking, uint32_t code, const char *description)
{
    note_outcome(asking, code, span_of_text(description));
    finish(asking);
}

/* Who may push. */

static uint64_t number_of(const struct connection *connection)
{
    const struct peer_id *peer = connection_peer(connection);
    uint64_t number = 0;
    /* The end of a multihash is of a digest or a key. */
    memcpy(&number, peer->bytes + peer->length - sizeof(number), sizeof(number));
    return number;
}

static bool is_among(_Atomic uint64_t numbers[], size_t count, uint64_t number)
{
    for (size_t i = 0; i < count; i++) {
        if (atomic_load_explicit(&numbers[i], memory_order_relaxed) == number) {
            return true;
        }
    }
    return false;
}

static void remember(_Atomic uint64_t numbers[], size_t count, atomic_size_t *next, uint64_t number)
{
    if (!is_among(numbers, count, number)) {
        size_t place = atomic_fetch_add_explicit(next, 1, memory_order_relaxed);
        atomic_store_explicit(&numbers[place % count], number, memory_order_relaxed);
    }
}

static bool accepts(void *context, struct connection *connection)
{
    struct subscribe_client *client = context;
    return is_among(client->accepted, ACCEPTED_MAX, number_of(connection));
}

static void on_received(
        void *context, struct connection *connection, const struct filter_push_view *push)
{
    struct subscribe_client *client = context;
    (void)connection;
    node_filter_received *received =
            atomic_load_explicit(&client->received, memory_order_acquire); /* RECEIVER */
    if (received != NULL) {
        received(client->received_context, push->pubsub_topic, push->message);
    }
}

/* Asking. */

static void ask_next(struct asking *asking, struct connection *connection);

static void on_next(void *context, struct connection *connection)
{
    struct asking *asking = context;
    if (connection == NULL) {
        finish_with(asking, FILTER_CODE_UNREACHABLE, status_text(STATUS_CLOSED));
        return;
    }
    ask_next(asking, connection);
}

static void on_answered(void *context, uint32_t code, struct span description)
{
    struct asking *asking = context;
    note_outcome(asking, code, description);
    enum status status = switch_run_on_connection(
            asking->client->net_switch, asking->connection, on_next, asking);
    if (status != STATUS_OK) {
        finish_with(asking, FILTER_CODE_UNREACHABLE, status_text(status));
    }
}

/* The content topics of one shard, or of the topic that was named; 0: all have been asked for. */
static size_t take_group(struct asking *asking)
{
    uint32_t shard = NO_GROUP;
    size_t count = 0;
    for (size_t i = 0; i < asking->wanted_count; i++) {
        struct wanted *wanted = &asking->wanted[i];
        if (wanted->shard != NO_GROUP && (shard == NO_GROUP || wanted->shard == shard)) {
            shard = wanted->shard;
            wanted->shard = NO_GROUP;
            asking->request_topics[count++] = wanted->topic;
        }
    }
    if (count > 0 && asking->pubsub_topic.length == 0) {
        (void)shard_format(asking->shard_name,
                (struct shard){.cluster = asking->client->cluster_id, .index = (uint16_t)shard});
    }
    return count;
}

static void ask_next(struct asking *asking, struct connection *connection)
{
    bool has_topics = asking->verb == FILTER_SUBSCRIBE || asking->verb == FILTER_UNSUBSCRIBE;
    size_t count = has_topics ? take_group(asking) : !asking->is_asked;
    if (count == 0) {
        finish(asking);
        return;
    }
    struct filter_request_fields fields = {.verb = asking->verb};
    if (has_topics) {
        fields.pubsub_topic = asking->pubsub_topic.length > 0 ? asking->pubsub_topic
                                                              : span_of_text(asking->shard_name);
        fields.content_topics = asking->request_topics;
        fields.content_topic_count = count;
    }
    if (asking->verb == FILTER_SUBSCRIBE) {
        /* Before the answer: the first push may come before it. */
        struct subscribe_client *client = asking->client;
        remember(client->accepted, ACCEPTED_MAX, &client->next_accepted, number_of(connection));
    }
    asking->is_asked = true;
    asking->connection = connection_id(connection);
    filter_client_ask(connection, &fields, asking->timeout_ms, on_answered, asking);
}

/* By dialling. */

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    struct asking *asking = context;
    if (status == STATUS_OK) {
        status = switch_run_on_connection(asking->client->net_switch, connection, on_next, asking);
    }
    if (status != STATUS_OK) {
        finish_with(asking, FILTER_CODE_UNREACHABLE, status_text(status));
    }
}

/* By what is connected. */

static void try_next_serving(struct asking *asking);

static void on_serving(void *context, struct connection *connection)
{
    struct asking *asking = context;
    if (connection == NULL) {
        try_next_serving(asking);
    } else {
        ask_next(asking, connection);
    }
}

static void try_next_serving(struct asking *asking)
{
    struct subscribe_client *client = asking->client;
    while (asking->serving_tried < SERVING_MAX) {
        uint64_t connection = atomic_load_explicit(
                &client->serving[asking->serving_tried++], memory_order_relaxed);
        if (connection != 0 && switch_run_on_connection(client->net_switch, connection, on_serving,
                                       asking) == STATUS_OK) {
            return;
        }
    }
    finish_with(asking, SERVICE_UNAVAILABLE, "No suitable service peer & no discovery method");
}

static void start(struct io_task *task)
{
    struct asking *asking = (struct asking *)((char *)task - offsetof(struct asking, task));
    if (asking->code != 0) {
        finish(asking);
        return;
    }
    if (asking->dial.done == NULL) {
        try_next_serving(asking);
        return;
    }
    enum status status = switch_dial(asking->client->net_switch, &asking->dial);
    if (status != STATUS_OK) {
        on_dialled(asking, status, 0);
    }
}

/* Making. */

static bool has_topics(const struct node_filter_request *request)
{
    return request->verb == NODE_FILTER_SUBSCRIBE || request->verb == NODE_FILTER_UNSUBSCRIBE;
}

static size_t text_bytes(const struct node_filter_request *request)
{
    size_t bytes = request->pubsub_topic.length;
    for (size_t i = 0; i < request->content_topic_count; i++) {
        bytes += request->content_topics[i].length;
    }
    return bytes;
}

static struct span copy(uint8_t **end, struct span text)
{
    struct span out = span_of(*end, text.length);
    if (text.length > 0) {
        memcpy(*end, text.bytes, text.length);
    }
    *end += text.length;
    return out;
}

static bool find_shard(
        const struct subscribe_client *client, struct span content_topic, uint32_t *shard)
{
    struct content_topic topic;
    uint16_t index;
    if (content_topic_parse(&topic, content_topic) != STATUS_OK ||
            content_topic_shard(&index, &topic, client->network_shards) != STATUS_OK) {
        return false;
    }
    *shard = index;
    return true;
}

static void take_topics(struct asking *asking, const struct node_filter_request *request)
{
    uint8_t *end = (uint8_t *)(asking->request_topics + request->content_topic_count);
    asking->pubsub_topic = copy(&end, request->pubsub_topic);
    asking->wanted_count = request->content_topic_count;
    for (size_t i = 0; i < request->content_topic_count; i++) {
        struct wanted *wanted = &asking->wanted[i];
        *wanted = (struct wanted){.topic = copy(&end, request->content_topics[i])};
        if (request->pubsub_topic.length == 0 &&
                !find_shard(asking->client, wanted->topic, &wanted->shard)) {
            note_outcome(asking, SERVICE_BAD_REQUEST, span_of_text("can't get shard"));
        }
    }
}

/* A request that no service would take has its outcome now. */
static void check(struct asking *asking, const struct node_filter_request *request)
{
    bool has_pubsub = request->pubsub_topic.length > 0 || asking->client->network_shards > 0;
    if (!has_topics(request)) {
        return;
    }
    if (!has_pubsub || request->content_topic_count == 0) {
        note_outcome(asking, SERVICE_BAD_REQUEST,
                span_of_text("pubsubTopic and contentTopics must be specified"));
        return;
    }
    take_topics(asking, request);
}

static struct asking *make_asking(
        struct subscribe_client *client, const struct node_filter_request *request)
{
    size_t count = has_topics(request) ? request->content_topic_count : 0;
    size_t bytes = count > 0 ? text_bytes(request) : 0;
    struct asking *asking = memory_allocate_zeroed(
            sizeof(*asking) + count * sizeof(struct wanted) + count * sizeof(struct span) + bytes);
    if (asking == NULL) {
        return NULL;
    }
    asking->client = client;
    asking->verb = (enum filter_verb)request->verb;
    asking->timeout_ms = request->timeout_ms == 0 ? TIMEOUT_MS : request->timeout_ms;
    asking->wanted = (struct wanted *)(asking + 1);
    asking->request_topics = (struct span *)(asking->wanted + count);
    check(asking, request);
    const struct multiaddr *peer = request->peer;
    peer = peer == NULL && client->has_service ? &client->service : peer;
    if (peer != NULL) {
        asking->dial = (struct switch_dial){.address = *peer,
                .timeout_ms = asking->timeout_ms,
                .done = on_dialled,
                .context = asking};
    }
    return asking;
}
_Static_assert((int)NODE_FILTER_PING == (int)FILTER_SUBSCRIBER_PING &&
                       (int)NODE_FILTER_SUBSCRIBE == (int)FILTER_SUBSCRIBE &&
                       (int)NODE_FILTER_UNSUBSCRIBE == (int)FILTER_UNSUBSCRIBE &&
                       (int)NODE_FILTER_UNSUBSCRIBE_ALL == (int)FILTER_UNSUBSCRIBE_ALL,
        "the node's verbs are the protocol's");

enum status subscribe_client_ask(struct subscribe_client *client,
        const struct node_filter_request *request, node_filter_answered *answered, void *context)
{
    if (request->content_topic_count > TOPICS_MAX) {
        return STATUS_TOO_LARGE;
    }
    struct asking *asking = make_asking(client, request);
    if (asking == NULL) {
        return STATUS_NO_MEMORY;
    }
    asking->answered = answered;
    asking->context = context;
    asking->task.run = start;
    /* relaxed: it orders nothing */
    atomic_fetch_add_explicit(&client->pending, 1, memory_order_relaxed);
    io_loop_post(switch_control_loop(client->net_switch), &asking->task);
    return STATUS_OK;
}

void subscribe_client_note_peer(struct subscribe_client *client, struct connection *connection,
        const struct identify_info *info)
{
    if (identify_info_has_protocol(info, FILTER_SUBSCRIBE_PROTOCOL_ID)) {
        remember(client->serving, SERVING_MAX, &client->next_serving, connection_id(connection));
    }
}

void subscribe_client_set_receiver(
        struct subscribe_client *client, node_filter_received *received, void *context)
{
    client->received_context = context;
    atomic_store_explicit(&client->received, received, memory_order_release); /* RECEIVER */
}

const struct filter_client *subscribe_client_filter(const struct subscribe_client *client)
{
    return client->filter;
}

enum status subscribe_client_create(
        struct subscribe_client **out, const struct subscribe_client_options *options)
{
    struct subscribe_client *client = memory_allocate_zeroed(sizeof(*client));
    if (client == NULL) {
        return STATUS_NO_MEMORY;
    }
    client->net_switch = options->net_switch;
    client->cluster_id = options->cluster_id;
    client->network_shards = options->network_shards;
    client->has_service = options->service != NULL;
    if (client->has_service) {
        client->service = *options->service;
    }
    struct filter_client_options filter_options = {.net_switch = options->net_switch,
            .message_bytes_max = options->message_bytes_max,
            .accepts = accepts,
            .received = on_received,
            .context = client};
    enum status status = filter_client_create(&client->filter, &filter_options);
    if (status != STATUS_OK) {
        memory_free(client);
        return status;
    }
    *out = client;
    return STATUS_OK;
}

void subscribe_client_destroy(struct subscribe_client **client)
{
    if (*client == NULL) {
        return;
    }
    assert(subscribe_client_pending(*client) == 0);
    filter_client_destroy(&(*client)->filter);
    memory_free(*client);
    *client = NULL;
}

size_t subscribe_client_pending(struct subscribe_client *client)
{
    /* acquire: pairs with the release in finish */
    return atomic_load_explicit(&client->pending, memory_order_acquire);
}
