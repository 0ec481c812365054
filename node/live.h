/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a node shows of itself while it runs, on its HTTP servers:
 *
 *   GET /, /live            the live page
 *   GET /live/v1/figures    the figures of the page, as JSON, at most a second old
 *   GET /live/v1/events     the live feed (admin/live_feed.h)
 *
 * Lifetime:  create before the node's threads are made, destroy after all have ended and before its
 *            servers are destroyed.
 * Thread:    create, destroy and add_routes on the node's; live_take on the event thread.
 */

#include "admin/http_server.h"
#include "base/attributes.h"
#include "base/options.h"
#include "base/status.h"
#include "node/node.h"
#include "queues/envelope.h"

struct live;

MUST_USE enum status live_create(
        struct live **out, struct node *BORROWED node, const struct options *options);
void live_destroy(struct live **live);

/* Before the server's first turn. */
void live_add_routes(struct live *live, struct http_server *server);

/* An accepted message. */
void live_take(struct live *live, const struct envelope *BORROWED envelope);
