/* SPDX-License-Identifier: MIT */
#include "net/protocols/lightpush_message.h"

#include <assert.h>

#include "codec/wire.h"
#include "net/protocols/service_code.h"

#define REQUEST_ID       WIRE_TAG(1, WIRE_LENGTH)
#define PUBSUB_TOPIC     WIRE_TAG(20, WIRE_LENGTH)
#define MESSAGE          WIRE_TAG(21, WIRE_LENGTH)
#define STATUS_CODE      WIRE_TAG(10, WIRE_VARINT)
#define DESCRIPTION      WIRE_TAG(11, WIRE_LENGTH)
#define RELAY_PEER_COUNT WIRE_TAG(12, WIRE_VARINT)

#define LEGACY_REQUEST      WIRE_TAG(2, WIRE_LENGTH)
#define LEGACY_RESPONSE     WIRE_TAG(3, WIRE_LENGTH)
#define LEGACY_PUBSUB_TOPIC WIRE_TAG(1, WIRE_LENGTH)
#define LEGACY_MESSAGE      WIRE_TAG(2, WIRE_LENGTH)
#define LEGACY_IS_SUCCESS   WIRE_TAG(1, WIRE_VARINT)
#define LEGACY_INFO         WIRE_TAG(2, WIRE_LENGTH)

#define CONTENT_TOPIC WIRE_TAG(2, WIRE_LENGTH) /* of a WakuMessage */

enum {
    TAG_AND_LENGTH_MAX = 2 + VARINT_MAX_BYTES
};

static void take_topic(struct lightpush_request *out, struct span topic)
{
    out->has_pubsub_topic = true;
    out->pubsub_topic = topic;
}

static void take_message(struct lightpush_request *out, struct span message)
{
    out->has_message = true;
    out->message = message;
}

static enum status read_push(struct lightpush_request *out, struct span bytes)
{
    struct wire_field field;
    while (bytes.length > 0) {
        enum status status = wire_next(&field, &bytes);
        if (status != STATUS_OK) {
            return status;
        }
        if (field.tag == LEGACY_PUBSUB_TOPIC) {
            take_topic(out, field.bytes);
        } else if (field.tag == LEGACY_MESSAGE) {
            take_message(out, field.bytes);
        }
    }
    return STATUS_OK;
}

static enum status take_field(struct lightpush_request *out, const struct wire_field *field,
        enum lightpush_version version)
{
    if (field->tag == REQUEST_ID) {
        out->request_id = field->bytes;
    } else if (version == LIGHTPUSH_LEGACY) {
        return field->tag == LEGACY_REQUEST ? read_push(out, field->bytes) : STATUS_OK;
    } else if (field->tag == PUBSUB_TOPIC) {
        take_topic(out, field->bytes);
    } else if (field->tag == MESSAGE) {
        take_message(out, field->bytes);
    }
    return STATUS_OK;
}

enum status lightpush_request_read(
        struct lightpush_request *out, struct span bytes, enum lightpush_version version)
{
    struct wire_field field;
    enum status status = STATUS_OK;
    *out = (struct lightpush_request){.has_message = false};
    while (status == STATUS_OK && bytes.length > 0) {
        status = wire_next(&field, &bytes);
        if (status == STATUS_OK) {
            status = take_field(out, &field, version);
        }
    }
    return status;
}

struct span lightpush_content_topic(struct span message)
{
    struct span topic = span_of(NULL, 0);
    struct wire_field field;
    while (message.length > 0 && wire_next(&field, &message) == STATUS_OK) {
        if (field.tag == CONTENT_TOPIC) {
            topic = field.bytes;
        }
    }
    return topic;
}

size_t lightpush_request_head_max(const struct lightpush_request *request)
{
    return (size_t)4 * TAG_AND_LENGTH_MAX + request->request_id.length +
           request->pubsub_topic.length;
}

