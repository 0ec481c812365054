/* SPDX-License-Identifier: MIT */
#include "workers/archive_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "archive/file_ops.h"
#include "base/ledger.h"
#include "base/rcu.h"
#include "router/dispatcher.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/cmocka.h"

enum {
    RING = 16,
    BUDGET = 1 << 20
};

static char folder[256];
static char spill_path[300];
static struct metrics *metrics;
static struct frame_budget *budget;
static struct progress progress;
static struct parking archive_parking;
static struct parking spill_parking;
static struct stage_load load;
static struct spmc_ring *ring;
static struct archive_stage stage;
static struct worker_role archive_role;
static struct worker_role spill_role;
static int write_error; /* of the engine's files; 0: they work */
static int spill_error; /* of the spill file */
static size_t acknowledged;
static struct retention_policy retention; /* of the next stage */

static ssize_t write_engine(int fd, const struct iovec *parts, int count, off_t offset)
{
    return write_error != 0 ? -write_error : file_ops_of_system.write(fd, parts, count, offset);
}

static ssize_t write_spill(int fd, const struct iovec *parts, int count, off_t offset)
{
    return spill_error != 0 ? -spill_error : file_ops_of_system.write(fd, parts, count, offset);
}

static void count_acknowledged(void *context, const uint8_t hash[MESSAGE_HASH_BYTES])
{
    (void)context;
    (void)hash;
    acknowledged++;
}

static void open_archive(void)
{
    static struct file_ops files;
    char address[300];
    struct archive_error error;
    files = file_ops_of_system;
    files.write = write_engine;
    struct archive_options options = {.files = &files};
    snprintf(address, sizeof(address), "sqlite://%s/archive.db", folder);
    assert_int_equal(archive_open(&stage.archive, address, &options, &error), STATUS_OK);
}

static void open_spill(uint64_t limit_bytes)
{
    static struct file_ops files;
    files = file_ops_of_system;
    files.write = write_spill;
    struct spill_options options = {
            .path = spill_path, .limit_bytes = limit_bytes, .files = &files};
    assert_int_equal(spill_open(&stage.spill, &options), STATUS_OK);
}

/* limit_bytes 0: no spill file. */
static void make_stage(uint64_t limit_bytes)
{
    memset(&stage, 0, sizeof(stage));
    progress_init(&progress);
    open_archive();
    if (limit_bytes > 0) {
        open_spill(limit_bytes);
    }
    size_t number = progress_add_stage(&progress);
    stage.archive_rings = (struct ring_set){.rings = {ring}, .count = 1, .load = &load};
    stage.spill_rings = stage.archive_rings;
    stage.ring_capacity = RING;
    stage.archive_parking = &archive_parking;
    stage.spill_parking = &spill_parking;
    stage.budget = budget;
    stage.progress = &progress;
    stage.archive_slot = progress_add_slot(&progress, number);
    stage.spill_slot = progress_add_slot(&progress, number);
    stage.batch_max = 4;
    stage.retention_policy = retention;
    stage.acknowledge = count_acknowledged;
    assert_int_equal(archive_stage_init(&stage), STATUS_OK);
    archive_role = archive_stage_archive_role(&stage, "archive");
    spill_role = archive_stage_spill_role(&stage, "spill");
    assert_int_equal(archive_role.start(&stage), STATUS_OK);
}

static void end_stage(void)
{
    archive_role.stop(&stage);
    archive_stage_fini(&stage);
    spill_close(&stage.spill);
    archive_close(&stage.archive);
}

static int set_up(void **state)
{
    (void)state;
    fixture_make_folder(folder);
    snprintf(spill_path, sizeof(spill_path), "%s/spill", folder);
    assert_int_equal(metrics_create(&metrics), STATUS_OK);
    assert_int_equal(metrics_attach_thread(metrics), STATUS_OK);
    assert_int_equal(frame_budget_create(&budget, BUDGET, 1), STATUS_OK);
    parking_init(&archive_parking);
    parking_init(&spill_parking);
    load = (struct stage_load){.lane_count = 1};
    assert_int_equal(spmc_ring_create(&ring, RING, NULL), STATUS_OK);
    rcu_register();
    write_error = 0;
    spill_error = 0;
    acknowledged = 0;
    retention = (struct retention_policy){0};
    return 0;
}

static uint64_t counted(enum metric metric)
{
    return metrics_sum(metrics, metric);
}

