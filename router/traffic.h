/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a lane has seen of each pubsub topic: messages, bytes, sizes, and how far the messages' own
 * timestamps are from our clock. For metrics; decides nothing.
 *
 * Thread: the lane's decode thread is the only writer, read on any. A reading may be slightly behind,
 *         never torn.
 */

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/attributes.h"
#include "queues/topic.h"

enum {
    TRAFFIC_TOPICS_MAX = 64, /* by index in the registry; the last place is of all topics beyond */
    TRAFFIC_SIZES = 13,      /* bounds of the histogram of payload sizes; one more class beyond */
    TRAFFIC_OFFSETS = 256    /* of the last messages */
};

/* All in bytes of the payload but where it says otherwise. */
struct topic_traffic {
    alignas(CACHE_LINE) _Atomic uint64_t messages; /* accepted, each once */
    _Atomic uint64_t payload_bytes;
    _Atomic uint64_t payload_largest;
    _Atomic uint64_t gross_bytes; /* messages and topic names as they came in, copies included */
    _Atomic uint64_t net_bytes;   /* the same of accepted ones */
    _Atomic uint64_t sent_bytes;  /* the same as handed over to peers */
};

struct traffic {
    struct topic_traffic topics[TRAFFIC_TOPICS_MAX];
    _Atomic uint64_t sizes[TRAFFIC_SIZES + 1]; /* messages of each class */
    _Atomic int64_t offsets_ns[TRAFFIC_OFFSETS];
    _Atomic uint64_t offset_count; /* ever written */
};

/* Upper bounds of the classes, in bytes: the reference's, which are in kB of 1,000 bytes. */
extern const uint64_t traffic_size_bounds[TRAFFIC_SIZES];

static inline void traffic_add(_Atomic uint64_t *value, uint64_t amount)
{
    /* relaxed load and store: one writer, orders nothing */
    uint64_t now = atomic_load_explicit(value, memory_order_relaxed);
    atomic_store_explicit(value, now + amount, memory_order_relaxed);
}

static inline struct topic_traffic *traffic_of(struct traffic *traffic, const struct topic *topic)
{
    uint32_t last = TRAFFIC_TOPICS_MAX - 1;
    return &traffic->topics[topic->index < last ? topic->index : last];
}

/* A message came in, of whatever kind. */
static inline void traffic_arrived(
        struct traffic *traffic, const struct topic *topic, uint64_t message_bytes)
{
    traffic_add(&traffic_of(traffic, topic)->gross_bytes, message_bytes + topic->name.length);
}

/* It was accepted. */
void traffic_accepted(struct traffic *traffic, const struct topic *topic, uint64_t message_bytes,
        uint64_t payload_bytes);

/* It goes to that many peers. */
static inline void traffic_sent(struct traffic *traffic, const struct topic *topic,
        uint64_t message_bytes, uint64_t peer_count)
{
    uint64_t bytes = (message_bytes + topic->name.length) * peer_count;
    traffic_add(&traffic_of(traffic, topic)->sent_bytes, bytes);
}

/* Its timestamp, which is not 0, is that far ahead of the clock at receipt. */
void traffic_note_offset(struct traffic *traffic, int64_t offset_ns);

/*
 * The median of the last offsets of count lanes; *samples: how many it is made of. 0 without any. Even
 * numbers: the lower one of the two in the middle. Not on a hot path. Thread: any.
 */
int64_t traffic_median_offset(struct traffic *const traffics[], size_t count, size_t *samples);
