/* SPDX-License-Identifier: MIT */
#include "net/protocols/echo.h"

#include "base/memory.h"
#include "net/protocols/ping.h"

enum {
    ECHO_BLOCK_BYTES = 64 * 1024,
    PING_BLOCK_BYTES = PING_BYTES
};

/* The context of a protocol: how much is taken at once. */
struct echo_kind {
    size_t block_bytes;
};

static struct echo_kind echo_kind = {ECHO_BLOCK_BYTES};
static struct echo_kind ping_kind = {PING_BLOCK_BYTES};

struct echo_stream {
    size_t block_bytes;
    uint8_t *block; /* reserved, not committed yet */
};

static enum status on_opened(struct stream *stream)
{
    const struct echo_kind *kind = stream_context(stream);
    struct echo_stream *echo = memory_allocate_zeroed(sizeof(*echo));
    stream_set_context(stream, echo);
    if (echo == NULL) {
        return STATUS_NO_MEMORY;
    }
    echo->block_bytes = kind->block_bytes;
    return STATUS_OK;
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct echo_stream *echo = stream_context(stream);
    size_t capacity = wanted < echo->block_bytes ? wanted : echo->block_bytes;
    if (stream_queued(stream) >= ECHO_QUEUED_MAX) {
        return 0;
    }
    memory_free(echo->block);
    echo->block = memory_allocate(capacity);
    *to = echo->block;
    return echo->block == NULL ? 0 : capacity;
}

static void on_commit(struct stream *stream, size_t n)
{
    struct echo_stream *echo = stream_context(stream);
    struct muxer_piece piece = {
            .bytes = span_of(echo->block, n), .release = memory_free, .owner = echo->block};
    stream_consumed(stream, n);
    enum status status = stream_write(stream, &piece, 1);
    if (status != STATUS_OK) {
        stream_reset(stream, status);
        return;
    }
    echo->block = NULL;
}

static void on_closed(struct stream *stream, enum status reason)
{
    (void)reason;
    struct echo_stream *echo = stream_context(stream);
    if (echo != NULL) {
        memory_free(echo->block);
        memory_free(echo);
    }
}

static const struct stream_events events = {
        .opened = on_opened,
        .reserve = on_reserve,
        .commit = on_commit,
        .remote_closed = stream_close_write,
        .writable = stream_resume,
        .closed = on_closed,
};

enum status echo_register(struct net_switch *net_switch)
{
    struct protocol protocol = {.id = ECHO_PROTOCOL_ID,
            .events = &events,
            .context = &echo_kind,
            .inbound_max = ECHO_INBOUND_MAX};
    return switch_add_protocol(net_switch, &protocol);
}

enum status ping_register(struct net_switch *net_switch)
{
    struct protocol protocol = {.id = PING_PROTOCOL_ID,
            .events = &events,
            .context = &ping_kind,
            .inbound_max = PING_INBOUND_MAX};
    return switch_add_protocol(net_switch, &protocol);
}
