/* SPDX-License-Identifier: MIT */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "net/protocols/echo.h"
#include "tests/unit/net/switch/test_node.h"

static const char any_port[] = "/ip4/127.0.0.1/tcp/0";

static bool is_dial_done(void *context)
{
    const struct test_node *node = context;
    return node->dials_done > 0;
}

static bool has_lost_its_peer(void *context)
{
    const struct test_node *node = context;
    return node->disconnected > 0;
}

static void two_nodes_connect_and_identify_each_other(void **state)
{
    (void)state;
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a, &b};
    test_node_init(&a, NULL, NULL);
    test_node_init(&b, NULL, any_port);
    test_nodes_connect(&a, &b);
    assert_int_equal(a.dial_status, STATUS_OK);
    assert_true(peer_id_equal(connection_peer(a.last_connection), identity_peer_id(b.identity)));
    assert_true(peer_id_equal(connection_peer(b.last_connection), identity_peer_id(a.identity)));
    assert_string_equal(connection_muxer(a.last_connection), "/yamux/1.0.0");
    assert_string_equal(connection_agent(b.last_connection), "sluice/0.1.0");
    assert_true(connection_is_outbound(a.last_connection));
    assert_false(connection_is_outbound(b.last_connection));
    assert_int_equal(switch_connection_count(a.net_switch), 1);
    assert_int_equal(switch_connection_count(b.net_switch), 1);
    test_nodes_fini(nodes, 2);
    assert_int_equal(a.disconnected, 1);
    assert_int_equal(b.disconnected, 1);
}

static int option_of(int descriptor, int level, int name)
{
    int value = 0;
    socklen_t length = sizeof(value);
    assert_int_equal(getsockopt(descriptor, level, name, &value, &length), 0);
    return value;
}

/* Not every muxer has pings: the sockets have to notice by themselves. */
static void both_sides_would_notice_within_minutes_that_the_other_is_gone(void **state)
{
    (void)state;
    enum {
        DESCRIPTORS = 1024,
        NOTICED_SECONDS_MAX = 180
    };
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a, &b};
    size_t sockets = 0;
    test_node_init(&a, NULL, NULL);
    test_node_init(&b, NULL, any_port);
    test_nodes_connect(&a, &b);
    for (int i = 0; i < DESCRIPTORS; i++) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof(peer);
        if (getpeername(i, (struct sockaddr *)&peer, &length) != 0 || peer.ss_family != AF_INET) {
            continue;
        }
        sockets++;
        assert_true(option_of(i, SOL_SOCKET, SO_KEEPALIVE) != 0);
        assert_true(option_of(i, IPPROTO_TCP, TCP_KEEPIDLE) +
                            option_of(i, IPPROTO_TCP, TCP_KEEPCNT) *
                                    option_of(i, IPPROTO_TCP, TCP_KEEPINTVL) <=
                    NOTICED_SECONDS_MAX);
    }
    assert_true(sockets >= 2);
    test_nodes_fini(nodes, 2);
}

static void nodes_connect_over(const char *listen)
{
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a, &b};
    test_node_init(&a, NULL, NULL);
    test_node_init(&b, NULL, listen);
    test_nodes_connect(&a, &b);
    test_nodes_fini(nodes, 2);
}

static void nodes_connect_over_websocket(void **state)
{
    (void)state;
    nodes_connect_over("/ip4/127.0.0.1/tcp/0/ws");
}

static void nodes_connect_over_ip6(void **state)
{
    (void)state;
    nodes_connect_over("/ip6/::1/tcp/0");
}

static void nodes_connect_by_name(void **state)
{
    (void)state;
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a, &b};
    struct multiaddr_endpoint endpoint;
    test_node_init(&a, NULL, NULL);
    test_node_init(&b, NULL, any_port);
    assert_int_equal(multiaddr_endpoint(&endpoint, &b.address), STATUS_OK);
    endpoint.host_kind = MULTIADDR_HOST_DNS4;
    strcpy(endpoint.host, "localhost");
    assert_int_equal(multiaddr_from_endpoint(&b.address, &endpoint), STATUS_OK);
    test_nodes_connect(&a, &b);
    test_nodes_fini(nodes, 2);
}

