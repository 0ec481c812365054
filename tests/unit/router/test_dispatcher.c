/* SPDX-License-Identifier: MIT */
#include "router/dispatcher.h"

#include "base/ledger.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/cmocka.h"

enum {
    RING = 16,
    USABLE = RING - 1, /* ck_ring keeps one slot free */
    BUDGET = 1 << 20
};

static struct metrics *metrics;
static struct frame_budget *budget;
static struct progress progress;
static struct parking parking;
static struct stage_load archive_load;
static struct stage_load filter_load;
static struct stage_load event_load;
static struct dispatcher dispatcher;

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(metrics_create(&metrics), STATUS_OK);
    assert_int_equal(metrics_attach_thread(metrics), STATUS_OK);
    assert_int_equal(frame_budget_create(&budget, BUDGET, BUDGET / 8), STATUS_OK);
    progress_init(&progress);
    parking_init(&parking);
    dispatcher_init(&dispatcher);
    archive_load = (struct stage_load){.lane_count = 1};
    filter_load = (struct stage_load){.lane_count = 1};
    event_load = (struct stage_load){.lane_count = 1};
    assert_int_equal(spmc_ring_create(&dispatcher.archive, RING, &parking), STATUS_OK);
    assert_int_equal(spmc_ring_create(&dispatcher.event, RING, &parking), STATUS_OK);
    assert_int_equal(spmc_ring_create(&dispatcher.filters[0], RING, &parking), STATUS_OK);
    assert_int_equal(spmc_ring_create(&dispatcher.filters[1], RING, &parking), STATUS_OK);
    assert_int_equal(id_ring_create(&dispatcher.sync, RING, &parking), STATUS_OK);
    dispatcher.filter_count = 2;
    dispatcher.budget = budget;
    dispatcher.progress = &progress;
    dispatcher.archive_load = &archive_load;
    dispatcher.event_load = &event_load;
    dispatcher.filter_loads[0] = &filter_load;
    dispatcher.filter_loads[1] = &filter_load;
    size_t stage = progress_add_stage(&progress);
    dispatcher.slot_archive = progress_add_slot(&progress, stage);
    dispatcher.slot_sync = progress_add_slot(&progress, progress_add_stage(&progress));
    dispatcher.slot_event = progress_add_slot(&progress, progress_add_stage(&progress));
    dispatcher.slot_filters[0] = progress_add_slot(&progress, progress_add_stage(&progress));
    dispatcher.slot_filters[1] = progress_add_slot(&progress, progress_add_stage(&progress));
    return 0;
}

static size_t empty_ring(struct spmc_ring *ring)
{
    size_t count = 0;
    struct envelope *envelope;
    while ((envelope = spmc_ring_try_pop(ring)) != NULL) {
        envelope_unref(envelope);
        count++;
    }
    return count;
}

static size_t empty_ids(void)
{
    size_t count = 0;
    struct id_record record;
    while (id_ring_try_pop(dispatcher.sync, &record)) {
        count++;
    }
    return count;
}

static uint64_t counted(enum metric metric)
{
    return metrics_sum(metrics, metric);
}

static int tear_down(void **state)
{
    (void)state;
    empty_ring(dispatcher.archive);
    empty_ring(dispatcher.event);
    empty_ring(dispatcher.filters[0]);
    empty_ring(dispatcher.filters[1]);
    empty_ids();
    /* Every reference that the dispatcher took has gone somewhere and come back. */
    assert_int_equal(counted(METRIC_ENVELOPES), counted(METRIC_ENVELOPES_FREED));
    spmc_ring_destroy(&dispatcher.archive);
    spmc_ring_destroy(&dispatcher.event);
    spmc_ring_destroy(&dispatcher.filters[0]);
    spmc_ring_destroy(&dispatcher.filters[1]);
    id_ring_destroy(&dispatcher.sync);
    frame_budget_destroy(&budget);
    metrics_detach_thread();
    metrics_destroy(&metrics);
    return 0;
}

static struct envelope *message_of(unsigned number, size_t payload_bytes)
{
    struct fixture_message fields = {.number = number,
            .timestamp_ns = 1000 + (int64_t)number,
            .payload_bytes = payload_bytes};
    return fixture_envelope(&fields);
}

static struct envelope *message(unsigned number)
{
    return message_of(number, 64);
}

static void assert_closed(enum ledger_stage stage, uint64_t held)
{
    struct ledger ledger;
    ledger_read(&ledger, metrics, stage, held);
    assert_true(ledger_is_closed(&ledger));
}

