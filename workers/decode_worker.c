/* SPDX-License-Identifier: MIT */
#include "workers/decode_worker.h"

#include <time.h>

#include "base/clock.h"

enum {
    BATCH_PARTS = 32, /* parts a turn at most: what is pushed is seen after that many */
    BATCH_BYTES =
            512 * 1024, /* and after that many bytes, so that large messages are not held up */
    EXPIRY_PERIOD_NS = 100 * NANOSECONDS_PER_MILLISECOND,
    WAIT_NS = 200 * 1000,
    WAITS_EARNED = 4,
    PATIENCE_MAX = 1000 /* waits */
};

/* Messages of this turn that wait to be hashed beside each other. */
struct waiting {
    size_t count;
    struct frame_part *parts[LANE_WAITING_MAX];
    struct lane_pending pending[LANE_WAITING_MAX];
};

/* Parts of this turn whose way ended here. */
struct turn_count {
    size_t taken;
    size_t bytes;
    size_t finished;
};

/* To how many peers the message goes. What came in by sync or resume is not relayed. */
static size_t relay(struct decode_worker *worker, const struct frame_part *part,
        const struct lane_decision *decision)
{
    bool is_live = part->origin != ORIGIN_SYNC && part->origin != ORIGIN_RESUME;
    if (worker->relay == NULL || !is_live) {
        return 0;
    }
    if (decision->verdict == LANE_NEW) {
        size_t peer_count = relay_lane_accepted(worker->relay, decision->envelope, worker->turn_ns);
        traffic_sent(lane_traffic(worker->lane), part->topic, part->message.length, peer_count);
        metrics_add(METRIC_PUBLISH_WITHOUT_PEERS, part->origin != ORIGIN_MESH && peer_count == 0);
        return peer_count;
    }
    if (decision->verdict == LANE_REFUSED) {
        relay_lane_refused(worker->relay, part, decision->reason, worker->turn_ns);
    }
    return 0;
}

static void tell(const struct decode_worker *worker, const struct frame_part *part,
        const struct lane_decision *decision, size_t peer_count)
{
    if (part->completion == NULL) {
        return;
    }
    if (part->origin == ORIGIN_LIGHTPUSH && worker->lightpush != NULL) {
        worker->lightpush(worker->lightpush_context, part->completion, decision, peer_count);
    } else if (part->origin == ORIGIN_REST && worker->rest != NULL) {
        worker->rest(NULL, part->completion, decision, peer_count);
    } else if (worker->verdict != NULL) {
        worker->verdict(worker->verdict_context, part->completion, decision, peer_count);
    }
}

static void settle(struct decode_worker *worker, struct frame_part *part,
        const struct lane_decision *decision, struct turn_count *count)
{
    size_t peer_count = relay(worker, part, decision);
    bool is_for_stages = decision->envelope != NULL && !part->is_fanout;
    tell(worker, part, decision, peer_count);
    frame_part_destroy(part);
    if (is_for_stages) {
        dispatcher_publish(worker->dispatcher, decision->envelope);
    } else if (decision->envelope != NULL) {
        metrics_add(METRIC_PUBLISH_FANOUT, 1);
        envelope_unref(decision->envelope);
    }
    count->finished += !is_for_stages;
}

static void finish(struct decode_worker *worker, struct frame_part *part,
        struct lane_pending *pending, struct turn_count *count)
{
    struct lane_decision decision = lane_finish(worker->lane, pending);
    settle(worker, part, &decision, count);
}

static void finish_waiting(
        struct decode_worker *worker, struct waiting *waiting, struct turn_count *count)
{
    lane_hash_all(waiting->pending, waiting->count);
    for (size_t i = 0; i < waiting->count; i++) {
        finish(worker, waiting->parts[i], &waiting->pending[i], count);
    }
    waiting->count = 0;
}

/* Those that wait are decided first: one may be the same message, of which the other is a copy. */
static bool is_likely_copy(const struct waiting *waiting, const struct frame_part *part)
{
    for (size_t i = 0; i < waiting->count; i++) {
        if (waiting->parts[i]->topic == part->topic &&
                span_equal(waiting->parts[i]->message, part->message)) {
            return true;
        }
    }
    return false;
}

