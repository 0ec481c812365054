/* SPDX-License-Identifier: MIT */
#include "archive/record.h"

#include <endian.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Little-endian on disk; places of the fields. */
enum {
    AT_MAGIC = 0,
    AT_BODY_LENGTH = 4,
    AT_CHECKSUM = 8, /* of everything behind it */
    AT_TIMESTAMP = 16,
    AT_RECEIVED = 24,
    AT_HASH = 32,
    AT_TOPIC_LENGTH = 64,
    AT_CONTENT_OFFSET = 68, /* of the content topic, in the message */
    AT_CONTENT_LENGTH = 72,
    AT_ORIGIN = 76,
    MAGIC = 0x31524c53 /* "SLR1" */
};

static void put32(uint8_t *to, uint32_t value)
{
    value = htole32(value);
    memcpy(to, &value, sizeof(value));
}

static void put64(uint8_t *to, uint64_t value)
{
    value = htole64(value);
    memcpy(to, &value, sizeof(value));
}

static uint32_t get32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof(value));
    return le32toh(value);
}

static uint64_t get64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return le64toh(value);
}

static uint64_t checksum_of(const uint8_t *header, struct span topic, struct span message)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, header + AT_TIMESTAMP, RECORD_HEADER_BYTES - AT_TIMESTAMP);
    XXH3_64bits_update(&state, topic.bytes, topic.length);
    XXH3_64bits_update(&state, message.bytes, message.length);
    return XXH3_64bits_digest(&state);
}

enum status record_check(const struct archive_record *record)
{
    if (record->pubsub_topic.length > RECORD_MAX_BODY_BYTES ||
            record->message.length > RECORD_MAX_BODY_BYTES - record->pubsub_topic.length) {
        return STATUS_TOO_LARGE;
    }
    return STATUS_OK;
}

size_t record_size(const struct archive_record *record)
{
    return RECORD_HEADER_BYTES + record->pubsub_topic.length + record->message.length;
}

void record_encode_header(uint8_t out[RECORD_HEADER_BYTES], const struct archive_record *record)
{
    size_t content_offset = 0;
    if (record->content_topic.length > 0) {
        content_offset = (size_t)(record->content_topic.bytes - record->message.bytes);
    }
    put32(out + AT_MAGIC, MAGIC);
    put32(out + AT_BODY_LENGTH, (uint32_t)(record_size(record) - RECORD_HEADER_BYTES));
    put64(out + AT_TIMESTAMP, (uint64_t)record->timestamp_ns);
    put64(out + AT_RECEIVED, (uint64_t)record->received_ns);
    memcpy(out + AT_HASH, record->hash, MESSAGE_HASH_BYTES);
    put32(out + AT_TOPIC_LENGTH, (uint32_t)record->pubsub_topic.length);
    put32(out + AT_CONTENT_OFFSET, (uint32_t)content_offset);
    put32(out + AT_CONTENT_LENGTH, (uint32_t)record->content_topic.length);
    put32(out + AT_ORIGIN, (uint32_t)record->origin);
    put64(out + AT_CHECKSUM, checksum_of(out, record->pubsub_topic, record->message));
}

enum status record_peek_size(size_t *size, const uint8_t header[RECORD_HEADER_BYTES])
{
    uint32_t body = get32(header + AT_BODY_LENGTH);
    if (get32(header + AT_MAGIC) != MAGIC || body > RECORD_MAX_BODY_BYTES) {
        return STATUS_DAMAGED;
    }
    *size = RECORD_HEADER_BYTES + (size_t)body;
    return STATUS_OK;
}

enum status record_decode(struct archive_record *out, struct span bytes)
{
    size_t size = 0;
    const uint8_t *header = bytes.bytes;
    if (bytes.length < RECORD_HEADER_BYTES || record_peek_size(&size, header) != STATUS_OK ||
            size != bytes.length) {
        return STATUS_DAMAGED;
    }
    size_t body = size - RECORD_HEADER_BYTES;
    size_t topic_length = get32(header + AT_TOPIC_LENGTH);
    if (topic_length > body) {
        return STATUS_DAMAGED;
    }
    struct span topic = span_of(header + RECORD_HEADER_BYTES, topic_length);
    struct span message = span_of(topic.bytes + topic_length, body - topic_length);
    size_t content_offset = get32(header + AT_CONTENT_OFFSET);
    size_t content_length = get32(header + AT_CONTENT_LENGTH);
    uint32_t origin = get32(header + AT_ORIGIN);
    if (content_offset > message.length || content_length > message.length - content_offset ||
            origin > ORIGIN_RESUME ||
            checksum_of(header, topic, message) != get64(header + AT_CHECKSUM)) {
        return STATUS_DAMAGED;
    }
    *out = (struct archive_record){
            .pubsub_topic = topic,
            .content_topic = span_of(message.bytes + content_offset, content_length),
            .message = message,
            .timestamp_ns = (int64_t)get64(header + AT_TIMESTAMP),
            .received_ns = (int64_t)get64(header + AT_RECEIVED),
            .origin = (enum message_origin)origin,
    };
    memcpy(out->hash, header + AT_HASH, MESSAGE_HASH_BYTES);
    return STATUS_OK;
}
