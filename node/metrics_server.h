/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The metrics server of a node (--metrics-server): GET /metrics for Prometheus, with ?zeros=true all
 * series from the start, and what others add.
 *
 * Lifetime:  create before the node's threads are made, close before its thread is stopped, destroy
 *            after all have ended.
 */

#include "admin/http_server.h"
#include "base/attributes.h"
#include "base/options.h"
#include "base/status.h"
#include "node/node.h"
#include "workers/worker.h"

struct metrics_server;

/* *out is NULL without --metrics-server. Binds the port. */
MUST_USE enum status metrics_server_create(struct metrics_server **out, struct node *BORROWED node,
        const struct options *options, struct node_error *error);
void metrics_server_destroy(struct metrics_server **server);

struct worker_role metrics_server_role(struct metrics_server *server, const char *name);

/* No request is taken any more, streams end. */
void metrics_server_close(struct metrics_server *server);

/* For more routes, before the node starts. */
struct http_server *BORROWED metrics_server_http(const struct metrics_server *server);
