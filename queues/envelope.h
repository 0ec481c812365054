/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A decoded, hashed and validated message, immutable from the moment it is published and shared by
 * reference with every stage, subscriber and peer.
 *
 * Ownership:  counted. A ring slot, a table row and a reader that keeps it own one reference each.
 * Lifetime:   an envelope that was never in a shared table is freed by the last unref. One that was
 *             (envelope_mark_shared) goes through RCU: a reader that finds it in the table inside a
 *             read-side section takes its reference with envelope_try_ref; the table's writer unlinks
 *             it first and drops the table's reference after.
 *             The first message of a frame has its envelope inside the frame, the others have one of
 *             their own.
 * Thread:     ref, try_ref and unref on any (unref of a shared one: RCU-registered, or none).
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/rcu.h"
#include "base/span.h"
#include "queues/frame.h"
#include "queues/topic.h"

enum {
    MESSAGE_HASH_BYTES = 32,
    MESSAGE_ID_BYTES = 32
};

struct envelope {
    /* constant once published */
    struct frame *frame;       /* one reference */
    const struct topic *topic; /* the interned pubsub topic */
    struct span message;       /* the serialised WakuMessage as received */
    struct span payload;       /* these three point into message */
    struct span content_topic;
    struct span meta;
    int64_t timestamp_ns; /* the sender's, 0 when absent */
    int64_t received_ns;  /* wall clock at receipt */
    uint64_t received_monotonic_ns;
    union {
        struct {
            uint64_t connection; /* of the sender, 0 for local */
            void *completion;    /* see struct frame_part */
        };
        struct rcu_head
                reclaim; /* from the last reference on: only holders of one read the others */
    };
    uint8_t hash[MESSAGE_HASH_BYTES];
    uint8_t id[MESSAGE_ID_BYTES];
    uint32_t version;
    enum message_origin origin;
    bool is_ephemeral;
    bool is_timestamp_in_range; /* the verdict taken at receipt */

    /* written by whoever holds references; a cache line of their own did not make a run faster */
    atomic_bool is_shared;
    bool is_inside; /* its frame; constant */
    atomic_uint references;
};

/*
 * One reference, all constant fields zero but frame, which takes over the caller's reference. NULL when
 * there is no memory; the frame is then still the caller's.
 */
MUST_USE struct envelope *envelope_create(struct frame *CONSUMED frame);

/*
 * The same without an allocation, once a frame: for its creator, or for who has its first part
 * (is_embedded).
 */
struct envelope *envelope_create_inside(struct frame *CONSUMED frame);

void envelope_ref(struct envelope *envelope);

/* count more references at once: one for each ring it will be pushed to. */
void envelope_ref_many(struct envelope *envelope, unsigned count);

/* False when the last reference is already gone. Only inside a read-side section. */
MUST_USE bool envelope_try_ref(struct envelope *envelope);
void envelope_unref(struct envelope *CONSUMED envelope);

/* Before it is linked into a table that other threads read. Thread: one that holds a reference. */
void envelope_mark_shared(struct envelope *envelope);

/*
 * An envelope whose message fills less than half of its frame pins the rest; this makes one with a
 * frame of its own (a counted copy) and drops the caller's reference to the old one. Returns the same
 * envelope when it is not worth it or there is no memory. The new frame is charged to no budget: the
 * cap of whoever keeps it covers it.
 */
MUST_USE struct envelope *envelope_compact(struct envelope *CONSUMED envelope);

/* What itself takes beside its frame. */
static inline size_t envelope_own_bytes(const struct envelope *envelope)
{
    return envelope->is_inside ? 0 : sizeof(*envelope);
}

/* What keeping it costs: its own bytes, or the whole frame where it is the smaller part of it. */
size_t envelope_pinned_bytes(const struct envelope *envelope);

/* Whether the archive and the sync set may take it. */
static inline bool envelope_is_archivable(const struct envelope *envelope)
{
    return !envelope->is_ephemeral && envelope->is_timestamp_in_range;
}
