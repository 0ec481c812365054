/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "archive/memory_engine.h"
#include "base/memory.h"

/* A content topic of the query under the tag by which the tree's entries are passed over. */
struct wanted_topic {
    uint32_t tag;
    struct span name;
};

struct scan {
    struct memory_archive *memory;
    struct archive_selection *selection;
    struct page_builder *builder;
    struct wanted_topic *topics; /* sorted by tag; NULL: any */
    size_t topic_count;
    bool is_done;
};

static struct memory_archive *memory_of(struct archive_reader *reader)
{
    return (struct memory_archive *)reader->archive;
}

static int compare_tags(const void *a, const void *b)
{
    uint32_t x = ((const struct wanted_topic *)a)->tag;
    uint32_t y = ((const struct wanted_topic *)b)->tag;
    return (x > y) - (x < y);
}

static enum status collect_topics(struct scan *scan)
{
    const struct archive_query *query = scan->selection->query;
    scan->topic_count = query->content_topic_count;
    if (scan->topic_count == 0) {
        return STATUS_OK;
    }
    scan->topics = memory_allocate(scan->topic_count * sizeof(*scan->topics));
    if (scan->topics == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < scan->topic_count; i++) {
        struct span name = query->content_topics[i];
        scan->topics[i] = (struct wanted_topic){memory_content_tag(name), name};
    }
    qsort(scan->topics, scan->topic_count, sizeof(*scan->topics), compare_tags);
    return STATUS_OK;
}

