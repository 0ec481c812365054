/* SPDX-License-Identifier: MIT */

/* The same over Sluice's own stack: TCP, Noise, yamux, one or many streams. */

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "bench/stream/stream_bench.h"
#include "tools/sluice/net_host.h"

enum {
    QUEUED_MAX = 512 * 1024, /* of a stream; refilled below the low-water mark of the muxer */
    RECEIVE_BYTES = 256 * 1024
};

/* Every received byte of every stream goes here. */
static uint8_t received[RECEIVE_BYTES];
static uint8_t content[BLOCK_BYTES];

struct sink {
    uint64_t bytes;
    uint64_t cpu_ns;
};

static void write_number(uint8_t out[8], uint64_t number)
{
    for (int i = 7; i >= 0; i--) {
        out[i] = (uint8_t)number;
        number >>= 8;
    }
}

static uint64_t read_number(const uint8_t in[8])
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) {
        number = number << 8 | in[i];
    }
    return number;
}

static enum status on_sink_opened(struct stream *stream)
{
    struct sink *sink = memory_allocate_zeroed(sizeof(*sink));
    stream_set_context(stream, sink);
    if (sink == NULL) {
        return STATUS_NO_MEMORY;
    }
    sink->cpu_ns = process_cpu_ns();
    return STATUS_OK;
}

static size_t on_sink_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    (void)stream;
    *to = received;
    return wanted < sizeof(received) ? wanted : sizeof(received);
}

static void on_sink_commit(struct stream *stream, size_t n)
{
    struct sink *sink = stream_context(stream);
    sink->bytes += n;
    stream_consumed(stream, n);
}

static void on_sink_remote_closed(struct stream *stream)
{
    struct sink *sink = stream_context(stream);
    uint8_t reply[SINK_REPLY_BYTES];
    write_number(reply, sink->bytes);
    write_number(reply + 8, process_cpu_ns() - sink->cpu_ns);
    if (stream_write_copy(stream, span_of(reply, sizeof(reply))) == STATUS_OK) {
        stream_close_write(stream);
    }
}

static void on_sink_closed(struct stream *stream, enum status reason)
{
    (void)reason;
    memory_free(stream_context(stream));
}

static const struct stream_events sink_events = {
        .opened = on_sink_opened,
        .reserve = on_sink_reserve,
        .commit = on_sink_commit,
        .remote_closed = on_sink_remote_closed,
        .closed = on_sink_closed,
};

static enum status create_host(
        struct net_host **out, const struct identity *identity, struct net_host_options *options)
{
    options->identity = identity;
    enum status status = net_host_create(out, options);
    if (status != STATUS_OK) {
        return status;
    }
    struct protocol protocol = {
            .id = SINK_PROTOCOL_ID, .events = &sink_events, .inbound_max = 1024};
    return switch_add_protocol(net_host_switch(*out), &protocol);
}

int serve_sluice(void)
{
    struct identity *identity;
    struct net_host *host = NULL;
    struct net_host_options options = {0};
    char text[MULTIADDR_TEXT_SIZE];
    char byte;
    enum status status = identity_create(&identity, KEY_TYPE_ED25519);
    if (status == STATUS_OK) {
        status = create_host(&host, identity, &options);
    }
    if (status == STATUS_OK) {
        status = net_host_listen(host, "/ip4/127.0.0.1/tcp/0");
    }
    if (status == STATUS_OK) {
        status = net_host_start(host);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "serve_sluice: %s\n", status_text(status));
        return 1;
    }
    struct multiaddr address = *switch_listen_address(net_host_switch(host), 0);
    if (multiaddr_set_peer(&address, identity_peer_id(identity)) == STATUS_OK) {
        printf("LISTEN %s\n", multiaddr_print(text, &address));
    }
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    net_host_destroy(&host);
    identity_destroy(&identity);
    return 0;
}

struct sending {
    const struct workload *workload;
    sem_t over;
    size_t open_count;
    uint64_t start_ns;
    uint64_t cpu_ns;
    uint64_t sent_cpu_ns;
    uint64_t receive_cpu_ns;
    uint64_t end_ns;
    enum status status;
};

struct source {
    struct sending *sending;
    size_t left;
    uint8_t reply[SINK_REPLY_BYTES];
    size_t reply_bytes;
};

static void fill(struct stream *stream)
{
    struct source *source = stream_context(stream);
    size_t message = source->sending->workload->message_bytes;
    bool was_sending = source->left > 0;
    while (source->left > 0 && stream_queued(stream) < QUEUED_MAX) {
        size_t n = source->left < message ? source->left : message;
        struct muxer_piece piece = {.bytes = span_of(content, n)};
        if (stream_write(stream, &piece, 1) != STATUS_OK) {
            break;
        }
        source->left -= n;
    }
    if (was_sending && source->left == 0) {
        stream_close_write(stream);
    }
}

