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

enum {
    NUMBERS = 40
};

/* All that options change, one after the other. */
static size_t list_numbers(double out[NUMBERS], const struct read_settings *read)
{
    const struct mesh_options *m = &read->mesh;
    const struct score_options *s = &read->scores;
    const double numbers[] = {(double)m->d, (double)m->d_low, (double)m->d_high, (double)m->d_score,
            (double)m->d_out, (double)m->d_lazy, m->gossip_factor, m->history, m->gossip,
            (double)m->fanout_ns, (double)m->prune_backoff_ns, (double)m->unsubscribe_backoff_ns,
            (double)m->backoff_max_ns, m->gossip_threshold, m->publish_threshold,
            m->graylist_threshold, m->opportunistic_threshold, m->ihave_messages_max,
            (double)m->ids_max, m->retransmissions_max, (double)m->promise_ns,
            (double)m->dont_want_bytes_min, (double)m->dont_want_max, m->is_flood_publishing,
            s->mesh_time_weight, s->mesh_time_cap, s->first_weight, s->first_decay, s->first_cap,
            s->invalid_weight, s->invalid_decay, s->colocation_weight,
            (double)s->colocation_threshold, s->behaviour_weight, s->behaviour_decay,
            (double)s->decay_interval_ns, (double)s->retain_ns};
    size_t count = sizeof(numbers) / sizeof(numbers[0]);
    memcpy(out, numbers, sizeof(numbers));
    return count;
}

static bool is_default(const struct read_settings *read)
{
    double numbers[NUMBERS];
    double defaults[NUMBERS];
    struct read_settings own = {.mesh = mesh_defaults, .scores = score_defaults};
    size_t count = list_numbers(numbers, read);
    (void)list_numbers(defaults, &own);
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] < defaults[i] || numbers[i] > defaults[i]) {
            return false;
        }
    }
    return true;
}

/* The network's own numbers stand in both places. */
static void the_defaults_of_the_options_are_those_of_mesh_and_scores(void **state)
{
    (void)state;
    struct read_settings read = settings_with(NULL, NULL);
    assert_true(is_default(&read));
}

static const char *some_value(const struct option_spec *spec)
{
    if (spec->type == OPTION_BOOL) {
        return "false";
    }
    return spec->type == OPTION_SECONDS ? "2s" : "7";
}

static void every_option_of_the_group_changes_something(void **state)
{
    (void)state;
    size_t changed = 0;
    for (const struct option_spec *spec = options_of_node; spec->name != NULL; spec++) {
        if (strcmp(spec->group, "Gossip") == 0) {
            struct read_settings read = settings_with(spec->name, some_value(spec));
            assert_false(is_default(&read));
            changed++;
        }
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
