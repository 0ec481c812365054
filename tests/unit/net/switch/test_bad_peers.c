/* SPDX-License-Identifier: MIT */

/* Peers that do not keep to the protocol or to the limits: they alone are closed, and counted. */

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "net/protocols/echo.h"
#include "tests/unit/net/switch/test_node.h"

enum {
    CROWD = 64,
    SHORT_TIMEOUT_MS = 600
};

static const char any_port[] = "/ip4/127.0.0.1/tcp/0";

/* How far the silent ones of the crowd come. */
static const uint8_t multistream_noise[] = "\x13/multistream/1.0.0\n\x07/noise\n";
static const uint8_t noise_begun[] =
        "\x13/multistream/1.0.0\n\x07/noise\n\x00\x20half of an ephemeral k";
static const uint8_t noise_key[] = "\x13/multistream/1.0.0\n\x07/noise\n"
                                   "\x00\x20"
                                   "any ephemeral key of 32 bytes...";
static const struct span steps[] = {
        {(const uint8_t *)"", 0}, {(const uint8_t *)"\x13/multi", 7},
        {multistream_noise, sizeof(multistream_noise) - 1}, {noise_begun, sizeof(noise_begun) - 1},
        {noise_key, sizeof(noise_key) - 1}, /* and the second message never comes back */
};

enum {
    STEPS = sizeof(steps) / sizeof(steps[0])
};

struct crowd {
    int descriptors[CROWD];
    size_t count;
};

static void crowd_come(struct crowd *crowd, const struct test_node *node, size_t count)
{
    crowd->count = count;
    for (size_t i = 0; i < count; i++) {
        crowd->descriptors[i] = raw_connect(node);
        raw_send(crowd->descriptors[i], steps[i % STEPS].bytes, steps[i % STEPS].length);
    }
}

static size_t crowd_closed(const struct crowd *crowd)
{
    size_t closed = 0;
    for (size_t i = 0; i < crowd->count; i++) {
        closed += raw_is_closed(crowd->descriptors[i]) ? 1U : 0U;
    }
    return closed;
}

static bool is_crowd_closed(void *context)
{
    const struct crowd *crowd = context;
    return crowd_closed(crowd) == crowd->count;
}

static void crowd_leave(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        close(crowd->descriptors[i]);
    }
}

static void silent_peers_are_closed_by_the_deadline_and_keep_nobody_out(void **state)
{
    (void)state;
    struct switch_options limits = {.upgrade_timeout_ms = SHORT_TIMEOUT_MS};
    struct test_node server;
    struct test_node honest;
    struct test_node *nodes[] = {&server, &honest};
    struct crowd crowd;
    test_node_init(&server, &limits, any_port);
    test_node_init(&honest, NULL, NULL);
    uint64_t before = count_of(METRIC_NET_CLOSED_UPGRADE_TIMED_OUT);
    crowd_come(&crowd, &server, CROWD);
    test_nodes_connect(&honest, &server);
    assert_int_equal(crowd_closed(&crowd), 0);
    test_nodes_run(nodes, 1, is_crowd_closed, &crowd);
    assert_int_equal(count_of(METRIC_NET_CLOSED_UPGRADE_TIMED_OUT), before + CROWD);
    assert_int_equal(switch_upgrade_count(server.net_switch), 0);
    assert_int_equal(honest.disconnected, 0);
    crowd_leave(&crowd);
    test_nodes_fini(nodes, 2);
}

static bool has_no_upgrades(void *context)
{
    const struct test_node *node = context;
    return switch_upgrade_count(node->net_switch) == 0;
}