static void assert_all_closed(void)
{
    assert_closed(LEDGER_STAGE_ARCHIVE, spmc_ring_depth_estimate(dispatcher.archive));
    assert_closed(LEDGER_STAGE_EVENT, spmc_ring_depth_estimate(dispatcher.event));
    assert_closed(LEDGER_STAGE_SYNC, id_ring_depth_estimate(dispatcher.sync));
    assert_closed(LEDGER_STAGE_FILTER, spmc_ring_depth_estimate(dispatcher.filters[0]) +
                                               spmc_ring_depth_estimate(dispatcher.filters[1]));
}

static void gives_one_envelope_to_every_stage_without_a_copy(void **state)
{
    struct envelope *envelope = message(1);
    struct id_record id;
    (void)state;
    envelope_ref(envelope);
    uint64_t copies = counted(METRIC_COPIES);
    dispatcher_publish(&dispatcher, envelope);
    struct envelope *out[] = {spmc_ring_try_pop(dispatcher.archive),
            spmc_ring_try_pop(dispatcher.event), spmc_ring_try_pop(dispatcher.filters[0]),
            spmc_ring_try_pop(dispatcher.filters[1])};
    for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
        assert_ptr_equal(out[i], envelope);
        envelope_unref(out[i]);
    }
    assert_true(id_ring_try_pop(dispatcher.sync, &id));
    assert_memory_equal(id.hash, envelope->hash, MESSAGE_HASH_BYTES);
    assert_int_equal(id.timestamp_ns, envelope->timestamp_ns);
    assert_ptr_equal(id.topic, envelope->topic);
    assert_int_equal(counted(METRIC_COPIES), copies);
    envelope_unref(envelope);
}

static void keeps_ephemeral_messages_from_archive_and_sync_only(void **state)
{
    struct envelope *envelope = message(1);
    (void)state;
    envelope->is_ephemeral = true;
    dispatcher_publish(&dispatcher, envelope);
    assert_int_equal(counted(LEDGER_ARCHIVE_EPHEMERAL), 1);
    assert_int_equal(counted(LEDGER_SYNC_EPHEMERAL), 1);
    assert_all_closed();
    assert_int_equal(empty_ring(dispatcher.archive), 0);
    assert_int_equal(empty_ids(), 0);
    assert_int_equal(empty_ring(dispatcher.event), 1);
    assert_int_equal(empty_ring(dispatcher.filters[0]), 1);
}

static void keeps_messages_of_another_time_from_archive_and_sync_only(void **state)
{
    struct envelope *envelope = message(1);
    (void)state;
    envelope->is_timestamp_in_range = false;
    dispatcher_publish(&dispatcher, envelope);
    assert_int_equal(counted(LEDGER_ARCHIVE_TIMESTAMP_OUT_OF_RANGE), 1);
    assert_int_equal(counted(LEDGER_SYNC_TIMESTAMP_OUT_OF_RANGE), 1);
    assert_all_closed();
    assert_int_equal(empty_ring(dispatcher.archive), 0);
    assert_int_equal(empty_ids(), 0);
    assert_int_equal(empty_ring(dispatcher.event), 1);
}

static void drops_with_a_reason_at_each_full_ring_and_keeps_what_is_there(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RING + 4; i++) {
        dispatcher_publish(&dispatcher, message(i));
    }
    uint64_t over = RING + 4 - USABLE;
    assert_int_equal(counted(LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE), over);
    assert_int_equal(counted(LEDGER_EVENT_RING_FULL), over);
    assert_int_equal(counted(LEDGER_FILTER_RING_FULL), 2 * over);
    assert_int_equal(counted(LEDGER_SYNC_NOT_ARCHIVED), over); /* nobody may be promised these */
    assert_int_equal(counted(LEDGER_SYNC_RING_FULL), 0);
    assert_all_closed();
    for (unsigned i = 0; i < USABLE; i++) {
        struct envelope *envelope = spmc_ring_try_pop(dispatcher.event);
        assert_int_equal(envelope->timestamp_ns, 1000 + i);
        envelope_unref(envelope);
    }
}

static void a_full_stage_does_not_keep_the_others_from_theirs(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RING * 3; i++) {
        dispatcher_publish(&dispatcher, message(i));
        empty_ring(dispatcher.archive);
        empty_ring(dispatcher.filters[0]);
        empty_ids();
    }
    assert_int_equal(counted(LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE), 0);
    assert_int_equal(counted(LEDGER_SYNC_RING_FULL), 0);
    assert_int_equal(counted(LEDGER_EVENT_RING_FULL), RING * 3 - USABLE);
    assert_int_equal(counted(LEDGER_FILTER_RING_FULL), RING * 3 - USABLE);
}

