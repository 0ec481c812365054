/* SPDX-License-Identifier: MIT */
#pragma once

/* The peer manager itself, what others ask of it (peer_requests.c), and how it saves its peers. */

#include <uv.h>

#include "net/peer_manager/peer_file.h"
#include "net/peer_manager/peer_manager.h"

struct peer_manager {
    struct peer_manager_options options; /* without zeros */
    struct net_switch *net_switch;
    struct io_loop *loop;
    struct peer_store *store;
    struct peer_slots slots;
    struct peer_connections connections;
    size_t dialling;
    uv_timer_t due;
    uv_timer_t save;
    uv_timer_t identify;
    unsigned closed_timers;
    char *file;
    bool is_saving;
    bool is_save_wanted; /* once more, after the one that goes on */
    bool is_started;
    bool is_stopping;
};

uint64_t peer_manager_now(const struct peer_manager *manager);
void peer_manager_dial_due(struct peer_manager *manager);

/* One dial of a peer; done may be NULL, and comes only on success of the call. */
MUST_USE enum status peer_manager_attempt(struct peer_manager *manager,
        const struct multiaddr *address, void (*done)(void *context, enum status status),
        void *context);

/* Closes it when that makes one too many of the kind. */
void peer_manager_judge(
        struct peer_manager *manager, struct peer_connection *connection, enum peer_kind kind);

/* Writes the file on a thread of libuv's pool. */
void peer_manager_save(struct peer_manager *manager);