/* The first wanted topic with a tag not below tag. */
static size_t lower_bound(const struct scan *scan, uint32_t tag)
{
    size_t low = 0;
    size_t high = scan->topic_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (scan->topics[middle].tag < tag) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_wanted(const struct scan *scan, const struct id_entry *entry)
{
    const struct envelope *envelope = entry->value;
    bool is_on_topic = scan->topic_count == 0;
    for (size_t i = lower_bound(scan, entry->scope);
            i < scan->topic_count && scan->topics[i].tag == entry->scope && !is_on_topic; i++) {
        is_on_topic = span_equal(scan->topics[i].name, envelope->content_topic);
    }
    struct span pubsub_topic = scan->selection->query->pubsub_topic;
    return is_on_topic &&
           (pubsub_topic.length == 0 || span_equal(pubsub_topic, envelope->topic->name));
}

/* Takes the entry if it is wanted; sets is_done when nothing behind it can come on the page. */
static enum status look_at(struct scan *scan, const struct id_entry *entry)
{
    if (!selection_has(scan->selection, &entry->key)) {
        scan->is_done = true;
        return STATUS_OK;
    }
    if (!is_wanted(scan, entry)) {
        return STATUS_OK;
    }
    struct page_row row = {.key = entry->key};
    enum status status = page_builder_add(scan->builder, &row);
    scan->is_done = scan->builder->count > scan->selection->limit;
    return status;
}

/* Looks at one slice of the order, lock held, and leaves the selection behind it. */
static enum status scan_slice(struct scan *scan)
{
    struct archive_selection *selection = scan->selection;
    bool is_backward = selection->query->is_backward;
    const struct id_key *upper = selection->is_upper_open ? NULL : &selection->upper;
    struct id_cursor cursor = is_backward
                                      ? id_tree_seek_last(scan->memory->tree, upper)
                                      : id_tree_seek_first(scan->memory->tree, &selection->lower);
    for (size_t i = 0; i < MEMORY_SLICE_ROWS && id_cursor_is_valid(&cursor); i++) {
        struct id_entry entry = id_cursor_entry(&cursor);
        enum status status = look_at(scan, &entry);
        if (status != STATUS_OK || scan->is_done) {
            return status;
        }
        selection_start_behind(selection, &entry.key);
        if (is_backward) {
            id_cursor_previous(&cursor);
        } else {
            id_cursor_next(&cursor);
        }
    }
    scan->is_done = !id_cursor_is_valid(&cursor);
    return STATUS_OK;
}

static enum status select_by_filter(struct scan *scan)
{
    enum status status = collect_topics(scan);
    while (status == STATUS_OK && !scan->is_done) {
        if (selection_is_late(scan->selection)) {
            status = STATUS_TIMED_OUT;
            break;
        }
        pthread_rwlock_rdlock(&scan->memory->lock);
        status = scan_slice(scan);
        pthread_rwlock_unlock(&scan->memory->lock);
    }
    memory_free(scan->topics);
    return status;
}

/* False when the hash is not there. */
static bool find_key(struct memory_archive *memory, struct span hash, struct id_key *key)
{
    pthread_rwlock_rdlock(&memory->lock);
    const struct envelope *envelope = message_table_find(&memory->table, hash.bytes);
    if (envelope != NULL) {
        *key = memory_key_of(envelope);
    }
    pthread_rwlock_unlock(&memory->lock);
    return envelope != NULL;
}

static enum status select_by_hash(struct scan *scan)
{
    const struct archive_query *query = scan->selection->query;
    for (size_t i = 0; i < query->hash_count; i++) {
        struct page_row row = {0};
        if (i % MEMORY_SLICE_ROWS == 0 && selection_is_late(scan->selection)) {
            return STATUS_TIMED_OUT;
        }
        if (!find_key(scan->memory, query->hashes[i], &row.key) ||
                !selection_has(scan->selection, &row.key)) {
            continue;
        }
        enum status status = page_builder_add(scan->builder, &row);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

enum status memory_archive_select(struct archive_reader *reader,
        struct archive_selection *selection, struct page_builder *builder)
{
    struct scan scan = {.memory = memory_of(reader), .selection = selection, .builder = builder};
    const struct archive_query *query = selection->query;
    if (query->has_cursor) {
        struct id_key key;
        if (!find_key(scan.memory, query->cursor, &key)) {
            return STATUS_BAD_CURSOR;
        }
        selection_start_behind(selection, &key);
    }
    return query->hash_count > 0 ? select_by_hash(&scan) : select_by_filter(&scan);
}

/* Takes references for the rows from first on, a slice at most; how many were still there. */
static size_t hold_slice(struct memory_archive *memory, const struct page_builder *builder,
        size_t first, struct envelope *envelopes[])
{
    size_t end =
            builder->count - first < MEMORY_SLICE_ROWS ? builder->count : first + MEMORY_SLICE_ROWS;
    size_t held = 0;
    pthread_rwlock_rdlock(&memory->lock);
    for (size_t i = first; i < end; i++) {
        struct envelope *envelope = message_table_find(&memory->table, builder->rows[i].key.hash);
        if (envelope == NULL) {
            break;
        }
        envelope_ref(envelope);
        envelopes[i] = envelope;
        held++;
    }
    pthread_rwlock_unlock(&memory->lock);
    return held;
}

/* Takes a reference to every row's envelope; false (and none) when one has gone. */
static bool hold_rows(struct memory_archive *memory, const struct page_builder *builder,
        struct envelope *envelopes[])
{
    size_t held = 0;
    while (held < builder->count) {
        size_t more = hold_slice(memory, builder, held, envelopes);
        held += more;
        if (held < builder->count && more < MEMORY_SLICE_ROWS) {
            break;
        }
    }
    if (held == builder->count) {
        return true;
    }
    while (held > 0) {
        envelope_unref(envelopes[--held]);
    }
    return false;
}

static enum status show(const struct envelope *envelope, const struct archive_query *query,
        archive_sink *sink, void *context)
{
    struct archive_row row = {
            .hash = span_of(envelope->hash, MESSAGE_HASH_BYTES),
            .timestamp_ns = envelope->timestamp_ns,
    };
    if (query->include_data || query->include_topics) {
        row.pubsub_topic = envelope->topic->name;
    }
    if (query->include_topics) {
        row.content_topic = envelope->content_topic;
    }
    if (query->include_data) {
        row.message = envelope->message;
        row.envelope = (struct envelope *)envelope;
    }
    return sink(context, &row);
}

enum status memory_archive_deliver(struct archive_reader *reader, const struct archive_query *query,
        struct page_builder *builder, archive_sink *sink, void *context)
{
    if (builder->count == 0) {
        return STATUS_OK;
    }
    struct envelope **envelopes = memory_allocate(builder->count * sizeof(struct envelope *));
    if (envelopes == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (!hold_rows(memory_of(reader), builder, envelopes)) {
        builder->is_stale = true;
        memory_free(envelopes);
        return STATUS_OK;
    }
    enum status status = STATUS_OK;
    for (size_t i = 0; i < builder->count; i++) {
        if (status == STATUS_OK) {
            status = show(envelopes[i], query, sink, context);
        }
        envelope_unref(envelopes[i]);
    }
    memory_free(envelopes);
    return status;
}
