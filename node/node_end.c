/* SPDX-License-Identifier: MIT */

/*
 * Before the connections are ended: what was accepted until now is decided, and its messages for peers
 * are given to their streams. Without it the last own messages before a stop would go to nobody.
 */

#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "node/node_private.h"

/*
 * Asked of every lane at once; whoever drops the last reference frees it.
 *
 *   TURN  release decrement of pending -> acquire load: all that the lane had popped is decided.
 */
struct lane_turns {
    atomic_uint references;
    atomic_uint pending;
};

static void unref_turns(struct lane_turns *turns)
{
    if (atomic_fetch_sub_explicit(&turns->references, 1, memory_order_acq_rel) == 1) {
        memory_free(turns);
    }
}

static void pass_over(void *owner, const struct topic *topic, uint64_t peer)
{
    (void)owner;
    (void)topic;
    (void)peer;
}

static void on_turn(void *owner)
{
    struct lane_turns *turns = owner;
    atomic_fetch_sub_explicit(&turns->pending, 1, memory_order_release); /* TURN */
    unref_turns(turns);
}

static void ask_lane(struct node *node, size_t lane, struct lane_turns *turns)
{
    struct lane_event *event = lane_event_create(LANE_EVENT_LIST_MESH, 0, NULL);
    if (event == NULL) {
        on_turn(turns);
        return;
    }
    event->visit = pass_over;
    event->release = on_turn;
    event->owner = turns;
    intake_post_event(&node->intake, lane, event);
}

static bool is_taken(struct node *node, void *context)
{
    size_t depth = 0;
    (void)context;
    for (size_t i = 0; i < node->settings.lane_count; i++) {
        depth += inbox_depth_estimate(node->lanes[i].inbox);
    }
    return depth == 0;
}

static bool is_decided(struct node *node, void *context)
{
    struct lane_turns *turns = context;
    (void)node;
    return atomic_load_explicit(&turns->pending, memory_order_acquire) == 0; /* TURN */
}

static bool is_sent(struct node *node, void *context)
{
    (void)context;
    return node_held(node, LEDGER_STAGE_RELAY_OUT) == 0;
}

static void wait_until(struct node *node, bool (*is_so)(struct node *node, void *context),
        void *context, uint64_t end_ns)
{
    struct timespec slice = {.tv_nsec = NANOSECONDS_PER_MILLISECOND};
    while (!is_so(node, context) && clock_monotonic_ns() < end_ns) {
        nanosleep(&slice, NULL);
    }
}

void node_send_rest(struct node *node)
{
    uint64_t end_ns =
            clock_monotonic_ns() + NODE_SEND_END_MS * (uint64_t)NANOSECONDS_PER_MILLISECOND;
    struct lane_turns *turns = NULL;
    if (node->relay_port.post != NULL) {
        turns = memory_allocate(sizeof(*turns));
    }
    if (turns == NULL) {
        return;
    }
    atomic_init(&turns->pending, (unsigned)node->settings.lane_count);
    atomic_init(&turns->references, (unsigned)node->settings.lane_count + 1);
    wait_until(node, is_taken, NULL, end_ns);
    for (size_t i = 0; i < node->settings.lane_count; i++) {
        ask_lane(node, i, turns);
    }
    wait_until(node, is_decided, turns, end_ns);
    unref_turns(turns);
    wait_until(node, is_sent, NULL, end_ns);
}