static void a_stage_holds_back_no_more_than_its_share_of_the_budget(void **state)
{
    enum {
        LARGE = 100 * 1000,
        FIT = BUDGET / DISPATCHER_SHARE / LARGE
    };
    (void)state;
    for (unsigned i = 0; i < 2 * FIT; i++) {
        dispatcher_publish(&dispatcher, message_of(i, LARGE));
    }
    assert_int_equal(spmc_ring_depth_estimate(dispatcher.event), FIT);
    assert_int_equal(counted(LEDGER_EVENT_OVER_SHARE), FIT);
    assert_int_equal(counted(LEDGER_EVENT_RING_FULL), 0);
    assert_true(stage_load_bytes(&event_load) <= BUDGET / DISPATCHER_SHARE);
    assert_all_closed();
}

static void one_message_larger_than_the_share_still_gets_through(void **state)
{
    (void)state;
    dispatcher_publish(&dispatcher, message_of(1, BUDGET));
    assert_int_equal(spmc_ring_depth_estimate(dispatcher.event), 1);
    assert_int_equal(counted(LEDGER_EVENT_OVER_SHARE), 0);
}

/* The spill thread writes what is beyond the share, so the ring may hold it for that while. */
static void an_archive_with_a_spill_file_has_no_share(void **state)
{
    enum {
        LARGE = 100 * 1000
    };
    struct parking spill;
    (void)state;
    parking_init(&spill);
    dispatcher.spill = &spill;
    for (unsigned i = 0; i < USABLE; i++) {
        dispatcher_publish(&dispatcher, message_of(i, LARGE));
    }
    assert_int_equal(spmc_ring_depth_estimate(dispatcher.archive), USABLE);
    assert_int_equal(counted(LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE), 0);
}

static void lanes_share_the_share(void **state)
{
    enum {
        LARGE = 100 * 1000,
        FIT = BUDGET / DISPATCHER_SHARE / LARGE
    };
    (void)state;
    event_load.lane_count = 2;
    stage_load_add(&event_load, 1, BUDGET / DISPATCHER_SHARE - LARGE - 4096);
    for (unsigned i = 0; i < FIT; i++) {
        dispatcher_publish(&dispatcher, message_of(i, LARGE));
    }
    /* Up to its own half of the share a lane does not look at the others. */
    assert_int_equal(spmc_ring_depth_estimate(dispatcher.event), FIT / 2);
    assert_int_equal(counted(LEDGER_EVENT_OVER_SHARE), FIT - FIT / 2);
}

static void what_sync_brought_goes_to_archive_and_sync_set_only(void **state)
{
    static const enum message_origin origins[] = {ORIGIN_SYNC, ORIGIN_RESUME};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct envelope *envelope = message(i);
        envelope->origin = origins[i];
        dispatcher_publish(&dispatcher, envelope);
    }
    assert_int_equal(counted(LEDGER_EVENT_RECEIVED), 0);
    assert_int_equal(counted(LEDGER_FILTER_RECEIVED), 0);
    assert_all_closed();
    assert_int_equal(empty_ring(dispatcher.archive), 2);
    assert_int_equal(empty_ids(), 2);
    /* For whoever waits, the live stages are done with it. */
    assert_int_equal(progress.slots[dispatcher.slot_event].finished, 2);
    assert_int_equal(progress.slots[dispatcher.slot_filters[1]].finished, 2);
}

static void each_local_origin_is_live(void **state)
{
    static const enum message_origin origins[] = {
            ORIGIN_MESH, ORIGIN_LIGHTPUSH, ORIGIN_REST, ORIGIN_API};
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct envelope *envelope = message(i);
        envelope->origin = origins[i];
        dispatcher_publish(&dispatcher, envelope);
    }
    assert_int_equal(counted(LEDGER_EVENT_RECEIVED), 4);
}

static void notes_the_times_of_ids_that_were_lost(void **state)
{
    int64_t from;
    int64_t to;
    (void)state;
    for (unsigned i = 0; i < RING; i++) {
        dispatcher_publish(&dispatcher, message(i));
        empty_ring(dispatcher.archive);
    }
    assert_false(dispatcher_take_gap(&dispatcher, &from, &to));
    static const unsigned lost[] = {200, 150, 170};
    for (size_t i = 0; i < 3; i++) {
        dispatcher_publish(&dispatcher, message(lost[i]));
    }
    assert_true(dispatcher_take_gap(&dispatcher, &from, &to));
    assert_int_equal(from, 1150);
    assert_int_equal(to, 1200);
    assert_false(dispatcher_take_gap(&dispatcher, &from, &to));
}

static void counts_what_it_refuses_or_drops_as_finished(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RING + 4; i++) {
        dispatcher_publish(&dispatcher, message(i));
    }
    assert_int_equal(progress.slots[dispatcher.slot_event].finished, RING + 4 - USABLE);
    assert_int_equal(progress.slots[dispatcher.slot_sync].finished, RING + 4 - USABLE);
}

