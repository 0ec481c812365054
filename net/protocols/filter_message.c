/* SPDX-License-Identifier: MIT */
#include "net/protocols/filter_message.h"

#include <assert.h>

#include "codec/wire.h"

#define REQUEST_ID    WIRE_TAG(1, WIRE_LENGTH)
#define VERB          WIRE_TAG(2, WIRE_VARINT)
#define PUBSUB_TOPIC  WIRE_TAG(10, WIRE_LENGTH)
#define CONTENT_TOPIC WIRE_TAG(11, WIRE_LENGTH)

#define STATUS_CODE WIRE_TAG(10, WIRE_VARINT)
#define DESCRIPTION WIRE_TAG(11, WIRE_LENGTH)

#define PUSH_MESSAGE WIRE_TAG(1, WIRE_LENGTH)
#define PUSH_TOPIC   WIRE_TAG(2, WIRE_LENGTH)

enum status filter_request_read(struct filter_request_view *out, struct span bytes)
{
    struct wire_field field;
    *out = (struct filter_request_view){.verb = FILTER_SUBSCRIBER_PING, .bytes = bytes};
    while (bytes.length > 0) {
        enum status status = wire_next(&field, &bytes);
        if (status != STATUS_OK) {
            return status;
        }
        if (field.tag == REQUEST_ID) {
            out->request_id = field.bytes;
        } else if (field.tag == VERB) {
            out->verb = field.number;
        } else if (field.tag == PUBSUB_TOPIC) {
            out->pubsub_topic = field.bytes;
        } else if (field.tag == CONTENT_TOPIC) {
            out->content_topic_count++;
        }
    }
    return STATUS_OK;
}

bool filter_request_next_topic(struct span *rest, struct span *topic)
{
    struct wire_field field;
    while (rest->length > 0 && wire_next(&field, rest) == STATUS_OK) {
        if (field.tag == CONTENT_TOPIC) {
            *topic = field.bytes;
            return true;
        }
    }
    return false;
}

size_t filter_request_size(const struct filter_request_fields *fields)
{
    size_t size = wire_bytes_size(REQUEST_ID, fields->request_id.length) +
                  wire_number_size(VERB, fields->verb);
    if (fields->pubsub_topic.length > 0) {
        size += wire_bytes_size(PUBSUB_TOPIC, fields->pubsub_topic.length);
    }
    for (size_t i = 0; i < fields->content_topic_count; i++) {
        size += wire_bytes_size(CONTENT_TOPIC, fields->content_topics[i].length);
    }
    return size;
}

void filter_request_write(uint8_t *to, const struct filter_request_fields *fields)
{
    uint8_t *end = wire_write_bytes(to, REQUEST_ID, fields->request_id);
    end = wire_write_number(end, VERB, fields->verb);
    if (fields->pubsub_topic.length > 0) {
        end = wire_write_bytes(end, PUBSUB_TOPIC, fields->pubsub_topic);
    }
    for (size_t i = 0; i < fields->content_topic_count; i++) {
        end = wire_write_bytes(end, CONTENT_TOPIC, fields->content_topics[i]);
    }
    assert((size_t)(end - to) == filter_request_size(fields));
}

size_t filter_answer_write(uint8_t *to, const struct filter_answer *answer)
{
    uint8_t *end = to;
    assert(answer->description.length <= FILTER_DESCRIPTION_MAX);
    /* Present even when there is none: the reference refuses an answer without it. */
    struct span id = answer->request_id.length <= FILTER_REQUEST_ID_MAX ? answer->request_id
                                                                        : span_of(NULL, 0);
    end = wire_write_bytes(end, REQUEST_ID, id);
    end = wire_write_number(end, STATUS_CODE, answer->code);
    end = wire_write_bytes(end, DESCRIPTION, answer->description);
    return (size_t)(end - to);
}

enum status filter_answer_read(struct filter_answer *out, struct span bytes)
{
    struct wire_field field;
    bool has_code = false;
    *out = (struct filter_answer){.code = 0};
    while (bytes.length > 0) {
        enum status status = wire_next(&field, &bytes);
        if (status != STATUS_OK) {
            return status;
        }
        if (field.tag == REQUEST_ID) {
            out->request_id = field.bytes;
        } else if (field.tag == STATUS_CODE) {
            has_code = wire_number32(&out->code, &field) == STATUS_OK;
        } else if (field.tag == DESCRIPTION) {
            out->description = field.bytes;
        }
    }
    return has_code ? STATUS_OK : STATUS_BAD_FIELD;
}

static size_t push_size(struct span pubsub_topic, size_t message_length)
{
    return wire_bytes_size(PUSH_TOPIC, pubsub_topic.length) +
           wire_bytes_size(PUSH_MESSAGE, message_length);
}

size_t filter_push_head_size(struct span pubsub_topic, size_t message_length)
{
    size_t size = push_size(pubsub_topic, message_length);
    return varint_size(size) + size - message_length;
}

void filter_push_head_write(uint8_t *to, struct span pubsub_topic, size_t message_length)
{
    uint8_t *end = varint_write(to, push_size(pubsub_topic, message_length));
    end = wire_write_bytes(end, PUSH_TOPIC, pubsub_topic);
    end = wire_write_head(end, PUSH_MESSAGE, message_length);
    assert((size_t)(end - to) == filter_push_head_size(pubsub_topic, message_length));
}

enum status filter_push_read(struct filter_push_view *out, struct span bytes)
{
    struct wire_field field;
    bool has_message = false;
    *out = (struct filter_push_view){0};
    while (bytes.length > 0) {
        enum status status = wire_next(&field, &bytes);
        if (status != STATUS_OK) {
            return status;
        }
        if (field.tag == PUSH_MESSAGE) {
            out->message = field.bytes;
            has_message = true;
        } else if (field.tag == PUSH_TOPIC) {
            out->pubsub_topic = field.bytes;
        }
    }
    return has_message && out->pubsub_topic.length > 0 ? STATUS_OK : STATUS_BAD_FIELD;
}
