/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the parts of a connection share: its life (connection.c), the way to a muxer
 * (connection_upgrade.c), and frames in and out (connection_frames.c).
 *
 * Nothing is freed and no `closed` or `disconnected` event is sent from inside a call of a handler or
 * of the channel: what ends is put in the shard's lists and dealt with at the end of the turn.
 */

#include "net/muxer/muxer.h"
#include "net/muxer/muxer_options.h"
#include "net/security/multistream.h"
#include "net/security/noise.h"
#include "net/switch/connection.h"
#include "net/switch/switch_private.h"
#include "net/transport/channel.h"

enum connection_state {
    CONNECTION_OPENING,   /* the channel is not open yet */
    CONNECTION_SECURITY,  /* multistream for the security protocol */
    CONNECTION_HANDSHAKE, /* Noise */
    CONNECTION_MUXER,     /* multistream for the muxer, inside Noise */
    CONNECTION_ADMISSION, /* waits for the registry's verdict */
    CONNECTION_OPEN,
    CONNECTION_CLOSING, /* sends what it still has to */
    CONNECTION_ENDED    /* only the end of the turn is awaited */
};

/* Streams a connection has of one protocol. */
struct protocol_use {
    uint16_t inbound;
    uint16_t outbound;
};

struct connection {
    struct switch_shard *shard;
    struct registry_entry *entry;
    struct channel *channel;
    uint64_t id;
    uint64_t admission;
    uint64_t deadline_ms; /* of the upgrade or of closing, monotonic; 0: none */

    struct multistream *negotiation;
    struct noise_handshake *handshake;
    struct noise_session *session;
    struct muxer *muxer;

    uint8_t *frame; /* ciphertext of a frame half received */
    uint16_t frame_received;
    uint16_t frame_length;
    uint8_t length_bytes[NOISE_LENGTH_BYTES];
    uint8_t length_received;

    enum connection_state state;
    enum close_reason reason; /* once CLOSING or ENDED */
    enum status status;
    enum muxer_kind muxer_kind;
    bool is_outbound;
    bool has_expected_peer;
    bool is_connected; /* the observers know it */
    bool is_dirty;
    bool has_peer;

    size_t buffered_bytes; /* as the shard knows it */
    struct connection *next_dirty;
    struct stream *streams;
    unsigned stream_count;
    unsigned negotiating_count;
    unsigned timed_count; /* streams with a timeout */
    struct peer_id peer;  /* expected, then proven */
    char *agent;
    struct protocol_use uses[]; /* as many as the switch has protocols */
};

/* connection.c */
MUST_USE struct connection *connection_create(
        struct switch_shard *shard, struct registry_entry *BORROWED entry, bool is_outbound);
extern const struct channel_events connection_channel_events;

/* Ends it at once, without sending anything more. */
void connection_fail(struct connection *connection, enum close_reason reason, enum status status);

/* Every SWITCH_TICK_MS. */
void connection_tick(struct connection *connection, uint64_t now_ms);

/*
 * At the end of the shard's turn: sends what it has and, when it has ended, frees it. True when there
 * is more to send in the next turn.
 */
bool connection_finish_turn(struct connection *connection);

void connection_mark_dirty(struct connection *connection);
void connection_admitted(struct connection *connection, uint64_t admission);

/* connection_upgrade.c */
void connection_begin_upgrade(struct connection *connection);
MUST_USE enum status connection_receive_upgrade(struct connection *connection, struct span *bytes);

/* Plaintext of one frame, while the muxer is negotiated. */
MUST_USE enum status connection_negotiate_muxer(struct connection *connection);

/* connection_frames.c */
MUST_USE enum status connection_receive_frames(struct connection *connection, struct span bytes);

/* Where the rest of a half-received frame goes; 0: there is none. */
size_t connection_reserve_frame(struct connection *connection, uint8_t **to);
MUST_USE enum status connection_feed_muxer(
        struct connection *connection, struct muxer_source *source);
MUST_USE enum status connection_send_sealed(struct connection *connection, struct span plaintext);

/* False: all that there was has been given to the channel, or it takes no more. */
bool connection_flush(struct connection *connection);

/* stream.c */
void stream_accept(struct connection *connection, struct muxer_stream *muxer_stream);

/* The connection is open now: what came for its streams may be taken. */
void stream_resume_all(struct connection *connection);
void stream_tick_all(struct connection *connection, uint64_t now_ms);

/* Sends the `closed` event and frees it. Thread: the end of the shard's turn. */
void stream_finish(struct stream *stream);
