/* SPDX-License-Identifier: MIT */

/* sluice ping MULTIADDR: connects to a libp2p peer, says what it met, and measures round trips. */

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/protocols/ping.h"
#include "tools/sluice/command_options.h"
#include "tools/sluice/commands.h"
#include "tools/sluice/key_options.h"
#include "tools/sluice/net_host.h"

static const char usage[] = "ping MULTIADDR [-n N] [OPTIONS]";

static const struct option_spec specs[] = {
        {"count", OPTION_NUMBER, "5", 1, 1000000, "Ping", "how many pings; -n is the same"},
        {"interval", OPTION_SECONDS, "200ms", 0, 60000, "Ping", "time between two pings"},
        {"timeout", OPTION_SECONDS, "10s", 100, 600000, "Ping", "time to connect"},
        KEY_OPTIONS,
        {"log-level", OPTION_TEXT, "WARN", 0, 0, "Logging", "least level that is written"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

enum {
    IDENTIFY_WAIT_MS = 3000 /* then it goes on without an agent */
};

struct ping_run {
    struct net_host *host;
    struct connection *connection;
    struct ping *ping;
    uv_timer_t timer; /* until identify is done, then between two pings */
    sem_t over;
    uint64_t *round_trips_ns;
    size_t wanted;
    size_t answered;
    uint64_t interval_ms;
    bool is_started;
    enum status status;
    const char *failed_step;
};

static void fail(struct ping_run *run, const char *step, enum status status)
{
    run->failed_step = step;
    run->status = status;
    sem_post(&run->over);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct ping_run *run = handle->data;
    sem_post(&run->over);
}

static void end(struct ping_run *run, const char *step, enum status status)
{
    run->status = status;
    run->failed_step = step;
    uv_close((uv_handle_t *)&run->timer, on_timer_closed);
}

static void on_interval(uv_timer_t *timer)
{
    struct ping_run *run = timer->data;
    ping_send(run->ping);
}

static void on_ready(void *context, struct ping *ping)
{
    (void)context;
    ping_send(ping);
}

static void on_answered(void *context, struct ping *ping, uint64_t round_trip_ns)
{
    struct ping_run *run = context;
    run->round_trips_ns[run->answered++] = round_trip_ns;
    printf("ping %zu: %.3f ms\n", run->answered,
            (double)round_trip_ns / NANOSECONDS_PER_MILLISECOND);
    fflush(stdout);
    if (run->answered == run->wanted) {
        ping_close(ping);
    } else {
        uv_timer_start(&run->timer, on_interval, run->interval_ms, 0);
    }
}

static void on_ended(void *context, struct ping *ping, enum status reason)
{
    (void)ping;
    struct ping_run *run = context;
    run->ping = NULL;
    end(run, "ping", reason);
}

static const struct ping_events ping_events = {
        .ready = on_ready, .answered = on_answered, .ended = on_ended};

static void print_peer(const struct connection *connection)
{
    char peer[PEER_ID_TEXT_SIZE];
    char address[MULTIADDR_TEXT_SIZE];
    struct multiaddr remote;
    connection_remote(connection, &remote);
    const char *agent = connection_agent(connection);
    printf("connected to %s at %s\n", peer_id_print(peer, connection_peer(connection)),
            multiaddr_print(address, &remote));
    printf("security %s, muxer %s, agent %s\n", connection_security(connection),
            connection_muxer(connection), agent[0] == '\0' ? "unknown" : agent);
}

/* The agent is known now, or the peer does not tell. */
static void start(struct ping_run *run)
{
    if (run->is_started) {
        return;
    }
    run->is_started = true;
    uv_timer_stop(&run->timer);
    print_peer(run->connection);
    enum status status = ping_open(run->connection, &ping_events, run, &run->ping);
    if (status != STATUS_OK) {
        end(run, "ping", status);
    }
}

static void on_identified(
        void *context, struct connection *connection, const struct identify_info *info)
{
    (void)connection;
    (void)info;
    start(context);
}

static void on_identify_late(uv_timer_t *timer)
{
    start(timer->data);
}

static void on_connected(void *context, struct connection *connection)
{
    struct ping_run *run = context;
    run->connection = connection;
    uv_timer_init(io_loop_uv(connection_loop(connection)), &run->timer);
    run->timer.data = run;
    uv_timer_start(&run->timer, on_identify_late, IDENTIFY_WAIT_MS, 0);
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    (void)connection;
    if (status != STATUS_OK) {
        fail(context, "connect", status);
    }
}

static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    (void)connection;
    (void)reason;
    struct ping_run *run = context;
    if (!run->is_started) {
        run->is_started = true;
        end(run, "identify", STATUS_CLOSED);
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static double in_ms(uint64_t ns)
{
    return (double)ns / NANOSECONDS_PER_MILLISECOND;
}

static void print_statistics(struct ping_run *run)
{
    uint64_t *times = run->round_trips_ns;
    uint64_t sum = 0;
    size_t n = run->answered;
    qsort(times, n, sizeof(*times), compare);
    for (size_t i = 0; i < n; i++) {
        sum += times[i];
    }
    printf("%zu pings: min %.3f, median %.3f, mean %.3f, max %.3f ms\n", n, in_ms(times[0]),
            in_ms(times[n / 2]), in_ms(sum / n), in_ms(times[n - 1]));
}

static int dial_and_wait(struct ping_run *run, const struct switch_dial *dial)
{
    static const struct switch_observer observer = {
            .connected = on_connected, .disconnected = on_disconnected};
    struct net_switch *net_switch = net_host_switch(run->host);
    enum status status = switch_add_observer(net_switch, &observer, run);
    if (status == STATUS_OK) {
        status = net_host_start(run->host);
    }
    if (status == STATUS_OK) {
        status = switch_dial(net_switch, dial);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "sluice ping: %s\n", status_text(status));
        return 1;
    }
    while (sem_wait(&run->over) != 0) {
    }
    if (run->status != STATUS_OK) {
        fprintf(stderr, "sluice ping: %s: %s\n", run->failed_step, status_text(run->status));
        return 1;
    }
    print_statistics(run);
    return 0;
}

static int run_ping(const struct options *options, const struct identity *identity)
{
    struct ping_run run = {.wanted = options_number(options, "count"),
            .interval_ms = options_number(options, "interval")};
    struct switch_dial dial = {
            .timeout_ms = options_number(options, "timeout"), .done = on_dialled, .context = &run};
    enum status status =
            multiaddr_parse(&dial.address, span_of_text(options_positional(options, 0)));
    struct net_host_options host_options = {
            .identity = identity, .identified = on_identified, .context = &run};
    if (status == STATUS_OK) {
        status = net_host_create(&run.host, &host_options);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "sluice ping: %s\n", status_text(status));
        return 1;
    }
    run.round_trips_ns = calloc(run.wanted, sizeof(*run.round_trips_ns));
    sem_init(&run.over, 0, 0);
    int result = run.round_trips_ns == NULL ? 1 : dial_and_wait(&run, &dial);
    net_host_destroy(&run.host);
    sem_destroy(&run.over);
    free(run.round_trips_ns);
    return result;
}

static int run_command(const struct options *options)
{
    struct identity *identity;
    if (options_positional_count(options) != 1) {
        fprintf(stderr, "usage: sluice %s\n", usage);
        return 2;
    }
    if (!command_start_log(options_text(options, "log-level"))) {
        return 2;
    }
    enum status status = identity_from_options(&identity, options);
    if (status != STATUS_OK) {
        fprintf(stderr, "sluice ping: key: %s\n", status_text(status));
        return 1;
    }
    int result = run_ping(options, identity);
    identity_destroy(&identity);
    return result;
}

int command_ping(int argc, char **argv)
{
    static char long_count[] = "--count";
    int exit_status;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "-n") == 0) {
            argv[i] = long_count;
        }
    }
    struct options *options = command_parse(usage, specs, argc, argv, &exit_status);
    if (options == NULL) {
        return exit_status;
    }
    exit_status = run_command(options);
    options_destroy(&options);
    return exit_status;
}
