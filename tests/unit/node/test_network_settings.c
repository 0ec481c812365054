/* SPDX-License-Identifier: MIT */
#include "tests/support/cmocka.h"

#include "base/options.h"
#include "node/network_settings.h"
#include "node/node.h"

static struct network_settings settings;

static void read_with(const char *const arguments[][2], size_t count)
{
    static const struct option_spec *const tables[] = {options_of_node, NULL};
    struct options *options;
    struct options_error error;
    struct node_error why = {.text = ""};
    assert_int_equal(options_create(&options, tables), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(options_set(options, arguments[i][0], arguments[i][1], &error), STATUS_OK);
    }
    assert_int_equal(network_settings_read(&settings, options, &why), STATUS_OK);
    identity_destroy(&settings.identity);
    options_destroy(&options);
}

static void defaults_are_those_of_the_switch(void **state)
{
    (void)state;
    read_with(NULL, 0);
    assert_int_equal(settings.limits.connections_max, SWITCH_CONNECTIONS_MAX);
    assert_int_equal(settings.limits.upgrades_max, SWITCH_UPGRADES_MAX);
    assert_int_equal(settings.limits.streams_max, SWITCH_STREAMS_MAX);
    assert_int_equal(settings.limits.negotiations_max, SWITCH_NEGOTIATIONS_MAX);
    assert_int_equal(settings.limits.buffered_bytes_max, SWITCH_BUFFERED_BYTES_MAX);
    assert_int_equal(settings.limits.upgrade_timeout_ms, SWITCH_UPGRADE_TIMEOUT_MS);
    assert_int_equal(settings.limits.negotiation_timeout_ms, SWITCH_NEGOTIATION_TIMEOUT_MS);
    assert_int_equal(settings.limits.write_timeout_ms, SWITCH_WRITE_TIMEOUT_MS);
}

static void every_limit_of_connections_is_an_option(void **state)
{
    (void)state;
    static const char *const arguments[][2] = {
            {"max-connections", "11"},
            {"ip-colocation-limit", "12"},
            {"max-pending-connections", "13"},
            {"max-streams", "17"},
            {"max-stream-negotiations", "14"},
            {"connection-buffer-limit", "2MiB"},
            {"handshake-timeout", "3s"},
            {"stream-negotiation-timeout", "4s"},
            {"write-timeout", "5s"},
            {"keep-alive-interval", "6s"},
    };
    read_with(arguments, sizeof(arguments) / sizeof(arguments[0]));
    assert_int_equal(settings.limits.connections_max, 11);
    assert_int_equal(settings.limits.group_max, 12);
    assert_int_equal(settings.limits.upgrades_max, 13);
    assert_int_equal(settings.limits.streams_max, 17);
    assert_int_equal(settings.limits.negotiations_max, 14);
    assert_int_equal(settings.limits.buffered_bytes_max, 2 << 20);
    assert_int_equal(settings.limits.upgrade_timeout_ms, 3000);
    assert_int_equal(settings.limits.negotiation_timeout_ms, 4000);
    assert_int_equal(settings.limits.write_timeout_ms, 5000);
    assert_int_equal(settings.limits.keep_alive_ms, 6000);
}

/* As the reference: a relay of an autosharded network takes part in all of its shards. */
static void shards_are_all_of_the_network_or_those_named(void **state)
{
    (void)state;
    static const char *const all[][2] = {
            {"num-shards-in-network", "8"},
            {"shard", "5"},
            {"content-topic", "/waku/2/content/test.js"},
    };
    /* RFC 51 has /toychat/2/huilong/proto in shard 3 of 8. */
    static const char *const named[][2] = {
            {"num-shards-in-network", "8"},
            {"shard", "5"},
            {"content-topic", "/toychat/2/huilong/proto"},
            {"relay-all-shards", "false"},
    };
    static const char *const unnamed[][2] = {
            {"num-shards-in-network", "8"},
            {"relay-all-shards", "false"},
    };
    static const char *const fixed[][2] = {{"shard", "5"}};
    read_with(all, sizeof(all) / sizeof(all[0]));
    assert_int_equal(settings.shard_count, 8);
    read_with(named, sizeof(named) / sizeof(named[0]));
    assert_int_equal(settings.shard_count, 2);
    assert_int_equal(settings.shards[0], 5);
    assert_int_equal(settings.shards[1], 3);
    read_with(unnamed, sizeof(unnamed) / sizeof(unnamed[0]));
    assert_int_equal(settings.shard_count, 8);
    read_with(fixed, sizeof(fixed) / sizeof(fixed[0]));
    assert_int_equal(settings.shard_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(defaults_are_those_of_the_switch),
            cmocka_unit_test(shards_are_all_of_the_network_or_those_named),
            cmocka_unit_test(every_limit_of_connections_is_an_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
