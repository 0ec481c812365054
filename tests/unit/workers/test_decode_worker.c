/* SPDX-License-Identifier: MIT */
#include "workers/decode_worker.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "hash/message_hash.h"
#include "tests/support/cmocka.h"
#include "tests/support/parts.h"

static const struct topic topic = {.index = 0, .name = {(const uint8_t *)"/waku/2/rs/16/0", 15}};

struct told {
    size_t count;
    enum lane_verdict verdict;
    enum metric reason;
    size_t peer_count;
};

static struct metrics *metrics;
static struct frame_budget *budget;
static struct progress progress;
static struct stage_load load;
static struct dispatcher dispatcher;
static struct decode_worker worker;
static struct worker_role role;

static void note_verdict(
        void *context, void *completion, const struct lane_decision *decision, size_t peer_count)
{
    struct told *told = completion;
    (void)context;
    told->count++;
    told->verdict = decision->verdict;
    told->reason = decision->reason;
    told->peer_count = peer_count;
}

static void make(bool has_message_ids)
{
    struct lane_options options = {.max_message_bytes = 153600,
            .recent_limit_bytes = 1 << 20,
            .seen_limit_bytes = 1 << 20,
            .seen_window_ns = 120ULL * NANOSECONDS_PER_SECOND,
            .timestamp_tolerance_ns = 20ULL * NANOSECONDS_PER_SECOND,
            .has_message_ids = has_message_ids};
    assert_int_equal(lane_create(&worker.lane, &options), STATUS_OK);
}

static int set_up(void **state)
{
    (void)state;
    memset(&worker, 0, sizeof(worker));
    assert_int_equal(metrics_create(&metrics), STATUS_OK);
    assert_int_equal(metrics_attach_thread(metrics), STATUS_OK);
    assert_int_equal(frame_budget_create(&budget, 64 << 20, 1), STATUS_OK);
    progress_init(&progress);
    dispatcher_init(&dispatcher);
    load = (struct stage_load){.lane_count = 1};
    assert_int_equal(spmc_ring_create(&dispatcher.event, 128, NULL), STATUS_OK);
    dispatcher.event_load = &load;
    dispatcher.budget = budget;
    dispatcher.progress = &progress;
    dispatcher.slot_event = progress_add_slot(&progress, progress_add_stage(&progress));
    assert_int_equal(inbox_create(&worker.inbox), STATUS_OK);
    worker.dispatcher = &dispatcher;
    worker.progress = &progress;
    worker.progress_slot = progress_add_slot(&progress, PROGRESS_INTAKE);
    worker.verdict = note_verdict;
    role = decode_worker_role(&worker, "decode");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    lane_destroy(&worker.lane);
    spmc_ring_destroy(&dispatcher.event);
    inbox_destroy(&worker.inbox);
    frame_budget_destroy(&budget);
    rcu_drain();
    assert_int_equal(
            metrics_sum(metrics, METRIC_ENVELOPES), metrics_sum(metrics, METRIC_ENVELOPES_FREED));
    metrics_detach_thread();
    metrics_destroy(&metrics);
    return 0;
}

static void post(const char *payload, struct told *told)
{
    struct test_message message = {
            .payload = payload, .content_topic = "/a/1/b/c", .timestamp_ns = TEST_RECEIVED_NS};
    struct frame_part *part = test_part(&topic, &message);
    part->completion = told;
    inbox_push(worker.inbox, &part->link);
}

/* The payload and hash of what comes out next. */
static void assert_out(const char *payload)
{
    struct envelope *envelope = spmc_ring_try_pop(dispatcher.event);
    assert_non_null(envelope);
    assert_int_equal(envelope->payload.length, strlen(payload));
    assert_memory_equal(envelope->payload.bytes, payload, strlen(payload));
    struct message_hash_input input = {.pubsub_topic = topic.name,
            .payload = envelope->payload,
            .content_topic = envelope->content_topic,
            .timestamp_ns = TEST_RECEIVED_NS};
    uint8_t expected[MESSAGE_HASH_BYTES];
    message_hash(expected, &input);
    assert_memory_equal(envelope->hash, expected, sizeof(expected));
    envelope_unref(envelope);
}

static void has_nothing_to_do_without_parts(void **state)
{
    (void)state;
    make(true);
    assert_false(role.has_work(&worker));
    assert_int_equal(role.turn(&worker), 0);
}

static void publishes_new_messages_and_tells_who_waits(void **state)
{
    struct told first = {0};
    struct told copy = {0};
    (void)state;
    make(true);
    post("one", &first);
    post("one", &copy);
    post("two", NULL);
    assert_true(role.has_work(&worker));
    assert_int_equal(role.turn(&worker), 3);
    assert_int_equal(first.count, 1);
    assert_int_equal(first.verdict, LANE_NEW);
    assert_int_equal(first.peer_count, 0); /* nobody relays here */
    assert_int_equal(copy.count, 1);
    assert_int_equal(copy.verdict, LANE_DUPLICATE);
    assert_out("one");
    assert_out("two");
    assert_null(spmc_ring_try_pop(dispatcher.event));
}

