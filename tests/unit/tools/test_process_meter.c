/* SPDX-License-Identifier: MIT */
#include "tools/common/process_meter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/cmocka.h"

static int listen_somewhere(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return listener;
}

static void the_process_that_listens_is_found_by_its_port(void **state)
{
    uint16_t port;
    (void)state;
    int listener = listen_somewhere(&port);
    assert_int_equal(process_find_listener(port), getpid());
    close(listener);
    assert_int_equal(process_find_listener(port), 0);
}

/* The kernel counts in ticks of 10 ms or so: enough work that some must show. */
static void work_shows_as_cpu_time(void **state)
{
    struct process_reading before;
    struct process_reading after;
    volatile uint64_t sum = 0;
    (void)state;
    assert_true(process_read(&before, getpid()));
    uint64_t began = clock_thread_cpu_ns();
    while (clock_thread_cpu_ns() - began < 100 * NANOSECONDS_PER_MILLISECOND) {
        sum += 1;
    }
    assert_true(process_read(&after, getpid()));
    assert_true(sum > 0);
    assert_true(after.cpu_ns > before.cpu_ns);
    assert_true(after.peak_rss_bytes >= after.rss_bytes);
    assert_true(after.rss_bytes > 0);
    assert_true(after.threads >= 1);
}

static void a_process_that_is_not_there_has_no_reading(void **state)
{
    struct process_reading reading;
    (void)state;
    assert_false(process_read(&reading, 0));
    assert_false(process_read(&reading, 0x3fffffff));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_process_that_listens_is_found_by_its_port),
            cmocka_unit_test(work_shows_as_cpu_time),
            cmocka_unit_test(a_process_that_is_not_there_has_no_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
