/* SPDX-License-Identifier: MIT */
#include "admin/reference_flags.h"

#include "admin/config_preset.h"
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
    assert_non_null(strstr(reports.notes, "discv5-discovery, peer-exchange, rendezvous"));
    options_destroy(&options);
}

static void what_was_turned_off_is_not_mentioned(void **state)
{
    struct reports reports;
    (void)state;
    assert_int_equal(judge_one(&reports, "peer-exchange", "false"), STATUS_OK);
    assert_null(strstr(reports.notes, "peer-exchange"));
    assert_non_null(strstr(reports.notes, "rendezvous"));
}

static void refuses_what_the_operator_would_rely_on(void **state)
{
    static const char *const asked[][2] = {{"rln-relay", "true"},
            {"dns-discovery-url", "enrtree://x@example.org"},
            {"peer-exchange-node", "/ip4/1.2.3.4/tcp/1"}, {"mix", "true"}, {"quic-support", "true"},
            {"mode", "Edge"}};
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
            {"dns-discovery-url", ""}, {"mode", "core"}, {"quic-support", "false"},
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
    assert_int_equal(judge_one(&reports, "quic-port", "60000"), STATUS_OK);
    assert_int_equal(reports.note_count, 2);
    assert_non_null(strstr(reports.notes, "--quic-port is passed over: "));
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

/*
 * tests/vectors/reference_flags.txt: whatever stands on an operator's command line is either done, or
 * its fate is in the table; what is done is not in the table as well (options_create asserts).
 */
static void no_flag_of_the_reference_is_unknown(void **state)
{
    struct options *options = made_options(NULL);
    FILE *file = fopen("tests/vectors/reference_flags.txt", "r");
    char line[128];
    size_t count = 0;
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '#') {
            print_message("%s\n", line);
            assert_non_null(options_find_spec(options, line));
            count++;
        }
    }
    assert_int_equal(count, 103);
    assert_int_equal(fclose(file), 0);
    options_destroy(&options);
}

static enum status apply_preset(struct options *options, const char *name, struct reports *reports)
{
    struct options_error error;
    struct config_reporter reporter = reporter_of(reports);
    assert_int_equal(options_set(options, "preset", name, &error), STATUS_OK);
    return config_preset_apply(options, &reporter);
}

static void a_preset_fills_in_what_nobody_set(void **state)
{
    struct options *options = made_options(NULL);
    struct options_error error;
    struct reports reports;
    (void)state;
    assert_int_equal(options_set(options, "max-msg-size", "200KiB", &error), STATUS_OK);
    assert_int_equal(options_set(options, "staticnode", "/ip4/127.0.0.1/tcp/1", &error), STATUS_OK);
    assert_int_equal(apply_preset(options, "status.prod", &reports), STATUS_OK);
    assert_int_equal(options_number(options, "cluster-id"), 16);
    assert_int_equal(options_number(options, "num-shards-in-network"), 1);
    assert_int_equal(options_number(options, "max-msg-size"), 204800);
    assert_non_null(strstr(reports.notes, "--max-msg-size stays as it is set"));
    assert_int_equal(options_list_count(options, "staticnode"), 4);
    assert_string_equal(options_list_item(options, "staticnode", 0), "/ip4/127.0.0.1/tcp/1");
    options_destroy(&options);
}

static void presets_that_need_rln_or_do_not_exist_are_refused(void **state)
{
    struct options *options = made_options(NULL);
    struct reports reports;
    (void)state;
    assert_int_equal(apply_preset(options, "TWN", &reports), STATUS_UNSUPPORTED);
    assert_non_null(strstr(reports.errors, "RLN"));
    assert_int_equal(apply_preset(options, "logos", &reports), STATUS_NOT_FOUND);
    assert_non_null(strstr(reports.errors, "twn, logos.test, logos.dev, status.prod"));
    options_destroy(&options);
}

static void entry_nodes_become_static_nodes_and_records_are_refused(void **state)
{
    static const char *const bad[] = {"enr:-QESuED0q", "enrtree://KEY@example.org"};
    struct reports reports;
    struct config_reporter reporter = reporter_of(&reports);
    (void)state;
    struct options *options = made_options(NULL);
    struct options_error error;
    assert_int_equal(options_set(options, "entry-node", "/ip4/1.2.3.4/tcp/5", &error), STATUS_OK);
    assert_int_equal(config_preset_apply(options, &reporter), STATUS_OK);
    assert_string_equal(options_list_item(options, "staticnode", 0), "/ip4/1.2.3.4/tcp/5");
    options_destroy(&options);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options = made_options(NULL);
        assert_int_equal(options_set(options, "entry-node", bad[i], &error), STATUS_OK);
        assert_int_equal(config_preset_apply(options, &reporter), STATUS_UNSUPPORTED);
        options_destroy(&options);
    }
}

static void the_waku_network_is_refused_by_its_number_too(void **state)
{
    struct options *options = made_options(NULL);
    struct reports reports;
    struct config_reporter reporter = reporter_of(&reports);
    struct options_error error;
    (void)state;
    assert_int_equal(options_set(options, "cluster-id", "2", &error), STATUS_OK);
    assert_int_equal(config_preset_apply(options, &reporter), STATUS_OK);
    assert_int_equal(reports.note_count, 1);
    assert_int_equal(options_set(options, "cluster-id", "1", &error), STATUS_OK);
    assert_int_equal(config_preset_apply(options, &reporter), STATUS_UNSUPPORTED);
    assert_non_null(strstr(reports.errors, "RLN"));
    options_destroy(&options);
}

static void store_decides_about_the_archive_unless_archive_does(void **state)
{
    static const struct {
        const char *store;
        const char *archive;
        const char *wanted;
    } rows[] = {{NULL, NULL, "none"}, {"false", NULL, "none"},
            {"true", NULL, "sqlite://store.sqlite3"}, {"false", "memory", "memory"},
            {"true", "memory", "memory"}};
    struct reports reports;
    struct config_reporter reporter = reporter_of(&reports);
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct options *options = made_options(NULL);
        struct options_error error;
        if (rows[i].store != NULL) {
            assert_int_equal(options_set(options, "store", rows[i].store, &error), STATUS_OK);
        }
        if (rows[i].archive != NULL) {
            assert_int_equal(options_set(options, "archive", rows[i].archive, &error), STATUS_OK);
        }
        assert_int_equal(config_preset_apply(options, &reporter), STATUS_OK);
        assert_string_equal(options_text(options, "archive"), rows[i].wanted);
        options_destroy(&options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(says_in_one_line_what_the_reference_has_on_by_default),
            cmocka_unit_test(what_was_turned_off_is_not_mentioned),
            cmocka_unit_test(refuses_what_the_operator_would_rely_on),
            cmocka_unit_test(takes_what_says_nothing_new),
            cmocka_unit_test(names_what_it_passes_over),
            cmocka_unit_test(no_flag_of_the_reference_is_unknown),
            cmocka_unit_test(a_preset_fills_in_what_nobody_set),
            cmocka_unit_test(presets_that_need_rln_or_do_not_exist_are_refused),
            cmocka_unit_test(entry_nodes_become_static_nodes_and_records_are_refused),
            cmocka_unit_test(the_waku_network_is_refused_by_its_number_too),
            cmocka_unit_test(store_decides_about_the_archive_unless_archive_does),
            cmocka_unit_test(details_of_what_is_off_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