static int tear_down(void **state)
{
    (void)state;
    rcu_unregister();
    rcu_drain();
    spmc_ring_destroy(&ring);
    assert_int_equal(counted(METRIC_ENVELOPES), counted(METRIC_ENVELOPES_FREED));
    assert_int_equal(stage_load_bytes(&load), 0);
    frame_budget_destroy(&budget);
    metrics_detach_thread();
    metrics_destroy(&metrics);
    fixture_remove_folder(folder);
    return 0;
}

/* As the dispatcher does it. */
static void push_of(unsigned number, size_t payload_bytes)
{
    struct fixture_message fields = {.number = number,
            .timestamp_ns = 1000 + (int64_t)number,
            .payload_bytes = payload_bytes};
    struct envelope *envelope = fixture_envelope(&fields);
    metrics_add(LEDGER_ARCHIVE_RECEIVED, 1);
    stage_load_add(&load, 0, stage_load_of(envelope));
    assert_true(spmc_ring_try_push(ring, envelope));
}

static void push(unsigned from, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        push_of(from + i, 64);
    }
}

static void run_archive(void)
{
    stage.retry_at_ns = stage.retry_at_ns != 0 ? 1 : 0; /* as if the delay had passed */
    while (archive_role.turn(&stage) > 0) {
    }
}

static size_t run_spill(void)
{
    size_t all = 0;
    size_t count;
    while ((count = spill_role.turn(&stage)) > 0) {
        all += count;
    }
    return all;
}

static void assert_closed(void)
{
    struct ledger ledger;
    ledger_read(&ledger, metrics, LEDGER_STAGE_ARCHIVE, archive_stage_held(&stage));
    assert_true(ledger_is_closed(&ledger));
}

static uint64_t stored(void)
{
    struct archive_totals totals;
    assert_int_equal(archive_totals(stage.archive, &totals), STATUS_OK);
    return totals.count;
}

static enum status health(void)
{
    uint64_t since_ns;
    return archive_stage_health(&stage, &since_ns);
}

static void stores_what_the_ring_holds_in_batches_and_counts_it_once_stored(void **state)
{
    (void)state;
    make_stage(0);
    push(0, 10);
    assert_int_equal(archive_stage_held(&stage), 10);
    assert_closed();
    run_archive();
    assert_int_equal(stored(), 10);
    assert_int_equal(counted(LEDGER_ARCHIVE_DELIVERED), 10);
    assert_int_equal(counted(METRIC_ARCHIVE_BATCHES), 3); /* of 4, 4 and 2 */
    assert_int_equal(acknowledged, 10);
    assert_int_equal(progress_finished(&progress), 10);
    assert_int_equal(archive_stage_held(&stage), 0);
    assert_false(archive_role.has_work(&stage));
    assert_closed();
    end_stage();
}

static void refuses_what_the_archive_had_before_as_duplicate(void **state)
{
    (void)state;
    make_stage(0);
    push(0, 3);
    run_archive();
    push(1, 3);
    run_archive();
    assert_int_equal(stored(), 4);
    assert_int_equal(counted(LEDGER_ARCHIVE_DELIVERED), 4);
    assert_int_equal(counted(LEDGER_ARCHIVE_DUPLICATE), 2);
    assert_int_equal(progress_finished(&progress), 6);
    assert_closed();
    end_stage();
}

static void keeps_a_refused_batch_and_stores_it_when_the_disk_works_again(void **state)
{
    uint64_t since_ns = 0;
    (void)state;
    make_stage(0);
    push(0, 4);
    write_error = ENOSPC;
    run_archive();
    assert_int_equal(archive_stage_health(&stage, &since_ns), STATUS_DISK_FULL);
    assert_int_not_equal(since_ns, 0);
    assert_int_equal(counted(METRIC_ARCHIVE_FAILURES), 1);
    assert_int_equal(counted(LEDGER_ARCHIVE_DELIVERED), 0);
    assert_int_equal(acknowledged, 0);
    assert_int_equal(archive_stage_held(&stage), 4);
    assert_closed();
    write_error = 0;
    run_archive();
    assert_int_equal(archive_stage_health(&stage, &since_ns), STATUS_OK);
    assert_int_equal(since_ns, 0);
    assert_int_equal(stored(), 4);
    assert_closed();
    end_stage();
}

