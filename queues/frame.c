/* SPDX-License-Identifier: MIT */
#include "queues/frame.h"

#include <assert.h>
#include <stdalign.h>

#include "base/memory.h"
#include "base/metrics.h"
#include "queues/envelope.h"
#include "queues/frame_heap.h"
#include "queues/poison.h"

/*
 * holds counts references in its lower half and, of them, those that are on the way to a lane in its
 * upper half. Both change in one step, so that the one who took the last carrier knows it. Nothing of
 * the frame is touched after that step by who still has no reference.
 *
 * Ordering:
 *
 *   LAST  release decrement of references -> acquire decrement that finds the last one. Whoever
 *         frees has seen every other holder finish with the bytes.
 */
#define CARRIED    ((UINT64_C(1) << 32) + 1)
#define REFERENCES UINT64_C(0xffffffff)

struct frame {
    _Atomic uint64_t holds;
    bool is_in_heap;                       /* of large frames; else in malloc's */
    bool has_part;                         /* the embedded part is taken; creator only */
    _Atomic(struct frame_budget *) budget; /* NULL when nothing is charged or it was given back */
    struct frame_share *share;             /* constant once it is set; NULL: no peer's */
    size_t length;
    struct frame_part first;
    struct envelope envelope; /* the first part's */
    alignas(max_align_t) uint8_t bytes[];
};

static struct frame *allocate(size_t whole)
{
    struct frame *frame = NULL;
    struct frame_heap *heap = whole >= FRAME_HEAP_MIN_BYTES ? frame_heap_of_process() : NULL;
    if (heap != NULL) {
        frame = frame_heap_try_allocate(heap, whole);
    }
    bool is_in_heap = frame != NULL;
    if (!is_in_heap) {
        frame = memory_allocate(whole);
    }
    if (frame != NULL) {
        frame->is_in_heap = is_in_heap;
    }
    return frame;
}

struct frame *frame_try_create(
        struct frame_budget *budget, enum frame_budget_class class, size_t length)
{
    size_t whole = frame_charge(length);
    if (whole > PTRDIFF_MAX || (budget != NULL && !frame_budget_try_charge(budget, class, whole))) {
        return NULL;
    }
    struct frame *frame = allocate(whole);
    if (frame == NULL) {
        if (budget != NULL) {
            frame_budget_release(budget, whole);
        }
        return NULL;
    }
    atomic_init(&frame->holds, 1);
    atomic_init(&frame->budget, budget);
    frame->share = NULL;
    frame->length = length;
    frame->has_part = false;
    metrics_add(METRIC_FRAMES, 1);
    return frame;
}

/* The creator counts as a carrier until it has posted everything. */
void frame_set_share(struct frame *frame, struct frame_share *share)
{
    frame->share = share;
    /* relaxed: nobody else has the frame yet */
    atomic_store_explicit(&frame->holds, CARRIED, memory_order_relaxed);
}

uint8_t *frame_bytes(struct frame *frame)
{
    return frame->bytes;
}

size_t frame_length(const struct frame *frame)
{
    return frame->length;
}

size_t frame_charge(size_t length)
{
    return length > SIZE_MAX - sizeof(struct frame) ? SIZE_MAX : length + sizeof(struct frame);
}

void frame_uncharge(struct frame *frame)
{
    /* relaxed: the exchange alone decides who gives the charge back, it guards no other memory */
    struct frame_budget *budget =
            atomic_exchange_explicit(&frame->budget, NULL, memory_order_relaxed);
    if (budget != NULL) {
        frame_budget_release(budget, frame_charge(frame->length));
    }
}

static void add_hold(struct frame *frame, uint64_t hold)
{
    /* relaxed: the caller's own reference keeps the frame alive and made it visible */
    uint64_t before = atomic_fetch_add_explicit(&frame->holds, hold, memory_order_relaxed);
    assert((before & REFERENCES) > 0);
}

static void free_frame(struct frame *frame)
{
    frame_uncharge(frame);
    size_t whole = frame_charge(frame->length);
    bool is_in_heap = frame->is_in_heap;
    poison(frame, whole);
    if (is_in_heap) {
        frame_heap_free(frame_heap_of_process(), frame, whole);
    } else {
        memory_free(frame);
    }
}

static void drop_hold(struct frame *frame, uint64_t hold)
{
    struct frame_share *share = frame->share;
    size_t charge = frame_charge(frame->length);
    uint64_t before = atomic_fetch_sub_explicit(&frame->holds, hold, memory_order_acq_rel);
    assert((before & REFERENCES) > 0);
    bool is_last = (before & REFERENCES) == 1; /* LAST */
    bool was_carried = before > REFERENCES;
    bool is_carried = before - hold > REFERENCES;
    if (share != NULL && was_carried && (!is_carried || is_last)) {
        frame_share_release(share, charge);
    }
    if (is_last) {
        free_frame(frame);
    }
}

void frame_ref(struct frame *frame)
{
    add_hold(frame, 1);
}

void frame_unref(struct frame *frame)
{
    drop_hold(frame, 1);
}

void frame_ref_carried(struct frame *frame)
{
    add_hold(frame, CARRIED);
}

void frame_unref_carried(struct frame *frame)
{
    drop_hold(frame, CARRIED);
}

void frame_unref_posted(struct frame *frame)
{
    drop_hold(frame, frame->share != NULL ? CARRIED : 1);
}

struct frame_part *frame_add_part(struct frame *frame)
{
    bool is_embedded = !frame->has_part;
    struct frame_part *part = is_embedded ? &frame->first : memory_allocate(sizeof(*part));
    if (part == NULL) {
        return NULL;
    }
    frame->has_part = true;
    frame_ref_carried(frame);
    *part = (struct frame_part){.frame = frame, .is_embedded = is_embedded};
    return part;
}

struct envelope *frame_envelope_room(struct frame *frame)
{
    return &frame->envelope;
}

void frame_part_destroy(struct frame_part *part)
{
    struct frame *frame = part->frame;
    memory_free(part->fields);
    if (!part->is_embedded) {
        memory_free(part);
    }
    frame_unref_carried(frame);
}
