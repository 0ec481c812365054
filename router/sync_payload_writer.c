/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/memory.h"
#include "router/sync_payload.h"

enum {
    FIRST_CAPACITY = 4096,
    START_BYTES = 9
};

static bool reserve(struct sync_payload_writer *writer, size_t more)
{
    struct sync_bytes *out = writer->out;
    if (writer->status != STATUS_OK) {
        return false;
    }
    if (out->capacity - out->length >= more) {
        return true;
    }
    size_t capacity = out->capacity == 0 ? FIRST_CAPACITY : out->capacity * 2;
    while (capacity - out->length < more) {
        capacity *= 2;
    }
    uint8_t *grown = memory_resize(out->bytes, capacity);
    if (grown == NULL) {
        writer->status = STATUS_NO_MEMORY;
        return false;
    }
    out->bytes = grown;
    out->capacity = capacity;
    return true;
}

static void put_bytes(struct sync_payload_writer *writer, const void *bytes, size_t length)
{
    if (length > 0 && reserve(writer, length)) {
        memcpy(writer->out->bytes + writer->out->length, bytes, length);
        writer->out->length += length;
    }
}

static void put_byte(struct sync_payload_writer *writer, uint8_t byte)
{
    put_bytes(writer, &byte, 1);
}

static void put_number(struct sync_payload_writer *writer, uint64_t number)
{
    while (number >= 0x80U) {
        put_byte(writer, (uint8_t)(number | 0x80U));
        number >>= 7;
    }
    put_byte(writer, (uint8_t)number);
}

static void put_topics(struct sync_payload_writer *writer, const struct span *topics, size_t count)
{
    put_number(writer, count);
    for (size_t i = 0; i < count; i++) {
        put_number(writer, topics[i].length);
        put_bytes(writer, topics[i].bytes, topics[i].length);
    }
}

/*
 * The reference's decoder wants nine bytes wherever it reads a topic count, a topic length or this
 * time. Nine are what any time of our days needs; an earlier one is padded to as many.
 */
static void put_start(struct sync_payload_writer *writer, int64_t first_ns)
{
    uint64_t rest = (uint64_t)first_ns;
    for (int i = 0; i < START_BYTES - 1; i++) {
        put_byte(writer, (uint8_t)(rest | 0x80U));
        rest >>= 7;
    }
    put_byte(writer, (uint8_t)rest);
}

void sync_payload_begin(struct sync_payload_writer *writer, struct sync_bytes *out,
        const struct sync_scope *scope, int64_t first_ns)
{
    *writer = (struct sync_payload_writer){.out = out, .last_ns = first_ns};
    out->length = 0;
    put_topics(writer, scope->pubsub_topics, scope->pubsub_topic_count);
    put_topics(writer, scope->content_topics, scope->content_topic_count);
    put_start(writer, first_ns);
}

/* The reader starts from a hash of zeros, so it needs the bytes up to the last that is none. */
static uint8_t significant_bytes(const uint8_t *hash)
{
    uint8_t length = ID_HASH_BYTES;
    while (length > 0 && hash[length - 1] == 0) {
        length--;
    }
    return length;
}

static void put_bound(
        struct sync_payload_writer *writer, const struct id_key *to, enum sync_range_type type)
{
    put_number(writer, (uint64_t)(to->timestamp_ns - writer->last_ns));
    if (to->timestamp_ns == writer->last_ns) {
        uint8_t length = significant_bytes(to->hash);
        put_byte(writer, length);
        put_bytes(writer, to->hash, length);
    }
    put_byte(writer, (uint8_t)type);
    writer->last_ns = to->timestamp_ns;
}

static void put_pending_skip(struct sync_payload_writer *writer)
{
    if (writer->has_skip) {
        put_bound(writer, &writer->skip_to, SYNC_RANGE_SKIP);
        writer->has_skip = false;
    }
}

void sync_payload_skip(struct sync_payload_writer *writer, const struct id_key *to)
{
    writer->has_skip = true;
    writer->skip_to = *to;
}

void sync_payload_fingerprint(struct sync_payload_writer *writer, const struct id_key *to,
        const uint8_t fingerprint[ID_HASH_BYTES])
{
    put_pending_skip(writer);
    put_bound(writer, to, SYNC_RANGE_FINGERPRINT);
    put_bytes(writer, fingerprint, ID_HASH_BYTES);
    writer->has_ranges = true;
}

void sync_payload_item_set(
        struct sync_payload_writer *writer, const struct id_key *to, size_t count)
{
    put_pending_skip(writer);
    put_bound(writer, to, SYNC_RANGE_ITEM_SET);
    put_number(writer, count);
    writer->item_ns = 0;
    writer->has_ranges = true;
}

void sync_payload_item(struct sync_payload_writer *writer, const struct id_key *item)
{
    put_number(writer, (uint64_t)(item->timestamp_ns - writer->item_ns));
    put_bytes(writer, item->hash, ID_HASH_BYTES);
    writer->item_ns = item->timestamp_ns;
}

void sync_payload_item_set_end(struct sync_payload_writer *writer, bool is_reconciled)
{
    put_byte(writer, is_reconciled ? 1 : 0);
}

enum status sync_payload_finish(struct sync_payload_writer *writer)
{
    if (writer->has_ranges) {
        put_pending_skip(writer);
    } else {
        writer->out->length = 0;
        put_byte(writer, 0);
    }
    return writer->status;
}