static void removes_what_is_beyond_the_policy_after_each_batch(void **state)
{
    (void)state;
    retention.max_count = 6;
    make_stage(0);
    for (unsigned i = 0; i < 10; i++) {
        push(4 * i, 4);
        assert_true(archive_role.has_work(&stage));
        run_archive();
        assert_true(stored() <= 6);
        assert_closed();
    }
    assert_int_equal(counted(METRIC_ARCHIVE_PRUNED), 34);
    assert_int_equal(counted(LEDGER_ARCHIVE_DELIVERED), 40);
    assert_int_equal(progress_finished(&progress), 40);
    /* It looks again without being woken, and does not hold up the end. */
    assert_true(archive_role.deadline(&stage) != UINT64_MAX);
    end_stage();
}

static void removes_old_messages_while_the_disk_is_full(void **state)
{
    (void)state;
    retention.max_age_s = 1000;
    make_stage(0);
    push(0, 4); /* of 1970 */
    write_error = ENOSPC;
    run_archive();
    assert_int_equal(health(), STATUS_DISK_FULL);
    write_error = 0;
    run_archive();
    write_error = ENOSPC;
    push(4, 4);
    stage.retention.due_ns = 0;
    run_archive();
    assert_int_equal(health(), STATUS_DISK_FULL);
    assert_int_equal(stored(), 0);
    assert_int_equal(counted(METRIC_ARCHIVE_PRUNED), 4);
    assert_closed();
    write_error = 0;
    end_stage();
}

static void shows_what_is_in_the_archive_to_other_threads(void **state)
{
    (void)state;
    make_stage(0);
    assert_int_equal(archive_stage_extent(&stage).count, 0);
    push(0, 4);
    run_archive();
    stage.extent_due_ns = 0;
    push(4, 4);
    run_archive();
    struct archive_totals extent = archive_stage_extent(&stage);
    assert_int_equal(extent.count, 8);
    assert_true(extent.size_bytes > 8 * 64);
    assert_true(extent.oldest_ns == 1000 && extent.newest_ns == 1007);
    end_stage();
}

static void waits_longer_after_each_failure_and_no_turn_tries_before(void **state)
{
    uint64_t delay = 0;
    (void)state;
    make_stage(0);
    push(0, 1);
    write_error = ENOSPC;
    for (int i = 0; i < 4; i++) {
        run_archive();
        assert_true(stage.retry_delay_ns > delay);
        delay = stage.retry_delay_ns;
        uint64_t failures = counted(METRIC_ARCHIVE_FAILURES);
        assert_int_equal(archive_role.deadline(&stage), stage.retry_at_ns);
        stage.retry_at_ns = UINT64_MAX;
        assert_int_equal(archive_role.turn(&stage), 0);
        assert_false(archive_role.has_work(&stage));
        assert_int_equal(counted(METRIC_ARCHIVE_FAILURES), failures);
    }
    write_error = 0;
    stage.extent_due_ns = 0;
    run_archive();
    assert_int_equal(archive_role.deadline(&stage), UINT64_MAX);
    end_stage();
}

static void shows_what_was_stored_last_though_nothing_follows(void **state)
{
    (void)state;
    make_stage(0);
    push(0, 2);
    run_archive();
    stage.extent_due_ns = UINT64_MAX - 1; /* it was looked at a moment ago */
    push(2, 1);
    run_archive();
    assert_int_equal(archive_role.deadline(&stage), UINT64_MAX - 1);
    stage.extent_due_ns = 0;
    run_archive();
    assert_int_equal(archive_stage_extent(&stage).count, 3);
    assert_int_equal(archive_role.deadline(&stage), UINT64_MAX);
    end_stage();
}

static void tells_those_who_wait_that_the_engine_fails(void **state)
{
    (void)state;
    make_stage(0);
    push(0, 1);
    write_error = ENOSPC;
    uint32_t ticket = parking_prepare(&progress.parking);
    run_archive();
    assert_true(parking_wait(&progress.parking, ticket, 0));
    write_error = 0;
    run_archive();
    end_stage();
}

static void a_batch_takes_no_more_than_its_part_of_the_memory_budget(void **state)
{
    enum {
        LARGE = 100 * 1000
    };
    (void)state;
    make_stage(0);
    stage.batch_max = ARCHIVE_BATCH_MAX;
    for (unsigned i = 0; i < RING - 1; i++) {
        push_of(i, LARGE);
    }
    write_error = ENOSPC;
    run_archive();
    /* A quarter of 1 MiB, and what one step goes beyond it. */
    assert_in_range(stage.batch_count, 1, 8);
    assert_true(spmc_ring_depth_estimate(ring) > 0);
    write_error = 0;
    run_archive();
    assert_int_equal(stored(), RING - 1);
    end_stage();
}

