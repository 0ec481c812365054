/* SPDX-License-Identifier: MIT */
#include "admin/reference_flags.h"

#include "tests/unit/admin/config_fixture.h"

static enum status judge(struct options *options, struct reports *reports)
{
    struct config_reporter reporter = reporter_of(reports);
    return reference_flags_check(options, &reporter);
}

/* The status and the reports after one flag was set. */
static enum status judge_one(struct reports *reports, const char *name, const char *text)
{
    struct options *options = made_options(NULL);
    struct options_error error;
    assert_int_equal(options_set(options, name, text, &error), STATUS_OK);
    enum status status = judge(options, reports);
    options_destroy(&options);
    return status;
}

static void says_in_one_line_what_the_reference_has_on_by_default(void **state)
{
    struct options *options = made_options(NULL);
    struct reports reports;
    (void)state;
    assert_int_equal(judge(options, &reports), STATUS_OK);
    assert_int_equal(reports.note_count, 1);
    assert_non_null(strstr(
            reports.notes, "discv5-discovery, peer-exchange, rendezvous, filter, lightpush"));
    options_destroy(&options);
}

static void what_was_turned_off_is_not_mentioned(void **state)
{
    struct reports reports;
    (void)state;
    assert_int_equal(judge_one(&reports, "filter", "false"), STATUS_OK);
    assert_null(strstr(reports.notes, "filter"));
    assert_non_null(strstr(reports.notes, "lightpush"));
}

static void refuses_what_the_operator_would_rely_on(void **state)
{
    static const char *const asked[][2] = {{"rln-relay", "true"}, {"discv5-discovery", "true"},
            {"dns-discovery-url", "enrtree://x@example.org"}, {"discv5-bootstrap-node", "enr:-x"},
            {"peer-exchange-node", "/ip4/1.2.3.4/tcp/1"}, {"mix", "true"}, {"quic-support", "true"},
            {"protected-shard", "0:02ab"}, {"relay-service-ratio", "60:40"},
            {"peer-persistence", "true"}, {"store-sync", "true"}, {"mode", "Edge"},
            {"rest", "true"}, {"metrics-server", "true"}, {"filter", "true"},
            {"lightpush", "true"}};
    (void)state;
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        struct reports reports;
        char flag[64];
        assert_int_equal(judge_one(&reports, asked[i][0], asked[i][1]), STATUS_UNSUPPORTED);
        assert_int_equal(reports.error_count, 1);
        snprintf(flag, sizeof(flag), "--%s: ", asked[i][0]);
        assert_int_equal(strncmp(reports.errors, flag, strlen(flag)), 0);
    }
}

static void takes_what_says_nothing_new(void **state)
{
    static const char *const neutral[][2] = {{"rln-relay", "false"}, {"discv5-discovery", "false"},
            {"dns-discovery-url", ""}, {"relay-service-ratio", "50:50"}, {"mode", "core"},
            {"quic-support", "false"}, {"store-message-retention-policy", "none"},
            {"kad-bootstrap-node", "/ip4/1.2.3.4/tcp/1/p2p/x"}};
    (void)state;
    for (size_t i = 0; i < sizeof(neutral) / sizeof(neutral[0]); i++) {
        struct reports reports;
        assert_int_equal(judge_one(&reports, neutral[i][0], neutral[i][1]), STATUS_OK);
        assert_int_equal(reports.error_count, 0);
        assert_int_equal(reports.note_count, 1);
    }
}

static void names_what_it_passes_over(void **state)
{
    struct reports reports;
    (void)state;
    assert_int_equal(judge_one(&reports, "rest-port", "8645"), STATUS_OK);
    assert_int_equal(reports.note_count, 2);
    assert_non_null(strstr(reports.notes, "--rest-port is passed over: "));
}

static void details_of_what_is_off_are_taken(void **state)
{
    struct options *options = made_options(NULL);
    struct options_error error;
    struct reports reports;
    (void)state;
    assert_int_equal(options_set(options, "discv5-bootstrap-node", "enr:-x", &error), STATUS_OK);
    assert_int_equal(options_set(options, "discv5-discovery", "false", &error), STATUS_OK);
    assert_int_equal(judge(options, &reports), STATUS_OK);
    options_destroy(&options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(says_in_one_line_what_the_reference_has_on_by_default),
            cmocka_unit_test(what_was_turned_off_is_not_mentioned),
            cmocka_unit_test(refuses_what_the_operator_would_rely_on),
            cmocka_unit_test(takes_what_says_nothing_new),
            cmocka_unit_test(names_what_it_passes_over),
            cmocka_unit_test(details_of_what_is_off_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
