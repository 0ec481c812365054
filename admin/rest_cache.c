/* SPDX-License-Identifier: MIT */
#include "admin/rest_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "codec/wire.h"

/* Sorted, so that a message is looked up in a few comparisons. */
struct topic_list {
    struct span *topics; /* each a block of its own */
    size_t count;
    size_t room;
};

struct rest_cache {
    struct rest_cache_options options;
    pthread_mutex_t mutex;
    atomic_size_t topic_count; /* of both kinds: without any, nothing is locked */
    struct topic_list topics[2];
    struct rest_cached *oldest;
    struct rest_cached **end; /* where the next one is linked */
    size_t count;
    size_t bytes;
};

static int compare(struct span a, struct span b)
{
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common > 0 ? memcmp(a.bytes, b.bytes, common) : 0;
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

/* Where the topic is, or belongs. */
static size_t find_place(const struct topic_list *list, struct span topic, bool *is_there)
{
    size_t from = 0;
    size_t to = list->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = compare(list->topics[middle], topic);
        if (order == 0) {
            *is_there = true;
            return middle;
        }
        if (order < 0) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    *is_there = false;
    return from;
}

static bool has_topic(const struct topic_list *list, struct span topic)
{
    bool is_there;
    (void)find_place(list, topic, &is_there);
    return is_there;
}

enum status rest_cache_create(struct rest_cache **out, const struct rest_cache_options *options)
{
    struct rest_cache *cache = calloc(1, sizeof(*cache));
    if (cache == NULL || pthread_mutex_init(&cache->mutex, NULL) != 0) {
        free(cache);
        return STATUS_NO_MEMORY;
    }
    cache->options = *options;
    cache->end = &cache->oldest;
    atomic_init(&cache->topic_count, 0);
    *out = cache;
    return STATUS_OK;
}

static void free_topics(struct topic_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free((void *)(uintptr_t)list->topics[i].bytes);
    }
    list->count = 0;
}

void rest_cache_destroy(struct rest_cache **cache_pointer)
{
    struct rest_cache *cache = *cache_pointer;
    if (cache == NULL) {
        return;
    }
    rest_cache_clear(cache);
    free(cache->topics[0].topics);
    free(cache->topics[1].topics);
    pthread_mutex_destroy(&cache->mutex);
    free(cache);
    *cache_pointer = NULL;
}

static void count_topics(struct rest_cache *cache)
{
    /* relaxed: a message of that moment may still be missed or taken */
    atomic_store_explicit(&cache->topic_count, cache->topics[0].count + cache->topics[1].count,
            memory_order_relaxed);
}

static enum status insert_topic(
        struct topic_list *list, size_t place, struct span topic, size_t max)
{
    enum {
        ROOM_MIN = 16
    };
    if (list->count == max) {
        return STATUS_LIMIT_REACHED;
    }
    if (list->count == list->room) {
        size_t room = list->room > 0 ? 2 * list->room : ROOM_MIN;
        struct span *topics = realloc(list->topics, room * sizeof(*topics));
        if (topics == NULL) {
            return STATUS_NO_MEMORY;
        }
        list->topics = topics;
        list->room = room;
    }
    uint8_t *copy = malloc(topic.length + 1);
    if (copy == NULL) {
        return STATUS_NO_MEMORY;
    }
    memcpy(copy, topic.bytes, topic.length);
    memmove(list->topics + place + 1, list->topics + place,
            (list->count - place) * sizeof(*list->topics));
    list->topics[place] = span_of(copy, topic.length);
    list->count++;
    return STATUS_OK;
}

enum status rest_cache_subscribe(
        struct rest_cache *cache, enum rest_topic_kind kind, struct span topic)
{
    enum status status = STATUS_OK;
    bool is_there;
    pthread_mutex_lock(&cache->mutex);
    size_t place = find_place(&cache->topics[kind], topic, &is_there);
    if (!is_there) {
        status = insert_topic(&cache->topics[kind], place, topic, cache->options.topics_max);
    }
    count_topics(cache);
    pthread_mutex_unlock(&cache->mutex);
    return status;
}

