/* SPDX-License-Identifier: MIT */
#pragma once

/* What a muxer tells its connection, and its limits. Every limit that is 0 has its default. */

#include "net/muxer/muxer.h"

/* Members may be NULL. All of them come with the context of the options. */
struct muxer_events {
    /* Inbound. Without muxer_stream_set_events the stream is pending and its bytes are held. */
    void (*stream_opened)(void *context, struct muxer_stream *stream);

    /* A stream that is pending is gone again: the peer reset it or the connection ended. */
    void (*pending_lost)(void *context, struct muxer_stream *stream);

    /* muxer_output has something, at the end of a call; not again before muxer_output ran dry. */
    void (*output_ready)(void *context);

    /* Held bytes passed (fell below) a mark: stop (go on) reading the socket. */
    void (*pause)(void *context, bool is_paused);

    /* The peer takes no more streams; reason is an enum muxer_go_away if the peer is honest. */
    void (*peer_went_away)(void *context, uint32_t reason);
};

struct muxer_options {
    struct muxer_events events;
    void *context;

    size_t streams_max;         /* both directions together; 1,024. More inbound are reset */
    size_t inbound_pending_max; /* not accepted yet; 256. More are reset */
    size_t unacknowledged_max;  /* outbound, yamux; 256 */
    size_t queued_bytes_max;    /* outgoing, all streams; 64 MiB */
    size_t low_water_bytes;     /* of a stream, for `writable`; 64 KiB */
    size_t quantum_bytes;       /* of a stream's turn while others wait; 16 KiB */
    size_t answers_max;         /* resets and ping answers the peer has not read; 1,024 */
    size_t window_max;          /* yamux, a stream's; 16 MiB. At least 256 KiB */
    size_t window_growth_max;   /* yamux, all streams' beyond 256 KiB each; 16 MiB */
    size_t stream_held_max;     /* mplex: a stream that holds more is reset; 4 MiB */
    size_t held_bytes_max;      /* all streams: the stream that passes it is reset; 64 MiB */
    uint64_t keep_alive_ns;     /* yamux: ping after so long a silence; 30 s */
    uint64_t ping_timeout_ns;   /* silence after a ping; 20 s */
};

/* mplex asks for a pause when a stream holds a quarter of its maximum, both when all hold half. */
