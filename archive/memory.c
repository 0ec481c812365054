/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "archive/memory_engine.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "codec/waku_message.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

struct memory_topic {
    struct topic topic;
    struct memory_topic *next;
    uint8_t name[];
};

struct id_key memory_key_of(const struct envelope *envelope)
{
    struct id_key key = {.timestamp_ns = envelope->timestamp_ns};
    memcpy(key.hash, envelope->hash, ID_HASH_BYTES);
    return key;
}

uint32_t memory_content_tag(struct span content_topic)
{
    return (uint32_t)XXH3_64bits(content_topic.bytes, content_topic.length);
}

static struct memory_archive *memory_of(struct archive *archive)
{
    return (struct memory_archive *)archive;
}

static uint64_t charge_of(const struct envelope *envelope)
{
    return frame_charge(frame_length(envelope->frame)) + envelope_own_bytes(envelope);
}

/* NULL when there is no memory. */
static const struct topic *topic_named(struct memory_archive *memory, struct span name)
{
    for (struct memory_topic *topic = memory->topics; topic != NULL; topic = topic->next) {
        if (span_equal(topic->topic.name, name)) {
            return &topic->topic;
        }
    }
    struct memory_topic *topic = memory_allocate(sizeof(*topic) + name.length + 1);
    if (topic == NULL) {
        return NULL;
    }
    memcpy(topic->name, name.bytes, name.length);
    topic->name[name.length] = '\0';
    /* The index says that it is in no registry. */
    topic->topic = (struct topic){.index = UINT32_MAX, .name = span_of(topic->name, name.length)};
    topic->next = memory->topics;
    memory->topics = topic;
    return &topic->topic;
}

/* A copy of record's message as an envelope. */
static struct envelope *envelope_from_record(
        struct memory_archive *memory, const struct archive_record *record)
{
    const struct topic *topic = topic_named(memory, record->pubsub_topic);
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, record->message.length);
    struct envelope *envelope =
            topic == NULL || frame == NULL ? NULL : envelope_create_inside(frame);
    if (envelope == NULL) {
        if (frame != NULL) {
            frame_unref(frame);
        }
        return NULL;
    }
    memory_copy_message(frame_bytes(frame), record->message.bytes, record->message.length);
    envelope->topic = topic;
    envelope->message = span_of(frame_bytes(frame), record->message.length);
    envelope->timestamp_ns = record->timestamp_ns;
    envelope->received_ns = record->received_ns;
    envelope->origin = record->origin;
    envelope->is_timestamp_in_range = true;
    memcpy(envelope->hash, record->hash, MESSAGE_HASH_BYTES);
    struct waku_message_view view;
    if (waku_message_decode(&view, envelope->message) == STATUS_OK) {
        envelope->payload = view.payload;
        envelope->meta = view.meta;
        envelope->version = view.version;
    }
    if (record->content_topic.length > 0) {
        ptrdiff_t offset = record->content_topic.bytes - record->message.bytes;
        envelope->content_topic =
                span_of(envelope->message.bytes + offset, record->content_topic.length);
    }
    return envelope;
}

/* One reference that is the archive's, to an envelope that pins little but its message. */
static struct envelope *envelope_to_keep(
        struct memory_archive *memory, const struct archive_record *record)
{
    if (record->envelope == NULL) {
        return envelope_from_record(memory, record);
    }
    envelope_ref(record->envelope);
    struct envelope *envelope = envelope_compact(record->envelope);
    frame_uncharge(envelope->frame);
    return envelope;
}

/* Lock held. */
static enum status link_envelope(struct memory_archive *memory, struct envelope *envelope)
{
    struct id_entry entry = {.key = memory_key_of(envelope),
            .value = envelope,
            .scope = memory_content_tag(envelope->content_topic)};
    enum status status = message_table_insert(&memory->table, envelope);
    if (status != STATUS_OK) {
        return status;
    }
    status = id_tree_insert(memory->tree, &entry);
    if (status != STATUS_OK) {
        message_table_remove(&memory->table, envelope);
        return status;
    }
    memory->charged_bytes += charge_of(envelope);
    return STATUS_OK;
}

/* Lock held; the reference goes back to the caller. */
static void forget(struct memory_archive *memory, struct envelope *envelope)
{
    message_table_remove(&memory->table, envelope);
    memory->charged_bytes -= charge_of(envelope);
}

