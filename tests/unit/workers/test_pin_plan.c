/* SPDX-License-Identifier: MIT */
#include "workers/pin_plan.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"

enum {
    DECODE,
    ARCHIVE,
    FILTER,
    SPILL,
    ROLES
};

static const struct pin_role roles[ROLES] = {
        {.name = "decode", .thread_count = 1, .auto_priority = 0},
        {.name = "archive", .thread_count = 1, .auto_priority = 1},
        {.name = "filter", .thread_count = 2, .auto_priority = 2},
        {.name = "spill", .thread_count = 1, .auto_priority = -1},
};

static struct cpu_set allowed;
static struct pin_plan plan;
static struct pin_error error;

static int set_up(void **state)
{
    (void)state;
    memset(&error, 0, sizeof(error));
    return cpu_set_allowed(&allowed) == STATUS_OK ? 0 : -1;
}

static enum status make(const char *text)
{
    return pin_plan_make(&plan, text, roles, ROLES, &error);
}

static int first_cpu(void)
{
    return cpu_set_next(&allowed, 0);
}

/* A processor that this process may not use. */
static int missing_cpu(void)
{
    int cpu = 0;
    while (cpu_set_contains(&allowed, cpu)) {
        cpu++;
    }
    return cpu;
}

static void assert_refused(const char *text, const char *named)
{
    error.text[0] = '\0';
    assert_int_equal(make(text), STATUS_BAD_ARGUMENT);
    if (strstr(error.text, named) == NULL) {
        fail_msg("\"%s\" says \"%s\", which does not name \"%s\"", text, error.text, named);
    }
    assert_null(strchr(error.text, '\n'));
    assert_non_null(strstr(error.text, "--pin"));
}

static void none_leaves_every_thread_on_every_allowed_processor(void **state)
{
    (void)state;
    assert_int_equal(make("none"), STATUS_OK);
    assert_false(plan.has_core_per_thread);
    for (size_t role = 0; role < ROLES; role++) {
        struct cpu_set cpus;
        pin_plan_cpus(&cpus, &plan, role, 0);
        assert_int_equal(cpu_set_count(&cpus), cpu_set_count(&allowed));
    }
}

static void puts_a_named_role_on_its_processor(void **state)
{
    char text[64];
    struct cpu_set cpus;
    (void)state;
    snprintf(text, sizeof(text), "archive:%d", first_cpu());
    assert_int_equal(make(text), STATUS_OK);
    pin_plan_cpus(&cpus, &plan, ARCHIVE, 0);
    assert_int_equal(cpu_set_count(&cpus), 1);
    assert_true(cpu_set_contains(&cpus, first_cpu()));
}

static void keeps_the_others_off_the_named_processors_where_there_are_more(void **state)
{
    char text[64];
    struct cpu_set cpus;
    (void)state;
    snprintf(text, sizeof(text), "decode:%d", first_cpu());
    assert_int_equal(make(text), STATUS_OK);
    pin_plan_cpus(&cpus, &plan, FILTER, 1);
    bool has_more = cpu_set_count(&allowed) > 1;
    assert_int_equal(cpu_set_contains(&cpus, first_cpu()), !has_more);
    assert_true(cpu_set_count(&cpus) > 0);
}

static void gives_the_threads_of_a_role_one_processor_each_in_turn(void **state)
{
    char text[64];
    struct cpu_set cpus[3];
    int second = cpu_set_next(&allowed, first_cpu() + 1);
    (void)state;
    if (second < 0) {
        skip();
    }
    snprintf(text, sizeof(text), "filter:%d,%d", first_cpu(), second);
    assert_int_equal(make(text), STATUS_OK);
    for (size_t i = 0; i < 3; i++) {
        pin_plan_cpus(&cpus[i], &plan, FILTER, i);
        assert_int_equal(cpu_set_count(&cpus[i]), 1);
    }
    assert_true(cpu_set_contains(&cpus[0], first_cpu()));
    assert_true(cpu_set_contains(&cpus[1], second));
    assert_true(cpu_set_contains(&cpus[2], first_cpu()));
}

static void takes_several_roles_and_lists_with_commas(void **state)
{
    char text[128];
    struct cpu_set cpus;
    int one = first_cpu();
    (void)state;
    snprintf(text, sizeof(text), "decode:%d,filter:%d,%d,archive:%d", one, one, one, one);
    assert_int_equal(make(text), STATUS_OK);
    for (size_t role = DECODE; role <= FILTER; role++) {
        pin_plan_cpus(&cpus, &plan, role, 0);
        assert_int_equal(cpu_set_count(&cpus), 1);
    }
}

static void names_a_role_that_is_not_there(void **state)
{
    (void)state;
    assert_refused("decoder:0", "decoder");
    assert_refused("dec:0", "\"dec\"");
    assert_refused(":0", "\"\"");
}