/* Peers that do all as they should until their process stops, at any moment of the handshakes. */
static void peers_that_stop_anywhere_are_closed_by_the_deadline(void **state)
{
    (void)state;
    enum {
        STOPPED = 12
    };
    struct switch_options limits = {.upgrade_timeout_ms = SHORT_TIMEOUT_MS};
    struct test_node server;
    struct test_node honest;
    struct test_node stopped[STOPPED];
    struct test_node *nodes[STOPPED + 2] = {&server, &honest};
    test_node_init(&server, &limits, any_port);
    test_node_init(&honest, NULL, NULL);
    uint64_t before = count_of(METRIC_NET_CLOSED_UPGRADE_TIMED_OUT);
    for (size_t i = 0; i < STOPPED; i++) {
        struct test_node *both[] = {&server, &stopped[i]};
        test_node_init(&stopped[i], NULL, NULL);
        nodes[2 + i] = &stopped[i];
        test_node_dial(&stopped[i], &server.address);
        test_nodes_turn(both, 2, i + 2); /* the first has dialled by then */
    }
    test_nodes_connect(&honest, &server);
    test_nodes_run(nodes, 1, has_no_upgrades, &server);
    uint64_t closed = count_of(METRIC_NET_CLOSED_UPGRADE_TIMED_OUT) - before;
    assert_true(closed > 0);
    assert_int_equal(closed + server.connected, STOPPED + 1);
    assert_int_equal(honest.disconnected, 0);
    test_nodes_fini(nodes, STOPPED + 2);
}

struct dripper {
    int descriptor;
    size_t sent;
    struct test_node *node;
};

static bool has_dripped_out(void *context)
{
    struct dripper *dripper = context;
    raw_send(dripper->descriptor, noise_begun + dripper->sent % (sizeof(noise_begun) - 1), 1);
    if (dripper->sent < sizeof(noise_begun) - 2) {
        dripper->sent++;
    }
    return raw_is_closed(dripper->descriptor);
}

static void a_byte_now_and_then_does_not_move_the_deadline(void **state)
{
    (void)state;
    struct switch_options limits = {.upgrade_timeout_ms = SHORT_TIMEOUT_MS};
    struct test_node server;
    struct test_node *nodes[] = {&server};
    test_node_init(&server, &limits, any_port);
    struct dripper dripper = {.descriptor = raw_connect(&server), .node = &server};
    test_nodes_run(nodes, 1, has_dripped_out, &dripper);
    close(dripper.descriptor);
    test_nodes_fini(nodes, 1);
}

static void the_oldest_unfinished_handshake_gives_way_to_a_new_one(void **state)
{
    (void)state;
    enum {
        PLACES = 4
    };
    struct switch_options limits = {.upgrades_max = PLACES};
    struct test_node server;
    struct test_node honest;
    struct test_node *nodes[] = {&server, &honest};
    struct crowd crowd;
    test_node_init(&server, &limits, any_port);
    test_node_init(&honest, NULL, NULL);
    uint64_t before = count_of(METRIC_NET_CLOSED_UPGRADES_MAX);
    crowd_come(&crowd, &server, 2UL * PLACES);
    test_nodes_connect(&honest, &server);
    assert_true(count_of(METRIC_NET_CLOSED_UPGRADES_MAX) >= before + PLACES);
    assert_true(raw_is_closed(crowd.descriptors[0]));
    assert_false(raw_is_closed(crowd.descriptors[2 * PLACES - 1]));
    crowd_leave(&crowd);
    test_nodes_fini(nodes, 2);
}

static size_t lines_written;
static char last_line[1024];

static void keep_line(void *context, enum log_level level, const char *module, const char *line)
{
    (void)context;
    (void)level;
    (void)module;
    lines_written++;
    snprintf(last_line, sizeof(last_line), "%s", line);
}

static void connections_from_one_ip_are_limited_and_the_log_names_it(void **state)
{
    (void)state;
    struct switch_options limits = {.group_max = 2};
    struct test_node server;
    struct test_node *nodes[] = {&server};
    struct crowd crowd;
    test_node_init(&server, &limits, any_port);
    uint64_t before = count_of(METRIC_NET_CLOSED_GROUP_MAX);
    lines_written = 0;
    log_set_sink(keep_line, NULL);
    crowd_come(&crowd, &server, CROWD);
    while (crowd_closed(&crowd) < CROWD - 2) {
        test_nodes_turn(nodes, 1, 1);
    }
    log_set_sink(NULL, NULL);
    assert_int_equal(count_of(METRIC_NET_CLOSED_GROUP_MAX), before + CROWD - 2);
    assert_int_equal(lines_written, 1);
    assert_non_null(strstr(last_line, "127.0.0.1"));
    assert_non_null(strstr(last_line, close_reason_text(CLOSE_GROUP_MAX)));
    crowd_leave(&crowd);
    test_nodes_fini(nodes, 1);
}