static void take(struct decode_worker *worker, struct frame_part *part, struct waiting *waiting,
        struct turn_count *count)
{
    struct lane_decision decision;
    struct lane_pending pending;
    if (is_likely_copy(waiting, part)) {
        finish_waiting(worker, waiting, count);
    }
    if (lane_begin(worker->lane, part, &decision, &pending)) {
        settle(worker, part, &decision, count);
    } else if (!lane_can_wait(&pending)) {
        lane_hash(&pending);
        finish(worker, part, &pending, count);
    } else {
        waiting->parts[waiting->count] = part;
        waiting->pending[waiting->count] = pending;
        waiting->count++;
        if (waiting->count == LANE_WAITING_MAX) {
            finish_waiting(worker, waiting, count);
        }
    }
}

static void expire_when_due(struct decode_worker *worker, uint64_t now_ns)
{
    if (now_ns < worker->next_expiry_ns) {
        return;
    }
    bool has_more = lane_expire(worker->lane, now_ns);
    worker->next_expiry_ns = has_more ? now_ns : now_ns + EXPIRY_PERIOD_NS;
}

/*
 * What an io thread told before it posted a part is in the lane's events by the time the part is popped:
 * a peer that joined, subscribed or grafted before the message came must be known when it is sent on.
 */
static void hear_before_part(struct decode_worker *worker)
{
    if (worker->relay != NULL && relay_lane_has_work(worker->relay)) {
        (void)relay_lane_turn(worker->relay, worker->turn_ns);
    }
}

/*
 * A lane that is faster than archive and spill thread, or takes the processor from them, waits a
 * moment before a message would be lost to the archive. Each turn that finds room earns some such waits:
 * a lane is slowed down to some 30,000 messages a second and no further, and an archive that is stuck
 * holds up nothing for longer than all of them.
 */
static bool may_take(struct decode_worker *worker)
{
    if (!dispatcher_is_archive_full(worker->dispatcher, BATCH_PARTS)) {
        worker->patience += worker->patience < PATIENCE_MAX ? WAITS_EARNED : 0;
        return true;
    }
    if (worker->patience == 0) {
        return true;
    }
    struct timespec moment = {.tv_nsec = WAIT_NS};
    worker->patience--;
    metrics_add(METRIC_ARCHIVE_WAITS, 1);
    (void)nanosleep(&moment, NULL);
    return false; /* the next turn looks again */
}

/* Takes a batch of parts; what came of them is in *count. */
static void take_parts(struct decode_worker *worker, struct turn_count *count)
{
    struct waiting waiting;
    waiting.count = 0;
    if (inbox_is_empty(worker->inbox) || !may_take(worker)) {
        return;
    }
    while (count->taken < BATCH_PARTS && count->bytes < BATCH_BYTES) {
        struct frame_part *part = frame_part_of(inbox_try_pop(worker->inbox));
        if (part == NULL) {
            break;
        }
        hear_before_part(worker);
        if (count->taken == 0) {
            /* Before the part is looked at: it may repeat what has just left the window. */
            expire_when_due(worker, part->received_monotonic_ns);
        }
        count->taken++;
        count->bytes += part->message.length;
        take(worker, part, &waiting, count);
    }
    if (count->taken > 0) {
        finish_waiting(worker, &waiting, count);
        dispatcher_flush(worker->dispatcher);
    }
}

static size_t turn(void *context)
{
    struct decode_worker *worker = context;
    struct turn_count count = {0};
    size_t told = 0;
    if (worker->relay != NULL) {
        worker->turn_ns = clock_monotonic_ns();
        told = relay_lane_turn(worker->relay, worker->turn_ns);
    }
    take_parts(worker, &count);
    if (worker->relay != NULL) {
        relay_lane_flush(worker->relay);
    }
    if (count.finished > 0) {
        progress_add(worker->progress, worker->progress_slot, count.finished);
    }
    if (count.taken > 0) {
        progress_wake(worker->progress);
    }
    return count.taken + told;
}

static bool has_work(void *context)
{
    struct decode_worker *worker = context;
    return !inbox_is_empty(worker->inbox) ||
           (worker->relay != NULL && relay_lane_has_work(worker->relay));
}

static uint64_t deadline(void *context)
{
    struct decode_worker *worker = context;
    return worker->relay != NULL ? relay_lane_deadline(worker->relay) : UINT64_MAX;
}

struct worker_role decode_worker_role(struct decode_worker *worker, const char *name)
{
    return (struct worker_role){
            .name = name,
            .context = worker,
            .turn = turn,
            .has_work = has_work,
            .deadline = deadline,
            .parking = inbox_parking(worker->inbox),
    };
}
