/* SPDX-License-Identifier: MIT */
#include "net/protocols/ping.h"

#include <openssl/rand.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

struct ping {
    struct stream *stream;
    const struct ping_events *events;
    void *context;
    uint64_t sent_ns;
    uint8_t sent[PING_BYTES];
    uint8_t received[PING_BYTES];
    size_t received_bytes;
    bool is_waiting; /* for an answer */
    bool is_closing;
};

static enum status on_opened(struct stream *stream)
{
    struct ping *ping = stream_context(stream);
    ping->events->ready(ping->context, ping);
    return STATUS_OK;
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct ping *ping = stream_context(stream);
    size_t missing = PING_BYTES - ping->received_bytes;
    *to = ping->received + ping->received_bytes;
    return wanted < missing ? wanted : missing;
}

static void on_commit(struct stream *stream, size_t n)
{
    struct ping *ping = stream_context(stream);
    stream_consumed(stream, n);
    ping->received_bytes += n;
    if (ping->received_bytes < PING_BYTES) {
        return;
    }
    ping->received_bytes = 0;
    if (!ping->is_waiting || memcmp(ping->sent, ping->received, PING_BYTES) != 0) {
        stream_reset(stream, STATUS_BAD_FRAME);
        return;
    }
    ping->is_waiting = false;
    stream_set_timeout(stream, 0);
    ping->events->answered(ping->context, ping, clock_monotonic_ns() - ping->sent_ns);
}

static void on_remote_closed(struct stream *stream)
{
    struct ping *ping = stream_context(stream);
    if (!ping->is_closing) {
        stream_reset(stream, STATUS_CLOSED);
    }
}

static void on_closed(struct stream *stream, enum status reason)
{
    struct ping *ping = stream_context(stream);
    ping->events->ended(ping->context, ping, ping->is_closing ? STATUS_OK : reason);
    memory_free(ping);
}

static const struct stream_events stream_events = {
        .opened = on_opened,
        .reserve = on_reserve,
        .commit = on_commit,
        .remote_closed = on_remote_closed,
        .closed = on_closed,
};

enum status ping_open(struct connection *connection, const struct ping_events *events,
        void *context, struct ping **out)
{
    static const char *const ids[] = {PING_PROTOCOL_ID};
    struct ping *ping = memory_allocate_zeroed(sizeof(*ping));
    if (ping == NULL) {
        return STATUS_NO_MEMORY;
    }
    ping->events = events;
    ping->context = context;
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &stream_events, .context = ping};
    enum status status = connection_open_stream(connection, &request, &ping->stream);
    if (status != STATUS_OK) {
        memory_free(ping);
        return status;
    }
    *out = ping;
    return STATUS_OK;
}

void ping_send(struct ping *ping)
{
    if (RAND_bytes(ping->sent, sizeof(ping->sent)) != 1) {
        stream_reset(ping->stream, STATUS_SYSTEM);
        return;
    }
    ping->is_waiting = true;
    ping->sent_ns = clock_monotonic_ns();
    stream_set_timeout(ping->stream, PING_TIMEOUT_MS);
    enum status status = stream_write_copy(ping->stream, span_of(ping->sent, PING_BYTES));
    if (status != STATUS_OK) {
        stream_reset(ping->stream, status);
    }
}

void ping_close(struct ping *ping)
{
    ping->is_closing = true;
    stream_close_write(ping->stream);
    stream_set_timeout(ping->stream, PING_TIMEOUT_MS);
}