bool rest_cache_is_subscribed(
        struct rest_cache *cache, enum rest_topic_kind kind, struct span topic)
{
    pthread_mutex_lock(&cache->mutex);
    bool is_there = has_topic(&cache->topics[kind], topic);
    pthread_mutex_unlock(&cache->mutex);
    return is_there;
}

void rest_cache_for_each(struct rest_cache *cache, enum rest_topic_kind kind,
        void (*each)(void *context, struct span topic), void *context)
{
    pthread_mutex_lock(&cache->mutex);
    for (size_t i = 0; i < cache->topics[kind].count; i++) {
        each(context, cache->topics[kind].topics[i]);
    }
    pthread_mutex_unlock(&cache->mutex);
}

static struct span topic_of(const struct rest_cached *cached, enum rest_topic_kind kind)
{
    return kind == REST_PUBSUB_TOPIC ? cached->pubsub_topic : cached->fields.content_topic;
}

/* Unlinks *place and links it to *batch_end. */
static void move_out(
        struct rest_cache *cache, struct rest_cached **place, struct rest_cached ***batch_end)
{
    struct rest_cached *cached = *place;
    *place = cached->next;
    if (cached->next == NULL) {
        cache->end = place;
    }
    cache->count--;
    cache->bytes -= cached->charge;
    cached->next = NULL;
    **batch_end = cached;
    *batch_end = &cached->next;
}

/* Moves out what is wanted as of the topic; with only_unwanted, what no topic of the other kind wants. */
static void move_topic(struct rest_cache *cache, enum rest_topic_kind kind, struct span topic,
        bool only_unwanted, struct rest_cached ***batch_end)
{
    struct rest_cached **place = &cache->oldest;
    while (*place != NULL) {
        struct rest_cached *cached = *place;
        bool is_of_topic = cached->is_wanted[kind] && span_equal(topic_of(cached, kind), topic);
        if (is_of_topic && only_unwanted) {
            cached->is_wanted[kind] = false;
            is_of_topic = !cached->is_wanted[1 - kind];
        }
        if (is_of_topic) {
            move_out(cache, place, batch_end);
        } else {
            place = &cached->next;
        }
    }
}

void rest_cached_destroy(struct rest_cached **batch)
{
    while (*batch != NULL) {
        struct rest_cached *cached = *batch;
        *batch = cached->next;
        if (cached->envelope != NULL) {
            envelope_unref(cached->envelope);
        }
        free(cached);
    }
}

void rest_cache_unsubscribe(struct rest_cache *cache, enum rest_topic_kind kind, struct span topic)
{
    struct rest_cached *batch = NULL;
    struct rest_cached **batch_end = &batch;
    struct topic_list *list = &cache->topics[kind];
    bool is_there;
    pthread_mutex_lock(&cache->mutex);
    size_t place = find_place(list, topic, &is_there);
    if (is_there) {
        move_topic(cache, kind, topic, true, &batch_end);
        free((void *)(uintptr_t)list->topics[place].bytes);
        list->count--;
        memmove(list->topics + place, list->topics + place + 1,
                (list->count - place) * sizeof(*list->topics));
    }
    count_topics(cache);
    pthread_mutex_unlock(&cache->mutex);
    rest_cached_destroy(&batch);
}

void rest_cache_clear(struct rest_cache *cache)
{
    pthread_mutex_lock(&cache->mutex);
    struct rest_cached *batch = cache->oldest;
    cache->oldest = NULL;
    cache->end = &cache->oldest;
    cache->count = cache->bytes = 0;
    free_topics(&cache->topics[0]);
    free_topics(&cache->topics[1]);
    count_topics(cache);
    pthread_mutex_unlock(&cache->mutex);
    rest_cached_destroy(&batch);
}

enum status rest_cache_fetch(struct rest_cache *cache, enum rest_topic_kind kind, struct span topic,
        struct rest_cached **out)
{
    struct rest_cached **batch_end = out;
    *out = NULL;
    pthread_mutex_lock(&cache->mutex);
    bool is_there = has_topic(&cache->topics[kind], topic);
    if (is_there) {
        move_topic(cache, kind, topic, false, &batch_end);
    }
    pthread_mutex_unlock(&cache->mutex);
    return is_there ? STATUS_OK : STATUS_NOT_FOUND;
}

