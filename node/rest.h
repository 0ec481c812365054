/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The HTTP server and the REST API of a node (--rest): a thread that serves, and one that waits for
 * what takes long.
 *
 * Lifetime:  create before the node's threads are made, close before any other of them is stopped,
 *            destroy after all have ended.
 */

#include "admin/http_server.h"
#include "base/attributes.h"
#include "base/options.h"
#include "base/status.h"
#include "queues/envelope.h"
#include "workers/decode_worker.h"
#include "workers/worker.h"

struct rest;
struct node;
struct node_error;

/* *out is NULL without --rest. Binds the port. */
MUST_USE enum status rest_create(struct rest **out, struct node *node,
        const struct options *options, struct node_error *error);
void rest_destroy(struct rest **rest);

/* No request is taken any more; returns when those that are under way have their answers. */
void rest_close(struct rest *rest);

struct worker_role rest_http_role(struct rest *rest, const char *name);
struct worker_role rest_wait_role(struct rest *rest, const char *name);

/* An accepted message, on the event thread. */
void rest_take(struct rest *rest, struct envelope *BORROWED envelope);

/* A message that a filter service pushed. Thread: any. */
void rest_take_pushed(struct rest *rest, struct span pubsub_topic, struct span message);

/* What became of a message that a client publishes: parts of ORIGIN_REST. */
decode_verdict rest_settle;

/* For more routes, before the node starts. */
struct http_server *BORROWED rest_server(const struct rest *rest);