/* Without the lock: nobody else writes the table. */
static bool has_hash(const struct memory_archive *memory, const uint8_t *hash)
{
    return message_table_find(&memory->table, hash) != NULL;
}

static enum status put_one(struct memory_archive *memory, const struct archive_record *record)
{
    struct envelope *envelope = envelope_to_keep(memory, record);
    if (envelope == NULL) {
        return STATUS_NO_MEMORY;
    }
    pthread_rwlock_wrlock(&memory->lock);
    enum status status = link_envelope(memory, envelope);
    pthread_rwlock_unlock(&memory->lock);
    if (status != STATUS_OK) {
        envelope_unref(envelope);
    }
    return status;
}

/* Takes back those of the first count records that this batch stored. */
static void undo(struct memory_archive *memory, const struct archive_record records[],
        const bool is_new[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_new[i]) {
            continue;
        }
        struct id_key key = {.timestamp_ns = records[i].timestamp_ns};
        memcpy(key.hash, records[i].hash, ID_HASH_BYTES);
        struct id_entry entry;
        pthread_rwlock_wrlock(&memory->lock);
        bool is_removed = id_tree_remove(memory->tree, &key, &entry);
        if (is_removed) {
            forget(memory, entry.value);
        }
        pthread_rwlock_unlock(&memory->lock);
        if (is_removed) {
            envelope_unref(entry.value);
        }
    }
}

struct removal {
    struct memory_archive *memory;
    struct envelope *envelopes[MEMORY_SLICE_ROWS];
    size_t count;
};

static void take_out(const struct id_entry *entry, void *context)
{
    struct removal *removal = context;
    forget(removal->memory, entry->value);
    removal->envelopes[removal->count++] = entry->value;
}

/* Removes up to max_rows (a slice at most) below bound (NULL: of all). */
static size_t remove_oldest(
        struct memory_archive *memory, const struct id_key *bound, size_t max_rows)
{
    struct removal removal = {.memory = memory};
    max_rows = max_rows < MEMORY_SLICE_ROWS ? max_rows : MEMORY_SLICE_ROWS;
    pthread_rwlock_wrlock(&memory->lock);
    id_tree_prune_below(memory->tree, bound, max_rows, take_out, &removal);
    pthread_rwlock_unlock(&memory->lock);
    for (size_t i = 0; i < removal.count; i++) {
        envelope_unref(removal.envelopes[i]);
    }
    return removal.count;
}

static void evict(struct memory_archive *memory)
{
    /* charged_bytes is written by this thread only, so it can be read without the lock. */
    while (memory->limit_bytes != 0 && memory->charged_bytes > memory->limit_bytes) {
        if (remove_oldest(memory, NULL, 1) == 0) {
            return;
        }
        metrics_add(METRIC_ARCHIVE_EVICTED, 1);
    }
}

static enum status reserve_batch(struct memory_archive *memory, size_t count)
{
    if (count <= memory->is_new_capacity) {
        return STATUS_OK;
    }
    bool *grown = memory_resize(memory->is_new, count * sizeof(*grown));
    if (grown == NULL) {
        return STATUS_NO_MEMORY;
    }
    memory->is_new = grown;
    memory->is_new_capacity = count;
    return STATUS_OK;
}

static enum status memory_put(struct archive *archive, const struct archive_record records[],
        size_t count, struct archive_put_result *result)
{
    struct memory_archive *memory = memory_of(archive);
    enum status status = reserve_batch(memory, count);
    if (status != STATUS_OK) {
        return status;
    }
    bool *is_new = memory->is_new;
    size_t done = 0;
    size_t stored = 0;
    for (; done < count && status == STATUS_OK; done++) {
        is_new[done] = !has_hash(memory, records[done].hash);
        if (is_new[done]) {
            status = put_one(memory, &records[done]);
            stored++;
        }
    }
    if (status != STATUS_OK) {
        undo(memory, records, is_new, done - 1);
    } else {
        result->stored = stored;
        result->duplicates = count - stored;
        evict(memory);
    }
    return status;
}

