/* SPDX-License-Identifier: MIT */
#include "workers/decode_worker.h"

#include <time.h>

#include "base/clock.h"
#include "hash/fast_key.h"

enum {
    BATCH_PARTS = 32, /* parts a turn at most: what is pushed is seen after that many */
    BATCH_BYTES =
            512 * 1024, /* and after that many bytes, so that large messages are not held up */
    WAKE_PARTS = 16,    /* while more are there, stages are woken for so many */
    WAKE_BYTES = 2 * BATCH_BYTES, /* or for so many bytes: half a millisecond of hashing */
    EXPIRY_PERIOD_NS = 100 * NANOSECONDS_PER_MILLISECOND,
    WAIT_NS = 200 * 1000,
    WAITS_EARNED = 4,
    PATIENCE_MAX = 1000 /* waits */
};

struct turn_count {
    size_t taken;
    size_t bytes;
    size_t settled;
    size_t finished; /* of these, whose way ended here */
    bool has_waited; /* for the archive: the parts are still there */
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

/* What goes to nobody is on its way no longer. */
static void end_pace(
        const struct decode_worker *worker, const struct frame_part *part, size_t peer_count)
{
    if (worker->pace != NULL && peer_count == 0 && message_origin_is_publisher(part->origin)) {
        relay_pace_remove(worker->pace, part->message.length);
    }
}

static void settle(struct decode_worker *worker, struct frame_part *part,
        const struct lane_decision *decision, struct turn_count *count)
{
    size_t peer_count = relay(worker, part, decision);
    bool is_for_stages = decision->envelope != NULL && !part->is_fanout;
    end_pace(worker, part, peer_count);
    tell(worker, part, decision, peer_count);
    frame_part_destroy(part);
    if (is_for_stages) {
        dispatcher_publish(worker->dispatcher, decision->envelope);
    } else if (decision->envelope != NULL) {
        metrics_add(METRIC_PUBLISH_FANOUT, 1);
        envelope_unref(decision->envelope);
    }
    count->settled++;
    count->finished += !is_for_stages;
}

static void finish(struct decode_worker *worker, struct frame_part *part,
        struct lane_pending *pending, struct turn_count *count)
{
    struct lane_decision decision = lane_finish(worker->lane, pending);
    settle(worker, part, &decision, count);
}

static size_t place_of(size_t number)
{
    return number % DECODE_WAITING_MAX;
}

static void finish_oldest(struct decode_worker *worker, struct turn_count *count)
{
    struct decode_waiting *waiting = &worker->waiting;
    size_t place = place_of(waiting->first);
    lane_hash_end(worker->lane, &waiting->pending[place]);
    waiting->first++;
    waiting->count--;
    finish(worker, waiting->parts[place], &waiting->pending[place], count);
}

static void finish_hashed(struct decode_worker *worker, struct turn_count *count)
{
    struct decode_waiting *waiting = &worker->waiting;
    while (waiting->count > 0 && lane_is_hashed(&waiting->pending[place_of(waiting->first)])) {
        finish_oldest(worker, count);
    }
}

static void finish_waiting(struct decode_worker *worker, struct turn_count *count)
{
    while (worker->waiting.count > 0) {
        finish_oldest(worker, count);
    }
}

/* Those that wait are decided first: one may be the same message, of which the other is a copy. */
static bool is_likely_copy(const struct decode_waiting *waiting, const struct frame_part *part)
{
    for (size_t i = 0; i < waiting->count; i++) {
        const struct frame_part *other = waiting->parts[place_of(waiting->first + i)];
        if (other->topic == part->topic && span_equal(other->message, part->message)) {
            return true;
        }
    }
    return false;
}

/* While this message is hashed, what will be read first of the next one comes into the cache. */
static void prefetch_next(struct decode_worker *worker)
{
    const struct inbox_link *link = inbox_peek(worker->inbox);
    if (link != NULL) {
        const struct frame_part *part =
                (const struct frame_part *)((const char *)link - offsetof(struct frame_part, link));
        fast_key_prefetch(part->message);
    }
}

static void take(struct decode_worker *worker, struct frame_part *part, struct turn_count *count)
{
    struct decode_waiting *waiting = &worker->waiting;
    struct lane_decision decision;
    if (is_likely_copy(waiting, part)) {
        finish_waiting(worker, count);
    }
    if (waiting->count == DECODE_WAITING_MAX) {
        finish_oldest(worker, count);
    }
    size_t place = place_of(waiting->first + waiting->count);
    struct lane_pending *pending = &waiting->pending[place];
    if (lane_begin(worker->lane, part, &decision, pending)) {
        settle(worker, part, &decision, count);
    } else if (lane_can_wait(pending)) {
        waiting->parts[place] = part;
        waiting->count++;
        prefetch_next(worker);
        lane_hash_start(worker->lane, pending);
        finish_hashed(worker, count);
    } else {
        finish_waiting(worker, count);
        prefetch_next(worker);
        lane_hash(pending);
        finish(worker, part, pending, count);
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
    if (!dispatcher_is_archive_full(worker->dispatcher, BATCH_PARTS + DECODE_WAITING_MAX)) {
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

static void take_batch(struct decode_worker *worker, struct turn_count *count)
{
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
        take(worker, part, count);
    }
}

/*
 * Takes a batch of parts; what came of them is in *count. While more are there, what is hashed by half
 * goes on in the next turn, beside the hash of the next message, and the stages are woken less often:
 * to wake four threads takes as long as to hash 40 KB.
 */
static void take_parts(struct decode_worker *worker, struct turn_count *count)
{
    if (!inbox_is_empty(worker->inbox)) {
        count->has_waited = !may_take(worker);
    }
    if (!count->has_waited) {
        take_batch(worker, count);
    }
    bool is_last = count->taken == 0 || inbox_is_empty(worker->inbox);
    if (is_last) {
        finish_waiting(worker, count);
    }
    worker->unwoken_parts += count->settled;
    worker->unwoken_bytes += count->bytes;
    if (is_last || worker->unwoken_parts >= WAKE_PARTS || worker->unwoken_bytes >= WAKE_BYTES) {
        dispatcher_flush(worker->dispatcher);
        worker->unwoken_parts = 0;
        worker->unwoken_bytes = 0;
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
    if (count.settled > 0) {
        progress_wake(worker->progress);
    }
    /* A turn that waited was none without work: a thread that is to end would leave the parts there. */
    return (count.taken > 0 ? count.taken : count.settled) + count.has_waited + told;
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
