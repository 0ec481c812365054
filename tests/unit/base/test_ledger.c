/* SPDX-License-Identifier: MIT */
#include "base/ledger.h"

#include "tests/support/cmocka.h"

static struct metrics *metrics;

static int attach(void **state)
{
    (void)state;
    assert_int_equal(metrics_create(&metrics), STATUS_OK);
    assert_int_equal(metrics_attach_thread(metrics), STATUS_OK);
    return 0;
}

static int detach(void **state)
{
    (void)state;
    metrics_detach_thread();
    metrics_destroy(&metrics);
    return 0;
}

static void adds_up_the_cells_of_one_stage_only(void **state)
{
    struct ledger ledger;
    (void)state;
    metrics_add(LEDGER_ARCHIVE_RECEIVED, 10);
    metrics_add(LEDGER_ARCHIVE_DELIVERED, 5);
    metrics_add(LEDGER_ARCHIVE_EPHEMERAL, 1);
    metrics_add(LEDGER_ARCHIVE_DUPLICATE, 2);
    metrics_add(LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE, 1);
    metrics_add(LEDGER_SYNC_RECEIVED, 100);
    ledger_read(&ledger, metrics, LEDGER_STAGE_ARCHIVE, 1);
    assert_int_equal(ledger.sums[LEDGER_OUTCOME_RECEIVED], 10);
    assert_int_equal(ledger.sums[LEDGER_OUTCOME_DELIVERED], 5);
    assert_int_equal(ledger.sums[LEDGER_OUTCOME_REFUSED], 3);
    assert_int_equal(ledger.sums[LEDGER_OUTCOME_DROPPED], 1);
    assert_true(ledger_is_closed(&ledger));
}

static void does_not_close_when_a_message_is_nowhere(void **state)
{
    struct ledger ledger;
    (void)state;
    metrics_add(LEDGER_EVENT_RECEIVED, 3);
    metrics_add(LEDGER_EVENT_DELIVERED, 2);
    ledger_read(&ledger, metrics, LEDGER_STAGE_EVENT, 0);
    assert_false(ledger_is_closed(&ledger));
    ledger_read(&ledger, metrics, LEDGER_STAGE_EVENT, 1);
    assert_true(ledger_is_closed(&ledger));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(adds_up_the_cells_of_one_stage_only, attach, detach),
            cmocka_unit_test_setup_teardown(
                    does_not_close_when_a_message_is_nowhere, attach, detach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
