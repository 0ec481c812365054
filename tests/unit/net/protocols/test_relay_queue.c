/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <string.h>

#include "base/rcu.h"
#include "net/protocols/relay_queue.h"
#include "tests/support/cmocka.h"

enum {
    MESSAGE_BYTES = 1000
};

static const struct topic topic = {.name = {(const uint8_t *)"t", 1}};
static struct relay_budget budget;
static _Atomic size_t held;
static const struct relay_queue_limits limits = {.message_bytes_max = 5 * 1100,
        .control_bytes_max = 300,
        .age_max_ns = 100,
        .reasons = &relay_queue_reasons_of_relay,
        .held = &held};

static struct relay_queue make_queue(size_t budget_bytes)
{
    struct relay_queue queue;
    atomic_init(&budget.bytes, 0);
    atomic_init(&held, 0);
    budget.bytes_max = budget_bytes;
    relay_queue_init(&queue, &limits, &budget);
    return queue;
}

/* connection tells tickets apart. */
static struct relay_ticket *message(size_t length, uint64_t connection, uint64_t made_ns)
{
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, length);
    assert_non_null(frame);
    memset(frame_bytes(frame), 0, length);
    struct envelope *envelope = envelope_create(frame);
    assert_non_null(envelope);
    envelope->topic = &topic;
    envelope->message = span_of(frame_bytes(frame), length);
    struct relay_parcel *parcel = relay_parcel_of_message(envelope, &connection, 1, made_ns);
    assert_non_null(parcel);
    envelope_unref(envelope);
    return &parcel->tickets[0];
}

static struct relay_ticket *control(uint64_t connection)
{
    struct gossip_outgoing rpc = {.graft = &topic.name, .graft_count = 1};
    struct relay_parcel *parcel = relay_parcel_of_control(&rpc, &connection, 1, 0);
    assert_non_null(parcel);
    return &parcel->tickets[0];
}

/* 0: the queue is empty. */
static uint64_t pop(struct relay_queue *queue, uint64_t now_ns)
{
    struct relay_ticket *ticket = relay_queue_try_pop(queue, now_ns);
    if (ticket == NULL) {
        return 0;
    }
    uint64_t connection = ticket->connection;
    relay_parcel_unref(ticket->parcel);
    return connection;
}

static uint64_t counted(enum metric metric)
{
    return metrics_sum(NULL, metric);
}

static void gives_control_before_messages_and_each_in_order(void **state)
{
    (void)state;
    struct relay_queue queue = make_queue(1 << 20);
    relay_queue_push(&queue, message(MESSAGE_BYTES, 1, 0), 0);
    relay_queue_push(&queue, control(2), 0);
    relay_queue_push(&queue, message(MESSAGE_BYTES, 3, 0), 0);
    relay_queue_push(&queue, control(4), 0);
    assert_int_equal(pop(&queue, 0), 2);
    assert_int_equal(pop(&queue, 0), 4);
    assert_int_equal(pop(&queue, 0), 1);
    assert_int_equal(pop(&queue, 0), 3);
    assert_int_equal(pop(&queue, 0), 0);
    assert_true(relay_queue_is_empty(&queue));
    assert_int_equal(atomic_load(&budget.bytes), 0);
    assert_int_equal(atomic_load(&held), 0);
}

static void drops_the_oldest_messages_above_its_bytes(void **state)
{
    (void)state;
    struct relay_queue queue = make_queue(1 << 20);
    uint64_t before = counted((enum metric)LEDGER_RELAY_OUT_QUEUE_FULL);
    for (uint64_t i = 1; i <= 8; i++) {
        relay_queue_push(&queue, message(MESSAGE_BYTES, i, 0), 0);
        assert_true(queue.messages.bytes <= limits.message_bytes_max);
    }
    assert_int_equal(counted((enum metric)LEDGER_RELAY_OUT_QUEUE_FULL) - before, 3);
    assert_int_equal(queue.dropped, 3);
    for (uint64_t i = 4; i <= 8; i++) {
        assert_int_equal(pop(&queue, 0), i);
    }
    assert_int_equal(pop(&queue, 0), 0);
}

static void refuses_a_message_that_is_larger_than_the_queue(void **state)
{
    (void)state;
    struct relay_queue queue = make_queue(1 << 20);
    uint64_t before = counted((enum metric)LEDGER_RELAY_OUT_QUEUE_FULL);
    relay_queue_push(&queue, message(6000, 1, 0), 0);
    assert_true(relay_queue_is_empty(&queue));
    assert_int_equal(counted((enum metric)LEDGER_RELAY_OUT_QUEUE_FULL) - before, 1);
}