/* True when it was linked; *evicted is what had to go. */
static bool link_message(
        struct rest_cache *cache, struct rest_cached *cached, struct rest_cached **evicted)
{
    struct rest_cached **evicted_end = evicted;
    cached->is_wanted[REST_PUBSUB_TOPIC] =
            has_topic(&cache->topics[REST_PUBSUB_TOPIC], cached->pubsub_topic);
    cached->is_wanted[REST_CONTENT_TOPIC] =
            has_topic(&cache->topics[REST_CONTENT_TOPIC], cached->fields.content_topic);
    if (!cached->is_wanted[0] && !cached->is_wanted[1]) {
        return false;
    }
    *cache->end = cached;
    cache->end = &cached->next;
    cache->count++;
    cache->bytes += cached->charge;
    while (cache->count > cache->options.messages_max || cache->bytes > cache->options.bytes_max) {
        move_out(cache, &cache->oldest, &evicted_end);
        metrics_add(METRIC_REST_CACHE_EVICTED, 1);
    }
    return true;
}

static void add(struct rest_cache *cache, struct rest_cached *cached)
{
    struct rest_cached *evicted = NULL;
    pthread_mutex_lock(&cache->mutex);
    bool is_linked = link_message(cache, cached, &evicted);
    pthread_mutex_unlock(&cache->mutex);
    if (!is_linked) {
        evicted = cached;
    }
    rest_cached_destroy(&evicted);
}

static bool has_any_topic(struct rest_cache *cache)
{
    /* relaxed: as in count_topics */
    return atomic_load_explicit(&cache->topic_count, memory_order_relaxed) > 0;
}

static bool is_wanted(struct rest_cache *cache, struct span pubsub_topic, struct span content_topic)
{
    pthread_mutex_lock(&cache->mutex);
    bool is = has_topic(&cache->topics[REST_PUBSUB_TOPIC], pubsub_topic) ||
              has_topic(&cache->topics[REST_CONTENT_TOPIC], content_topic);
    pthread_mutex_unlock(&cache->mutex);
    return is;
}

void rest_cache_add(struct rest_cache *cache, struct envelope *envelope)
{
    if (!has_any_topic(cache) ||
            !is_wanted(cache, envelope->topic->name, envelope->content_topic)) {
        return;
    }
    struct rest_cached *cached = calloc(1, sizeof(*cached));
    if (cached == NULL) {
        metrics_add(METRIC_REST_CACHE_EVICTED, 1);
        return;
    }
    envelope_ref(envelope);
    cached->envelope = envelope;
    cached->charge = envelope_pinned_bytes(envelope) + sizeof(*cached);
    cached->pubsub_topic = envelope->topic->name;
    cached->fields = (struct waku_message_view){.payload = envelope->payload,
            .content_topic = envelope->content_topic,
            .meta = envelope->meta,
            .timestamp_ns = envelope->timestamp_ns,
            .version = envelope->version,
            .ephemeral = envelope->is_ephemeral};
    add(cache, cached);
}

void rest_cache_add_bytes(struct rest_cache *cache, struct span pubsub_topic, struct span message)
{
    if (!has_any_topic(cache)) {
        return;
    }
    struct rest_cached *cached =
            calloc(1, sizeof(*cached) + pubsub_topic.length + message.length + 1);
    if (cached == NULL) {
        metrics_add(METRIC_REST_CACHE_EVICTED, 1);
        return;
    }
    uint8_t *copy = cached->bytes + pubsub_topic.length;
    memcpy(cached->bytes, pubsub_topic.bytes, pubsub_topic.length);
    memcpy(copy, message.bytes, message.length);
    cached->pubsub_topic = span_of(cached->bytes, pubsub_topic.length);
    cached->charge = sizeof(*cached) + pubsub_topic.length + message.length;
    if (waku_message_decode(&cached->fields, span_of(copy, message.length)) != STATUS_OK) {
        free(cached);
        return;
    }
    add(cache, cached);
}
