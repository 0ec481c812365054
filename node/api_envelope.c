/* SPDX-License-Identifier: MIT */

/* Envelopes as the application sees them, and what it keeps of them. */

#include <string.h>

#include "base/memory.h"
#include "base/metrics.h"
#include "codec/waku_message.h"
#include "hash/message_hash.h"
#include "node/api_private.h"

static struct sluice_bytes bytes_of(struct span span)
{
    return (struct sluice_bytes){.data = span.bytes, .size = span.length};
}

/* False when the node's kept envelopes would be more than they may. */
static bool try_hold(struct sluice_node *node, size_t bytes)
{
    /* relaxed: only the count itself; what is kept is handed over by its envelope's references */
    size_t now = atomic_load_explicit(&node->held_bytes, memory_order_relaxed);
    /* Ends because a failure means that another thread's charge got through. */
    while (bytes <= node->held_max && now <= node->held_max - bytes) {
        if (atomic_compare_exchange_weak_explicit(&node->held_bytes, &now, now + bytes,
                    memory_order_relaxed, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

/* What is kept is the frame, or the message alone where envelope_compact copies it out. */
static size_t charge_of(const struct envelope *envelope)
{
    size_t frame_size = frame_length(envelope->frame);
    bool is_compacted = envelope->message.length < frame_size - frame_size / 2;
    return (is_compacted ? envelope->message.length : frame_size) + sizeof(*envelope) +
           sizeof(struct sluice_envelope);
}

static struct sluice_envelope *hold(
        struct sluice_node *node, struct envelope *envelope, size_t charge)
{
    struct sluice_envelope *kept = memory_allocate(sizeof(*kept));
    if (kept == NULL) {
        return NULL;
    }
    envelope_ref(envelope);
    kept->node = node;
    kept->envelope = envelope_compact(envelope);
    kept->charge = charge;
    kept->is_detached = false;
    atomic_init(&kept->references, 1);
    frame_uncharge(kept->envelope->frame);
    return kept;
}

/* release: whoever sees the bytes gone may destroy the node */
static void let_go(struct sluice_node *node, size_t charge)
{
    atomic_fetch_sub_explicit(&node->held_bytes, charge, memory_order_release);
}

struct sluice_envelope *api_envelope_keep(struct sluice_node *node, struct envelope *envelope)
{
    size_t charge = charge_of(envelope);
    if (!try_hold(node, charge)) {
        metrics_add(METRIC_EVENT_HOLD_REFUSED, 1);
        return NULL;
    }
    struct sluice_envelope *kept = hold(node, envelope, charge);
    if (kept == NULL) {
        let_go(node, charge);
        metrics_add(METRIC_EVENT_HOLD_REFUSED, 1);
    }
    return kept;
}

/* What a message that is nobody else's consists of. */
struct detached {
    struct sluice_envelope outer; /* first: who has it has the whole */
    struct envelope inner;        /* without frame, and never counted */
    struct topic topic;
    uint8_t bytes[]; /* pubsub topic, NUL, message */
};

enum sluice_result api_envelope_make(struct sluice_envelope **out, struct sluice_node *node,
        struct span pubsub_topic, struct span message)
{
    struct detached *detached;
    size_t charge = sizeof(*detached) + pubsub_topic.length + 1 + message.length;
    if (!try_hold(node, charge)) {
        metrics_add(METRIC_EVENT_HOLD_REFUSED, 1);
        return SLUICE_LIMIT_REACHED;
    }
    detached = memory_allocate(charge);
    if (detached == NULL) {
        let_go(node, charge);
        return SLUICE_NO_MEMORY;
    }
    memset(detached, 0, sizeof(*detached));
    memcpy(detached->bytes, pubsub_topic.bytes, pubsub_topic.length);
    detached->bytes[pubsub_topic.length] = '\0';
    uint8_t *copy = detached->bytes + pubsub_topic.length + 1;
    memory_copy_message(copy, message.bytes, message.length);
    detached->topic.name = span_of(detached->bytes, pubsub_topic.length);
    detached->inner.topic = &detached->topic;
    detached->inner.message = span_of(copy, message.length);
    detached->outer.node = node;
    detached->outer.envelope = &detached->inner;
    detached->outer.charge = charge;
    detached->outer.is_detached = true;
    atomic_init(&detached->outer.references, 1);
    *out = &detached->outer;
    return SLUICE_OK;
}

bool api_envelope_seal(struct sluice_envelope *outer, int64_t received_ns)
{
    struct envelope *envelope = outer->envelope;
    struct waku_message_view view;
    if (waku_message_decode(&view, envelope->message) != STATUS_OK) {
        return false;
    }
    envelope->payload = view.payload;
    envelope->content_topic = view.content_topic;
    envelope->meta = view.meta;
    envelope->timestamp_ns = view.timestamp_ns;
    envelope->received_ns = received_ns;
    envelope->version = view.version;
    envelope->is_ephemeral = view.ephemeral;
    struct message_hash_input input = {.pubsub_topic = envelope->topic->name,
            .payload = view.payload,
            .content_topic = view.content_topic,
            .meta = view.meta,
            .timestamp_ns = view.timestamp_ns};
    message_hash(envelope->hash, &input);
    return true;
}

struct sluice_envelope *sluice_envelope_ref(struct sluice_envelope *envelope)
{
    /* relaxed: a kept one is kept by the caller's own reference, a borrowed one has none at all */
    if (atomic_load_explicit(&envelope->references, memory_order_relaxed) > 0) {
        atomic_fetch_add_explicit(&envelope->references, 1, memory_order_relaxed);
        return envelope;
    }
    return api_envelope_keep(envelope->node, envelope->envelope);
}

void sluice_envelope_unref(struct sluice_envelope *envelope)
{
    if (envelope == NULL) {
        return;
    }
    /* Whoever drops the last reference has seen every other holder finish. */
    if (atomic_fetch_sub_explicit(&envelope->references, 1, memory_order_acq_rel) > 1) {
        return;
    }
    struct sluice_node *node = envelope->node;
    size_t charge = envelope->charge;
    if (!envelope->is_detached) {
        envelope_unref(envelope->envelope);
    }
    memory_free(envelope);
    let_go(node, charge);
}

struct sluice_bytes sluice_envelope_payload(const struct sluice_envelope *envelope)
{
    return bytes_of(envelope->envelope->payload);
}

struct sluice_bytes sluice_envelope_content_topic(const struct sluice_envelope *envelope)
{
    return bytes_of(envelope->envelope->content_topic);
}

struct sluice_bytes sluice_envelope_pubsub_topic(const struct sluice_envelope *envelope)
{
    return bytes_of(envelope->envelope->topic->name);
}

struct sluice_bytes sluice_envelope_meta(const struct sluice_envelope *envelope)
{
    return bytes_of(envelope->envelope->meta);
}

struct sluice_bytes sluice_envelope_message(const struct sluice_envelope *envelope)
{
    return bytes_of(envelope->envelope->message);
}

struct sluice_bytes sluice_envelope_hash(const struct sluice_envelope *envelope)
{
    return (struct sluice_bytes){.data = envelope->envelope->hash, .size = MESSAGE_HASH_BYTES};
}

int64_t sluice_envelope_timestamp(const struct sluice_envelope *envelope)
{
    return envelope->envelope->timestamp_ns;
}

int64_t sluice_envelope_received(const struct sluice_envelope *envelope)
{
    return envelope->envelope->received_ns;
}

uint32_t sluice_envelope_version(const struct sluice_envelope *envelope)
{
    return envelope->envelope->version;
}

bool sluice_envelope_is_ephemeral(const struct sluice_envelope *envelope)
{
    return envelope->envelope->is_ephemeral;
}