static enum status on_source_opened(struct stream *stream)
{
    fill(stream);
    return STATUS_OK;
}

static size_t on_source_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct source *source = stream_context(stream);
    size_t missing = SINK_REPLY_BYTES - source->reply_bytes;
    *to = source->reply + source->reply_bytes;
    return wanted < missing ? wanted : missing;
}

static void on_source_commit(struct stream *stream, size_t n)
{
    struct source *source = stream_context(stream);
    source->reply_bytes += n;
    stream_consumed(stream, n);
}

static void on_source_closed(struct stream *stream, enum status reason)
{
    struct source *source = stream_context(stream);
    struct sending *sending = source->sending;
    uint64_t cpu_ns = read_number(source->reply + 8);
    if (reason != STATUS_OK || source->reply_bytes != SINK_REPLY_BYTES) {
        sending->status = reason == STATUS_OK ? STATUS_TRUNCATED : reason;
    }
    /* Each stream's reply has the CPU of the whole process: the longest counts. */
    if (cpu_ns > sending->receive_cpu_ns) {
        sending->receive_cpu_ns = cpu_ns;
    }
    free(source);
    sending->open_count--;
    if (sending->open_count == 0) {
        sending->end_ns = clock_monotonic_ns();
        sending->sent_cpu_ns = process_cpu_ns() - sending->cpu_ns;
        sem_post(&sending->over);
    }
}

static const struct stream_events source_events = {
        .opened = on_source_opened,
        .reserve = on_source_reserve,
        .commit = on_source_commit,
        .writable = fill,
        .closed = on_source_closed,
};

static enum status open_source(struct sending *sending, struct connection *connection)
{
    static const char *const ids[] = {SINK_PROTOCOL_ID};
    struct source *source = calloc(1, sizeof(*source));
    if (source == NULL) {
        return STATUS_NO_MEMORY;
    }
    source->sending = sending;
    source->left = sending->workload->bytes / sending->workload->streams;
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &source_events, .context = source};
    enum status status = connection_open_stream(connection, &request, NULL);
    if (status != STATUS_OK) {
        free(source);
        return status;
    }
    sending->open_count++;
    return STATUS_OK;
}

static void start_sending(void *context, struct connection *connection)
{
    struct sending *sending = context;
    enum status status = connection == NULL ? STATUS_CLOSED : STATUS_OK;
    sending->start_ns = clock_monotonic_ns();
    sending->cpu_ns = process_cpu_ns();
    for (size_t i = 0; status == STATUS_OK && i < sending->workload->streams; i++) {
        status = open_source(sending, connection);
    }
    if (status != STATUS_OK) {
        sending->status = status;
    }
    if (sending->open_count == 0) {
        sem_post(&sending->over);
    }
}

static void on_identified(
        void *context, struct connection *connection, const struct identify_info *info)
{
    (void)info;
    start_sending(context, connection);
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    (void)connection;
    struct sending *sending = context;
    if (status != STATUS_OK) {
        sending->status = status;
        sem_post(&sending->over);
    }
}

static enum status run(struct sending *sending, const char *address, struct net_host **host,
        const struct identity *identity)
{
    struct net_host_options options = {.identified = on_identified, .context = sending};
    struct switch_dial dial = {.done = on_dialled, .context = sending};
    enum status status = multiaddr_parse(&dial.address, span_of_text(address));
    if (status == STATUS_OK) {
        status = create_host(host, identity, &options);
    }
    if (status == STATUS_OK) {
        status = net_host_start(*host);
    }
    if (status == STATUS_OK) {
        status = switch_dial(net_host_switch(*host), &dial);
    }
    if (status == STATUS_OK) {
        while (sem_wait(&sending->over) != 0) {
        }
    }
    return status == STATUS_OK ? sending->status : status;
}

int send_sluice(const char *address, const struct workload *workload)
{
    struct sending sending = {.workload = workload};
    struct identity *identity;
    struct net_host *host = NULL;
    sem_init(&sending.over, 0, 0);
    enum status status = identity_create(&identity, KEY_TYPE_ED25519);
    if (status == STATUS_OK) {
        status = run(&sending, address, &host, identity);
        net_host_destroy(&host);
        identity_destroy(&identity);
    }
    sem_destroy(&sending.over);
    if (status != STATUS_OK) {
        fprintf(stderr, "send_sluice: %s\n", status_text(status));
        return 1;
    }
    printf("RESULT %zu %.6f %.6f %.6f\n", workload->bytes,
            (double)(sending.end_ns - sending.start_ns) / NANOSECONDS_PER_SECOND,
            (double)sending.sent_cpu_ns / NANOSECONDS_PER_SECOND,
            (double)sending.receive_cpu_ns / NANOSECONDS_PER_SECOND);
    return 0;
}
