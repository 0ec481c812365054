/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the files of the muxer share. muxer.c has its life, muxer_receive.c the way in,
 * muxer_output.c the way out, muxer_stream.c the streams; yamux.c and mplex.c know the wire.
 *
 * Re-entrancy: every public function that may call out runs between muxer_enter and muxer_leave.
 * A stream that ends inside stays readable (is_dead) until the outermost muxer_leave, and until
 * muxer_output_done while spans of its pieces are given out.
 */

#include <sys/queue.h>

#include "net/muxer/answer_queue.h"
#include "net/muxer/held_bytes.h"
#include "net/muxer/muxer.h"
#include "net/muxer/muxer_options.h"
#include "net/muxer/muxer_protocol.h"
#include "net/muxer/piece_queue.h"
#include "net/muxer/stream_table.h"

struct muxer_stream {
    struct muxer *muxer;
    uint64_t key;                             /* yamux: the id; mplex: id * 2, + 1 when outbound */
    const struct muxer_stream_events *events; /* NULL while pending */
    void *context;

    TAILQ_ENTRY(muxer_stream) ready_link;   /* has bytes or a close to send, and window for it */
    TAILQ_ENTRY(muxer_stream) control_link; /* has an open, accept or credit to send */
    SLIST_ENTRY(muxer_stream) touched_link; /* is part of the output that is given out */
    SLIST_ENTRY(muxer_stream) dead_link;

    struct piece_queue out;
    struct held_bytes held;

    uint64_t send_window;  /* bytes the peer takes; mplex: no end */
    size_t receive_window; /* bytes the peer may send */
    size_t window_size;    /* receive_window + unconsumed + held + credit */
    size_t unconsumed;     /* committed to the owner, not consumed */
    size_t credit;         /* consumed, the peer not told yet */
    size_t epoch_consumed; /* since epoch_start_ns */
    uint64_t epoch_start_ns;

    bool is_outbound : 1;
    bool is_dead : 1;
    bool is_ready : 1;
    bool is_in_control : 1;
    bool is_touched : 1;
    bool is_delivering : 1;     /* inside reserve or commit */
    bool is_unacknowledged : 1; /* outbound, no answer from the peer yet */
    bool open_unsent : 1;       /* outbound, the peer has not heard of it */
    bool accept_unsent : 1;
    bool is_full : 1;    /* at or above the low-water mark: owes a `writable` */
    bool is_closing : 1; /* close_write was called */
    bool close_sent : 1;
    bool remote_is_closed : 1;
    bool remote_close_told : 1;
    bool is_over_mark : 1; /* mplex: holds so much that the socket should pause */
};

TAILQ_HEAD(stream_queue, muxer_stream);
SLIST_HEAD(stream_stack, muxer_stream);

struct muxer {
    const struct muxer_protocol *protocol;
    struct muxer_options options;
    bool is_initiator;
    bool is_dying;
    bool is_receiving;
    bool output_is_open;
    bool output_was_told;
    bool is_paused;      /* as told to the connection */
    bool holds_too_much; /* all streams together */
    bool is_going_away;  /* this side takes no streams */
    bool peer_is_away;
    bool go_away_unsent;
    bool ping_unsent;
    bool ping_is_out;
    uint32_t go_away_reason;
    uint32_t ping_number;
    unsigned depth;
    enum status failure;
    struct stream_table streams;
    struct stream_queue ready;
    struct stream_queue control;
    struct stream_stack touched;
    struct stream_stack dead;
    struct answer_queue answers;
    uint64_t next_id;
    size_t pending_count; /* inbound, not accepted */
    size_t unacknowledged_count;
    size_t over_mark_count;
    size_t queued_bytes;
    size_t held_bytes;
    size_t window_growth;

    uint8_t header[MUXER_HEADER_MAX]; /* of the frame that comes in */
    size_t header_length;
    struct muxer_stream *body_stream; /* NULL: the body is skipped */
    size_t body_remaining;
    bool body_closes;

    uint8_t *scratch; /* frame headers of the output that is given out */
    uint64_t scratch_used_ns;

    uint64_t now_ns;
    uint64_t heard_ns; /* last time bytes came */
    uint64_t ping_wanted_ns;
    uint64_t ping_sent_ns;
    uint64_t rtt_ns;
    uint64_t rtt_measured_ns;
};

/* muxer.c */
void muxer_enter(struct muxer *muxer);
void muxer_leave(struct muxer *muxer);
void muxer_fail(struct muxer *muxer, enum status status, enum muxer_go_away reason);
void muxer_answer(struct muxer *muxer, enum answer_kind kind, uint64_t value);
void muxer_want_ping(struct muxer *muxer);
void muxer_take_ping_answer(struct muxer *muxer, uint32_t number);
void muxer_take_go_away(struct muxer *muxer, uint32_t reason);

/* muxer_receive.c */
void muxer_begin_body(struct muxer *muxer, struct muxer_stream *stream, size_t length, bool closes);

/* muxer_stream.c */
/* A stream the peer opens: NULL when it was refused or is gone again after the callback. */
struct muxer_stream *muxer_stream_take_inbound(struct muxer *muxer, uint64_t key);
void muxer_stream_take_acknowledgement(struct muxer_stream *stream);
void muxer_stream_take_window(struct muxer_stream *stream, uint64_t delta);
void muxer_stream_take_close(struct muxer_stream *stream);
void muxer_stream_take_reset(struct muxer_stream *stream);

/* Cuts it from this side, with an event. */
void muxer_stream_abort(struct muxer_stream *stream, enum status reason);

/* Ends without a frame; reason is the event's. */
void muxer_stream_end(struct muxer_stream *stream, enum status reason);

/* Frees what a dead stream has left. */
void muxer_stream_bury(struct muxer_stream *stream);

void muxer_stream_add_held(struct muxer_stream *stream, size_t n);
size_t muxer_stream_sendable(const struct muxer_stream *stream);
void muxer_stream_update_ready(struct muxer_stream *stream);
void muxer_stream_want_control(struct muxer_stream *stream);
void muxer_stream_offer_credit(struct muxer_stream *stream); /* the peer has not closed */

/* Ends the stream if both sides are closed and everything is sent and delivered. */
void muxer_stream_end_if_finished(struct muxer_stream *stream);
