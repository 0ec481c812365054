/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "router/sync_payload.h"

enum {
    NUMBER_MAX_BYTES = 10,
    END_PAYLOAD_MAX_BYTES = 1
};

bool sync_payload_is_end(struct span payload)
{
    return payload.length <= END_PAYLOAD_MAX_BYTES;
}

static size_t remaining(const struct sync_payload_reader *reader)
{
    return reader->bytes.length - reader->position;
}

/* A number that fits a timestamp. Overlong forms are accepted, as everywhere on this network. */
static enum status read_number(struct sync_payload_reader *reader, int64_t *out)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < NUMBER_MAX_BYTES; i++) {
        if (remaining(reader) == 0) {
            return STATUS_TRUNCATED;
        }
        uint8_t byte = reader->bytes.bytes[reader->position++];
        uint64_t bits = byte & 0x7FU;
        if (i == NUMBER_MAX_BYTES - 1 && bits != 0) {
            return STATUS_BAD_VARINT;
        }
        number |= i < NUMBER_MAX_BYTES - 1 ? bits << (7 * i) : 0;
        if ((byte & 0x80U) == 0) {
            *out = (int64_t)number; /* 63 bits at most */
            return STATUS_OK;
        }
    }
    return STATUS_BAD_VARINT;
}

static enum status read_bytes(
        struct sync_payload_reader *reader, const uint8_t **out, size_t length)
{
    if (remaining(reader) < length) {
        return STATUS_TRUNCATED;
    }
    *out = reader->bytes.bytes + reader->position;
    reader->position += length;
    return STATUS_OK;
}

static enum status read_byte(struct sync_payload_reader *reader, uint8_t *out)
{
    const uint8_t *byte;
    enum status status = read_bytes(reader, &byte, 1);
    if (status == STATUS_OK) {
        *out = *byte;
    }
    return status;
}

enum status sync_payload_read_topics(struct sync_payload_reader *reader, struct span *topics,
        size_t max, size_t *count, size_t topic_bytes_max)
{
    int64_t claimed = 0;
    enum status status = read_number(reader, &claimed);
    if (status == STATUS_OK && (uint64_t)claimed > max) {
        status = STATUS_TOO_LARGE;
    }
    *count = 0;
    while (status == STATUS_OK && *count < (size_t)claimed) {
        int64_t length = 0;
        const uint8_t *bytes = NULL;
        status = read_number(reader, &length);
        if (status == STATUS_OK && (uint64_t)length > topic_bytes_max) {
            status = STATUS_TOO_LARGE;
        }
        if (status == STATUS_OK) {
            status = read_bytes(reader, &bytes, (size_t)length);
        }
        if (status == STATUS_OK) {
            topics[(*count)++] = span_of(bytes, (size_t)length);
        }
    }
    return status;
}

enum status sync_payload_read_start(struct sync_payload_reader *reader)
{
    return read_number(reader, &reader->last_ns);
}

bool sync_payload_has_range(const struct sync_payload_reader *reader)
{
    return remaining(reader) > 1; /* the last byte alone is not read */
}

static enum status read_time_after(
        struct sync_payload_reader *reader, int64_t before_ns, int64_t *out, bool *is_same)
{
    int64_t difference = 0;
    enum status status = read_number(reader, &difference);
    if (status != STATUS_OK) {
        return status;
    }
    if (difference > INT64_MAX - before_ns) {
        return STATUS_BAD_FIELD;
    }
    *out = before_ns + difference;
    *is_same = difference == 0;
    return STATUS_OK;
}

static enum status read_hash_prefix(struct sync_payload_reader *reader, uint8_t *hash)
{
    uint8_t length = 0;
    const uint8_t *bytes = NULL;
    enum status status = read_byte(reader, &length);
    if (status == STATUS_OK && length > ID_HASH_BYTES) {
        status = STATUS_BAD_FIELD;
    }
    if (status == STATUS_OK) {
        status = read_bytes(reader, &bytes, length);
    }
    if (status == STATUS_OK) {
        memcpy(hash, bytes, length);
    }
    return status;
}

static enum status read_bounds(struct sync_payload_reader *reader, struct sync_range *out)
{
    bool is_same = false;
    *out = (struct sync_range){.from.timestamp_ns = reader->last_ns};
    enum status status = read_time_after(reader, reader->last_ns, &out->to.timestamp_ns, &is_same);
    if (status == STATUS_OK && is_same) {
        status = read_hash_prefix(reader, out->to.hash);
    }
    reader->last_ns = out->to.timestamp_ns;
    return status;
}

static enum status read_item(struct sync_payload_reader *reader, struct id_key *key)
{
    bool is_same = false;
    const uint8_t *hash = NULL;
    enum status status = read_time_after(reader, key->timestamp_ns, &key->timestamp_ns, &is_same);
    if (status == STATUS_OK) {
        status = read_bytes(reader, &hash, ID_HASH_BYTES);
    }
    if (status == STATUS_OK) {
        memcpy(key->hash, hash, ID_HASH_BYTES);
    }
    return status;
}

static enum status read_item_set(struct sync_payload_reader *reader, struct sync_payload_range *out)
{
    int64_t claimed = 0;
    enum status status = read_number(reader, &claimed);
    size_t start = reader->position;
    struct id_key previous = {.timestamp_ns = 0};
    for (int64_t i = 0; i < claimed && status == STATUS_OK; i++) {
        struct id_key key = previous;
        status = read_item(reader, &key);
        if (status == STATUS_OK && i > 0 && id_key_compare(&previous, &key) >= 0) {
            status = STATUS_BAD_FIELD;
        }
        previous = key;
    }
    uint8_t reconciled = 0;
    out->item_count = (size_t)claimed;
    out->items = span_of(reader->bytes.bytes + start, reader->position - start);
    if (status == STATUS_OK) {
        status = read_byte(reader, &reconciled);
    }
    if (status == STATUS_OK && reconciled > 1) {
        status = STATUS_BAD_FIELD;
    }
    out->is_reconciled = reconciled == 1;
    return status;
}

enum status sync_payload_read_range(
        struct sync_payload_reader *reader, struct sync_payload_range *out)
{
    uint8_t type = 0;
    *out = (struct sync_payload_range){.item_count = 0};
    enum status status = read_bounds(reader, &out->bounds);
    if (status == STATUS_OK) {
        status = read_byte(reader, &type);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (type > SYNC_RANGE_ITEM_SET) {
        return STATUS_BAD_FIELD;
    }
    out->type = (enum sync_range_type)type;
    switch (out->type) {
    case SYNC_RANGE_SKIP:
        break;
    case SYNC_RANGE_FINGERPRINT:
        return read_bytes(reader, &out->fingerprint, ID_HASH_BYTES);
    case SYNC_RANGE_ITEM_SET:
        return read_item_set(reader, out);
    }
    return STATUS_OK;
}

bool sync_item_next(struct sync_item_walk *walk, const struct sync_payload_range *range)
{
    struct sync_payload_reader reader = {.bytes = range->items, .position = walk->position};
    if (remaining(&reader) == 0) {
        return false;
    }
    enum status status = read_item(&reader, &walk->key);
    walk->position = reader.position;
    return status == STATUS_OK;
}