static void counts_what_went_no_further_as_finished(void **state)
{
    (void)state;
    make(true);
    post("one", NULL);
    post("one", NULL);
    post(NULL, NULL); /* refused: no payload */
    role.turn(&worker);
    assert_int_equal(progress.slots[worker.progress_slot].finished, 2);
    assert_out("one");
}

static void tells_why_a_message_is_refused(void **state)
{
    struct told told = {0};
    (void)state;
    make(true);
    post(NULL, &told);
    role.turn(&worker);
    assert_int_equal(told.verdict, LANE_REFUSED);
    assert_int_equal(told.reason, LEDGER_INTAKE_PAYLOAD_MISSING);
}

static void a_turn_ends_after_a_bounded_number_of_parts(void **state)
{
    char payload[16];
    (void)state;
    make(true);
    for (int i = 0; i < 100; i++) {
        snprintf(payload, sizeof(payload), "m%d", i);
        post(payload, NULL);
    }
    size_t taken = role.turn(&worker);
    assert_in_range(taken, 1, 99);
    while (role.turn(&worker) > 0) {
    }
    for (int i = 0; i < 100; i++) {
        snprintf(payload, sizeof(payload), "m%d", i);
        assert_out(payload);
    }
}

static void hashes_two_messages_side_by_side_where_nobody_relays(void **state)
{
    (void)state;
    make(false);
    post("one", NULL);
    post("two", NULL);
    post("three", NULL);
    assert_int_equal(role.turn(&worker), 3);
    assert_int_equal(metrics_sum(metrics, METRIC_MESSAGE_HASHES), 3);
    assert_int_equal(metrics_sum(metrics, METRIC_ID_HASHES), 0);
    assert_out("one");
    assert_out("two");
    assert_out("three");
}

static void recognises_a_copy_of_the_message_that_waits_for_its_hash(void **state)
{
    struct told copy = {0};
    (void)state;
    make(false);
    post("one", NULL);
    post("one", &copy);
    post("two", NULL);
    assert_int_equal(role.turn(&worker), 3);
    assert_int_equal(copy.verdict, LANE_DUPLICATE);
    assert_out("one");
    assert_out("two");
    assert_null(spmc_ring_try_pop(dispatcher.event));
}

/* A copy may also come in between, or with fields in another order. */
static void recognises_a_copy_in_any_place_of_a_turn(void **state)
{
    (void)state;
    make(false);
    post("one", NULL);
    post("two", NULL);
    post("one", NULL);
    post("three", NULL);
    post("two", NULL);
    assert_int_equal(role.turn(&worker), 5);
    assert_int_equal(metrics_sum(metrics, LEDGER_INTAKE_DUPLICATE), 2);
    assert_out("one");
    assert_out("two");
    assert_out("three");
}

/* More than wait at once; every third is one of the last few again. */
static void hashes_many_messages_of_a_turn_in_order(void **state)
{
    (void)state;
    enum {
        COUNT = 30
    };
    char payloads[COUNT][64];
    size_t copies = 0;
    make(false);
    for (size_t i = 0; i < COUNT; i++) {
        size_t number = i % 3 == 2 ? i - 2 - 3 * (i % 2) : i;
        number = i < 5 ? i : number;
        copies += number != i;
        snprintf(payloads[i], sizeof(payloads[i]), "%zu %.*s", number, (int)(number % 40),
                "........................................");
        post(payloads[i], NULL);
    }
    assert_int_equal(role.turn(&worker), COUNT);
    assert_int_equal(metrics_sum(metrics, LEDGER_INTAKE_DUPLICATE), copies);
    for (size_t i = 0; i < COUNT; i++) {
        if (i < 5 || i % 3 != 2) {
            assert_out(payloads[i]);
        }
    }
    assert_null(spmc_ring_try_pop(dispatcher.event));
}

/* A long message is hashed beside those behind it, over the end of turns; all come out as they came in. */
static void goes_on_with_a_hash_in_the_next_turn_and_keeps_the_order(void **state)
{
    (void)state;
    enum {
        COUNT = 40,
        LONG_BYTES = 100000
    };
    static char payloads[COUNT][LONG_BYTES + 1];
    make(false);
    for (size_t i = 0; i < COUNT; i++) {
        size_t length = i % 4 == 0 ? LONG_BYTES : 20 + i;
        memset(payloads[i], 'a' + (int)(i % 26), length);
        snprintf(payloads[i], 16, "%zu", i);
        payloads[i][strlen(payloads[i])] = '-';
        post(payloads[i], NULL);
    }
    assert_true(role.turn(&worker) < COUNT);
    while (!inbox_is_empty(worker.inbox)) {
        assert_true(role.has_work(&worker));
        assert_true(role.turn(&worker) > 0);
    }
    assert_int_equal(role.turn(&worker), 0);
    assert_int_equal(metrics_sum(metrics, METRIC_MESSAGE_HASHES), COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_out(payloads[i]);
    }
    assert_null(spmc_ring_try_pop(dispatcher.event));
}

