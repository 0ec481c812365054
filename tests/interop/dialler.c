/* SPDX-License-Identifier: MIT */

/*
 * The dialling side of the interop scenario: dialler MULTIADDR [--muxers ...] [--turns N]
 * [--together N] connects, waits for identify, pings, and has payloads of every interesting size
 * echoed, byte for byte. Prints "OK" or what went wrong.
 */

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "net/protocols/echo.h"
#include "net/protocols/ping.h"
#include "tools/sluice/command_options.h"
#include "tools/sluice/key_options.h"
#include "tools/sluice/net_host.h"

enum {
    LARGEST_BYTES = 10 * 1024 * 1024,
    SCRATCH_BYTES = 64 * 1024,
    TURN_BYTES = 100,
    TOGETHER_BYTES = 10000,
    SIZE_COUNT = 5
};

static const size_t sizes[SIZE_COUNT] = {0, 1, 65519, 262145, LARGEST_BYTES};

static const struct option_spec specs[] = {
        {"muxers", OPTION_TEXT, "yamux,mplex", 0, 0, "Dialler", "yamux, mplex or yamux,mplex"},
        {"turns", OPTION_NUMBER, "1000", 0, 10000000, "Dialler", "streams in turn"},
        {"together", OPTION_NUMBER, "100", 0, 100000, "Dialler", "streams at once"},
        {"agent", OPTION_TEXT, "", 0, 0, "Dialler", "what the peer's agent must begin with"},
        KEY_OPTIONS,
        {"log-level", OPTION_TEXT, "WARN", 0, 0, "Logging", "least level that is written"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

struct scenario {
    struct net_host *host;
    struct connection *connection;
    const struct options *options;
    uint8_t *payload; /* LARGEST_BYTES of noise that all echoes send parts of */
    sem_t over;
    size_t next_size;
    size_t turns_left;
    size_t together_left;
    bool is_identified;
    bool is_pinged_again;
    bool is_over;
    char error[256];
};

struct echo {
    struct scenario *scenario;
    size_t offset; /* in the payload */
    size_t length;
    size_t received;
    bool is_one_of_many;
    uint8_t scratch[SCRATCH_BYTES];
};

static void go_on(struct scenario *scenario);

static void end(struct scenario *scenario, const char *error)
{
    if (!scenario->is_over) {
        scenario->is_over = true;
        snprintf(scenario->error, sizeof(scenario->error), "%s", error);
        sem_post(&scenario->over);
    }
}

static enum status on_opened(struct stream *stream)
{
    struct echo *echo = stream_context(stream);
    struct muxer_piece piece = {
            .bytes = span_of(echo->scenario->payload + echo->offset, echo->length)};
    enum status status = echo->length == 0 ? STATUS_OK : stream_write(stream, &piece, 1);
    stream_close_write(stream);
    return status;
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct echo *echo = stream_context(stream);
    *to = echo->scratch;
    return wanted < SCRATCH_BYTES ? wanted : SCRATCH_BYTES;
}

static void on_commit(struct stream *stream, size_t n)
{
    struct echo *echo = stream_context(stream);
    const uint8_t *expected = echo->scenario->payload + echo->offset + echo->received;
    stream_consumed(stream, n);
    if (n > echo->length - echo->received || memcmp(expected, echo->scratch, n) != 0) {
        end(echo->scenario, "an echo came back different");
        stream_reset(stream, STATUS_BAD_FRAME);
        return;
    }
    echo->received += n;
}

static void on_closed(struct stream *stream, enum status reason)
{
    struct echo *echo = stream_context(stream);
    struct scenario *scenario = echo->scenario;
    char text[128];
    if (reason != STATUS_OK || echo->received != echo->length) {
        snprintf(text, sizeof(text), "echo of %zu bytes ended after %zu: %s", echo->length,
                echo->received, status_text(reason));
        end(scenario, text);
    }
    bool is_one_of_many = echo->is_one_of_many;
    memory_free(echo);
    if (is_one_of_many) {
        scenario->together_left--;
    }
    if (!scenario->is_over && (!is_one_of_many || scenario->together_left == 0)) {
        go_on(scenario);
    }
}

static const struct stream_events echo_events = {
        .opened = on_opened,
        .reserve = on_reserve,
        .commit = on_commit,
        .closed = on_closed,
};

static void start_echo(struct scenario *scenario, size_t length, size_t seed, bool is_one_of_many)
{
    static const char *const ids[] = {ECHO_PROTOCOL_ID};
    struct echo *echo = memory_allocate_zeroed(sizeof(*echo));
    if (echo == NULL) {
        end(scenario, "out of memory");
        return;
    }
    echo->scenario = scenario;
    echo->length = length;
    echo->offset = seed % (LARGEST_BYTES - length + 1);
    echo->is_one_of_many = is_one_of_many;
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &echo_events, .context = echo};
    enum status status = connection_open_stream(scenario->connection, &request, NULL);
    if (status != STATUS_OK) {
        end(scenario, status_text(status));
        memory_free(echo);
    }
}

static void on_ping_ready(void *context, struct ping *ping)
{
    (void)context;
    ping_send(ping);
}

static void on_ping_answered(void *context, struct ping *ping, uint64_t round_trip_ns)
{
    (void)context;
    (void)round_trip_ns;
    ping_close(ping);
}

static void on_ping_ended(void *context, struct ping *ping, enum status reason)
{
    (void)ping;
    struct scenario *scenario = context;
    if (reason != STATUS_OK) {
        end(scenario, "ping failed");
    } else if (scenario->is_pinged_again) {
        end(scenario, "");
    } else {
        go_on(scenario);
    }
}

static void start_ping(struct scenario *scenario)
{
    static const struct ping_events events = {
            .ready = on_ping_ready, .answered = on_ping_answered, .ended = on_ping_ended};
    struct ping *ping;
    enum status status = ping_open(scenario->connection, &events, scenario, &ping);
    if (status != STATUS_OK) {
        end(scenario, status_text(status));
    }
}

/* The next step, each begun when the one before has ended. */
static void go_on(struct scenario *scenario)
{
    if (scenario->next_size < SIZE_COUNT) {
        size_t i = scenario->next_size++;
        start_echo(scenario, sizes[i], i, false);
    } else if (scenario->turns_left > 0) {
        scenario->turns_left--;
        start_echo(scenario, TURN_BYTES, scenario->turns_left, false);
    } else if (scenario->together_left > 0) {
        size_t count = scenario->together_left;
        for (size_t i = 0; i < count; i++) {
            start_echo(scenario, TOGETHER_BYTES, i * 1000, true);
        }
    } else {
        scenario->is_pinged_again = true;
        start_ping(scenario);
    }
}

static void on_identified(
        void *context, struct connection *connection, const struct identify_info *info)
{
    struct scenario *scenario = context;
    const char *agent = options_text(scenario->options, "agent");
    if (scenario->is_identified) {
        return;
    }
    scenario->is_identified = true;
    scenario->connection = connection;
    if (strncmp(connection_agent(connection), agent, strlen(agent)) != 0) {
        end(scenario, "the agent is another");
    } else if (!identify_info_has_protocol(info, ECHO_PROTOCOL_ID) ||
               !identify_info_has_protocol(info, PING_PROTOCOL_ID)) {
        end(scenario, "identify does not list echo and ping");
    } else {
        printf("AGENT %s MUXER %s\n", connection_agent(connection), connection_muxer(connection));
        start_ping(scenario);
    }
}

static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    (void)connection;
    end(context, close_reason_text(reason));
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    (void)connection;
    if (status != STATUS_OK) {
        end(context, status_text(status));
    }
}

