/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "node/static_nodes.h"

enum {
    PATIENCE_S = 60,
    ATTEMPTS = 3
};

static int listen_somewhere(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(descriptor >= 0);
    assert_int_equal(bind(descriptor, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(descriptor, 16), 0);
    assert_int_equal(getsockname(descriptor, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return descriptor;
}

/*
 * Ends the connection of whoever comes, in an orderly way: a close with unread input would be a
 * reset. -1 when nobody came, else what is to be closed later.
 */
static int throw_out(int listener)
{
    int descriptor = accept(listener, NULL, NULL);
    if (descriptor >= 0) {
        shutdown(descriptor, SHUT_WR);
    }
    return descriptor;
}

static void make_address(struct multiaddr *out, uint16_t port, const struct identity *identity)
{
    char text[64];
    snprintf(text, sizeof(text), "/ip4/127.0.0.1/tcp/%u", (unsigned)port);
    assert_int_equal(multiaddr_parse(out, span_of_text(text)), STATUS_OK);
    assert_int_equal(multiaddr_set_peer(out, identity_peer_id(identity)), STATUS_OK);
}

static void a_node_that_closes_at_once_is_dialled_ever_less(void **state)
{
    (void)state;
    struct io_loop *loop;
    struct identity *identity;
    struct net_switch *net_switch;
    struct static_nodes *nodes;
    struct multiaddr address;
    uint16_t port;
    int descriptors[ATTEMPTS];
    int listener = listen_somewhere(&port);
    assert_int_equal(io_loop_create(&loop, 0), STATUS_OK);
    assert_int_equal(identity_create(&identity, KEY_TYPE_ED25519), STATUS_OK);
    struct switch_options options = {.identity = identity, .loops = &loop, .loop_count = 1};
    assert_int_equal(switch_create(&net_switch, &options), STATUS_OK);
    make_address(&address, port, identity);
    assert_int_equal(static_nodes_create(&nodes, net_switch, &address, 1), STATUS_OK);
    static_nodes_start(nodes);
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)PATIENCE_S * NANOSECONDS_PER_SECOND;
    for (size_t seen = 0; seen < ATTEMPTS;) {
        io_loop_wait(loop, 10 * NANOSECONDS_PER_MILLISECOND);
        io_loop_turn(loop);
        descriptors[seen] = throw_out(listener);
        if (descriptors[seen] >= 0) {
            last_ns = clock_monotonic_ns();
            first_ns = seen == 0 ? last_ns : first_ns;
            seen++;
        }
        assert_true(clock_monotonic_ns() < end_ns);
    }
    /* One second and then two; half of one is for the clock's steps. */
    assert_true(last_ns - first_ns > UINT64_C(5) * NANOSECONDS_PER_SECOND / 2);
    switch_stop(net_switch);
    while (!switch_is_stopped(net_switch)) {
        io_loop_run_once(loop);
    }
    static_nodes_destroy(&nodes);
    switch_destroy(&net_switch);
    io_loop_destroy(&loop);
    identity_destroy(&identity);
    for (size_t i = 0; i < ATTEMPTS; i++) {
        close(descriptors[i]);
    }
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_node_that_closes_at_once_is_dialled_ever_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
