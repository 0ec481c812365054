/* SPDX-License-Identifier: MIT */
#pragma once

/* Messages, ids and control entries made up for the tests of the mesh. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/gossip_rpc.h"
#include "queues/envelope.h"
#include "queues/frame.h"
#include "router/mesh.h"

#define SECOND_NS UINT64_C(1000000000)

static inline void make_id(uint8_t id[MESSAGE_ID_BYTES], uint64_t number)
{
    memset(id, 0xA5, MESSAGE_ID_BYTES);
    memcpy(id, &number, sizeof(number));
}

static inline uint64_t number_of_id(const uint8_t id[MESSAGE_ID_BYTES])
{
    uint64_t number;
    memcpy(&number, id, sizeof(number));
    return number;
}

/* A message with the id of that number; one reference. */
static inline struct envelope *make_message(
        uint64_t number, const struct topic *topic, size_t length)
{
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, length);
    if (frame == NULL) {
        abort();
    }
    memset(frame_bytes(frame), 0, length);
    struct envelope *envelope = envelope_create(frame);
    if (envelope == NULL) {
        abort();
    }
    envelope->topic = topic;
    envelope->message = span_of(frame_bytes(frame), length);
    make_id(envelope->id, number);
    return envelope;
}

/* The ids of an IHAVE, IWANT or IDONTWANT as the codec shows them: first, first + 1, ... */
struct made_items {
    uint8_t *bytes;
    struct gossip_items items;
};

enum {
    ID_FIELD_BYTES = 2 + MESSAGE_ID_BYTES,
    ID_FIELD_TAG = 0x12 /* field 2, length-delimited */
};

static inline struct made_items make_items(uint64_t first, size_t count)
{
    struct made_items made = {.bytes = malloc(count * ID_FIELD_BYTES + 1)};
    if (made.bytes == NULL) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        uint8_t *field = made.bytes + i * ID_FIELD_BYTES;
        field[0] = ID_FIELD_TAG;
        field[1] = MESSAGE_ID_BYTES;
        make_id(field + 2, first + i);
    }
    made.items = (struct gossip_items){
            .rest = span_of(made.bytes, count * ID_FIELD_BYTES),
            .tag = ID_FIELD_TAG,
            .count = (uint32_t)count,
    };
    return made;
}
