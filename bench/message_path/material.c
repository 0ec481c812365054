/* SPDX-License-Identifier: MIT */
#include "bench/message_path/material.h"

#include <stdlib.h>

#include "base/clock.h"
#include "codec/waku_message.h"

void material_fini(struct material *material)
{
    for (size_t i = 0; material->envelopes != NULL && i < material->count; i++) {
        if (material->envelopes[i] != NULL) {
            envelope_unref(material->envelopes[i]);
        }
    }
    free(material->envelopes);
}

struct message_hash_input material_hash_input(const struct envelope *envelope)
{
    return (struct message_hash_input){.pubsub_topic = envelope->topic->name,
            .payload = envelope->payload,
            .content_topic = envelope->content_topic,
            .meta = envelope->meta,
            .timestamp_ns = envelope->timestamp_ns};
}

static struct envelope *make_envelope(const struct material *material,
        const struct workload *workload, size_t index, uint64_t nonce)
{
    int64_t timestamp = clock_wall_ns();
    struct frame *frame = frame_try_create(
            NULL, FRAME_BUDGET_COMPLETE, workload_message_size(workload, index, timestamp));
    if (frame == NULL) {
        return NULL;
    }
    workload_fill(workload, index, nonce, timestamp, frame_bytes(frame));
    struct waku_message_view view;
    struct envelope *envelope = envelope_create(frame);
    if (envelope == NULL || waku_message_decode(&view, span_of(frame_bytes(frame),
                                                               frame_length(frame))) != STATUS_OK) {
        return NULL;
    }
    envelope->topic = &material->topic;
    envelope->message = span_of(frame_bytes(frame), frame_length(frame));
    envelope->payload = view.payload;
    envelope->content_topic = view.content_topic;
    envelope->timestamp_ns = timestamp;
    envelope->received_ns = timestamp;
    envelope->is_timestamp_in_range = true;
    struct message_hash_input input = material_hash_input(envelope);
    message_hash(envelope->hash, &input);
    return envelope;
}

enum status material_init(
        struct material *material, const struct workload *workload, uint64_t nonce)
{
    material->count = workload->count;
    material->topic.name = span_of_text(WORKLOAD_PUBSUB_TOPIC);
    material->envelopes = calloc(workload->count, sizeof(struct envelope *));
    if (material->envelopes == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < workload->count; i++) {
        material->envelopes[i] = make_envelope(material, workload, i, nonce);
        if (material->envelopes[i] == NULL) {
            return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}