size_t lightpush_request_write_head(
        uint8_t *to, const struct lightpush_request *request, enum lightpush_version version)
{
    uint64_t topic_tag = version == LIGHTPUSH_LEGACY ? LEGACY_PUBSUB_TOPIC : PUBSUB_TOPIC;
    uint64_t message_tag = version == LIGHTPUSH_LEGACY ? LEGACY_MESSAGE : MESSAGE;
    uint8_t *end = wire_write_bytes(to, REQUEST_ID, request->request_id);
    if (version == LIGHTPUSH_LEGACY) {
        size_t inner = wire_bytes_size(message_tag, request->message.length);
        inner += request->has_pubsub_topic
                         ? wire_bytes_size(topic_tag, request->pubsub_topic.length)
                         : 0;
        end = wire_write_head(end, LEGACY_REQUEST, inner);
    }
    if (request->has_pubsub_topic) {
        end = wire_write_bytes(end, topic_tag, request->pubsub_topic);
    }
    end = wire_write_head(end, message_tag, request->message.length);
    return (size_t)(end - to);
}

size_t lightpush_answer_write(
        uint8_t *to, const struct lightpush_answer *answer, enum lightpush_version version)
{
    uint8_t *end = to;
    assert(answer->description.length <= LIGHTPUSH_DESCRIPTION_MAX);
    if (answer->request_id.length <= LIGHTPUSH_REQUEST_ID_MAX) {
        end = wire_write_bytes(end, REQUEST_ID, answer->request_id);
    }
    if (version == LIGHTPUSH_LEGACY) {
        uint64_t is_success = answer->code == SERVICE_OK;
        end = wire_write_head(end, LEGACY_RESPONSE,
                wire_number_size(LEGACY_IS_SUCCESS, is_success) +
                        wire_bytes_size(LEGACY_INFO, answer->description.length));
        end = wire_write_number(end, LEGACY_IS_SUCCESS, is_success);
        end = wire_write_bytes(end, LEGACY_INFO, answer->description);
        return (size_t)(end - to);
    }
    end = wire_write_number(end, STATUS_CODE, answer->code);
    end = wire_write_bytes(end, DESCRIPTION, answer->description);
    if (answer->has_relay_peer_count) {
        end = wire_write_number(end, RELAY_PEER_COUNT, answer->relay_peer_count);
    }
    return (size_t)(end - to);
}

static enum status read_legacy_response(struct lightpush_answer *out, struct span bytes)
{
    struct wire_field field;
    while (bytes.length > 0) {
        enum status status = wire_next(&field, &bytes);
        if (status != STATUS_OK) {
            return status;
        }
        if (field.tag == LEGACY_IS_SUCCESS) {
            out->code = field.number != 0 ? SERVICE_OK : 0;
        } else if (field.tag == LEGACY_INFO) {
            out->description = field.bytes;
        }
    }
    return STATUS_OK;
}

static enum status take_answer_field(struct lightpush_answer *out, const struct wire_field *field,
        enum lightpush_version version)
{
    if (field->tag == REQUEST_ID) {
        out->request_id = field->bytes;
    } else if (version == LIGHTPUSH_LEGACY) {
        return field->tag == LEGACY_RESPONSE ? read_legacy_response(out, field->bytes) : STATUS_OK;
    } else if (field->tag == STATUS_CODE) {
        return wire_number32(&out->code, field);
    } else if (field->tag == DESCRIPTION) {
        out->description = field->bytes;
    } else if (field->tag == RELAY_PEER_COUNT) {
        out->has_relay_peer_count = true;
        return wire_number32(&out->relay_peer_count, field);
    }
    return STATUS_OK;
}

enum status lightpush_answer_read(
        struct lightpush_answer *out, struct span bytes, enum lightpush_version version)
{
    struct wire_field field;
    enum status status = STATUS_OK;
    *out = (struct lightpush_answer){.code = 0};
    while (status == STATUS_OK && bytes.length > 0) {
        status = wire_next(&field, &bytes);
        if (status == STATUS_OK) {
            status = take_answer_field(out, &field, version);
        }
    }
    return status;
}