/* While more is there the stages are woken for several messages at once; with the last one at once. */
static void wakes_the_stages_for_several_messages_and_for_the_last(void **state)
{
    (void)state;
    enum {
        LONG_BYTES = 150000
    };
    static char payload[LONG_BYTES + 1];
    struct envelope *envelope;
    make(true);
    for (int i = 0; i < 5; i++) {
        memset(payload, 'a' + i, LONG_BYTES);
        post(payload, NULL);
    }
    assert_int_equal(role.turn(&worker), 4); /* 512 KiB are a turn */
    assert_true(dispatcher.has_pushed);
    assert_int_equal(role.turn(&worker), 1);
    assert_false(dispatcher.has_pushed);
    for (int i = 0; i < 40; i++) {
        snprintf(payload, sizeof(payload), "m%d", i);
        post(payload, NULL);
    }
    assert_int_equal(role.turn(&worker), 32);
    assert_false(dispatcher.has_pushed);
    assert_int_equal(role.turn(&worker), 8);
    assert_false(dispatcher.has_pushed);
    while ((envelope = spmc_ring_try_pop(dispatcher.event)) != NULL) {
        envelope_unref(envelope);
    }
}

static void wakes_who_waits_for_progress(void **state)
{
    (void)state;
    make(true);
    post("one", NULL);
    uint32_t ticket = parking_prepare(&progress.parking);
    role.turn(&worker);
    assert_true(parking_wait(&progress.parking, ticket, 0));
    assert_out("one");
}

/* Each turn that finds room in the archive's ring earns four waits for it, and no more. */
static void waits_for_the_archive_no_longer_than_was_earned(void **state)
{
    enum {
        RING = 64,
        TURNS = 300
    };
    struct parking spill;
    struct stage_load archive_load = {.lane_count = 1};
    struct envelope *envelope;
    uint64_t found = 0;
    (void)state;
    make(true);
    parking_init(&spill);
    assert_int_equal(spmc_ring_create(&dispatcher.archive, RING, NULL), STATUS_OK);
    dispatcher.archive_load = &archive_load;
    dispatcher.slot_archive = progress_add_slot(&progress, progress_add_stage(&progress));
    dispatcher.spill = &spill;
    for (int i = 0; i < TURNS; i++) {
        char payload[16];
        snprintf(payload, sizeof(payload), "%d", i);
        found += !dispatcher_is_archive_full(&dispatcher, 32 + DECODE_WAITING_MAX);
        post(payload, NULL);
        while ((envelope = spmc_ring_try_pop(dispatcher.event)) == NULL) {
            /* While it waits it does not look as if it had nothing left: it may be told to stop. */
            assert_true(role.has_work(&worker));
            uint64_t waits = metrics_sum(metrics, METRIC_ARCHIVE_WAITS);
            assert_int_equal(role.turn(&worker), 1);
            bool has_waited = metrics_sum(metrics, METRIC_ARCHIVE_WAITS) > waits;
            assert_int_equal(inbox_is_empty(worker.inbox), !has_waited);
        }
        envelope_unref(envelope);
    }
    assert_true(found > 0 && found < TURNS / 2);
    assert_int_equal(metrics_sum(metrics, METRIC_ARCHIVE_WAITS), 4 * found);
    /* Nobody made room: what did not fit is lost, and counted. */
    assert_int_equal(metrics_sum(metrics, (enum metric)LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE),
            TURNS - RING + 1);
    while ((envelope = spmc_ring_try_pop(dispatcher.archive)) != NULL) {
        envelope_unref(envelope);
    }
    spmc_ring_destroy(&dispatcher.archive);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(has_nothing_to_do_without_parts),
            CASE(publishes_new_messages_and_tells_who_waits),
            CASE(counts_what_went_no_further_as_finished),
            CASE(tells_why_a_message_is_refused),
            CASE(a_turn_ends_after_a_bounded_number_of_parts),
            CASE(hashes_two_messages_side_by_side_where_nobody_relays),
            CASE(recognises_a_copy_of_the_message_that_waits_for_its_hash),
            CASE(recognises_a_copy_in_any_place_of_a_turn),
            CASE(hashes_many_messages_of_a_turn_in_order),
            CASE(goes_on_with_a_hash_in_the_next_turn_and_keeps_the_order),
            CASE(wakes_the_stages_for_several_messages_and_for_the_last),
            CASE(wakes_who_waits_for_progress),
            CASE(waits_for_the_archive_no_longer_than_was_earned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
