/* SPDX-License-Identifier: MIT */

/* `sluice ping`, run as a program against a switch of the test's own. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/protocols/echo.h"
#include "net/switch/switch.h"

enum {
    PATIENCE_S = 60
};

static pid_t start_ping(const char *address)
{
    pid_t child = fork();
    if (child == 0) {
        execl(SLUICE_PROGRAM, SLUICE_PROGRAM, "ping", address, "-n", "2", "--interval=0ms",
                (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    return child;
}

/* Serves until the child has ended; its exit status, or -1 when it is killed for being late. */
static int serve_until_end(struct io_loop *loop, pid_t child)
{
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)PATIENCE_S * NANOSECONDS_PER_SECOND;
    int status;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (clock_monotonic_ns() > end_ns) {
            kill(child, SIGKILL);
        }
        io_loop_wait(loop, 10 * NANOSECONDS_PER_MILLISECOND);
        io_loop_turn(loop);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void pings_a_peer_that_has_no_identify(void **state)
{
    (void)state;
    struct io_loop *loop;
    struct identity *identity;
    struct net_switch *net_switch;
    struct multiaddr address;
    char text[MULTIADDR_TEXT_SIZE];
    assert_int_equal(io_loop_create(&loop, 0), STATUS_OK);
    assert_int_equal(identity_create(&identity, KEY_TYPE_ED25519), STATUS_OK);
    struct switch_options options = {.identity = identity, .loops = &loop, .loop_count = 1};
    assert_int_equal(switch_create(&net_switch, &options), STATUS_OK);
    assert_int_equal(ping_register(net_switch), STATUS_OK);
    assert_int_equal(multiaddr_parse(&address, span_of_text("/ip4/127.0.0.1/tcp/0")), STATUS_OK);
    assert_int_equal(switch_listen(net_switch, &address), STATUS_OK);
    address = *switch_listen_address(net_switch, 0);
    assert_int_equal(multiaddr_set_peer(&address, identity_peer_id(identity)), STATUS_OK);
    pid_t child = start_ping(multiaddr_print(text, &address));
    assert_int_equal(serve_until_end(loop, child), 0);
    switch_stop(net_switch);
    while (!switch_is_stopped(net_switch)) {
        io_loop_run_once(loop);
    }
    switch_destroy(&net_switch);
    io_loop_destroy(&loop);
    identity_destroy(&identity);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(pings_a_peer_that_has_no_identify),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