static enum status memory_totals(struct archive *archive, struct archive_totals *out)
{
    struct memory_archive *memory = memory_of(archive);
    out->count = id_tree_count(memory->tree);
    out->message_bytes = memory->charged_bytes;
    out->size_bytes = memory->charged_bytes + id_tree_bytes(memory->tree) +
                      message_table_bytes(&memory->table);
    struct id_cursor first = id_tree_seek_first(memory->tree, NULL);
    struct id_cursor last = id_tree_seek_last(memory->tree, NULL);
    if (id_cursor_is_valid(&first)) {
        out->oldest_ns = id_cursor_entry(&first).key.timestamp_ns;
        out->newest_ns = id_cursor_entry(&last).key.timestamp_ns;
    }
    return STATUS_OK;
}

/* What the next slice of a prune may remove. */
static size_t excess(struct memory_archive *memory, const struct archive_prune_limits *limits)
{
    size_t count = id_tree_count(memory->tree);
    size_t rows = count > limits->max_count ? (size_t)(count - limits->max_count) : 0;
    uint64_t max_bytes =
            limits->max_bytes < limits->max_size_bytes ? limits->max_bytes : limits->max_size_bytes;
    if (rows == 0 && count > 0 && memory->charged_bytes > max_bytes) {
        return 1;
    }
    return rows;
}

static enum status memory_prune(struct archive *archive, const struct archive_prune_limits *limits,
        size_t max_rows, struct archive_prune_result *result)
{
    struct memory_archive *memory = memory_of(archive);
    struct id_key bound = {.timestamp_ns = limits->oldest_ns};
    while (result->removed < max_rows) {
        size_t room = max_rows - result->removed;
        size_t gone = remove_oldest(memory, &bound, room);
        if (gone == 0) {
            size_t rows = excess(memory, limits);
            gone = rows == 0 ? 0 : remove_oldest(memory, NULL, rows < room ? rows : room);
        }
        if (gone == 0) {
            break;
        }
        result->removed += gone;
    }
    result->has_more = result->removed == max_rows && max_rows > 0;
    return STATUS_OK;
}

static void memory_close(struct archive *archive)
{
    struct memory_archive *memory = memory_of(archive);
    while (memory->tree != NULL && remove_oldest(memory, NULL, MEMORY_SLICE_ROWS) > 0) {
    }
    while (memory->topics != NULL) {
        struct memory_topic *topic = memory->topics;
        memory->topics = topic->next;
        memory_free(topic);
    }
    memory_free(memory->is_new);
    id_tree_destroy(&memory->tree);
    message_table_fini(&memory->table);
    pthread_rwlock_destroy(&memory->lock);
    memory_free(memory);
}

static enum status memory_reader_open(struct archive_reader **out, struct archive *archive)
{
    struct memory_reader *reader = memory_allocate_zeroed(sizeof(*reader));
    if (reader == NULL) {
        return STATUS_NO_MEMORY;
    }
    reader->base.archive = archive;
    *out = &reader->base;
    return STATUS_OK;
}

static void memory_reader_close(struct archive_reader *reader)
{
    memory_free(reader);
}

static const struct archive_engine memory_engine = {
        .name = "memory",
        .close = memory_close,
        .put = memory_put,
        .totals = memory_totals,
        .prune = memory_prune,
        .reader_open = memory_reader_open,
        .reader_close = memory_reader_close,
        .select = memory_archive_select,
        .deliver = memory_archive_deliver,
};

/* Readers that follow each other without a break would otherwise never let the writer in. */
static void init_lock(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
}

enum status memory_archive_open(
        struct archive **out, const struct archive_options *options, struct archive_error *error)
{
    struct memory_archive *memory = memory_allocate_zeroed(sizeof(*memory));
    if (memory == NULL) {
        snprintf(error->text, sizeof(error->text), "archive memory: out of memory");
        return STATUS_NO_MEMORY;
    }
    memory->base.engine = &memory_engine;
    memory->limit_bytes = options->memory_limit_bytes;
    init_lock(&memory->lock);
    enum status status = message_table_init(&memory->table);
    if (status == STATUS_OK) {
        status = id_tree_create(&memory->tree);
    }
    if (status != STATUS_OK) {
        snprintf(error->text, sizeof(error->text), "archive memory: %s", status_text(status));
        memory_close(&memory->base);
        return status;
    }
    *out = &memory->base;
    return STATUS_OK;
}