static void slots_of_an_ip_are_free_again_after_a_thousand_reconnects(void **state)
{
    (void)state;
    struct switch_options limits = {.group_max = 2};
    struct test_node server;
    struct test_node honest;
    struct test_node *nodes[] = {&server, &honest};
    struct crowd crowd;
    test_node_init(&server, &limits, any_port);
    test_node_init(&honest, NULL, NULL);
    uint64_t before = count_of(METRIC_NET_CLOSED_GROUP_MAX);
    for (int i = 0; i < 500; i++) {
        crowd_come(&crowd, &server, 2);
        crowd_leave(&crowd);
        test_nodes_turn(nodes, 1, 1);
        test_nodes_run(nodes, 1, has_no_upgrades, &server);
    }
    assert_int_equal(count_of(METRIC_NET_CLOSED_GROUP_MAX), before);
    test_nodes_connect(&honest, &server);
    test_nodes_fini(nodes, 2);
}

static size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static void refused_peers_that_do_not_leave_hold_few_descriptors(void **state)
{
    (void)state;
    enum {
        PEERS = 4 * IO_LOOP_LINGERING_MAX
    };
    static const uint8_t garbage[64] = "\x05GET / HTTP/1.1\r\n\r\n";
    struct test_node server;
    struct test_node *nodes[] = {&server};
    int descriptors[PEERS];
    test_node_init(&server, NULL, any_port);
    size_t before = count_descriptors();
    uint64_t refused = count_of(METRIC_NET_CLOSED_BAD_HANDSHAKE);
    for (size_t i = 0; i < PEERS; i++) {
        descriptors[i] = raw_connect(&server);
        raw_send(descriptors[i], garbage, sizeof(garbage));
    }
    while (count_of(METRIC_NET_CLOSED_BAD_HANDSHAKE) < refused + PEERS) {
        test_nodes_turn(nodes, 1, 1);
    }
    assert_true(count_descriptors() < before + PEERS + PEERS / 2);
    for (size_t i = 0; i < PEERS; i++) {
        close(descriptors[i]);
    }
    test_nodes_fini(nodes, 1);
}

struct two_loops {
    struct io_loop *loops[2];
    struct net_switch *net_switch;
};

static bool turn_both(struct two_loops *two)
{
    io_loop_turn(two->loops[0]);
    io_loop_turn(two->loops[1]);
    return true;
}

static void a_handshake_gives_way_before_its_io_thread_knows_of_it(void **state)
{
    (void)state;
    enum {
        PLACES = 2,
        PEERS = 8
    };
    struct two_loops two;
    struct identity *identity;
    struct crowd crowd;
    struct test_node server = {0};
    assert_int_equal(io_loop_create(&two.loops[0], 0), STATUS_OK);
    assert_int_equal(io_loop_create(&two.loops[1], 1), STATUS_OK);
    assert_int_equal(identity_create(&identity, KEY_TYPE_ED25519), STATUS_OK);
    struct switch_options options = {.identity = identity,
            .loops = two.loops,
            .loop_count = 2,
            .upgrades_max = PLACES,
            .upgrade_timeout_ms = 3600 * 1000};
    assert_int_equal(switch_create(&two.net_switch, &options), STATUS_OK);
    assert_int_equal(multiaddr_parse(&server.address, span_of_text(any_port)), STATUS_OK);
    assert_int_equal(switch_listen(two.net_switch, &server.address), STATUS_OK);
    server.address = *switch_listen_address(two.net_switch, 0);
    uint64_t accepted = count_of(METRIC_NET_ACCEPTED);
    uint64_t before = count_of(METRIC_NET_CLOSED_UPGRADES_MAX);
    crowd_come(&crowd, &server, PEERS);
    while (count_of(METRIC_NET_ACCEPTED) < accepted + PEERS) {
        io_loop_turn(two.loops[0]);
    }
    for (int i = 0; i < 1000 && turn_both(&two); i++) {
    }
    assert_int_equal(count_of(METRIC_NET_CLOSED_UPGRADES_MAX), before + PEERS - PLACES);
    assert_int_equal(switch_upgrade_count(two.net_switch), PLACES);
    crowd_leave(&crowd);
    switch_stop(two.net_switch);
    while (!switch_is_stopped(two.net_switch) && turn_both(&two)) {
    }
    switch_destroy(&two.net_switch);
    io_loop_destroy(&two.loops[0]);
    io_loop_destroy(&two.loops[1]);
    identity_destroy(&identity);
}

