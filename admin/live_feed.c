/* SPDX-License-Identifier: MIT */
#include "admin/live_feed.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/http_stream.h"
#include "base/hex.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "codec/topics.h"

enum {
    TOPICS_MAX = 32, /* in one of a client's lists */
    KEEP_ALIVE_MS = 5 * 1000,
    NO_SHARD = -1
};

static const char *const kind_names[LIVE_KINDS] = {
        "message", "peer", "health", "subscriber", "figures"};

/* What a client wants. */
struct filter {
    unsigned kinds; /* a bit each */
    long shard;
    bool has_payload;
    size_t content_topic_count; /* 0: all */
    char *content_topics[TOPICS_MAX];
    size_t pubsub_topic_count;
    char *pubsub_topics[TOPICS_MAX];
};

struct client {
    struct http_stream *stream;
    struct filter filter;
    uint64_t dropped; /* and it was not told yet */
    struct client *next;
};

struct live_feed {
    struct live_feed_options options;
    pthread_mutex_t lock; /* of the list and what is in it */
    struct client *clients;
    size_t client_count;
    atomic_size_t wanted[LIVE_KINDS]; /* clients of each kind; relaxed: it only saves work */
};

enum status live_feed_create(struct live_feed **out, const struct live_feed_options *options)
{
    struct live_feed *feed = memory_allocate_zeroed(sizeof(*feed));
    if (feed == NULL) {
        return STATUS_NO_MEMORY;
    }
    feed->options = *options;
    if (pthread_mutex_init(&feed->lock, NULL) != 0) {
        memory_free(feed);
        return STATUS_NO_MEMORY;
    }
    *out = feed;
    return STATUS_OK;
}

static void clear_filter(struct filter *filter)
{
    for (size_t i = 0; i < filter->content_topic_count; i++) {
        free(filter->content_topics[i]);
    }
    for (size_t i = 0; i < filter->pubsub_topic_count; i++) {
        free(filter->pubsub_topics[i]);
    }
}

static void count_kinds(struct live_feed *feed, const struct client *client, bool is_more)
{
    for (size_t i = 0; i < LIVE_KINDS; i++) {
        if ((client->filter.kinds & (1U << i)) != 0) {
            atomic_fetch_add_explicit(
                    &feed->wanted[i], is_more ? 1 : (size_t)-1, memory_order_relaxed);
        }
    }
}

static void remove_client(struct live_feed *feed, struct client **place)
{
    struct client *client = *place;
    *place = client->next;
    feed->client_count--;
    count_kinds(feed, client, false);
    http_stream_close(&client->stream);
    clear_filter(&client->filter);
    memory_free(client);
}

void live_feed_destroy(struct live_feed **feed)
{
    if (*feed == NULL) {
        return;
    }
    while ((*feed)->clients != NULL) {
        remove_client(*feed, &(*feed)->clients);
    }
    pthread_mutex_destroy(&(*feed)->lock);
    memory_free(*feed);
    *feed = NULL;
}

/* Items between commas; false when there are too many or no memory. */
static bool read_list(char *items[TOPICS_MAX], size_t *count, const char *text)
{
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ",");
        if (*count == TOPICS_MAX || (items[*count] = strndup(text, length)) == NULL) {
            return false;
        }
        *count += 1;
        text += length + (text[length] == ',');
    }
    return true;
}

static bool read_kinds(unsigned *kinds, const char *text)
{
    if (text == NULL) {
        *kinds = (1U << LIVE_KINDS) - 1;
        return true;
    }
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        size_t kind = 0;
        while (kind < LIVE_KINDS && (strlen(kind_names[kind]) != length ||
                                            strncmp(kind_names[kind], text, length) != 0)) {
            kind++;
        }
        if (kind == LIVE_KINDS) {
            return false;
        }
        *kinds |= 1U << kind;
        text += length + (text[length] == ',');
    }
    return true;
}

static bool read_shard(long *shard, const char *text)
{
    char *end;
    *shard = NO_SHARD;
    if (text == NULL) {
        return true;
    }
    *shard = strtol(text, &end, 10);
    return end != text && *end == '\0' && *shard >= 0 && *shard <= UINT16_MAX;
}

