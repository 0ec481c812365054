/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/options.h"
#include "node/mesh_settings.h"
#include "tests/support/cmocka.h"

struct read_settings {
    struct mesh_options mesh;
    struct score_options scores;
};

static struct read_settings settings_with(const char *name, const char *text)
{
    static const struct option_spec *const tables[] = {options_of_node, NULL};
    struct read_settings read;
    struct options *options;
    struct options_error error;
    assert_int_equal(options_create(&options, tables), STATUS_OK);
    if (name != NULL) {
        assert_int_equal(options_set(options, name, text, &error), STATUS_OK);
    }
    memset(&read, 0, sizeof(read));
    mesh_settings_read(&read.mesh, &read.scores, options);
    options_destroy(&options);
    return read;
}

/* The network's own numbers stand in both places. */
static void the_defaults_of_the_options_are_those_of_mesh_and_scores(void **state)
{
    (void)state;
    struct read_settings read = settings_with(NULL, NULL);
    assert_memory_equal(&read.mesh, &mesh_defaults, sizeof(mesh_defaults));
    assert_memory_equal(&read.scores, &score_defaults, sizeof(score_defaults));
}

static void every_option_of_the_group_changes_something(void **state)
{
    (void)state;
    size_t changed = 0;
    for (const struct option_spec *spec = options_of_node; spec->name != NULL; spec++) {
        if (strcmp(spec->group, "Gossip") != 0) {
            continue;
        }
        bool is_time = spec->type == OPTION_SECONDS;
        const char *text = spec->type == OPTION_BOOL ? "false" : is_time ? "2s" : "7";
        struct read_settings read = settings_with(spec->name, text);
        bool differs = memcmp(&read.mesh, &mesh_defaults, sizeof(mesh_defaults)) != 0 ||
                       memcmp(&read.scores, &score_defaults, sizeof(score_defaults)) != 0;
        if (!differs) {
            fail_msg("%s changes nothing", spec->name);
        }
        changed++;
    }
    assert_int_equal(changed, 35);
}

static void the_degrees_keep_their_proportions_unless_named(void **state)
{
    (void)state;
    struct mesh_options mesh = settings_with("mesh-degree", "12").mesh;
    assert_int_equal(mesh.d_low, 8);
    assert_int_equal(mesh.d_high, 16);
    assert_int_equal(mesh.d_out, 6);
    assert_int_equal(mesh.d_score, 12);
    assert_int_equal(settings_with("mesh-degree-high", "9").mesh.d_high, 9);
    mesh = settings_with("mesh-degree-low", "7").mesh;
    assert_false(mesh_options_fit(&mesh));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_defaults_of_the_options_are_those_of_mesh_and_scores),
            cmocka_unit_test(every_option_of_the_group_changes_something),
            cmocka_unit_test(the_degrees_keep_their_proportions_unless_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
