/* SPDX-License-Identifier: MIT */
#include "queues/inbox.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/tsan.h"

/*
 * The queue itself is liburcu's: a push exchanges the tail and then links the item behind the former
 * one. The taker moves all that is there into a batch of its own with two exchanges, and pops from that
 * without touching the pushers' line.
 *
 * Ordering is liburcu's too, made with inline assembly that TSan does not see:
 *
 *   CARGO  push -> pop of the same item. The taker sees the item as it was pushed. Told to TSan with
 *          the item's own address, so that nothing else seems ordered by it.
 *
 * The functions of liburcu-common are called, not inlined: the inline ones would put library code that
 * TSan misjudges into ours.
 */
struct inbox {
    alignas(CACHE_LINE) struct cds_wfcq_tail tail; /* these are written by the pushers */
    atomic_size_t pushes;

    alignas(CACHE_LINE) struct __cds_wfcq_head
            head; /* these by the taker, head also by a push into an
                                                        empty queue */
    atomic_size_t pops;
    atomic_size_t high_water;
    struct __cds_wfcq_head batch_head; /* the taker's own */
    struct cds_wfcq_tail batch_tail;

    struct parking parking;
};

enum status inbox_create(struct inbox **out)
{
    struct inbox *inbox = memory_allocate_aligned(CACHE_LINE, sizeof(*inbox));
    if (inbox == NULL) {
        return STATUS_NO_MEMORY;
    }
    __cds_wfcq_init(&inbox->head, &inbox->tail);
    __cds_wfcq_init(&inbox->batch_head, &inbox->batch_tail);
    atomic_init(&inbox->pushes, 0);
    atomic_init(&inbox->pops, 0);
    atomic_init(&inbox->high_water, 0);
    parking_init(&inbox->parking);
    *out = inbox;
    return STATUS_OK;
}

void inbox_destroy(struct inbox **inbox)
{
    if (*inbox == NULL) {
        return;
    }
    assert(inbox_is_empty(*inbox));
    memory_free(*inbox);
    *inbox = NULL;
}

void inbox_push(struct inbox *inbox, struct inbox_link *link)
{
    /* relaxed: a count orders nothing. Before the push, so that pops never exceed pushes, and on the
     * line that the push takes anyway. */
    atomic_fetch_add_explicit(&inbox->pushes, 1, memory_order_relaxed);
    cds_wfcq_node_init(&link->node);
    TSAN_HAND_OVER(link); /* CARGO */
    cds_wfcq_enqueue(&inbox->head, &inbox->tail, &link->node);
}

void inbox_wake(struct inbox *inbox)
{
    parking_wake(&inbox->parking);
}

/* False when nothing new is there, or its push is half done. */
static bool fetch_batch(struct inbox *inbox)
{
    enum cds_wfcq_ret result = __cds_wfcq_splice_nonblocking(
            &inbox->batch_head, &inbox->batch_tail, &inbox->head, &inbox->tail);
    if (result == CDS_WFCQ_RET_SRC_EMPTY || result == CDS_WFCQ_RET_WOULDBLOCK) {
        return false;
    }
    size_t depth = inbox_depth_estimate(inbox);
    /* relaxed: only the taker writes it, and readers want no more than a number */
    if (depth > atomic_load_explicit(&inbox->high_water, memory_order_relaxed)) {
        atomic_store_explicit(&inbox->high_water, depth, memory_order_relaxed);
    }
    return true;
}

struct inbox_link *inbox_try_pop(struct inbox *inbox)
{
    struct cds_wfcq_node *node =
            __cds_wfcq_dequeue_nonblocking(&inbox->batch_head, &inbox->batch_tail);
    if (node == NULL && fetch_batch(inbox)) {
        node = __cds_wfcq_dequeue_nonblocking(&inbox->batch_head, &inbox->batch_tail);
    }
    if (node == NULL || node == CDS_WFCQ_WOULDBLOCK) {
        return NULL;
    }
    /* relaxed load and store: only the taker writes it, and a count orders nothing */
    size_t pops = atomic_load_explicit(&inbox->pops, memory_order_relaxed);
    atomic_store_explicit(&inbox->pops, pops + 1, memory_order_relaxed);

    struct inbox_link *link =
            (struct inbox_link *)((char *)node - offsetof(struct inbox_link, node));
    TSAN_TAKE_OVER(link); /* CARGO */
    return link;
}

const struct inbox_link *inbox_peek(struct inbox *inbox)
{
    struct cds_wfcq_node *node =
            __cds_wfcq_first_nonblocking(&inbox->batch_head, &inbox->batch_tail);
    if (node == NULL || node == CDS_WFCQ_WOULDBLOCK) {
        return NULL;
    }
    struct inbox_link *link =
            (struct inbox_link *)((char *)node - offsetof(struct inbox_link, node));
    TSAN_TAKE_OVER(link); /* CARGO */
    return link;
}

bool inbox_is_empty(struct inbox *inbox)
{
    return cds_wfcq_empty(&inbox->batch_head, &inbox->batch_tail) &&
           cds_wfcq_empty(&inbox->head, &inbox->tail);
}

size_t inbox_depth_estimate(const struct inbox *inbox)
{
    /* relaxed: an estimate orders nothing, and may see a pop whose push it does not see yet */
    size_t pops = atomic_load_explicit(&inbox->pops, memory_order_relaxed);
    size_t pushes = atomic_load_explicit(&inbox->pushes, memory_order_relaxed);
    return pushes > pops ? pushes - pops : 0;
}

size_t inbox_high_water(const struct inbox *inbox)
{
    /* relaxed: a number that orders nothing */
    return atomic_load_explicit(&inbox->high_water, memory_order_relaxed);
}

struct parking *inbox_parking(struct inbox *inbox)
{
    return &inbox->parking;
}
