/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One end of a connection for tests: a muxer, an owner for each of its streams that keeps what it
 * receives, and pipes of bytes that cut them anywhere.
 */

#include "net/muxer/muxer.h"
#include "net/muxer/muxer_options.h"

struct end;

struct end_stream {
    struct end *end;
    struct end_stream *next;
    struct muxer_stream *stream; /* NULL when gone */
    uint64_t id;
    bool is_outbound;
    bool is_accepted;

    uint8_t *bytes; /* all that was received, in order */
    size_t length;
    size_t capacity;

    /* how it behaves */
    size_t reserve_max; /* 0: as much as is wanted */
    bool is_stopped;    /* reserves nothing */
    bool has_allowance; /* reserves at most allowance bytes, which it lowers */
    size_t allowance;
    bool keeps;  /* consumes nothing by itself */
    bool echoes; /* writes back what comes, closes when the peer does */

    /* what happened */
    unsigned remote_closed;
    unsigned closed;
    unsigned reset;
    unsigned writable;
    enum status reason;

    /* called in the middle of events, by tests of re-entrancy */
    void (*on_reserve)(struct end_stream *);
    void (*on_commit)(struct end_stream *);
    void (*on_remote_closed)(struct end_stream *);
    void (*on_gone)(struct end_stream *);
};

struct end {
    struct muxer *muxer;
    struct end_stream *streams; /* newest first */
    size_t stream_count;
    size_t open_max; /* most streams open at once */
    bool accepts;    /* inbound streams get events at once */
    bool inbound_echoes;
    bool inbound_stops;
    size_t inbound_reserve_max;
    void (*on_opened)(struct end_stream *);
    void (*on_output_ready)(struct end *);
    void (*on_release)(struct end *);

    size_t pieces_written;
    size_t pieces_released;
    unsigned output_ready;
    bool is_paused;
    unsigned pauses;
    unsigned went_away;
    uint32_t away_reason;
};

/* options: limits only; NULL for the defaults. */
void end_init(struct end *end, enum muxer_kind kind, bool is_initiator,
        const struct muxer_options *limits);

/* Checks that every piece was released. */
void end_fini(struct end *end);

struct end_stream *end_open(struct end *end);

/* As end_open, with the status instead of a failed test. */
enum status end_try_open(struct end *end, struct end_stream **out);

/* Inbound streams of an end that does not accept by itself. */
void end_accept(struct end_stream *stream);

/* Writes a copy of bytes as one piece. */
enum status end_write(struct end_stream *stream, const void *bytes, size_t length);

/* n bytes of a pattern that starts at position. */
enum status end_write_pattern(struct end_stream *stream, uint64_t position, size_t n);
uint8_t end_pattern(uint64_t position);

/* True when all received bytes are the pattern from position on. */
bool end_has_pattern(const struct end_stream *stream, uint64_t position);

/* One output of at most max_bytes, copied to out; 0: nothing to send. */
size_t end_output(struct end *end, uint8_t *out, size_t max_bytes);

/* Feeds bytes as secure frames of at most cut bytes (0: one). */
enum status end_receive(struct end *end, const void *bytes, size_t length, size_t cut);

/* Moves outputs of both to each other until neither has any; false when one failed. */
bool end_exchange(struct end *a, struct end *b);
