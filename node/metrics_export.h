/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The metrics page of a node: what others chart under the reference's names, where the meaning is the
 * same, and our own.
 */

#include <stddef.h>

#include "admin/metrics_text.h"
#include "base/attributes.h"
#include "node/node.h"
#include "node/service_peers.h"

/* The reference's metrics have names of their own since a while after its release 0.38. */
enum metrics_names {
    METRICS_NAMES_WAKU, /* waku_... */
    METRICS_NAMES_LOGOS_DELIVERY,
    METRICS_NAMES_BOTH
};

struct metrics_export_options {
    struct metrics_seen *BORROWED seen; /* whose series were shown already; NULL: with all zeros */
    enum metrics_names names;
    const struct service_peers *BORROWED service_peers;
};

/* By free(); NULL when there was no memory. Thread: any, one at a time for each seen. */
MUST_USE char *metrics_export(
        struct node *node, const struct metrics_export_options *options, size_t *length);
