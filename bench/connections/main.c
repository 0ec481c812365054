/* SPDX-License-Identifier: MIT */

/*
 * Idle connections: bench_connections SLUICE COUNT starts `SLUICE serve-echo` and connects COUNT
 * peers to it, each with an identity of its own. Prints how long that took and what the server's
 * resident memory grew by, a connection.
 */

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/protocols/echo.h"
#include "net/protocols/identify.h"
#include "net/switch/switch.h"

enum {
    AT_ONCE = 64,
    SETTLE_S = 15, /* the allocator gives back what the handshakes used */
    LINE_BYTES = 1024
};

extern char **environ;

struct peer {
    struct identity *identity;
    struct net_switch *net_switch;
    struct identify *identify;
    bool is_identified;
};

struct bench {
    struct io_loop *loop;
    struct peer *peers;
    size_t count;
    size_t begun;
    size_t identified;
    size_t lost;
    struct multiaddr address;
    pid_t server;
    int server_input;
};

static struct bench bench;

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_connections: %s: %s\n", what, why);
    if (bench.server > 0) {
        kill(bench.server, SIGKILL);
    }
    exit(1);
}

static void check(const char *what, enum status status)
{
    if (status != STATUS_OK) {
        fail(what, status_text(status));
    }
}

/* Reads the server's first line of addresses. */
static void read_address(int descriptor)
{
    char line[LINE_BYTES];
    FILE *output = fdopen(descriptor, "r");
    if (output == NULL || fgets(line, sizeof(line), output) == NULL ||
            strncmp(line, "LISTEN ", 7) != 0) {
        fail("server", "no address");
    }
    line[strcspn(line, "\n")] = '\0';
    check("address", multiaddr_parse(&bench.address, span_of_text(line + 7)));
}

static void start_server(char *program)
{
    int output[2];
    char limit[32];
    posix_spawn_file_actions_t actions;
    snprintf(limit, sizeof(limit), "--max-connections=%zu", bench.count + 10);
    char *arguments[] = {program, "serve-echo", limit, NULL};
    if (pipe(output) != 0) {
        fail("pipe", "failed");
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, output[0]);
    if (posix_spawn(&bench.server, program, &actions, NULL, arguments, environ) != 0) {
        fail(program, "cannot be started");
    }
    posix_spawn_file_actions_destroy(&actions);
    close(output[1]);
    read_address(output[0]);
}

/* A field of /proc/PID/status in KiB. */
static size_t memory_kib(const char *field)
{
    char path[64];
    char line[256];
    size_t kib = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)bench.server);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0) {
            kib = strtoull(line + strlen(field) + 1, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib;
}

static void on_identified(
        void *context, struct connection *connection, const struct identify_info *info)
{
    (void)connection;
    (void)info;
    struct peer *peer = context;
    if (!peer->is_identified) {
        peer->is_identified = true;
        bench.identified++;
    }
}

static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    (void)context;
    (void)connection;
    (void)reason;
    bench.lost++;
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    (void)context;
    (void)connection;
    check("dial", status);
}

static void begin_peer(struct peer *peer)
{
    static const struct switch_observer observer = {.disconnected = on_disconnected};
    check("identity", identity_create(&peer->identity, KEY_TYPE_ED25519));
    struct switch_options options = {
            .identity = peer->identity, .loops = &bench.loop, .loop_count = 1};
    check("switch", switch_create(&peer->net_switch, &options));
    check("ping", ping_register(peer->net_switch));
    check("observer", switch_add_observer(peer->net_switch, &observer, NULL));
    struct identify_options identify_options = {
            .net_switch = peer->net_switch, .identified = on_identified, .context = peer};
    check("identify", identify_create(&peer->identify, &identify_options));
    struct switch_dial dial = {.address = bench.address, .done = on_dialled};
    check("dial", switch_dial(peer->net_switch, &dial));
}

static void connect_all(void)
{
    while (bench.identified < bench.count) {
        while (bench.begun < bench.count && bench.begun - bench.identified < AT_ONCE) {
            begin_peer(&bench.peers[bench.begun++]);
        }
        io_loop_run_once(bench.loop);
        if (bench.lost > 0) {
            fail("connections", "lost");
        }
    }
}

static void idle_for(unsigned seconds)
{
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)seconds * NANOSECONDS_PER_SECOND;
    while (clock_monotonic_ns() < end_ns) {
        io_loop_wait(bench.loop, NANOSECONDS_PER_SECOND / 10);
        io_loop_turn(bench.loop);
    }
}

static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bench_connections SLUICE COUNT\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    raise_descriptors();
    bench.count = strtoull(argv[2], NULL, 10);
    bench.peers = calloc(bench.count, sizeof(*bench.peers));
    check("loop", io_loop_create(&bench.loop, 0));
    start_server(argv[1]);
    size_t before_kib = memory_kib("VmRSS:");
    uint64_t start_ns = clock_monotonic_ns();
    connect_all();
    double seconds = (double)(clock_monotonic_ns() - start_ns) / NANOSECONDS_PER_SECOND;
    size_t peak_kib = memory_kib("VmRSS:");
    idle_for(SETTLE_S);
    size_t after_kib = memory_kib("VmRSS:");
    printf("%zu connections identified in %.2f s (%.0f a second, both sides on this machine)\n",
            bench.count, seconds, (double)bench.count / seconds);
    printf("resident memory of the server: %zu KiB before, %zu KiB with all, %zu KiB idle\n",
            before_kib, peak_kib, after_kib);
    printf("a connection: %.2f KiB\n", (double)(after_kib - before_kib) / (double)bench.count);
    printf("lost while idle: %zu\n", bench.lost);
    kill(bench.server, SIGTERM);
    waitpid(bench.server, NULL, 0);
    return bench.lost == 0 ? 0 : 1;
}