static void a_dial_to_another_identity_fails(void **state)
{
    (void)state;
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a, &b};
    test_node_init(&a, NULL, NULL);
    test_node_init(&b, NULL, any_port);
    struct multiaddr address = b.address;
    assert_int_equal(multiaddr_set_peer(&address, identity_peer_id(a.identity)), STATUS_OK);
    uint64_t before = count_of(METRIC_NET_CLOSED_WRONG_PEER);
    test_node_dial(&a, &address);
    test_nodes_run(nodes, 2, is_dial_done, &a);
    assert_int_equal(a.dial_status, STATUS_WRONG_PEER);
    assert_int_equal(count_of(METRIC_NET_CLOSED_WRONG_PEER), before + 1);
    assert_int_equal(a.connected, 0);
    assert_int_equal(b.connected, 0);
    test_nodes_fini(nodes, 2);
}

static void a_dial_to_a_closed_port_fails(void **state)
{
    (void)state;
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a};
    test_node_init(&b, NULL, any_port);
    struct multiaddr address = b.address;
    test_nodes_fini((struct test_node *[]){&b}, 1);
    test_node_init(&a, NULL, NULL);
    test_node_dial(&a, &address);
    test_nodes_run(nodes, 1, is_dial_done, &a);
    assert_int_equal(a.dial_status, STATUS_UNREACHABLE);
    test_nodes_fini(nodes, 1);
}

static void a_dial_to_ourselves_is_refused(void **state)
{
    (void)state;
    struct test_node a;
    struct test_node *nodes[] = {&a};
    test_node_init(&a, NULL, any_port);
    uint64_t before = count_of(METRIC_NET_CLOSED_SELF);
    test_node_dial(&a, &a.address);
    test_nodes_run(nodes, 1, is_dial_done, &a);
    assert_int_equal(a.dial_status, STATUS_WRONG_PEER);
    assert_true(count_of(METRIC_NET_CLOSED_SELF) > before);
    assert_int_equal(a.connected, 0);
    test_nodes_fini(nodes, 1);
}

static void a_second_dial_to_the_same_peer_answers_with_the_connection_that_stands(void **state)
{
    (void)state;
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a, &b};
    test_node_init(&a, NULL, NULL);
    test_node_init(&b, NULL, any_port);
    test_nodes_connect(&a, &b);
    uint64_t first = a.dial_connection;
    a.dials_done = 0;
    test_node_dial(&a, &b.address);
    test_nodes_run(nodes, 2, is_dial_done, &a);
    assert_int_equal(a.dial_connection, first);
    assert_int_equal(a.connected, 1);
    test_nodes_fini(nodes, 2);
}

struct two_nodes {
    struct test_node *a;
    struct test_node *b;
};

static bool have_settled_on_one(void *context)
{
    const struct two_nodes *two = context;
    return two->a->dials_done > 0 && two->b->dials_done > 0 && two->a->connected > 0 &&
           two->b->connected > 0 && two->a->connected - two->a->disconnected == 1 &&
           two->b->connected - two->b->disconnected == 1 &&
           switch_upgrade_count(two->a->net_switch) == 0 &&
           switch_upgrade_count(two->b->net_switch) == 0;
}

static void dials_from_both_sides_at_once_end_with_one_connection(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct test_node a;
        struct test_node b;
        struct test_node *nodes[] = {&a, &b};
        struct two_nodes two = {.a = &a, .b = &b};
        test_node_init(&a, NULL, any_port);
        test_node_init(&b, NULL, any_port);
        test_node_dial(&a, &b.address);
        test_node_dial(&b, &a.address);
        test_nodes_run(nodes, 2, have_settled_on_one, &two);
        /* Had each side kept another one, none would be left in a moment. */
        test_nodes_turn(nodes, 2, 200);
        assert_int_equal(a.dial_status, STATUS_OK);
        assert_int_equal(b.dial_status, STATUS_OK);
        assert_non_null(a.last_connection != NULL ? a.last_connection : b.last_connection);
        assert_int_equal(switch_connection_count(a.net_switch), 1);
        assert_int_equal(switch_connection_count(b.net_switch), 1);
        test_nodes_fini(nodes, 2);
    }
}

static bool has_two(void *context)
{
    const struct test_node *node = context;
    return node->connected == 2 && node->disconnected == 1;
}

