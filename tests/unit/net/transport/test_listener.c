/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "net/transport/listener.h"

enum {
    CLIENTS = 40,
    SPARE = 8 /* descriptors left for the accepting side */
};

struct accepted {
    int descriptors[CLIENTS];
    size_t count;
};

static void on_accepted(
        void *context, struct listener *listener, int descriptor, const struct sockaddr *remote)
{
    (void)listener;
    (void)remote;
    struct accepted *accepted = context;
    assert_true(accepted->count < CLIENTS);
    accepted->descriptors[accepted->count++] = descriptor;
}

static struct listener *create_listener(
        struct io_loop *loop, const struct multiaddr_endpoint *endpoint, void *context)
{
    struct listener *listener;
    struct listener_options options = {
            .loop = loop, .endpoint = endpoint, .accepted = on_accepted, .context = context};
    assert_int_equal(listener_create(&listener, &options), STATUS_OK);
    return listener;
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
            .sin_port = htons(port),
            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(descriptor >= 0);
    assert_int_equal(connect(descriptor, (struct sockaddr *)&address, sizeof(address)), 0);
    return descriptor;
}

static void count_line(void *context, enum log_level level, const char *module, const char *line)
{
    (void)level;
    (void)module;
    (void)line;
    (*(size_t *)context)++;
}

static struct multiaddr_endpoint loopback(void)
{
    return (struct multiaddr_endpoint){.host_kind = MULTIADDR_HOST_IP4, .ip = {127, 0, 0, 1}};
}

static void an_address_in_use_is_refused(void **state)
{
    (void)state;
    struct io_loop *loop;
    struct multiaddr_endpoint endpoint = loopback();
    struct accepted accepted = {.count = 0};
    assert_int_equal(io_loop_create(&loop, 0), STATUS_OK);
    struct listener *first = create_listener(loop, &endpoint, &accepted);
    struct listener *second;
    struct listener_options options = {.loop = loop,
            .endpoint = listener_endpoint(first),
            .accepted = on_accepted,
            .context = &accepted};
    assert_int_not_equal(listener_endpoint(first)->port, 0);
    assert_int_equal(listener_create(&second, &options), STATUS_BUSY);
    listener_destroy(&first);
    io_loop_destroy(&loop);
}

/*
 * All clients are connected (the kernel's backlog takes them) while only a few descriptors are left
 * for accepting. The loop must rest, say so once, and go on when there are descriptors again.
 */
static void out_of_descriptors_it_waits_without_spinning_and_recovers(void **state)
{
    (void)state;
    struct io_loop *loop;
    struct multiaddr_endpoint endpoint = loopback();
    struct accepted accepted = {.count = 0};
    int clients[CLIENTS];
    struct rlimit before;
    size_t lines = 0;
    assert_int_equal(io_loop_create(&loop, 0), STATUS_OK);
    struct listener *listener = create_listener(loop, &endpoint, &accepted);
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = connect_to(listener_endpoint(listener)->port);
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(clients[0]);
    close(next);
    struct rlimit tight = {.rlim_cur = (rlim_t)next + SPARE, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    log_set_sink(count_line, &lines);
    uint64_t pauses = metrics_sum(NULL, METRIC_NET_ACCEPT_EXHAUSTED);
    /* Three pauses; every turn between them is counted: a loop that spins takes thousands. */
    size_t turns = 0;
    while (metrics_sum(NULL, METRIC_NET_ACCEPT_EXHAUSTED) < pauses + 3) {
        io_loop_run_once(loop);
        turns++;
    }
    assert_true(turns < 20);
    assert_int_equal(lines, 1);
    assert_int_equal(accepted.count, SPARE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    while (accepted.count < CLIENTS) {
        io_loop_run_once(loop);
    }
    log_set_sink(NULL, NULL);
    for (size_t i = 0; i < CLIENTS; i++) {
        close(clients[i]);
        close(accepted.descriptors[i]);
    }
    listener_destroy(&listener);
    io_loop_destroy(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(an_address_in_use_is_refused),
            cmocka_unit_test(out_of_descriptors_it_waits_without_spinning_and_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