static bool fill_payload(struct scenario *scenario)
{
    uint32_t state = 1;
    scenario->payload = malloc(LARGEST_BYTES);
    for (size_t i = 0; scenario->payload != NULL && i < LARGEST_BYTES; i++) {
        state = state * 1664525U + 1013904223U;
        scenario->payload[i] = (uint8_t)(state >> 24);
    }
    return scenario->payload != NULL;
}

static enum status start(struct scenario *scenario, const struct identity *identity)
{
    static const struct switch_observer observer = {.disconnected = on_disconnected};
    const char *muxers = options_text(scenario->options, "muxers");
    enum muxer_kind only = strcmp(muxers, "mplex") == 0 ? MUXER_MPLEX : MUXER_YAMUX;
    struct net_host_options host_options = {
            .identity = identity, .identified = on_identified, .context = scenario};
    if (strchr(muxers, ',') == NULL) {
        host_options.limits.muxers = &only;
        host_options.limits.muxer_count = 1;
    }
    struct switch_dial dial = {.done = on_dialled, .context = scenario};
    const char *address = options_positional(scenario->options, 0);
    enum status status = multiaddr_parse(&dial.address, span_of_text(address));
    if (status == STATUS_OK) {
        status = net_host_create(&scenario->host, &host_options);
    }
    if (status == STATUS_OK) {
        status = switch_add_observer(net_host_switch(scenario->host), &observer, scenario);
    }
    if (status == STATUS_OK) {
        status = net_host_start(scenario->host);
    }
    return status == STATUS_OK ? switch_dial(net_host_switch(scenario->host), &dial) : status;
}

static int run(struct scenario *scenario, const struct identity *identity)
{
    enum status status = fill_payload(scenario) ? start(scenario, identity) : STATUS_NO_MEMORY;
    if (status != STATUS_OK) {
        printf("FAILED %s\n", status_text(status));
        net_host_destroy(&scenario->host);
        return 1;
    }
    while (sem_wait(&scenario->over) != 0) {
    }
    bool is_ok = scenario->error[0] == '\0';
    printf("%s %s\n", is_ok ? "OK" : "FAILED", scenario->error);
    net_host_destroy(&scenario->host);
    return is_ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    int exit_status;
    struct identity *identity = NULL;
    struct options *options =
            command_parse("dialler MULTIADDR [OPTIONS]", specs, argc - 1, argv + 1, &exit_status);
    if (options == NULL) {
        return exit_status;
    }
    struct scenario scenario = {.options = options,
            .turns_left = options_number(options, "turns"),
            .together_left = options_number(options, "together")};
    sem_init(&scenario.over, 0, 0);
    exit_status = 2;
    if (options_positional_count(options) == 1 &&
            command_start_log(options_text(options, "log-level")) &&
            identity_from_options(&identity, options) == STATUS_OK) {
        exit_status = run(&scenario, identity);
    }
    identity_destroy(&identity);
    free(scenario.payload);
    sem_destroy(&scenario.over);
    options_destroy(&options);
    return exit_status;
}
