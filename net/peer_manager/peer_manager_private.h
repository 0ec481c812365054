/* SPDX-License-Identifier: MIT */
#pragma once

/* The peer manager itself, and how it saves its peers (peer_save.c). */

#include <uv.h>

#include "net/peer_manager/peer_file.h"
#include "net/peer_manager/peer_manager.h"

struct managed_connection {
    uint64_t id;
    struct peer_id peer;
    enum peer_kind kind;
    bool is_outbound;
};

struct peer_manager {
    struct net_switch *net_switch;
    struct io_loop *loop;
    struct peer_store *store;
    struct peer_slots slots;
    struct peer_counts counts;
    struct managed_connection *connections;
    size_t connection_count;
    size_t connection_capacity;
    size_t dialling;
    uv_timer_t due;
    uv_timer_t save;
    unsigned closed_timers;
    char *file;
    bool is_saving;
    bool is_stopping;
};

/* Writes the file on a thread of libuv's pool, unless that goes on already. */
void peer_manager_save(struct peer_manager *manager);