static void leaves_the_ring_to_the_archive_until_it_is_half_full(void **state)
{
    (void)state;
    make_stage(1 << 20);
    push(0, RING / 2);
    assert_int_equal(run_spill(), 0);
    push(100, 1);
    assert_true(spill_role.has_work(&stage));
    assert_in_range(run_spill(), 1, RING);
    assert_closed();
    run_archive();
    assert_int_equal(stored(), RING / 2 + 1);
    end_stage();
}

static void spills_when_the_frames_in_flight_fill_half_the_budget(void **state)
{
    (void)state;
    make_stage(1 << 20);
    push(0, 1);
    assert_int_equal(run_spill(), 0);
    assert_true(frame_budget_try_charge(budget, FRAME_BUDGET_COMPLETE, BUDGET / 2 + 1));
    assert_int_equal(run_spill(), 1);
    frame_budget_release(budget, BUDGET / 2 + 1);
    run_archive();
    end_stage();
}

static void reads_back_what_was_spilled_once_the_engine_has_caught_up(void **state)
{
    (void)state;
    make_stage(1 << 20);
    write_error = EIO;
    push(0, 12);
    run_archive(); /* has 4 in hand that it cannot store */
    push(12, 5);
    assert_in_range(run_spill(), 1, 13);
    assert_true(counted(METRIC_ARCHIVE_SPILLED) > 0);
    assert_int_equal(progress_finished(&progress), 0); /* spilled is not stored */
    assert_closed();
    write_error = 0;
    run_archive();
    assert_int_equal(stored(), 17);
    assert_int_equal(acknowledged, 17);
    assert_int_equal(counted(LEDGER_ARCHIVE_DELIVERED), 17);
    assert_int_equal(progress_finished(&progress), 17);
    assert_int_equal(spill_count(stage.spill), 0);
    assert_closed();
    end_stage();
}

static void keeps_spilled_records_in_the_file_while_the_engine_refuses_them(void **state)
{
    (void)state;
    make_stage(1 << 20);
    push(0, 12);
    size_t spilled = run_spill();
    run_archive(); /* so that only the file is left... */
    push(20, 12);
    spilled = run_spill();
    struct envelope *left;
    while ((left = spmc_ring_try_pop(ring)) != NULL) { /* ...and nothing in the ring */
        metrics_add(LEDGER_ARCHIVE_DUPLICATE, 1);
        ring_set_release(&stage.archive_rings, left);
    }
    write_error = EIO;
    run_archive();
    assert_int_equal(spill_count(stage.spill), spilled);
    assert_int_not_equal(health(), STATUS_OK);
    assert_closed();
    write_error = 0;
    run_archive();
    assert_int_equal(spill_count(stage.spill), 0);
    assert_closed();
    end_stage();
}

static void wakes_the_archive_thread_after_it_has_spilled(void **state)
{
    (void)state;
    make_stage(1 << 20);
    push(0, 12);
    uint32_t ticket = parking_prepare(&archive_parking);
    assert_true(spill_role.turn(&stage) > 0);
    assert_true(parking_wait(&archive_parking, ticket, 0));
    assert_true(archive_role.has_work(&stage));
    run_archive();
    end_stage();
}

static void drops_what_the_spill_file_has_no_room_for_and_counts_it(void **state)
{
    (void)state;
    make_stage(800); /* a few records */
    write_error = EIO;
    push(0, 4);
    run_archive();
    push(4, 12);
    size_t taken = run_spill();
    uint64_t dropped = counted(LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE);
    assert_in_range(dropped, 1, taken - 1);
    assert_int_equal(dropped + spill_count(stage.spill), taken);
    assert_int_equal(progress_finished(&progress), dropped);
    assert_closed();
    write_error = 0;
    run_archive();
    assert_int_equal(stored(), 16 - dropped);
    assert_closed();
    end_stage();
}

static void drops_when_the_disk_of_the_spill_file_is_full(void **state)
{
    (void)state;
    make_stage(1 << 20);
    spill_error = ENOSPC;
    push(0, 12);
    size_t taken = run_spill();
    assert_true(taken > 0);
    assert_int_equal(counted(LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE), taken);
    assert_int_equal(spill_count(stage.spill), 0);
    assert_closed();
    spill_error = 0;
    run_archive();
    assert_int_equal(stored(), 12 - taken);
    end_stage();
}

static void without_a_spill_file_the_end_drops_what_the_engine_refuses(void **state)
{
    (void)state;
    make_stage(0);
    write_error = EIO;
    push(0, 9);
    run_archive();
    archive_role.stop(&stage);
    assert_int_equal(counted(LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE), 9);
    assert_int_equal(archive_stage_held(&stage), 0);
    assert_int_equal(progress_finished(&progress), 9);
    assert_closed();
    end_stage();
}