static void never_gives_a_message_that_waited_too_long(void **state)
{
    (void)state;
    struct relay_queue queue = make_queue(1 << 20);
    uint64_t before = counted((enum metric)LEDGER_RELAY_OUT_STALE);
    relay_queue_push(&queue, message(MESSAGE_BYTES, 1, 1000), 1000);
    relay_queue_push(&queue, message(MESSAGE_BYTES, 2, 1050), 1050);
    relay_queue_push(&queue, message(MESSAGE_BYTES, 3, 900), 1050);
    assert_int_equal(pop(&queue, 1101), 2);
    assert_int_equal(pop(&queue, 1101), 0);
    assert_int_equal(counted((enum metric)LEDGER_RELAY_OUT_STALE) - before, 2);
    assert_int_equal(atomic_load(&budget.bytes), 0);
}

static void keeps_control_however_long_it_waits_but_bounded(void **state)
{
    (void)state;
    struct relay_queue queue = make_queue(1 << 20);
    uint64_t before = counted(METRIC_RELAY_CONTROL_DROPPED);
    for (uint64_t i = 1; i <= 1000; i++) {
        relay_queue_push(&queue, control(i), 0);
        assert_true(queue.control.bytes <= limits.control_bytes_max);
    }
    size_t kept = queue.control.count;
    assert_int_equal(counted(METRIC_RELAY_CONTROL_DROPPED) - before, 1000 - kept);
    assert_int_equal(pop(&queue, UINT64_MAX), 1000 - kept + 1);
    relay_queue_clear(&queue, (enum metric)LEDGER_RELAY_OUT_PEER_GONE);
    assert_int_equal(counted(METRIC_RELAY_CONTROL_DROPPED) - before, 999);
}

static void shares_one_budget_and_takes_room_from_its_own_messages_only(void **state)
{
    (void)state;
    struct relay_queue slow = make_queue(4 * 1100);
    struct relay_queue other;
    relay_queue_init(&other, &limits, &budget);
    uint64_t before = counted((enum metric)LEDGER_RELAY_OUT_OUTBOUND_BUDGET);
    relay_queue_push(&slow, message(MESSAGE_BYTES, 1, 0), 0);
    relay_queue_push(&slow, message(MESSAGE_BYTES, 2, 0), 0);
    relay_queue_push(&slow, message(MESSAGE_BYTES, 3, 0), 0);
    relay_queue_push(&other, message(MESSAGE_BYTES, 4, 0), 0);
    relay_queue_push(&other, message(MESSAGE_BYTES, 5, 0), 0);
    assert_true(atomic_load(&budget.bytes) <= budget.bytes_max);
    assert_int_equal(slow.messages.count, 3);
    assert_int_equal(pop(&other, 0), 5);
    relay_queue_push(&slow, message(MESSAGE_BYTES, 6, 0), 0);
    relay_queue_push(&other, message(MESSAGE_BYTES, 7, 0), 0);
    assert_int_equal(other.messages.count, 0);
    assert_int_equal(counted((enum metric)LEDGER_RELAY_OUT_OUTBOUND_BUDGET) - before, 2);
    uint64_t gone = counted((enum metric)LEDGER_RELAY_OUT_PEER_GONE);
    relay_queue_clear(&slow, (enum metric)LEDGER_RELAY_OUT_PEER_GONE);
    assert_int_equal(counted((enum metric)LEDGER_RELAY_OUT_PEER_GONE) - gone, 4);
    assert_int_equal(atomic_load(&budget.bytes), 0);
    assert_int_equal(atomic_load(&held), 0);
}

/* Small messages, each in a large frame that is charged to frames: for queues of two peers each. */
static void push_small_parts(
        struct relay_queue queues[2], struct frame_budget *frames, size_t count)
{
    static const uint64_t connections[] = {1, 2};
    for (size_t i = 0; i < count; i++) {
        struct frame *frame = frame_try_create(frames, FRAME_BUDGET_COMPLETE, 100000);
        assert_non_null(frame);
        memset(frame_bytes(frame), 0, 100000);
        frame_bytes(frame)[500] = (uint8_t)i;
        struct envelope *envelope = envelope_create(frame);
        assert_non_null(envelope);
        envelope->topic = &topic;
        envelope->message = span_of(frame_bytes(frame) + 500, 100);
        envelope->payload = span_of(frame_bytes(frame) + 510, 50);
        struct relay_parcel *parcel = relay_parcel_of_message(envelope, connections, 2, 0);
        assert_non_null(parcel);
        envelope_unref(envelope);
        relay_queue_push(&queues[0], &parcel->tickets[0], 0);
        relay_queue_push(&queues[1], &parcel->tickets[1], 0);
    }
}