/* NULL, or what is wrong with the request. */
static const char *read_filter(struct filter *filter, const struct http_request *request)
{
    const char *payload = http_request_parameter(request, "payload");
    if (!read_kinds(&filter->kinds, http_request_parameter(request, "kinds"))) {
        return "kinds: message, peer, health, subscriber or figures, joined by ','";
    }
    if (!read_shard(&filter->shard, http_request_parameter(request, "shard"))) {
        return "shard: a number from 0 to 65535";
    }
    if (payload != NULL && strcmp(payload, "true") != 0 && strcmp(payload, "false") != 0) {
        return "payload: true or false";
    }
    filter->has_payload = payload != NULL && strcmp(payload, "true") == 0;
    if (!read_list(filter->content_topics, &filter->content_topic_count,
                http_request_parameter(request, "content-topic")) ||
            !read_list(filter->pubsub_topics, &filter->pubsub_topic_count,
                    http_request_parameter(request, "pubsub-topic"))) {
        return "content-topic, pubsub-topic: at most 32 each, joined by ','";
    }
    return NULL;
}

static bool push(struct client *client, const char *bytes, size_t length)
{
    return http_stream_try_push(client->stream, bytes, length);
}

/* What it missed comes before what it gets. */
static void send_to(struct client *client, const char *bytes, size_t length)
{
    if (client->dropped > 0) {
        char note[96];
        int size = snprintf(note, sizeof(note), "event: dropped\ndata: {\"count\":%llu}\n\n",
                (unsigned long long)client->dropped);
        if (push(client, note, (size_t)size)) {
            client->dropped = 0;
        }
    }
    if (client->dropped == 0 && push(client, bytes, length)) {
        metrics_add(METRIC_LIVE_EVENTS, 1);
    } else {
        metrics_add(METRIC_LIVE_DROPPED, 1);
        client->dropped++;
    }
    http_stream_wake(client->stream);
}

static void drop_gone(struct live_feed *feed)
{
    struct client **place = &feed->clients;
    while (*place != NULL) {
        if (http_stream_is_open((*place)->stream)) {
            place = &(*place)->next;
        } else {
            remove_client(feed, place);
        }
    }
}

static void add_client(struct live_feed *feed, struct http_request *request, struct client *client,
        const char *first)
{
    struct http_stream_options options = {.content_type = "text/event-stream",
            .queue_bytes_max = feed->options.queue_bytes_max,
            .keep_alive = ": \n\n",
            .keep_alive_ms = KEEP_ALIVE_MS};
    if (http_stream_open(&client->stream, request, &options) != STATUS_OK) {
        clear_filter(&client->filter);
        memory_free(client);
        return;
    }
    client->next = feed->clients;
    feed->clients = client;
    feed->client_count++;
    count_kinds(feed, client, true);
    /* Something at once, so that the client sees that it is connected. */
    send_to(client, "retry: 2000\n\n", strlen("retry: 2000\n\n"));
    if (first[0] != '\0') {
        send_to(client, first, strlen(first));
    }
}

void live_feed_open(struct live_feed *feed, struct http_request *request, const char *first)
{
    struct client *client = memory_allocate_zeroed(sizeof(*client));
    if (client == NULL) {
        http_respond_text(request, HTTP_UNAVAILABLE, "out of memory");
        return;
    }
    const char *fault = read_filter(&client->filter, request);
    pthread_mutex_lock(&feed->lock);
    drop_gone(feed);
    bool is_full = feed->client_count >= feed->options.clients_max;
    if (fault == NULL && !is_full) {
        add_client(feed, request, client, first);
        pthread_mutex_unlock(&feed->lock);
        return;
    }
    pthread_mutex_unlock(&feed->lock);
    clear_filter(&client->filter);
    memory_free(client);
    if (fault != NULL) {
        http_respond_text(request, HTTP_BAD_REQUEST, "%s", fault);
    } else {
        http_respond_text(request, HTTP_UNAVAILABLE, "the feed has %zu clients (live-clients)",
                feed->options.clients_max);
    }
}

bool live_feed_wants(const struct live_feed *feed, enum live_kind kind)
{
    return atomic_load_explicit(&feed->wanted[kind], memory_order_relaxed) > 0;
}

size_t live_feed_tidy(struct live_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    drop_gone(feed);
    size_t count = feed->client_count;
    pthread_mutex_unlock(&feed->lock);
    return count;
}