static void connections_beyond_the_limit_are_refused(void **state)
{
    (void)state;
    struct switch_options limits = {.connections_max = 1};
    struct test_node server;
    struct test_node honest;
    struct test_node *nodes[] = {&server, &honest};
    struct crowd crowd;
    test_node_init(&server, &limits, any_port);
    test_node_init(&honest, NULL, NULL);
    test_nodes_connect(&honest, &server);
    uint64_t before = count_of(METRIC_NET_CLOSED_CONNECTIONS_MAX);
    crowd_come(&crowd, &server, 3);
    test_nodes_run(nodes, 1, is_crowd_closed, &crowd);
    assert_int_equal(count_of(METRIC_NET_CLOSED_CONNECTIONS_MAX), before + 3);
    assert_int_equal(honest.disconnected, 0);
    crowd_leave(&crowd);
    test_nodes_fini(nodes, 2);
}

static void garbage_closes_only_who_sent_it(void **state)
{
    (void)state;
    struct test_node server;
    struct test_node honest;
    struct test_node *nodes[] = {&server, &honest};
    struct crowd crowd = {.count = CROWD};
    uint8_t garbage[8192]; /* more than any frame of the handshake may have */
    uint32_t noise = 1;
    test_node_init(&server, NULL, any_port);
    test_node_init(&honest, NULL, NULL);
    test_nodes_connect(&honest, &server);
    for (size_t i = 0; i < CROWD; i++) {
        crowd.descriptors[i] = raw_connect(&server);
        for (size_t j = 0; j < sizeof(garbage); j++) {
            noise = noise * 1664525U + 1013904223U;
            garbage[j] = (uint8_t)(noise >> 24);
        }
        /* The first half gets as far as Noise. */
        if (i < CROWD / 2) {
            raw_send(crowd.descriptors[i], multistream_noise, sizeof(multistream_noise) - 1);
            garbage[0] = 0;
            garbage[1] = (uint8_t)(i * 3);
        } else {
            garbage[0] = (uint8_t)(i % 16 + 1);
        }
        raw_send(crowd.descriptors[i], garbage, sizeof(garbage));
    }
    uint64_t before = count_of(METRIC_NET_CLOSED_BAD_HANDSHAKE);
    test_nodes_run(nodes, 1, is_crowd_closed, &crowd);
    assert_int_equal(count_of(METRIC_NET_CLOSED_BAD_HANDSHAKE), before + CROWD);
    assert_int_equal(honest.disconnected, 0);
    crowd_leave(&crowd);
    test_nodes_fini(nodes, 2);
}

static bool are_dials_done(void *context)
{
    const struct test_node *node = context;
    return node->dials_done > 0 && switch_upgrade_count(node->net_switch) == 0;
}