static void a_small_message_that_waits_does_not_pin_the_large_frame_that_it_came_in(void **state)
{
    (void)state;
    enum {
        MESSAGES = 40
    };
    struct frame_budget *frames;
    struct relay_queue queues[2] = {make_queue(1 << 20)};
    assert_int_equal(frame_budget_create(&frames, 100 << 20, 0), STATUS_OK);
    relay_queue_init(&queues[1], &limits, &budget);
    uint64_t copies = counted(METRIC_COPIES);
    push_small_parts(queues, frames, MESSAGES);
    /* Those at the head may be sent in a moment and are left as they are. */
    assert_int_equal(frame_budget_used(frames), 16 * frame_charge(100000));
    assert_int_equal(counted(METRIC_COPIES) - copies, MESSAGES - 16); /* one for both */
    size_t bytes = queues[0].messages.bytes;
    relay_queue_settle(&queues[0]);
    relay_queue_settle(&queues[1]);
    assert_int_equal(frame_budget_used(frames), 0);
    assert_int_equal(counted(METRIC_COPIES) - copies, MESSAGES);
    assert_int_equal(queues[0].messages.bytes, bytes);
    assert_int_equal(queues[0].messages.count, MESSAGES);
    for (size_t i = 0; i < MESSAGES; i++) {
        struct relay_ticket *ticket = relay_queue_try_pop(&queues[1], 0);
        const struct envelope *envelope = ticket->parcel->envelope;
        assert_int_equal(ticket->connection, 2);
        assert_int_equal(envelope->message.bytes[0], i);
        assert_int_equal(envelope->message.length, 100);
        assert_ptr_equal(envelope->payload.bytes, envelope->message.bytes + 10);
        assert_int_equal(pop(&queues[0], 0), 1);
        relay_parcel_unref(ticket->parcel);
    }
    assert_int_equal(atomic_load(&budget.bytes), 0);
    assert_true(relay_queue_is_empty(&queues[0]) && relay_queue_is_empty(&queues[1]));
    frame_budget_destroy(&frames);
}

enum {
    SETTLERS = 4,
    SHARED_PARCELS = 200
};

struct settler {
    pthread_t thread;
    size_t number;
    struct relay_parcel **parcels;
};

static void *settle_all(void *context)
{
    const struct settler *settler = context;
    for (size_t i = 0; i < SHARED_PARCELS; i++) {
        struct relay_ticket *ticket = &settler->parcels[i]->tickets[settler->number];
        uint64_t connection = ticket->connection;
        ticket = relay_ticket_settle(ticket);
        assert_int_equal(ticket->connection, connection);
        assert_int_equal(ticket->parcel->envelope->message.bytes[0], i % 256);
        relay_parcel_unref(ticket->parcel);
    }
    return NULL;
}

static struct relay_parcel *shared_parcel(struct frame_budget *frames, size_t number)
{
    uint64_t connections[SETTLERS];
    struct frame *frame = frame_try_create(frames, FRAME_BUDGET_COMPLETE, 4000);
    assert_non_null(frame);
    memset(frame_bytes(frame), 0, 4000);
    frame_bytes(frame)[1000] = (uint8_t)number;
    struct envelope *envelope = envelope_create(frame);
    assert_non_null(envelope);
    envelope->topic = &topic;
    envelope->message = span_of(frame_bytes(frame) + 1000, 500);
    for (size_t i = 0; i < SETTLERS; i++) {
        connections[i] = number * SETTLERS + i;
    }
    struct relay_parcel *parcel = relay_parcel_of_message(envelope, connections, SETTLERS, 0);
    assert_non_null(parcel);
    envelope_unref(envelope);
    return parcel;
}

static void several_threads_settle_one_message_and_nothing_is_left_of_it(void **state)
{
    (void)state;
    struct frame_budget *frames;
    struct relay_parcel *parcels[SHARED_PARCELS];
    struct settler settlers[SETTLERS];
    assert_int_equal(frame_budget_create(&frames, 100 << 20, 0), STATUS_OK);
    for (size_t i = 0; i < SHARED_PARCELS; i++) {
        parcels[i] = shared_parcel(frames, i);
    }
    for (size_t i = 0; i < SETTLERS; i++) {
        settlers[i] = (struct settler){.number = i, .parcels = parcels};
        assert_int_equal(pthread_create(&settlers[i].thread, NULL, settle_all, &settlers[i]), 0);
    }
    for (size_t i = 0; i < SETTLERS; i++) {
        pthread_join(settlers[i].thread, NULL);
    }
    assert_int_equal(frame_budget_used(frames), 0);
    frame_budget_destroy(&frames);
}