static bool is_in(char *const items[], size_t count, struct span text)
{
    for (size_t i = 0; i < count; i++) {
        if (span_equal(span_of_text(items[i]), text)) {
            return true;
        }
    }
    return count == 0;
}

static bool is_of_shard(long wanted, struct span pubsub_topic)
{
    struct shard shard;
    return wanted == NO_SHARD ||
           (shard_parse(&shard, pubsub_topic) == STATUS_OK && shard.index == wanted);
}

static bool is_wanted(const struct filter *filter, const struct envelope *envelope)
{
    return (filter->kinds & (1U << LIVE_MESSAGE)) != 0 &&
           is_in(filter->content_topics, filter->content_topic_count, envelope->content_topic) &&
           is_in(filter->pubsub_topics, filter->pubsub_topic_count, envelope->topic->name) &&
           is_of_shard(filter->shard, envelope->topic->name);
}

static void set_base64(json_t *object, const char *name, struct span bytes)
{
    size_t size = (bytes.length + 2) / 3 * 4 + 1;
    char *text = malloc(size);
    if (text != NULL) {
        int length = EVP_EncodeBlock((unsigned char *)text, bytes.bytes, (int)bytes.length);
        json_object_set_new(object, name, json_stringn(text, (size_t)length));
        free(text);
    }
}

/* One event, as it goes over the wire; NULL: no memory. To be freed by free(). */
static char *event_of_json(const char *name, const char *json)
{
    char *event = NULL;
    return asprintf(&event, "event: %s\ndata: %s\n\n", name, json) < 0 ? NULL : event;
}

static char *event_of_message(const struct envelope *envelope, bool has_payload)
{
    char hash[2 * MESSAGE_HASH_BYTES + 3] = "0x";
    hex_encode(hash + 2, span_of(envelope->hash, MESSAGE_HASH_BYTES));
    struct span content_topic = envelope->content_topic;
    struct span pubsub_topic = envelope->topic->name;
    json_t *object = json_pack("{s:s%, s:s%, s:s, s:I, s:I, s:I, s:b, s:I}", "pubsubTopic",
            (const char *)pubsub_topic.bytes, pubsub_topic.length, "contentTopic",
            (const char *)content_topic.bytes, content_topic.length, "messageHash", hash,
            "timestamp", (json_int_t)envelope->timestamp_ns, "received",
            (json_int_t)envelope->received_ns, "version", (json_int_t)envelope->version,
            "ephemeral", (int)envelope->is_ephemeral, "size", (json_int_t)envelope->payload.length);
    if (object == NULL) {
        return NULL;
    }
    if (has_payload) {
        set_base64(object, "payload", envelope->payload);
        set_base64(object, "meta", envelope->meta);
    }
    char *json = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    char *event = json == NULL ? NULL : event_of_json(kind_names[LIVE_MESSAGE], json);
    free(json);
    return event;
}

void live_feed_message(struct live_feed *feed, const struct envelope *envelope)
{
    if (!live_feed_wants(feed, LIVE_MESSAGE)) {
        return;
    }
    char *events[2] = {NULL, NULL}; /* without and with payload, made when somebody wants it */
    pthread_mutex_lock(&feed->lock);
    for (struct client *client = feed->clients; client != NULL; client = client->next) {
        bool has_payload = client->filter.has_payload;
        if (!is_wanted(&client->filter, envelope)) {
            continue;
        }
        if (events[has_payload] == NULL) {
            events[has_payload] = event_of_message(envelope, has_payload);
        }
        if (events[has_payload] != NULL) {
            send_to(client, events[has_payload], strlen(events[has_payload]));
        } else {
            metrics_add(METRIC_LIVE_DROPPED, 1);
            client->dropped++;
        }
    }
    pthread_mutex_unlock(&feed->lock);
    free(events[0]);
    free(events[1]);
}

void live_feed_event(struct live_feed *feed, enum live_kind kind, const char *json)
{
    if (!live_feed_wants(feed, kind)) {
        return;
    }
    char *event = event_of_json(kind_names[kind], json);
    pthread_mutex_lock(&feed->lock);
    for (struct client *client = feed->clients; client != NULL; client = client->next) {
        if ((client->filter.kinds & (1U << kind)) == 0) {
            continue;
        }
        if (event != NULL) {
            send_to(client, event, strlen(event));
        } else {
            client->dropped++;
        }
    }
    pthread_mutex_unlock(&feed->lock);
    free(event);
}
