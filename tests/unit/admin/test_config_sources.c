/* SPDX-License-Identifier: MIT */
#include "admin/config_sources.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/admin/config_fixture.h"

struct loaded {
    struct options *options;
    struct reports reports;
    enum status status;
    char path[64];
};

/* Arguments and environment end with NULL; either may be NULL, and so may the file's text. */
static struct loaded *load(
        const char *const *arguments, const char *const *environment, const char *file_text)
{
    struct loaded *loaded = calloc(1, sizeof(*loaded));
    assert_non_null(loaded);
    struct config_reporter reporter = reporter_of(&loaded->reports);
    struct config_sources sources = {.environment = (char *const *)(uintptr_t)environment};
    if (arguments != NULL) {
        sources.argv = (char *const *)(uintptr_t)arguments;
        while (arguments[sources.argc] != NULL) {
            sources.argc++;
        }
    }
    if (file_text != NULL) {
        snprintf(loaded->path, sizeof(loaded->path), "/tmp/sluice-config-XXXXXX");
        int fd = mkstemp(loaded->path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, file_text, strlen(file_text)), strlen(file_text));
        assert_int_equal(close(fd), 0);
        sources.file = loaded->path;
    }
    loaded->options = made_options(NULL);
    loaded->status = config_load(loaded->options, &sources, &reporter);
    return loaded;
}

static void drop(struct loaded *loaded)
{
    if (loaded->path[0] != '\0') {
        assert_int_equal(unlink(loaded->path), 0);
    }
    options_destroy(&loaded->options);
    free(loaded);
}

static void flags_prevail_over_environment_over_file_over_defaults(void **state)
{
    static const char *const arguments[] = {"--max-topics=4", NULL};
    static const char *const environment[] = {
            "PATH=/bin", "SLUICE_MAX_TOPICS=3", "SLUICE_FILTER_RING=32", NULL};
    static const char file[] = "max-topics = 2\nfilter-ring = 16\nevent-ring = 64\n";
    struct loaded *loaded = load(arguments, environment, file);
    (void)state;
    assert_int_equal(loaded->status, STATUS_OK);
    assert_int_equal(options_number(loaded->options, "max-topics"), 4);
    assert_int_equal(options_number(loaded->options, "filter-ring"), 32);
    assert_int_equal(options_number(loaded->options, "event-ring"), 64);
    assert_int_equal(options_number(loaded->options, "archive-ring"), 8192);
    assert_int_equal(options_source(loaded->options, "event-ring"), OPTION_FROM_FILE);
    drop(loaded);
}

static void takes_the_references_variables_and_prefers_its_own(void **state)
{
    static const char *const environment[] = {"SLUICE_MAX_TOPICS=3", "WAKUNODE2_MAX_TOPICS=2",
            "WAKUNODE2_MAX_MSG_SIZE=10KiB", "WAKUNODE2_RELAY=false", NULL};
    struct loaded *loaded = load(NULL, environment, NULL);
    (void)state;
    assert_int_equal(loaded->status, STATUS_OK);
    assert_int_equal(options_number(loaded->options, "max-topics"), 3);
    assert_int_equal(options_number(loaded->options, "max-msg-size"), 10240);
    assert_false(options_flag(loaded->options, "relay"));
    drop(loaded);
}

static void a_retention_policy_that_is_none_is_refused_by_name(void **state)
{
    static const char *const good[] = {
            "--store", "--store-message-retention-policy=time:3600;size:1GB", NULL};
    static const char *const bad[] = {"--store-message-retention-policy=capacity:5;none", NULL};
    (void)state;
    struct loaded *loaded = load(good, NULL, NULL);
    assert_int_equal(loaded->status, STATUS_OK);
    drop(loaded);
    loaded = load(bad, NULL, NULL);
    assert_int_equal(loaded->status, STATUS_BAD_ARGUMENT);
    assert_non_null(strstr(loaded->reports.errors, "--store-message-retention-policy: \"none\""));
    drop(loaded);
}

static void a_list_in_the_environment_is_one_item_or_an_array(void **state)
{
    static const char *const one[] = {"WAKUNODE2_RATE_LIMIT=filter:100/1s", NULL};
    static const char *const two[] = {
            "WAKUNODE2_RATE_LIMIT=[\"a\", \"b\"]", "SLUICE_REST_ALLOW_ORIGIN=[", NULL};
    static const char *const both[] = {
            "SLUICE_RATE_LIMIT=b", "WAKUNODE2_RATE_LIMIT=[\"a\", \"a\"]", NULL};
    (void)state;
    struct loaded *loaded = load(NULL, one, NULL);
    assert_int_equal(options_list_count(loaded->options, "rate-limit"), 1);
    assert_string_equal(options_list_item(loaded->options, "rate-limit", 0), "filter:100/1s");
    drop(loaded);
    loaded = load(NULL, two, NULL);
    assert_int_equal(options_list_count(loaded->options, "rate-limit"), 2);
    assert_string_equal(options_list_item(loaded->options, "rate-limit", 1), "b");
    assert_int_equal(loaded->status, STATUS_BAD_FIELD);
    assert_non_null(strstr(loaded->reports.errors, "SLUICE_REST_ALLOW_ORIGIN: "));
    drop(loaded);
    loaded = load(NULL, both, NULL);
    assert_int_equal(options_list_count(loaded->options, "rate-limit"), 1);
    drop(loaded);
}