static void a_peer_without_a_muxer_in_common_is_refused_by_name(void **state)
{
    (void)state;
    static const enum muxer_kind only_yamux[] = {MUXER_YAMUX};
    static const enum muxer_kind only_mplex[] = {MUXER_MPLEX};
    struct switch_options yamux = {.muxers = only_yamux, .muxer_count = 1};
    struct switch_options mplex = {.muxers = only_mplex, .muxer_count = 1};
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a, &b};
    test_node_init(&a, &yamux, NULL);
    test_node_init(&b, &mplex, any_port);
    uint64_t before = count_of(METRIC_NET_CLOSED_NO_COMMON_MUXER);
    lines_written = 0;
    log_set_sink(keep_line, NULL);
    test_node_dial(&a, &b.address);
    test_nodes_run(nodes, 2, are_dials_done, &a);
    log_set_sink(NULL, NULL);
    assert_true(lines_written > 0);
    assert_non_null(strstr(last_line, close_reason_text(CLOSE_NO_COMMON_MUXER)));
    assert_int_equal(a.dial_status, STATUS_NO_COMMON_PROTOCOL);
    assert_true(count_of(METRIC_NET_CLOSED_NO_COMMON_MUXER) > before);
    assert_int_equal(b.connected, 0);
    test_nodes_fini(nodes, 2);
}

/* A peer that sends on echo streams and never reads the answers. */
struct glutton {
    size_t streams;
    size_t closed;
};

static uint8_t food[1 << 18];

static size_t on_glutton_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    (void)stream;
    (void)wanted;
    (void)to;
    return 0;
}

static void feed(struct stream *stream)
{
    struct muxer_piece piece = {.bytes = span_of(food, sizeof(food))};
    while (stream_queued(stream) < sizeof(food) && stream_write(stream, &piece, 1) == STATUS_OK) {
    }
}

static enum status on_glutton_opened(struct stream *stream)
{
    feed(stream);
    return STATUS_OK;
}

static void on_glutton_closed(struct stream *stream, enum status reason)
{
    (void)reason;
    struct glutton *glutton = stream_context(stream);
    glutton->closed++;
}

static const struct stream_events glutton_events = {
        .opened = on_glutton_opened,
        .reserve = on_glutton_reserve,
        .writable = feed,
        .closed = on_glutton_closed,
};

static void open_gluttons(struct test_node *node, struct glutton *glutton, size_t streams)
{
    static const char *const ids[] = {ECHO_PROTOCOL_ID};
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &glutton_events, .context = glutton};
    for (size_t i = 0; i < streams; i++) {
        assert_int_equal(connection_open_stream(node->last_connection, &request, NULL), STATUS_OK);
    }
    io_loop_wake(node->loop);
}

static bool has_disconnected(void *context)
{
    const struct test_node *node = context;
    return node->disconnected > 0;
}

static void the_connection_that_buffers_most_goes_when_all_buffer_too_much(void **state)
{
    (void)state;
    struct switch_options limits = {.buffered_bytes_max = 4 << 20};
    struct test_node server;
    struct test_node bad;
    struct test_node honest;
    struct test_node *nodes[] = {&server, &bad, &honest};
    struct glutton glutton = {0};
    test_node_init(&server, &limits, any_port);
    test_node_init(&bad, NULL, NULL);
    test_node_init(&honest, NULL, NULL);
    test_nodes_connect(&honest, &server);
    server.identified = 0;
    test_nodes_connect(&bad, &server);
    uint64_t before = count_of(METRIC_NET_CLOSED_BUFFERED_MAX);
    open_gluttons(&bad, &glutton, 32);
    test_nodes_run(nodes, 3, has_disconnected, &bad);
    assert_int_equal(count_of(METRIC_NET_CLOSED_BUFFERED_MAX), before + 1);
    assert_int_equal(server.last_reason, CLOSE_BUFFERED_MAX);
    assert_int_equal(honest.disconnected, 0);
    test_nodes_fini(nodes, 3);
}

/* One stream whose answers are not read stalls for ever; the others of its connection go on. */
static bool has_pinged(void *context)
{
    return *(bool *)context;
}

static size_t on_ping_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    static uint8_t place[32];
    (void)stream;
    *to = place;
    return wanted < sizeof(place) ? wanted : sizeof(place);
}

static void on_ping_commit(struct stream *stream, size_t n)
{
    stream_consumed(stream, n);
    *(bool *)stream_context(stream) = true;
}

static enum status on_ping_opened(struct stream *stream)
{
    return stream_write_copy(stream, span_of(food, 32));
}

