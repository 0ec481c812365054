/* SPDX-License-Identifier: MIT */
#include "tests/support/cmocka.h"

#include <stdio.h>

#include "base/rcu.h"
#include "tests/support/archive_fixture.h"
#include "workers/archive_worker.h"

enum {
    LANES = 4,
    RING = 16
};

static void one_busy_lane_is_spilled_while_the_others_are_idle(void **state)
{
    static struct progress progress;
    static struct parking parking;
    static struct archive_stage stage;
    struct spmc_ring *rings[LANES];
    struct frame_budget *budget;
    char folder[256];
    char path[300];
    (void)state;
    fixture_make_folder(folder);
    snprintf(path, sizeof(path), "%s/spill", folder);
    struct spill_options options = {.path = path, .limit_bytes = 1 << 20};
    assert_int_equal(spill_open(&stage.spill, &options), STATUS_OK);
    assert_int_equal(frame_budget_create(&budget, 1 << 20, 1), STATUS_OK);
    progress_init(&progress);
    parking_init(&parking);
    for (size_t i = 0; i < LANES; i++) {
        assert_int_equal(spmc_ring_create(&rings[i], RING, NULL), STATUS_OK);
        stage.spill_rings.rings[i] = rings[i];
        stage.archive_rings.rings[i] = rings[i];
    }
    stage.spill_rings.count = LANES;
    stage.archive_rings.count = LANES;
    stage.ring_capacity = RING;
    stage.archive_parking = &parking;
    stage.spill_parking = &parking;
    stage.budget = budget;
    stage.progress = &progress;
    stage.spill_slot = progress_add_slot(&progress, progress_add_stage(&progress));
    assert_int_equal(archive_stage_init(&stage), STATUS_OK);
    struct worker_role role = archive_stage_spill_role(&stage, "spill");
    rcu_register();
    for (unsigned i = 0; i < RING - 1; i++) {
        struct fixture_message fields = {.number = i, .timestamp_ns = 1000, .payload_bytes = 64};
        assert_true(spmc_ring_try_push(rings[1], fixture_envelope(&fields)));
    }
    while (role.turn(&stage) > 0) {
    }
    assert_int_equal(spmc_ring_depth_estimate(rings[1]), 0);
    assert_int_equal(spill_count(stage.spill), RING - 1);
    rcu_unregister();
    archive_stage_fini(&stage);
    spill_close(&stage.spill);
    for (size_t i = 0; i < LANES; i++) {
        spmc_ring_destroy(&rings[i]);
    }
    frame_budget_destroy(&budget);
    fixture_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(one_busy_lane_is_spilled_while_the_others_are_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
