/* SPDX-License-Identifier: MIT */
#include "admin/config_limits.h"

#include "tests/unit/admin/config_fixture.h"

/* What is reported when these are set: name, value, ..., NULL. */
static void check(struct reports *reports, enum option_source source, const char *const settings[])
{
    struct options *options = made_options(NULL);
    struct config_reporter reporter = reporter_of(reports);
    struct options_error error;
    for (size_t i = 0; settings[i] != NULL; i += 2) {
        assert_int_equal(
                options_set_from(options, source, settings[i], settings[i + 1], &error), STATUS_OK);
    }
    config_limits_check(options, &reporter);
    assert_int_equal(reports->error_count, 0);
    options_destroy(&options);
}

static void the_defaults_contradict_nothing(void **state)
{
    static const char *const none[] = {NULL};
    struct reports reports;
    (void)state;
    check(&reports, OPTION_FROM_ARGUMENT, none);
    assert_int_equal(reports.note_count, 0);
}

static void what_contradicts_is_named_with_both_options(void **state)
{
    static const char *const cases[][5] = {
            {"max-msg-size", "64MiB", "memory-budget", "1MiB", NULL},
            {"relay-queue-limit", "8MiB", "outbound-budget", "2MiB", NULL},
            {"lightpush-limit", "1", "lightpush-peer-limit", "2", NULL},
            {"store-answer-limit", "2MiB", "store-answers-limit", "1MiB", NULL},
            {"filter-max-peers-to-serve", "151", "max-connections", "150", NULL},
            {"lightpush", "true", "relay", "false", NULL},
            {"store-message-retention-policy", "capacity:10", "archive", "none", NULL},
            {"websocket-secure-key-path", "key.pem", "websocket-secure-support", "false", NULL},
            {"tcp-port", "8000", "websocket-support", "true", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct reports reports;
        char name[64];
        check(&reports, OPTION_FROM_ARGUMENT, cases[i]);
        snprintf(name, sizeof(name), "--%s", cases[i][0]);
        print_message("%s", reports.notes);
        assert_true(reports.note_count >= 1);
        assert_non_null(strstr(reports.notes, name));
    }
}

static void what_is_equal_or_off_is_not_named(void **state)
{
    static const char *const cases[][5] = {
            {"relay-queue-limit", "2MiB", "outbound-budget", "2MiB", NULL},
            {"max-connections", "100", NULL}, /* below a default of filter's */
            {"tcp-port", "8000", NULL},       /* nobody listens for WebSocket */
            {"store-message-retention-policy", "capacity:10", "archive", "memory", NULL},
            {"relay", "false", NULL}, /* lightpush is on by default */
            {"tcp-port", "0", "websocket-port", "0", NULL},
            {"ip-colocation-limit", "0", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct reports reports;
        check(&reports, OPTION_FROM_ARGUMENT, cases[i]);
        assert_string_equal(reports.notes, "");
    }
}

static void a_preset_is_no_mistake_of_the_operators(void **state)
{
    static const char *const settings[] = {"relay", "false", "lightpush", "true", NULL};
    struct reports reports;
    (void)state;
    check(&reports, OPTION_FROM_PRESET, settings);
    assert_int_equal(reports.note_count, 0);
}

static void budgets_above_the_machines_memory_are_named(void **state)
{
    const uint64_t mebibyte = 1024 * 1024;
    struct options *options = made_options(NULL);
    struct options_error error;
    struct reports reports;
    struct config_reporter reporter = reporter_of(&reports);
    (void)state;
    assert_int_equal(options_set(options, "archive", "memory", &error), STATUS_OK);
    config_memory_check(options, 64 * 1024 * mebibyte, &reporter);
    config_memory_check(options, 0, &reporter);
    assert_int_equal(reports.note_count, 0);
    /* 512 + 256 + 256 + 64 + 1024 */
    config_memory_check(options, 2112 * mebibyte, &reporter);
    assert_int_equal(reports.note_count, 0);
    config_memory_check(options, 2111 * mebibyte, &reporter);
    assert_int_equal(reports.note_count, 1);
    assert_non_null(strstr(reports.notes, "2112 MiB"));
    assert_int_equal(options_set(options, "archive", "none", &error), STATUS_OK);
    reporter = reporter_of(&reports);
    config_memory_check(options, 1088 * mebibyte, &reporter);
    assert_int_equal(reports.note_count, 0);
    assert_true(config_machine_bytes() > 0);
    options_destroy(&options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_defaults_contradict_nothing),
            cmocka_unit_test(what_contradicts_is_named_with_both_options),
            cmocka_unit_test(what_is_equal_or_off_is_not_named),
            cmocka_unit_test(a_preset_is_no_mistake_of_the_operators),
            cmocka_unit_test(budgets_above_the_machines_memory_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