static void on_ping_closed(struct stream *stream, enum status reason)
{
    (void)stream;
    (void)reason;
}

static void a_stalled_reader_costs_the_other_streams_nothing(void **state)
{
    (void)state;
    static const char *const ids[] = {"/ipfs/ping/1.0.0"};
    static const struct stream_events ping_events = {.opened = on_ping_opened,
            .reserve = on_ping_reserve,
            .commit = on_ping_commit,
            .closed = on_ping_closed};
    struct test_node server;
    struct test_node bad;
    struct test_node *nodes[] = {&server, &bad};
    struct glutton glutton = {0};
    test_node_init(&server, NULL, any_port);
    test_node_init(&bad, NULL, NULL);
    test_nodes_connect(&bad, &server);
    open_gluttons(&bad, &glutton, 4);
    test_nodes_turn(nodes, 2, 2000);
    bool is_pinged = false;
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &ping_events, .context = &is_pinged};
    assert_int_equal(connection_open_stream(bad.last_connection, &request, NULL), STATUS_OK);
    io_loop_wake(bad.loop);
    test_nodes_run(nodes, 2, has_pinged, &is_pinged);
    assert_int_equal(bad.disconnected, 0);
    assert_int_equal(glutton.closed, 0);
    test_nodes_fini(nodes, 2);
}

/* The peer's whole process stops: its socket takes nothing any more. */
static void a_peer_that_reads_nothing_is_closed_after_the_write_timeout(void **state)
{
    (void)state;
    struct switch_options limits = {
            .write_timeout_ms = SHORT_TIMEOUT_MS, .keep_alive_ms = UINT64_C(3600000)};
    struct test_node server;
    struct test_node bad;
    struct test_node *nodes[] = {&server, &bad};
    struct test_node *only_server[] = {&server};
    static const char *const ids[] = {ECHO_PROTOCOL_ID};
    struct glutton glutton = {0};
    test_node_init(&server, &limits, any_port);
    test_node_init(&bad, NULL, NULL);
    test_nodes_connect(&bad, &server);
    /* The server sends; windows of many streams are more than the kernel's buffers take. */
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &glutton_events, .context = &glutton};
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(connection_open_stream(server.last_connection, &request, NULL), STATUS_OK);
    }
    io_loop_wake(server.loop);
    /* Until the protocols are agreed both run, then only the server. */
    test_nodes_turn(nodes, 2, 4);
    uint64_t before = count_of(METRIC_NET_CLOSED_WRITE_STALLED);
    test_nodes_run(only_server, 1, has_disconnected, &server);
    assert_int_equal(server.last_reason, CLOSE_WRITE_STALLED);
    assert_int_equal(count_of(METRIC_NET_CLOSED_WRITE_STALLED), before + 1);
    test_nodes_fini(nodes, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(silent_peers_are_closed_by_the_deadline_and_keep_nobody_out),
            cmocka_unit_test(peers_that_stop_anywhere_are_closed_by_the_deadline),
            cmocka_unit_test(a_byte_now_and_then_does_not_move_the_deadline),
            cmocka_unit_test(the_oldest_unfinished_handshake_gives_way_to_a_new_one),
            cmocka_unit_test(connections_from_one_ip_are_limited_and_the_log_names_it),
            cmocka_unit_test(slots_of_an_ip_are_free_again_after_a_thousand_reconnects),
            cmocka_unit_test(refused_peers_that_do_not_leave_hold_few_descriptors),
            cmocka_unit_test(a_handshake_gives_way_before_its_io_thread_knows_of_it),
            cmocka_unit_test(connections_beyond_the_limit_are_refused),
            cmocka_unit_test(garbage_closes_only_who_sent_it),
            cmocka_unit_test(a_peer_without_a_muxer_in_common_is_refused_by_name),
            cmocka_unit_test(the_connection_that_buffers_most_goes_when_all_buffer_too_much),
            cmocka_unit_test(a_stalled_reader_costs_the_other_streams_nothing),
            cmocka_unit_test(a_peer_that_reads_nothing_is_closed_after_the_write_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