static void names_what_does_not_parse(void **state)
{
    (void)state;
    assert_refused("", "ROLE:CPUS");
    assert_refused("all", "all");
    assert_refused("decode", "decode");
    assert_refused("decode:", "list of processors");
    assert_refused("decode:x", "x");
    assert_refused("decode:3-1", "3-1");
    assert_refused("decode:-1", "-1");
    assert_refused("decode:0;archive:1", "0;archive:1");
    assert_refused("decode:99999999999", "99999999999");
}

static void refuses_a_comma_at_the_end(void **state)
{
    char text[64];
    (void)state;
    snprintf(text, sizeof(text), "decode:%d,", first_cpu());
    assert_refused(text, ",");
}

static void refuses_a_role_that_is_named_twice(void **state)
{
    char text[64];
    (void)state;
    snprintf(text, sizeof(text), "decode:%d,decode:%d", first_cpu(), first_cpu());
    assert_refused(text, "decode");
}

static void refuses_a_list_that_is_too_long_instead_of_cutting_it(void **state)
{
    char text[512] = "decode:";
    (void)state;
    while (strlen(text) < 400) {
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d,", first_cpu());
    }
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d", missing_cpu());
    assert_int_equal(make(text), STATUS_BAD_ARGUMENT);
}

static void names_a_processor_that_is_not_there_or_not_allowed(void **state)
{
    char text[64];
    char number[16];
    (void)state;
    snprintf(number, sizeof(number), " %d ", missing_cpu());
    snprintf(text, sizeof(text), "decode:%d", missing_cpu());
    assert_refused(text, number);
    snprintf(text, sizeof(text), "decode:%d,archive:%d", first_cpu(), missing_cpu());
    assert_refused(text, number);
}

/* What auto does depends on the machine; what must hold on any is checked. */
static void auto_shares_no_core_between_pinned_threads(void **state)
{
    struct cpu_set used;
    (void)state;
    assert_int_equal(make("auto"), STATUS_OK);
    cpu_set_clear(&used);
    for (size_t role = 0; role < ROLES; role++) {
        for (int cpu = cpu_set_next(&plan.named[role], 0); cpu >= 0;
                cpu = cpu_set_next(&plan.named[role], cpu + 1)) {
            assert_true(cpu_set_contains(&allowed, cpu));
            assert_false(cpu_set_contains(&used, cpu));
            cpu_set_add(&used, cpu);
        }
    }
    assert_true(cpu_set_count(&plan.floating) > 0);
    for (int cpu = cpu_set_next(&plan.floating, 0); cpu >= 0;
            cpu = cpu_set_next(&plan.floating, cpu + 1)) {
        assert_false(cpu_set_contains(&used, cpu));
    }
    assert_int_equal(cpu_set_count(&plan.named[SPILL]), 0);
}

static void auto_pins_only_decode_where_there_are_fewer_cores_than_threads(void **state)
{
    static const struct pin_role many[] = {
            {.name = "decode", .thread_count = 1, .auto_priority = 0},
            {.name = "filter", .thread_count = 100000, .auto_priority = 1},
    };
    (void)state;
    assert_int_equal(pin_plan_make(&plan, "auto", many, 2, &error), STATUS_OK);
    assert_false(plan.has_core_per_thread);
    assert_int_equal(cpu_set_count(&plan.named[1]), 0);
    assert_in_range(cpu_set_count(&plan.named[0]), 0, 1);
}

static void auto_leaves_one_core_to_the_rest_even_for_decode(void **state)
{
    static const struct pin_role many[] = {
            {.name = "decode", .thread_count = 100000, .auto_priority = 0}};
    (void)state;
    assert_int_equal(pin_plan_make(&plan, "auto", many, 1, &error), STATUS_OK);
    assert_true(cpu_set_count(&plan.floating) > 0);
    assert_true(cpu_set_count(&plan.named[0]) < cpu_set_count(&allowed) ||
                cpu_set_count(&allowed) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup(none_leaves_every_thread_on_every_allowed_processor, set_up),
            cmocka_unit_test_setup(puts_a_named_role_on_its_processor, set_up),
            cmocka_unit_test_setup(
                    keeps_the_others_off_the_named_processors_where_there_are_more, set_up),
            cmocka_unit_test_setup(gives_the_threads_of_a_role_one_processor_each_in_turn, set_up),
            cmocka_unit_test_setup(takes_several_roles_and_lists_with_commas, set_up),
            cmocka_unit_test_setup(names_a_role_that_is_not_there, set_up),
            cmocka_unit_test_setup(names_what_does_not_parse, set_up),
            cmocka_unit_test_setup(refuses_a_comma_at_the_end, set_up),
            cmocka_unit_test_setup(refuses_a_role_that_is_named_twice, set_up),
            cmocka_unit_test_setup(refuses_a_list_that_is_too_long_instead_of_cutting_it, set_up),
            cmocka_unit_test_setup(names_a_processor_that_is_not_there_or_not_allowed, set_up),
            cmocka_unit_test_setup(auto_shares_no_core_between_pinned_threads, set_up),
            cmocka_unit_test_setup(
                    auto_pins_only_decode_where_there_are_fewer_cores_than_threads, set_up),
            cmocka_unit_test_setup(auto_leaves_one_core_to_the_rest_even_for_decode, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
