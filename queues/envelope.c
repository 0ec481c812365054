/* SPDX-License-Identifier: MIT */
#include "queues/envelope.h"

#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "base/metrics.h"

#include "queues/poison.h"

/*
 * A count of zero is final: it is reached only after the tables' writers have unlinked the envelope and
 * dropped their references, and try_ref never raises it again. RCU is needed only for readers that
 * found the envelope in a table before it was unlinked and have not tried their try_ref yet.
 *
 * Ordering:
 *
 *   LAST  release decrement of references -> acquire decrement that finds the last one. Whoever
 *         frees has seen every other holder finish, and a mark that one of them set.
 */

static struct envelope *init(struct envelope *envelope, struct frame *frame, bool is_inside)
{
    memset(envelope, 0, offsetof(struct envelope, is_shared));
    envelope->frame = frame;
    envelope->is_inside = is_inside;
    atomic_init(&envelope->references, 1);
    atomic_init(&envelope->is_shared, false);
    metrics_add(METRIC_ENVELOPES, 1);
    return envelope;
}

struct envelope *envelope_create(struct frame *frame)
{
    struct envelope *envelope = memory_allocate(sizeof(*envelope));
    return envelope == NULL ? NULL : init(envelope, frame, false);
}

struct envelope *envelope_create_inside(struct frame *frame)
{
    return init(frame_envelope_room(frame), frame, true);
}

static void free_envelope(struct envelope *envelope)
{
    struct frame *frame = envelope->frame;
    bool is_inside = envelope->is_inside;
    poison(envelope, sizeof(*envelope));
    if (!is_inside) {
        memory_free(envelope);
    }
    frame_unref(frame);
    metrics_add(METRIC_ENVELOPES_FREED, 1);
}

static void free_retired(struct rcu_head *head)
{
    rcu_reclaim_begin();
    free_envelope((struct envelope *)((char *)head - offsetof(struct envelope, reclaim)));
}

void envelope_ref(struct envelope *envelope)
{
    envelope_ref_many(envelope, 1);
}

void envelope_ref_many(struct envelope *envelope, unsigned count)
{
    /* relaxed: the caller's own reference keeps the envelope alive and made it visible */
    unsigned before = atomic_fetch_add_explicit(&envelope->references, count, memory_order_relaxed);
    assert(before > 0 && before <= UINT_MAX - count);
}

bool envelope_try_ref(struct envelope *envelope)
{
    /* relaxed: the table made the envelope visible, and the read-side section keeps it allocated */
    unsigned now = atomic_load_explicit(&envelope->references, memory_order_relaxed);
    /* Ends because a failure means that another thread's reference came or went. */
    while (now != 0) {
        if (atomic_compare_exchange_weak_explicit(&envelope->references, &now, now + 1,
                    memory_order_relaxed, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

void envelope_unref(struct envelope *envelope)
{
    unsigned before = atomic_fetch_sub_explicit(&envelope->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1) { /* LAST */
        return;
    }
    /* relaxed: ordered by LAST */
    if (atomic_load_explicit(&envelope->is_shared, memory_order_relaxed)) {
        rcu_retire(&envelope->reclaim, free_retired);
    } else {
        free_envelope(envelope);
    }
}

void envelope_mark_shared(struct envelope *envelope)
{
    /* relaxed: read only after the caller's reference was dropped (LAST) */
    atomic_store_explicit(&envelope->is_shared, true, memory_order_relaxed);
}

/* The same bytes of the old message, in the new one. */
static struct span moved(struct span part, struct span old_message, struct span new_message)
{
    if (part.length == 0) {
        return (struct span){0};
    }
    return span_of(new_message.bytes + (part.bytes - old_message.bytes), part.length);
}

static struct envelope *copy_into(struct frame *frame, const struct envelope *old)
{
    struct envelope *envelope = envelope_create_inside(frame);
    memcpy(envelope, old, offsetof(struct envelope, is_shared));
    memory_copy_message(frame_bytes(frame), old->message.bytes, old->message.length);
    struct span message = span_of(frame_bytes(frame), old->message.length);
    envelope->frame = frame;
    envelope->message = message;
    envelope->payload = moved(old->payload, old->message, message);
    envelope->content_topic = moved(old->content_topic, old->message, message);
    envelope->meta = moved(old->meta, old->message, message);
    return envelope;
}

struct envelope *envelope_compact(struct envelope *envelope)
{
    size_t frame_size = frame_length(envelope->frame);
    if (envelope->message.length >= frame_size - frame_size / 2) {
        return envelope;
    }
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, envelope->message.length);
    if (frame == NULL) {
        return envelope;
    }
    struct envelope *compacted = copy_into(frame, envelope);
    envelope_unref(envelope);
    return compacted;
}

size_t envelope_pinned_bytes(const struct envelope *envelope)
{
    size_t frame = frame_length(envelope->frame);
    size_t own = envelope->message.length;
    return frame_charge(own * 2 < frame ? frame : own) + envelope_own_bytes(envelope);
}