static void a_peer_that_comes_again_replaces_its_older_connection(void **state)
{
    (void)state;
    struct test_node server;
    struct test_node first;
    struct test_node again;
    struct test_node *nodes[] = {&server, &first, &again};
    struct identity *identity;
    assert_int_equal(identity_create(&identity, KEY_TYPE_SECP256K1), STATUS_OK);
    struct switch_options options = {.identity = identity};
    test_node_init(&server, NULL, any_port);
    test_node_init(&first, &options, NULL);
    test_node_init(&again, &options, NULL);
    test_nodes_connect(&first, &server);
    uint64_t before = count_of(METRIC_NET_CLOSED_DUPLICATE);
    test_node_dial(&again, &server.address);
    test_nodes_run(nodes, 3, has_two, &server);
    assert_int_equal(server.last_reason, CLOSE_DUPLICATE);
    assert_int_equal(count_of(METRIC_NET_CLOSED_DUPLICATE), before + 1);
    assert_int_equal(switch_connection_count(server.net_switch), 1);
    test_nodes_fini(nodes, 3);
    identity_destroy(&identity);
}

static bool admit_only_first(void *context, const struct switch_peer *peer)
{
    (void)peer;
    size_t *asked = context;
    return (*asked)++ == 0;
}

static void a_peer_that_comes_again_keeps_its_slot(void **state)
{
    (void)state;
    static const struct switch_gatekeeper gatekeeper = {.admit = admit_only_first};
    struct test_node server;
    struct test_node first;
    struct test_node again;
    struct test_node *nodes[] = {&server, &first, &again};
    struct identity *identity;
    size_t asked = 0;
    assert_int_equal(identity_create(&identity, KEY_TYPE_ED25519), STATUS_OK);
    struct switch_options options = {.identity = identity};
    test_node_init(&server, NULL, any_port);
    test_node_init(&first, &options, NULL);
    test_node_init(&again, &options, NULL);
    switch_set_gatekeeper(server.net_switch, &gatekeeper, &asked);
    test_nodes_connect(&first, &server);
    test_node_dial(&again, &server.address);
    test_nodes_run(nodes, 3, has_lost_its_peer, &server);
    test_nodes_run(nodes, 3, is_dial_done, &again);
    assert_int_equal(again.dial_status, STATUS_OK);
    assert_int_equal(switch_connection_count(server.net_switch), 1);
    test_nodes_fini(nodes, 3);
    identity_destroy(&identity);
}

static void on_quiet_closed(struct stream *stream, enum status reason)
{
    (void)reason;
    if (stream_context(stream) != NULL) {
        *(int *)stream_context(stream) += 1;
    }
}

static const struct stream_events quiet_events = {.closed = on_quiet_closed};

/* Counts what it is sent. */
struct counter {
    size_t bytes;
    uint8_t place[4096];
};

static size_t on_count_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct counter *counter = stream_context(stream);
    *to = counter->place;
    return wanted < sizeof(counter->place) ? wanted : sizeof(counter->place);
}

static void on_count_commit(struct stream *stream, size_t n)
{
    struct counter *counter = stream_context(stream);
    counter->bytes += n;
    stream_consumed(stream, n);
}

static void on_count_closed(struct stream *stream, enum status reason)
{
    (void)stream;
    (void)reason;
}

static const struct stream_events count_events = {
        .reserve = on_count_reserve, .commit = on_count_commit, .closed = on_count_closed};

static const char *const count_ids[] = {"/test/count"};
static uint8_t large[1 << 20];

static enum status on_writer_opened(struct stream *stream)
{
    struct muxer_piece piece = {.bytes = span_of(large, 200000)};
    enum status status = stream_write(stream, &piece, 1);
    connection_close(stream_connection(stream), CLOSE_REQUESTED);
    return status;
}

