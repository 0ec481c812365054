/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How a node is: what it is to others in the reference's words (GET /health), and which of its parts
 * is in trouble and since when.
 *
 * A part that only shows by what it drops counts as degraded until nothing was dropped for
 * HEALTH_QUIET_MS. The state is looked at once a second, by a thread of its own; changes are logged.
 *
 * Thread: any, from node_create to node_destroy.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "node/node.h"

enum health_part {
#define HEALTH_PART(id, name, help) HEALTH_##id,
#include "node/health.def"
    HEALTH_PARTS
};

enum {
    HEALTH_QUIET_MS = 30 * 1000,
    HEALTH_OFFSET_MAX_MS = 10 * 1000, /* of the median timestamp, in either direction */
    HEALTH_OFFSET_SAMPLES_MIN = 16,
    HEALTH_PROTOCOLS_MAX = 16
};

struct health_part_state {
    bool is_degraded;
    int64_t since_ns; /* wall clock: when it became so; 0: never looked at */
    char why[160];    /* "" when it is well */
};

/* As the reference names protocols and their health: READY, NOT_READY, NOT_MOUNTED. */
struct health_protocol {
    const char *name;
    const char *health;
    const char *why; /* NULL: nothing to say */
};

struct node_health {
    const char *node;       /* INITIALIZING, READY or SHUTTING_DOWN */
    const char *connection; /* Disconnected, PartiallyConnected or Connected */
    size_t protocol_count;
    struct health_protocol protocols[HEALTH_PROTOCOLS_MAX];
    bool is_degraded; /* any part is */
    struct health_part_state parts[HEALTH_PARTS];
    int64_t offset_median_ns; /* of the last messages' timestamps, ahead of this clock */
    size_t offset_samples;    /* 0: there were none */
};

void node_health(const struct node *node, struct node_health *out);

/* The same as JSON, as GET /health shows it; by free(). NULL: no memory. */
MUST_USE char *node_health_text(const struct node *node);

/* "archive", ... and what it means when it is degraded. */
const char *BORROWED health_part_name(enum health_part part);
const char *BORROWED health_part_meaning(enum health_part part);
