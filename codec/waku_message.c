/* SPDX-License-Identifier: MIT */
#include "codec/waku_message.h"

#include "base/memory.h"
#include "base/metrics.h"
#include "codec/utf8.h"
#include "codec/wire.h"

#define TAG_PAYLOAD          WIRE_TAG(1, WIRE_LENGTH)
#define TAG_CONTENT_TOPIC    WIRE_TAG(2, WIRE_LENGTH)
#define TAG_VERSION          WIRE_TAG(3, WIRE_VARINT)
#define TAG_TIMESTAMP        WIRE_TAG(10, WIRE_VARINT)
#define TAG_META             WIRE_TAG(11, WIRE_LENGTH)
#define TAG_RATE_LIMIT_PROOF WIRE_TAG(21, WIRE_LENGTH)
#define TAG_EPHEMERAL        WIRE_TAG(31, WIRE_VARINT)

const struct waku_message_limits waku_message_limits_default = {
        .meta_bytes = WAKU_META_MAX_BYTES,
};

/* Field by field: for a struct of this size compilers clear with a slow string instruction. */
static void clear(struct waku_message_view *view)
{
    const struct span empty = {.bytes = NULL, .length = 0};
    view->payload = empty;
    view->content_topic = empty;
    view->meta = empty;
    view->rate_limit_proof = empty;
    view->timestamp_ns = 0;
    view->version = 0;
    view->unknown_field_count = 0;
    view->has_payload = false;
    view->has_content_topic = false;
    view->has_timestamp = false;
    view->ephemeral = false;
}

static void take_field(struct waku_message_view *view, const struct wire_field *field)
{
    switch (field->tag) {
    case TAG_PAYLOAD:
        view->payload = field->bytes;
        view->has_payload = true;
        break;
    case TAG_CONTENT_TOPIC:
        view->content_topic = field->bytes;
        view->has_content_topic = true;
        break;
    case TAG_VERSION:
        view->version = (uint32_t)field->number;
        break;
    case TAG_TIMESTAMP:
        view->timestamp_ns = varint_unzigzag(field->number);
        view->has_timestamp = true;
        break;
    case TAG_META:
        view->meta = field->bytes;
        break;
    case TAG_RATE_LIMIT_PROOF:
        view->rate_limit_proof = field->bytes;
        break;
    case TAG_EPHEMERAL:
        view->ephemeral = field->number != 0;
        break;
    default:
        view->unknown_field_count++;
        break;
    }
}

enum status waku_message_decode(struct waku_message_view *out, struct span bytes)
{
    struct wire_field field;
    metrics_add(METRIC_DECODES, 1);
    metrics_add(METRIC_DECODED_BYTES, bytes.length);
    clear(out);
    while (bytes.length > 0) {
        enum status status = wire_next(&field, &bytes);
        if (status != STATUS_OK) {
            return status;
        }
        take_field(out, &field);
    }
    return STATUS_OK;
}

enum status waku_message_check(
        const struct waku_message_view *view, const struct waku_message_limits *limits)
{
    if (!view->has_payload) {
        return STATUS_PAYLOAD_MISSING;
    }
    if (!view->has_content_topic || view->content_topic.length == 0) {
        return STATUS_CONTENT_TOPIC_MISSING;
    }
    if (!utf8_is_valid(view->content_topic)) {
        return STATUS_BAD_TOPIC;
    }
    return view->meta.length > limits->meta_bytes ? STATUS_META_TOO_LONG : STATUS_OK;
}

size_t waku_message_size(const struct waku_message_view *fields)
{
    size_t size = 0;
    if (fields->has_payload) {
        size += wire_bytes_size(TAG_PAYLOAD, fields->payload.length);
    }
    if (fields->has_content_topic) {
        size += wire_bytes_size(TAG_CONTENT_TOPIC, fields->content_topic.length);
    }
    if (fields->version != 0) {
        size += wire_number_size(TAG_VERSION, fields->version);
    }
    if (fields->has_timestamp) {
        size += wire_number_size(TAG_TIMESTAMP, varint_zigzag(fields->timestamp_ns));
    }
    if (fields->meta.length > 0) {
        size += wire_bytes_size(TAG_META, fields->meta.length);
    }
    if (fields->rate_limit_proof.length > 0) {
        size += wire_bytes_size(TAG_RATE_LIMIT_PROOF, fields->rate_limit_proof.length);
    }
    if (fields->ephemeral) {
        size += wire_number_size(TAG_EPHEMERAL, 1);
    }
    return size;
}

static uint8_t *write_payload(uint8_t *at, struct span payload)
{
    at = wire_write_head(at, TAG_PAYLOAD, payload.length);
    if (payload.length > 0) {
        memory_copy_message(at, payload.bytes, payload.length);
    }
    return at + payload.length;
}

/* Where a field that ends at `at` has come to lie. */
static struct span moved_to(const uint8_t *at, struct span field)
{
    return span_of(at - field.length, field.length);
}

size_t waku_message_encode_view(uint8_t *out, size_t capacity,
        const struct waku_message_view *fields, struct waku_message_view *view)
{
    uint8_t *at = out;
    if (capacity < waku_message_size(fields)) {
        return 0;
    }
    *view = *fields;
    if (fields->has_payload) {
        at = write_payload(at, fields->payload);
        view->payload = moved_to(at, fields->payload);
    }
    if (fields->has_content_topic) {
        at = wire_write_bytes(at, TAG_CONTENT_TOPIC, fields->content_topic);
        view->content_topic = moved_to(at, fields->content_topic);
    }
    if (fields->version != 0) {
        at = wire_write_number(at, TAG_VERSION, fields->version);
    }
    if (fields->has_timestamp) {
        at = wire_write_number(at, TAG_TIMESTAMP, varint_zigzag(fields->timestamp_ns));
    }
    if (fields->meta.length > 0) {
        at = wire_write_bytes(at, TAG_META, fields->meta);
        view->meta = moved_to(at, fields->meta);
    }
    if (fields->rate_limit_proof.length > 0) {
        at = wire_write_bytes(at, TAG_RATE_LIMIT_PROOF, fields->rate_limit_proof);
        view->rate_limit_proof = moved_to(at, fields->rate_limit_proof);
    }
    if (fields->ephemeral) {
        at = wire_write_number(at, TAG_EPHEMERAL, 1);
    }
    return (size_t)(at - out);
}

size_t waku_message_encode(uint8_t *out, size_t capacity, const struct waku_message_view *fields)
{
    struct waku_message_view view;
    return waku_message_encode_view(out, capacity, fields, &view);
}