static void a_variable_of_nobody_gets_a_note_and_a_bad_value_an_error(void **state)
{
    static const char *const environment[] = {
            "WAKUNODE2_SERVICE_HOST=10.0.0.1", "SLUICE_MAX_TOPICS=many", NULL};
    struct loaded *loaded = load(NULL, environment, NULL);
    (void)state;
    assert_int_equal(loaded->status, STATUS_BAD_ARGUMENT);
    assert_non_null(strstr(loaded->reports.notes, "WAKUNODE2_SERVICE_HOST"));
    assert_non_null(
            strstr(loaded->reports.errors, "SLUICE_MAX_TOPICS: --max-topics=many: expected"));
    drop(loaded);
}

static void a_list_of_the_command_line_replaces_that_of_the_file(void **state)
{
    static const char *const arguments[] = {"--rate-limit=x", "--rate-limit:y", NULL};
    struct loaded *loaded = load(arguments, NULL, "rate-limit = [\"a\", \"b\", \"c\"]");
    (void)state;
    assert_int_equal(options_list_count(loaded->options, "rate-limit"), 2);
    assert_string_equal(options_list_item(loaded->options, "rate-limit", 1), "y");
    drop(loaded);
}

static void every_fault_of_a_file_is_named_with_its_place(void **state)
{
    static const char file[] = "max-topics = 2\nmax-topic = 3\n  relay = \"perhaps\"\n"
                               "pin = [\"a\"]\nnonsense = [1, 2]\nrate-limit = \"one\"\n";
    struct loaded *loaded = load(NULL, NULL, file);
    char line[128];
    (void)state;
    assert_int_equal(loaded->status, STATUS_NOT_FOUND);
    assert_int_equal(loaded->reports.error_count, 4);
    snprintf(line, sizeof(line), "%s:2:13: unknown option --max-topic; the nearest is --max-topics",
            loaded->path);
    assert_non_null(strstr(loaded->reports.errors, line));
    assert_non_null(
            strstr(loaded->reports.errors, ":3:11: --relay=perhaps: expected true or false"));
    assert_non_null(strstr(loaded->reports.errors, ":4:7: the option takes one value"));
    assert_non_null(strstr(loaded->reports.errors, ":5:12: unknown option --nonsense"));
    assert_int_equal(options_list_count(loaded->options, "rate-limit"), 1);
    drop(loaded);
}

static void config_file_is_found_by_its_option_and_names_no_other(void **state)
{
    char argument[96];
    const char *arguments[] = {argument, NULL};
    struct loaded *first = load(NULL, NULL, "max-topics = 2\nconfig-file = \"other\"\n");
    (void)state;
    assert_int_equal(first->status, STATUS_BAD_ARGUMENT);
    assert_non_null(strstr(first->reports.errors, ":2:15: a configuration file names no other"));
    snprintf(argument, sizeof(argument), "--config-file=%s", first->path);
    struct loaded *second = load(arguments, NULL, NULL);
    assert_int_equal(options_number(second->options, "max-topics"), 2);
    drop(second);
    drop(first);
}

static void a_missing_file_and_a_stray_word_are_errors(void **state)
{
    static const char *const missing[] = {"--config-file=/nonexistent/x.toml", NULL};
    static const char *const stray[] = {"--relay", "false", NULL};
    (void)state;
    struct loaded *loaded = load(missing, NULL, NULL);
    assert_int_equal(loaded->status, STATUS_NOT_FOUND);
    assert_non_null(strstr(loaded->reports.errors, "/nonexistent/x.toml: No such file"));
    drop(loaded);
    loaded = load(stray, NULL, NULL);
    assert_int_equal(loaded->status, STATUS_BAD_ARGUMENT);
    assert_non_null(strstr(loaded->reports.errors, "false is no option"));
    drop(loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(flags_prevail_over_environment_over_file_over_defaults),
            cmocka_unit_test(takes_the_references_variables_and_prefers_its_own),
            cmocka_unit_test(a_list_in_the_environment_is_one_item_or_an_array),
            cmocka_unit_test(a_variable_of_nobody_gets_a_note_and_a_bad_value_an_error),
            cmocka_unit_test(a_list_of_the_command_line_replaces_that_of_the_file),
            cmocka_unit_test(every_fault_of_a_file_is_named_with_its_place),
            cmocka_unit_test(config_file_is_found_by_its_option_and_names_no_other),
            cmocka_unit_test(a_retention_policy_that_is_none_is_refused_by_name),
            cmocka_unit_test(a_missing_file_and_a_stray_word_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