static void what_the_engine_refused_at_the_end_is_stored_at_the_next_start(void **state)
{
    (void)state;
    make_stage(1 << 20);
    write_error = EIO;
    push(0, 9);
    run_archive();
    archive_role.stop(&stage);
    assert_int_equal(archive_stage_held(&stage), 9);
    assert_int_equal(counted(LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE), 0);
    assert_closed();
    end_stage();
    write_error = 0;
    metrics_detach_thread();
    metrics_destroy(&metrics);
    assert_int_equal(metrics_create(&metrics), STATUS_OK);
    assert_int_equal(metrics_attach_thread(metrics), STATUS_OK);
    make_stage(1 << 20);
    assert_int_equal(counted(LEDGER_ARCHIVE_RECEIVED), 9);
    assert_int_equal(archive_stage_held(&stage), 9);
    assert_closed();
    push(9, 2);
    run_archive();
    assert_int_equal(stored(), 11);
    /* Nobody of this process waits for the nine. */
    assert_int_equal(progress_finished(&progress), 2);
    assert_closed();
    end_stage();
}

static void large_batches_all_leave_at_the_end(void **state)
{
    (void)state;
    make_stage(8 << 20);
    stage.batch_max = ARCHIVE_BATCH_MAX;
    write_error = EIO;
    for (unsigned i = 0; i < RING - 1; i++) {
        push_of(i, 100000);
    }
    run_archive();
    archive_role.stop(&stage);
    assert_int_equal(spmc_ring_depth_estimate(ring), 0);
    assert_int_equal(archive_stage_held(&stage), RING - 1);
    assert_closed();
    end_stage();
}

static void overwrite_file(off_t offset)
{
    int fd = open(spill_path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "damaged damaged damaged damaged", 31, offset), 31);
    close(fd);
}

static void counts_what_a_damaged_spill_file_has_lost_and_goes_on(void **state)
{
    (void)state;
    make_stage(1 << 20);
    write_error = EIO;
    push(0, 12);
    size_t spilled = run_spill();
    assert_true(spilled > 0);
    overwrite_file(16);
    write_error = 0;
    uint32_t ticket = parking_prepare(&progress.parking);
    run_archive();
    assert_true(parking_wait(&progress.parking, ticket, 0));
    assert_int_equal(counted(LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE), spilled);
    assert_int_equal(stored(), 12 - spilled);
    assert_int_equal(progress_finished(&progress), 12);
    assert_int_equal(archive_stage_held(&stage), 0);
    assert_closed();
    push(50, 12);
    run_spill();
    run_archive();
    assert_int_equal(stored(), 24 - spilled);
    assert_int_equal(health(), STATUS_OK);
    assert_closed();
    end_stage();
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(stores_what_the_ring_holds_in_batches_and_counts_it_once_stored),
            CASE(refuses_what_the_archive_had_before_as_duplicate),
            CASE(keeps_a_refused_batch_and_stores_it_when_the_disk_works_again),
            CASE(removes_what_is_beyond_the_policy_after_each_batch),
            CASE(removes_old_messages_while_the_disk_is_full),
            CASE(shows_what_is_in_the_archive_to_other_threads),
            CASE(waits_longer_after_each_failure_and_no_turn_tries_before),
            CASE(shows_what_was_stored_last_though_nothing_follows),
            CASE(tells_those_who_wait_that_the_engine_fails),
            CASE(a_batch_takes_no_more_than_its_part_of_the_memory_budget),
            CASE(leaves_the_ring_to_the_archive_until_it_is_half_full),
            CASE(spills_when_the_frames_in_flight_fill_half_the_budget),
            CASE(reads_back_what_was_spilled_once_the_engine_has_caught_up),
            CASE(keeps_spilled_records_in_the_file_while_the_engine_refuses_them),
            CASE(wakes_the_archive_thread_after_it_has_spilled),
            CASE(drops_what_the_spill_file_has_no_room_for_and_counts_it),
            CASE(drops_when_the_disk_of_the_spill_file_is_full),
            CASE(without_a_spill_file_the_end_drops_what_the_engine_refuses),
            CASE(what_the_engine_refused_at_the_end_is_stored_at_the_next_start),
            CASE(large_batches_all_leave_at_the_end),
            CASE(counts_what_a_damaged_spill_file_has_lost_and_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
