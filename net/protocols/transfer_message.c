/* SPDX-License-Identifier: MIT */
#include "net/protocols/transfer_message.h"

#include <stdbool.h>

#include "codec/wire.h"

#define PUBSUB_TOPIC WIRE_TAG(1, WIRE_LENGTH)
#define MESSAGE      WIRE_TAG(2, WIRE_LENGTH)

enum status transfer_message_read(struct transfer_message *out, struct span bytes)
{
    bool has_topic = false;
    bool has_message = false;
    *out = (struct transfer_message){.message = span_of(NULL, 0)};
    while (bytes.length > 0) {
        struct wire_field field;
        enum status status = wire_next(&field, &bytes);
        if (status != STATUS_OK) {
            return status;
        }
        if (field.tag == PUBSUB_TOPIC) {
            out->pubsub_topic = field.bytes;
            has_topic = true;
        } else if (field.tag == MESSAGE) {
            out->message = field.bytes;
            has_message = true;
        }
    }
    return has_topic && has_message ? STATUS_OK : STATUS_BAD_FIELD;
}

size_t transfer_message_size(struct span pubsub_topic, size_t message_length)
{
    return wire_bytes_size(PUBSUB_TOPIC, pubsub_topic.length) +
           wire_bytes_size(MESSAGE, message_length);
}

uint8_t *transfer_write_head(uint8_t *to, struct span pubsub_topic, size_t message_length)
{
    to = varint_write(to, transfer_message_size(pubsub_topic, message_length));
    to = wire_write_bytes(to, PUBSUB_TOPIC, pubsub_topic);
    return wire_write_head(to, MESSAGE, message_length);
}
