/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The bytes of one RPC as received, shared by every message that it carries, and the parts that an
 * io thread posts to the lanes: one a message.
 *
 * Ownership:  a frame is counted; each part and each envelope holds one reference. The bytes are
 *             writable only for its creator, until the first part is pushed.
 * Thread:     ref and unref on any; the last unref releases the charge and frees.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "queues/frame_budget.h"
#include "queues/frame_share.h"
#include "queues/inbox.h"

struct topic;
struct frame;
struct envelope;

/* Where a message came in; it decides the verdicts (see ARCHITECTURE.md, "One way in"). */
enum message_origin {
    ORIGIN_MESH,
    ORIGIN_LIGHTPUSH,
    ORIGIN_REST,
    ORIGIN_API,
    ORIGIN_SYNC,
    ORIGIN_RESUME
};

/* Of somebody here, who can be told that it has to wait; not of the network or of another node's archive. */
static inline bool message_origin_is_publisher(enum message_origin origin)
{
    return origin == ORIGIN_LIGHTPUSH || origin == ORIGIN_REST || origin == ORIGIN_API;
}

/* One message of a frame on its way to a lane. */
struct frame_part {
    struct inbox_link link;
    struct frame *frame;       /* one reference */
    const struct topic *topic; /* never NULL */
    struct span message;       /* the serialised WakuMessage, inside the frame */
    int64_t received_ns;       /* wall clock at receipt, nanoseconds since 1970 */
    uint64_t received_monotonic_ns;
    uint64_t connection; /* of the sender, 0 for local */
    void *completion;    /* what a local publisher waits on, NULL otherwise */
    void *fields;        /* what a local publisher has encoded, owned; NULL: to be decoded */
    enum message_origin origin;
    bool has_signed_fields; /* from, seqno, signature or key is present */
    bool is_fanout;         /* of a topic that the node takes no part in: for its peers only */
    bool is_embedded;       /* the first part of a frame lives inside it */
};

/*
 * A frame with room for length bytes and one reference, its charge of class taken from budget (budget
 * NULL: none). NULL when there is no credit or no memory. What is charged is length plus the frame's
 * own size.
 */
MUST_USE struct frame *frame_try_create(
        struct frame_budget *budget, enum frame_budget_class class, size_t length);

/*
 * The frame's charge counts in share, to which it was charged before, until all parts and carriers of
 * it are gone. Thread: its creator, before the first part.
 */
void frame_set_share(struct frame *frame, struct frame_share *share);

/* Aligned for any type. */
uint8_t *frame_bytes(struct frame *frame);
size_t frame_length(const struct frame *frame);

/* What is charged for a frame of that length, the envelope inside it included. */
size_t frame_charge(size_t length);

/*
 * Gives the charge back before the frame is gone: for whoever keeps it under a cap of its own (memory
 * archive, message cache), so that what is kept does not stop what arrives. Later calls do nothing.
 * Thread: any that holds a reference.
 */
void frame_uncharge(struct frame *frame);

void frame_ref(struct frame *frame);
void frame_unref(struct frame *CONSUMED frame);

/* A reference of somebody on the way to a lane, as parts are: the share is charged meanwhile. */
void frame_ref_carried(struct frame *frame);
void frame_unref_carried(struct frame *CONSUMED frame);

/* The creator's reference, once all parts and carriers are made. */
void frame_unref_posted(struct frame *CONSUMED frame);

/*
 * A part of frame, holding a reference of its own; all other fields are the caller's to fill. The
 * first costs no allocation. NULL when there is no memory. Thread: the frame's creator.
 */
MUST_USE struct frame_part *frame_add_part(struct frame *frame);

/*
 * Where one envelope of the frame can be without an allocation of its own: for envelope_create_inside
 * only.
 */
struct envelope *frame_envelope_room(struct frame *frame);

/* Drops the part and its reference. Thread: whoever popped it. */
void frame_part_destroy(struct frame_part *CONSUMED part);

static inline struct frame_part *frame_part_of(struct inbox_link *link)
{
    return link == NULL ? NULL
                        : (struct frame_part *)((char *)link - offsetof(struct frame_part, link));
}
