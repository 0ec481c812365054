/* SPDX-License-Identifier: MIT */
#pragma once

/* What the parts of the switch share: the switch itself and the share of it on each io thread. */

#include <stdatomic.h>
#include <uv.h>

#include "net/security/noise.h"
#include "net/switch/registry.h"
#include "net/switch/slot_table.h"
#include "net/switch/switch.h"
#include "net/transport/listener.h"

enum {
    SWITCH_OBSERVERS_MAX = 16,
    SWITCH_PROTOCOLS_MAX = 64,
    SWITCH_LISTENERS_MAX = 16,
    SWITCH_MUXERS_MAX = 2,
    SWITCH_TICK_MS = 500,
    SCRATCH_BYTES = 16 * 1024
};

struct connection;

/* What one io thread owns. */
struct switch_shard {
    struct net_switch *net_switch;
    struct io_loop *loop;
    struct slot_table connections;
    struct slot_table streams;
    struct connection *dirty; /* have something to send or to finish, at the end of the turn */
    struct connection **dirty_end;
    struct stream *closed_streams; /* whose `closed` event is due at the end of the turn */
    uv_timer_t tick;
    uv_check_t turn_end;
    size_t buffered_bytes; /* of all its connections */
    unsigned handles;
    bool is_stopping;
    bool is_closing_handles;
    struct io_task stop;
    struct io_task stopped;
    uint8_t scratch[SCRATCH_BYTES]; /* bytes on their way to a negotiation or to nowhere */
};

struct switch_listener {
    struct listener *listener;
    struct multiaddr address;
    bool is_websocket;
    bool is_secure;
};

struct registered_observer {
    struct switch_observer observer;
    void *context;
};

struct net_switch {
    struct switch_options options; /* without zeros */
    enum muxer_kind muxers[SWITCH_MUXERS_MAX];
    const char *muxer_ids[SWITCH_MUXERS_MAX];
    struct switch_shard *shards;
    size_t shard_count;
    size_t next_shard;
    struct registry *registry;
    struct tls_context *tls_client; /* made for the first dial that needs it */
    struct noise_static *own_static;
    struct protocol protocols[SWITCH_PROTOCOLS_MAX];
    size_t protocol_count;
    struct registered_observer observers[SWITCH_OBSERVERS_MAX];
    size_t observer_count;
    struct switch_listener listeners[SWITCH_LISTENERS_MAX];
    _Atomic size_t listener_count; /* published with the listener before it */
    size_t shards_left;            /* not stopped yet; control thread */
    bool is_stopping;              /* control thread */
    struct io_task stop;
    atomic_bool stop_posted;
    atomic_bool is_stopped;
    _Atomic size_t connection_count; /* written by the control thread */
    _Atomic size_t upgrade_count;
};

static inline bool shard_is_control(const struct switch_shard *shard)
{
    return shard == shard->net_switch->shards;
}

/* shard.c */
void shard_init(struct switch_shard *shard, struct net_switch *net_switch, struct io_loop *loop);

/* Once it has stopped. */
void shard_fini(struct switch_shard *shard);

/* Thread: the shard's. A connection that begins with an accepted socket, or with a dial. */
void shard_begin_inbound(struct switch_shard *shard, struct registry_entry *CONSUMED entry,
        int descriptor, const struct switch_listener *listener);
void shard_begin_outbound(struct switch_shard *shard, struct registry_entry *CONSUMED entry,
        const struct switch_dial *request);
void shard_stop(struct switch_shard *shard);
void shard_connection_gone(struct switch_shard *shard);

/* Adds what a connection or stream has queued to what the end of the turn deals with. */
void shard_add_dirty(struct switch_shard *shard, struct connection *connection);
void shard_add_closed(struct switch_shard *shard, struct stream *stream);

/* Sends the `closed` events that are due. Thread: the end of the shard's turn. */
void shard_finish_streams(struct switch_shard *shard);

/* What the connection buffers has changed; may end the one that buffers most. */
void shard_account(struct switch_shard *shard, struct connection *connection);

/* switch.c */
/* Thread: control. The shard the next connection goes to. */
struct switch_shard *BORROWED switch_choose_shard(struct net_switch *net_switch);
struct switch_shard *BORROWED switch_shard_of(const struct net_switch *net_switch, uint64_t number);
const struct protocol *BORROWED switch_find_protocol(
        const struct net_switch *net_switch, struct span id);
void switch_tell_admitted(struct net_switch *net_switch, uint64_t connection, uint64_t admission);

/* Thread: control. Whether the switch is through with stopping may have changed. */
void switch_check_stopped(struct net_switch *net_switch);
void switch_shard_stopped(struct net_switch *net_switch);