static void what_is_queued_leaves_before_a_connection_closes(void **state)
{
    (void)state;
    static const struct stream_events writer_events = {
            .opened = on_writer_opened, .closed = on_quiet_closed};
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a, &b};
    struct counter counter = {0};
    struct protocol protocol = {.id = count_ids[0], .events = &count_events, .context = &counter};
    int closed = 0;
    test_node_init(&a, NULL, NULL);
    test_node_init(&b, NULL, any_port);
    assert_int_equal(switch_add_protocol(b.net_switch, &protocol), STATUS_OK);
    test_nodes_connect(&a, &b);
    struct stream_request request = {.protocols = count_ids,
            .protocol_count = 1,
            .events = &writer_events,
            .context = &closed};
    assert_int_equal(connection_open_stream(a.last_connection, &request, NULL), STATUS_OK);
    io_loop_wake(a.loop);
    test_nodes_run(nodes, 2, has_lost_its_peer, &b);
    assert_int_equal(counter.bytes, 200000);
    assert_int_equal(closed, 1);
    assert_int_equal(a.last_reason, CLOSE_REQUESTED);
    assert_int_equal(b.last_reason, CLOSE_PEER_CLOSED);
    test_nodes_fini(nodes, 2);
}

static bool is_one(void *context)
{
    return *(int *)context == 1;
}

static void a_stream_without_a_protocol_in_common_is_refused(void **state)
{
    (void)state;
    static const char *const ids[] = {"/test/nobody", "/test/has/this"};
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a, &b};
    int closed = 0;
    test_node_init(&a, NULL, NULL);
    test_node_init(&b, NULL, any_port);
    test_nodes_connect(&a, &b);
    struct stream_request request = {
            .protocols = ids, .protocol_count = 2, .events = &quiet_events, .context = &closed};
    assert_int_equal(connection_open_stream(a.last_connection, &request, NULL), STATUS_OK);
    test_nodes_run(nodes, 2, is_one, &closed);
    assert_non_null(a.last_connection);
    assert_int_equal(a.disconnected, 0);
    test_nodes_fini(nodes, 2);
}

static void streams_beyond_the_limit_of_a_protocol_are_reset_and_the_others_live(void **state)
{
    (void)state;
    enum {
        LIMIT = 4,
        OPENED = 10
    };
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a, &b};
    struct counter counter = {0};
    struct protocol protocol = {
            .id = count_ids[0], .events = &count_events, .context = &counter, .inbound_max = LIMIT};
    int closed = 0;
    test_node_init(&a, NULL, NULL);
    test_node_init(&b, NULL, any_port);
    assert_int_equal(switch_add_protocol(b.net_switch, &protocol), STATUS_OK);
    test_nodes_connect(&a, &b);
    uint64_t before = count_of(METRIC_NET_STREAMS_PROTOCOL_MAX);
    struct stream_request request = {.protocols = count_ids,
            .protocol_count = 1,
            .events = &quiet_events,
            .context = &closed};
    for (int i = 0; i < OPENED; i++) {
        assert_int_equal(connection_open_stream(a.last_connection, &request, NULL), STATUS_OK);
    }
    int expected = OPENED - LIMIT;
    while (closed < expected) {
        test_nodes_turn(nodes, 2, 1);
    }
    test_nodes_turn(nodes, 2, 50);
    assert_int_equal(closed, expected);
    assert_int_equal(count_of(METRIC_NET_STREAMS_PROTOCOL_MAX), before + OPENED - LIMIT);
    assert_int_equal(a.disconnected, 0);
    test_nodes_fini(nodes, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(two_nodes_connect_and_identify_each_other),
            cmocka_unit_test(both_sides_would_notice_within_minutes_that_the_other_is_gone),
            cmocka_unit_test(nodes_connect_over_websocket),
            cmocka_unit_test(nodes_connect_over_ip6),
            cmocka_unit_test(nodes_connect_by_name),
            cmocka_unit_test(a_dial_to_another_identity_fails),
            cmocka_unit_test(a_dial_to_a_closed_port_fails),
            cmocka_unit_test(a_dial_to_ourselves_is_refused),
            cmocka_unit_test(
                    a_second_dial_to_the_same_peer_answers_with_the_connection_that_stands),
            cmocka_unit_test(dials_from_both_sides_at_once_end_with_one_connection),
            cmocka_unit_test(a_peer_that_comes_again_replaces_its_older_connection),
            cmocka_unit_test(a_peer_that_comes_again_keeps_its_slot),
            cmocka_unit_test(what_is_queued_leaves_before_a_connection_closes),
            cmocka_unit_test(a_stream_without_a_protocol_in_common_is_refused),
            cmocka_unit_test(streams_beyond_the_limit_of_a_protocol_are_reset_and_the_others_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