static void works_without_the_stages_that_are_switched_off(void **state)
{
    struct dispatcher none;
    (void)state;
    dispatcher_init(&none);
    none.progress = &progress;
    none.budget = budget;
    dispatcher_publish(&none, message(1));
    dispatcher_flush(&none);
    assert_int_equal(counted(LEDGER_ARCHIVE_RECEIVED), 0);
}

/* Whether somebody who prepared before was woken, without sleeping. */
static bool was_woken(struct parking *sleeper, uint32_t ticket)
{
    return parking_wait(sleeper, ticket, 0);
}

static void wakes_the_spill_thread_once_the_ring_is_more_than_half_full(void **state)
{
    struct parking spill;
    (void)state;
    parking_init(&spill);
    dispatcher.spill = &spill;
    for (unsigned i = 0; i < RING / 2; i++) {
        dispatcher_publish(&dispatcher, message(i));
    }
    uint32_t ticket = parking_prepare(&spill);
    dispatcher_flush(&dispatcher);
    assert_false(was_woken(&spill, ticket));
    dispatcher_publish(&dispatcher, message(RING));
    ticket = parking_prepare(&spill);
    dispatcher_flush(&dispatcher);
    assert_true(was_woken(&spill, ticket));
}

static void tells_when_the_archive_may_have_no_room(void **state)
{
    struct parking spill;
    (void)state;
    parking_init(&spill);
    for (unsigned i = 0; i < USABLE - 1; i++) {
        dispatcher_publish(&dispatcher, message(i));
    }
    dispatcher.spill = &spill;
    assert_false(dispatcher_is_archive_full(&dispatcher, 1));
    uint32_t ticket = parking_prepare(&spill);
    assert_true(dispatcher_is_archive_full(&dispatcher, 2));
    assert_true(was_woken(&spill, ticket));
}

static void assert_wakes(struct dispatcher *alone)
{
    alone->budget = budget;
    alone->progress = &progress;
    dispatcher_publish(alone, message(1));
    uint32_t ticket = parking_prepare(&parking);
    dispatcher_flush(alone);
    assert_true(was_woken(&parking, ticket));
}

static void wakes_each_stage_also_where_it_is_the_only_one(void **state)
{
    struct dispatcher alone;
    (void)state;
    dispatcher_init(&alone);
    alone.archive = dispatcher.archive;
    alone.archive_load = &archive_load;
    assert_wakes(&alone);
    dispatcher_init(&alone);
    alone.sync = dispatcher.sync;
    assert_wakes(&alone);
    dispatcher_init(&alone);
    alone.event = dispatcher.event;
    alone.event_load = &event_load;
    assert_wakes(&alone);
    dispatcher_init(&alone);
    alone.filters[0] = dispatcher.filters[0];
    alone.filter_loads[0] = &filter_load;
    alone.filter_count = 1;
    assert_wakes(&alone);
}

static void wakes_the_stages_once_a_flush_and_not_without_news(void **state)
{
    (void)state;
    uint32_t ticket = parking_prepare(&parking);
    dispatcher_flush(&dispatcher);
    assert_false(was_woken(&parking, ticket));
    dispatcher_publish(&dispatcher, message(1));
    ticket = parking_prepare(&parking);
    dispatcher_flush(&dispatcher);
    assert_true(was_woken(&parking, ticket));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(gives_one_envelope_to_every_stage_without_a_copy),
            CASE(keeps_ephemeral_messages_from_archive_and_sync_only),
            CASE(keeps_messages_of_another_time_from_archive_and_sync_only),
            CASE(drops_with_a_reason_at_each_full_ring_and_keeps_what_is_there),
            CASE(a_full_stage_does_not_keep_the_others_from_theirs),
            CASE(a_stage_holds_back_no_more_than_its_share_of_the_budget),
            CASE(one_message_larger_than_the_share_still_gets_through),
            CASE(an_archive_with_a_spill_file_has_no_share),
            CASE(lanes_share_the_share),
            CASE(what_sync_brought_goes_to_archive_and_sync_set_only),
            CASE(each_local_origin_is_live),
            CASE(notes_the_times_of_ids_that_were_lost),
            CASE(counts_what_it_refuses_or_drops_as_finished),
            CASE(works_without_the_stages_that_are_switched_off),
            CASE(wakes_the_spill_thread_once_the_ring_is_more_than_half_full),
            CASE(tells_when_the_archive_may_have_no_room),
            CASE(wakes_each_stage_also_where_it_is_the_only_one),
            CASE(wakes_the_stages_once_a_flush_and_not_without_news),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