/* It is charged to the outbound budget by then. */
static void a_large_message_that_waits_is_charged_to_one_budget_only(void **state)
{
    (void)state;
    struct frame_budget *frames;
    struct relay_queue queue = make_queue(1 << 20);
    assert_int_equal(frame_budget_create(&frames, 1 << 20, 0), STATUS_OK);
    struct frame *frame = frame_try_create(frames, FRAME_BUDGET_COMPLETE, 1000);
    assert_non_null(frame);
    memset(frame_bytes(frame), 0, 1000);
    struct envelope *envelope = envelope_create(frame);
    assert_non_null(envelope);
    envelope->topic = &topic;
    envelope->message = span_of(frame_bytes(frame), 900);
    uint64_t connection = 1;
    struct relay_parcel *parcel = relay_parcel_of_message(envelope, &connection, 1, 0);
    assert_non_null(parcel);
    envelope_unref(envelope);
    uint64_t copies = counted(METRIC_COPIES);
    relay_queue_push(&queue, &parcel->tickets[0], 0);
    relay_queue_settle(&queue);
    assert_int_equal(frame_budget_used(frames), 0);
    assert_int_equal(counted(METRIC_COPIES), copies);
    assert_int_equal(pop(&queue, 0), 1);
    frame_budget_destroy(&frames);
}

/* A message for three peers in a frame that it fills less than half of, so that settling copies it. */
static struct relay_parcel *paced_parcel(struct relay_pace *pace)
{
    static const uint64_t connections[] = {1, 2, 3};
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, 10000);
    assert_non_null(frame);
    memset(frame_bytes(frame), 0, 10000);
    struct envelope *envelope = envelope_create(frame);
    assert_non_null(envelope);
    envelope->topic = &topic;
    envelope->message = span_of(frame_bytes(frame), 1000);
    struct relay_parcel *parcel = relay_parcel_of_message(envelope, connections, 3, 0);
    assert_non_null(parcel);
    envelope_unref(envelope);
    relay_pace_add(pace, 1000);
    relay_parcel_set_pace(parcel, pace);
    return parcel;
}

static void a_publisher_waits_until_half_of_the_peers_have_its_message(void **state)
{
    (void)state;
    for (int settles = 0; settles < 2; settles++) {
        struct relay_pace pace = {.bytes_max = 1000};
        struct relay_ticket *tickets[3];
        struct relay_parcel *parcel = paced_parcel(&pace);
        for (size_t i = 0; i < 3; i++) {
            tickets[i] = &parcel->tickets[i];
            tickets[i] = settles == 1 ? relay_ticket_settle(tickets[i]) : tickets[i];
        }
        assert_true(relay_pace_is_full(&pace));
        relay_parcel_unref(tickets[2]->parcel);
        assert_true(relay_pace_is_full(&pace));
        relay_parcel_unref(tickets[0]->parcel);
        assert_int_equal(atomic_load(&pace.bytes), 0);
        relay_parcel_unref(tickets[1]->parcel);
        assert_int_equal(atomic_load(&pace.bytes), 0);
    }
}

static void what_is_put_back_goes_first_or_is_dropped(void **state)
{
    (void)state;
    struct relay_queue queue = make_queue(1 << 20);
    uint64_t full = counted((enum metric)LEDGER_RELAY_OUT_QUEUE_FULL);
    relay_queue_put_back(&queue, message(MESSAGE_BYTES, 3, 0));
    relay_queue_push(&queue, message(MESSAGE_BYTES, 4, 0), 0);
    relay_queue_put_back(&queue, message(MESSAGE_BYTES, 2, 0));
    relay_queue_put_back(&queue, message(MESSAGE_BYTES, 1, 0));
    relay_queue_push(&queue, message(MESSAGE_BYTES, 5, 0), 0);
    relay_queue_put_back(&queue, message(MESSAGE_BYTES, 6, 0)); /* there is no room for it */
    assert_int_equal(counted((enum metric)LEDGER_RELAY_OUT_QUEUE_FULL) - full, 1);
    for (uint64_t i = 1; i <= 5; i++) {
        assert_int_equal(pop(&queue, 0), i);
    }
    assert_int_equal(pop(&queue, 0), 0);
    assert_int_equal(atomic_load(&budget.bytes), 0);
    assert_int_equal(atomic_load(&held), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(gives_control_before_messages_and_each_in_order),
            cmocka_unit_test(drops_the_oldest_messages_above_its_bytes),
            cmocka_unit_test(refuses_a_message_that_is_larger_than_the_queue),
            cmocka_unit_test(never_gives_a_message_that_waited_too_long),
            cmocka_unit_test(keeps_control_however_long_it_waits_but_bounded),
            cmocka_unit_test(shares_one_budget_and_takes_room_from_its_own_messages_only),
            cmocka_unit_test(
                    a_small_message_that_waits_does_not_pin_the_large_frame_that_it_came_in),
            cmocka_unit_test(several_threads_settle_one_message_and_nothing_is_left_of_it),
            cmocka_unit_test(a_large_message_that_waits_is_charged_to_one_budget_only),
            cmocka_unit_test(a_publisher_waits_until_half_of_the_peers_have_its_message),
            cmocka_unit_test(what_is_put_back_goes_first_or_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
