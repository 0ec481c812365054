/* SPDX-License-Identifier: MIT */
#include "tests/support/cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/rcu.h"
#include "tests/support/archive_fixture.h"
#include "workers/archive_worker.h"

/* A damaged spill file is given up; with nothing left to try, the archive thread goes to sleep. */

static char folder[256];
static char path[300];
static struct progress progress;
static struct parking parking;
static struct archive_stage stage;

/* One record, the first bytes of which are then overwritten. */
static void make_damaged_spill(void)
{
    struct spill_options options = {.path = path, .limit_bytes = 1 << 20};
    struct fixture_message fields = {.number = 1, .timestamp_ns = 1000, .payload_bytes = 64};
    struct envelope *envelope = fixture_envelope(&fields);
    struct archive_record record = archive_record_of(envelope);
    static const char zeros[64];
    assert_int_equal(spill_open(&stage.spill, &options), STATUS_OK);
    assert_int_equal(spill_push(stage.spill, &record), STATUS_OK);
    envelope_unref(envelope);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, zeros, sizeof(zeros), 16), sizeof(zeros));
    close(fd);
}

static void sleeps_once_a_damaged_spill_file_is_given_up(void **state)
{
    struct archive_options options = {.memory_limit_bytes = 0};
    struct archive_error error;
    struct frame_budget *budget;
    (void)state;
    fixture_make_folder(folder);
    snprintf(path, sizeof(path), "%s/spill", folder);
    make_damaged_spill();
    assert_int_equal(archive_open(&stage.archive, "memory", &options, &error), STATUS_OK);
    assert_int_equal(frame_budget_create(&budget, 1 << 20, 1), STATUS_OK);
    progress_init(&progress);
    parking_init(&parking);
    size_t number = progress_add_stage(&progress);
    stage.archive_slot = progress_add_slot(&progress, number);
    stage.spill_slot = progress_add_slot(&progress, number);
    stage.progress = &progress;
    stage.archive_parking = &parking;
    stage.spill_parking = &parking;
    stage.budget = budget;
    stage.batch_max = 4;
    assert_int_equal(archive_stage_init(&stage), STATUS_OK);
    struct worker_role role = archive_stage_archive_role(&stage, "archive");
    rcu_register();
    assert_true(role.has_work(&stage));
    assert_int_equal(role.turn(&stage), 0);
    assert_int_equal(archive_stage_held(&stage), 0);
    assert_true(stage.retry_at_ns != 0);
    stage.retry_at_ns = 1; /* as if the delay had passed */
    assert_true(role.has_work(&stage));
    assert_int_equal(role.turn(&stage), 0);
    assert_false(role.has_work(&stage));
    assert_int_equal(role.deadline(&stage), UINT64_MAX);
    rcu_unregister();
    archive_stage_fini(&stage);
    spill_close(&stage.spill);
    archive_close(&stage.archive);
    frame_budget_destroy(&budget);
    fixture_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(sleeps_once_a_damaged_spill_file_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
