/* SPDX-License-Identifier: MIT */
#include "tests/support/cmocka.h"

#include <string.h>

#include "base/clock.h"
#include "node/node_private.h"

/* A watch that is shown readings made up here, without a node behind it. */
struct fixture {
    struct node *node;
    struct watch watch;
    struct node_reading reading;
    bool has_changed[HEALTH_PARTS];
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->node = aligned_alloc(CACHE_LINE, sizeof(struct node));
    memset(fixture->node, 0, sizeof(struct node));
    assert_int_equal(watch_init(&fixture->watch, fixture->node), STATUS_OK);
    fixture->reading.monotonic_ns = NANOSECONDS_PER_SECOND;
    fixture->reading.wall_ns = 1000;
    fixture->reading.relay.is_there = true;
    fixture->reading.relay.peers = 4;
    fixture->reading.relay.mesh_low = 4;
    fixture->reading.archive.is_there = true;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    watch_fini(&fixture->watch);
    free(fixture->node);
    free(fixture);
    return 0;
}

static const struct health_part_state *judge(struct fixture *fixture, enum health_part part)
{
    watch_judge(&fixture->watch, &fixture->reading, fixture->has_changed);
    return &fixture->watch.health.parts[part];
}

static void a_node_without_trouble_is_well(void **state)
{
    struct fixture *fixture = *state;
    (void)judge(fixture, HEALTH_ARCHIVE);
    assert_false(fixture->watch.health.is_degraded);
    assert_string_equal(fixture->watch.health.connection, "Connected");
    for (size_t i = 0; i < HEALTH_PARTS; i++) {
        assert_false(fixture->has_changed[i]);
        assert_int_equal(fixture->watch.health.parts[i].since_ns, 1000);
    }
}

static void an_archive_that_refuses_is_named_with_the_time_since_when(void **state)
{
    struct fixture *fixture = *state;
    (void)judge(fixture, HEALTH_ARCHIVE);
    fixture->reading.wall_ns = 2000;
    fixture->reading.archive.health = STATUS_DISK_FULL;
    fixture->reading.archive.held = 7;
    const struct health_part_state *archive = judge(fixture, HEALTH_ARCHIVE);
    assert_true(archive->is_degraded);
    assert_true(fixture->has_changed[HEALTH_ARCHIVE]);
    assert_non_null(strstr(archive->why, "7 messages wait"));
    fixture->reading.wall_ns = 3000;
    archive = judge(fixture, HEALTH_ARCHIVE);
    assert_false(fixture->has_changed[HEALTH_ARCHIVE]);
    assert_int_equal(archive->since_ns, 2000);
    fixture->reading.wall_ns = 4000;
    fixture->reading.archive.health = STATUS_OK;
    archive = judge(fixture, HEALTH_ARCHIVE);
    assert_false(archive->is_degraded);
    assert_true(fixture->has_changed[HEALTH_ARCHIVE]);
    assert_int_equal(archive->since_ns, 4000);
}

static void drops_count_until_it_has_been_quiet(void **state)
{
    static const struct {
        enum metric metric;
        enum health_part part;
    } cases[] = {{LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE, HEALTH_SPILL},
            {METRIC_FRAMES_WITHOUT_CREDIT, HEALTH_MEMORY},
            {LEDGER_RELAY_OUT_OUTBOUND_BUDGET, HEALTH_OUTBOUND},
            {LEDGER_EVENT_RING_FULL, HEALTH_EVENT}, {LEDGER_EVENT_OVER_SHARE, HEALTH_EVENT},
            {LEDGER_FILTER_RING_FULL, HEALTH_FILTER}, {LEDGER_SYNC_RING_FULL, HEALTH_SYNC}};
    struct fixture *fixture = *state;
    const uint64_t quiet_ns = HEALTH_QUIET_MS * (uint64_t)NANOSECONDS_PER_MILLISECOND;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum health_part part = cases[i].part;
        assert_false(judge(fixture, part)->is_degraded);
        fixture->reading.metrics[cases[i].metric] = 3;
        assert_true(judge(fixture, part)->is_degraded);
        fixture->reading.monotonic_ns += quiet_ns - 1;
        assert_true(judge(fixture, part)->is_degraded);
        fixture->reading.monotonic_ns += 1;
        assert_false(judge(fixture, part)->is_degraded);
    }
}

static void clocks_that_differ_by_more_than_ten_seconds_are_trouble_in_both_directions(void **state)
{
    struct fixture *fixture = *state;
    const int64_t second = NANOSECONDS_PER_SECOND;
    fixture->reading.offset_samples = HEALTH_OFFSET_SAMPLES_MIN;
    fixture->reading.offset_median_ns = 10 * second;
    assert_false(judge(fixture, HEALTH_CLOCK)->is_degraded);
    fixture->reading.offset_median_ns = 10 * second + 1;
    assert_true(judge(fixture, HEALTH_CLOCK)->is_degraded);
    fixture->reading.offset_median_ns = -11 * second;
    assert_non_null(strstr(judge(fixture, HEALTH_CLOCK)->why, "11.0 s behind"));
    fixture->reading.offset_samples = HEALTH_OFFSET_SAMPLES_MIN - 1;
    assert_false(judge(fixture, HEALTH_CLOCK)->is_degraded);
}

static void peers_are_missed_only_where_there_is_relay(void **state)
{
    struct fixture *fixture = *state;
    fixture->reading.relay.peers = 3;
    (void)judge(fixture, HEALTH_PEERS);
    assert_string_equal(fixture->watch.health.connection, "PartiallyConnected");
    fixture->reading.relay.peers = 0;
    assert_true(judge(fixture, HEALTH_PEERS)->is_degraded);
    assert_string_equal(fixture->watch.health.connection, "Disconnected");
    fixture->reading.relay.is_there = false;
    assert_false(judge(fixture, HEALTH_PEERS)->is_degraded);
}

/* The reference's rule (its node_health_monitor): the service that fewest peers serve decides; two are good. */
static void without_relay_peers_the_services_of_peers_connect_a_node(void **state)
{
    struct fixture *fixture = *state;
    fixture->reading.relay.peers = 0;
    fixture->reading.relay.is_there = false;
    for (size_t i = 0; i < PEER_PROTOCOLS_COUNTED; i++) {
        bool is_lightpush_v3 = strcmp(peer_protocols_counted[i], "/vac/waku/lightpush/3.0.0") == 0;
        fixture->reading.protocol_peers[i][0] = is_lightpush_v3 ? 0 : 1;
    }
    (void)judge(fixture, HEALTH_PEERS);
    assert_string_equal(fixture->watch.health.connection, "PartiallyConnected");
    for (size_t i = 0; i < PEER_PROTOCOLS_COUNTED; i++) {
        fixture->reading.protocol_peers[i][1] = 1;
    }
    (void)judge(fixture, HEALTH_PEERS);
    assert_string_equal(fixture->watch.health.connection, "Connected");
    memset(fixture->reading.protocol_peers, 0, sizeof(fixture->reading.protocol_peers));
    (void)judge(fixture, HEALTH_PEERS);
    assert_string_equal(fixture->watch.health.connection, "Disconnected");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
            CASE(a_node_without_trouble_is_well),
            CASE(an_archive_that_refuses_is_named_with_the_time_since_when),
            CASE(drops_count_until_it_has_been_quiet),
            CASE(clocks_that_differ_by_more_than_ten_seconds_are_trouble_in_both_directions),
            CASE(peers_are_missed_only_where_there_is_relay),
            CASE(without_relay_peers_the_services_of_peers_connect_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
