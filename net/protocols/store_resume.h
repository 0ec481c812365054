/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Fetches what was missed while the node was down: asks a store node, page after page, for the messages
 * since a time, and posts each to its lane with ORIGIN_RESUME, as fast as the archive takes them.
 *
 * It begins with the first peer that says it has a store (or the one that is named), goes on with
 * another, or again, when one fails, and is over after STORE_RESUME_ATTEMPTS_MAX failures, or after
 * messages_max messages of pages, wanted or not: a store may have an end to its pages or not.
 *
 * Lifetime: create before the loops run; destroyed before the loops, after the switch has stopped.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/identity/peer_id.h"
#include "net/protocols/identify_message.h"
#include "net/switch/switch.h"
#include "queues/frame_budget.h"
#include "router/intake.h"

enum {
    STORE_RESUME_ATTEMPTS_MAX = 10,
    STORE_RESUME_RETRY_MS = 5 * 1000,
    STORE_RESUME_PAGE_MESSAGES = 100
};

struct store_resume;

struct store_resume_options {
    struct net_switch *BORROWED net_switch;
    const struct intake *BORROWED intake;
    struct frame_budget *BORROWED budget;
    /* Whether the archive takes more now. Thread: any. */
    bool (*has_room)(void *context);
    void *room_context;
    size_t message_bytes_max;
    uint64_t messages_max;
    int64_t from_ns; /* wall time, inclusive */
    bool has_peer;   /* no other is asked */
    struct peer_id peer;
};

MUST_USE enum status store_resume_create(
        struct store_resume **out, const struct store_resume_options *options);
void store_resume_destroy(struct store_resume **resume);

/* What identify's event has to tell. Thread: the connection's io thread. */
void store_resume_identified(struct store_resume *resume, struct connection *connection,
        const struct identify_info *info);
