/* SPDX-License-Identifier: MIT */
#include "tests/unit/net/switch/test_node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/protocols/echo.h"
#include "net/transport/address.h"

enum {
    PATIENCE_S = 60
};

static void on_connected(void *context, struct connection *connection)
{
    struct test_node *node = context;
    node->connected++;
    node->last_connection = connection;
    node->last_id = connection_id(connection);
}

static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    struct test_node *node = context;
    node->disconnected++;
    node->last_reason = reason;
    if (node->last_connection == connection) {
        node->last_connection = NULL;
    }
}

static void on_identified(
        void *context, struct connection *connection, const struct identify_info *info)
{
    (void)connection;
    (void)info;
    struct test_node *node = context;
    node->identified++;
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    struct test_node *node = context;
    node->dials_done++;
    node->dial_status = status;
    node->dial_connection = connection;
}

void test_node_init(struct test_node *node, const struct switch_options *limits, const char *listen)
{
    static const struct switch_observer observer = {
            .connected = on_connected, .disconnected = on_disconnected};
    struct switch_options options = {0};
    memset(node, 0, sizeof(*node));
    if (limits != NULL) {
        options = *limits;
    }
    assert_int_equal(io_loop_create(&node->loop, 0), STATUS_OK);
    if (options.identity == NULL) {
        assert_int_equal(identity_create(&node->identity, KEY_TYPE_ED25519), STATUS_OK);
        options.identity = node->identity;
    }
    options.loops = &node->loop;
    options.loop_count = 1;
    assert_int_equal(switch_create(&node->net_switch, &options), STATUS_OK);
    assert_int_equal(switch_add_observer(node->net_switch, &observer, node), STATUS_OK);
    assert_int_equal(ping_register(node->net_switch), STATUS_OK);
    assert_int_equal(echo_register(node->net_switch), STATUS_OK);
    struct identify_options identify_options = {
            .net_switch = node->net_switch, .identified = on_identified, .context = node};
    assert_int_equal(identify_create(&node->identify, &identify_options), STATUS_OK);
    if (listen != NULL) {
        assert_int_equal(multiaddr_parse(&node->address, span_of_text(listen)), STATUS_OK);
        assert_int_equal(switch_listen(node->net_switch, &node->address), STATUS_OK);
        node->address = *switch_listen_address(node->net_switch, 0);
        assert_int_equal(
                multiaddr_set_peer(&node->address, identity_peer_id(options.identity)), STATUS_OK);
    }
}

/* Polls instead of waiting: a wait in one loop would keep the others from running. */
static void turn(struct test_node *nodes[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        io_loop_turn(nodes[i]->loop);
    }
}

void test_nodes_turn(struct test_node *nodes[], size_t count, size_t turns)
{
    for (size_t i = 0; i < turns; i++) {
        turn(nodes, count);
    }
}

void test_nodes_run(
        struct test_node *nodes[], size_t count, bool (*condition)(void *context), void *context)
{
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)PATIENCE_S * NANOSECONDS_PER_SECOND;
    while (!condition(context)) {
        assert_true(clock_monotonic_ns() < end_ns);
        turn(nodes, count);
        if (count == 1) {
            io_loop_wait(nodes[0]->loop, NANOSECONDS_PER_MILLISECOND);
        }
    }
}

struct node_list {
    struct test_node **nodes;
    size_t count;
};

static bool are_stopped(void *context)
{
    const struct node_list *list = context;
    for (size_t i = 0; i < list->count; i++) {
        if (!switch_is_stopped(list->nodes[i]->net_switch)) {
            return false;
        }
    }
    return true;
}

void test_nodes_stop(struct test_node *nodes[], size_t count)
{
    struct node_list list = {.nodes = nodes, .count = count};
    for (size_t i = 0; i < count; i++) {
        if (!switch_is_stopped(nodes[i]->net_switch)) {
            switch_stop(nodes[i]->net_switch);
        }
    }
    test_nodes_run(nodes, count, are_stopped, &list);
}

void test_nodes_fini(struct test_node *nodes[], size_t count)
{
    test_nodes_stop(nodes, count);
    for (size_t i = 0; i < count; i++) {
        switch_destroy(&nodes[i]->net_switch);
        identify_destroy(&nodes[i]->identify);
        io_loop_destroy(&nodes[i]->loop);
        identity_destroy(&nodes[i]->identity);
    }
}

void test_node_dial(struct test_node *from, const struct multiaddr *address)
{
    struct switch_dial dial = {.address = *address, .done = on_dialled, .context = from};
    assert_int_equal(switch_dial(from->net_switch, &dial), STATUS_OK);
}

static bool have_identified(void *context)
{
    const struct node_list *list = context;
    return list->nodes[0]->identified > 0 && list->nodes[1]->identified > 0;
}

void test_nodes_connect(struct test_node *from, struct test_node *to)
{
    struct test_node *nodes[] = {from, to};
    struct node_list list = {.nodes = nodes, .count = 2};
    test_node_dial(from, &to->address);
    test_nodes_run(nodes, 2, have_identified, &list);
}

int raw_connect(const struct test_node *node)
{
    struct multiaddr_endpoint endpoint;
    struct sockaddr_storage address;
    assert_int_equal(multiaddr_endpoint(&endpoint, &node->address), STATUS_OK);
    assert_int_equal(address_from_endpoint(&address, &endpoint), STATUS_OK);
    int descriptor = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(descriptor >= 0);
    assert_int_equal(connect(descriptor, (struct sockaddr *)&address, address_length(&address)), 0);
    assert_int_equal(fcntl(descriptor, F_SETFL, O_NONBLOCK), 0);
    return descriptor;
}

void raw_send(int descriptor, const void *bytes, size_t length)
{
    /* Whether it is taken matters only where a test looks at the answer. */
    ssize_t sent = send(descriptor, bytes, length, MSG_NOSIGNAL);
    (void)sent;
}

bool raw_is_closed(int descriptor)
{
    char bytes[4096];
    for (;;) {
        ssize_t n = recv(descriptor, bytes, sizeof(bytes), 0);
        if (n > 0) {
            continue;
        }
        return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    }
}

uint64_t count_of(enum metric metric)
{
    return metrics_sum(NULL, metric);
}
