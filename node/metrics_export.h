/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A node's metrics as a page for Prometheus: the reference's names (node/reference_metrics.def), and
 * all counters and ledgers of base/metrics.def with what is in the queues besides. Labels have values of
 * tables and at most TRAFFIC_TOPICS_MAX topics: their number is bounded.
 *
 * Thread: any; one at a time for one seen.
 */

#include <stddef.h>

#include "admin/metrics_text.h"
#include "base/attributes.h"
#include "node/node.h"

/* To be freed by free(); NULL: no memory. seen NULL: with all zeros. */
MUST_USE char *metrics_export(struct node *node, struct metrics_seen *seen, size_t *length);
