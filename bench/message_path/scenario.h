/* SPDX-License-Identifier: MIT */
#pragma once

/* What one row of the benchmark runs, and the ways to run it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/attributes.h"
#include "base/status.h"
#include "bench/message_path/row.h"
#include "bench/message_path/workload.h"

enum scenario_kind {
    SCENARIO_MICRO_SHARED, /* the product, entered with a serialised WakuMessage and its topic */
    SCENARIO_INGRESS_SHARED, /* the product, entered with RPC frames: splitting, copies, message ids */
    SCENARIO_MICRO_COPYING, /* what the reference did before: see copying.h */
    SCENARIO_MACRO_SHARED,  /* two nodes of the product over loopback TCP */
    SCENARIO_MACRO_COPYING  /* the receiver copies */
};

/* What the heap run kept, from its first reading to its last. */
struct heap_growth {
    bool is_known;
    double rss_bytes;
    double held_bytes; /* jemalloc's allocated bytes and the regions of the frame heap */
    double serialised_bytes;
};

struct scenario {
    enum scenario_kind kind;
    const char *archive; /* memory, sqlite://:memory:, or sqlite://PATH */
    size_t window;       /* messages in flight at most */
    size_t arrivals;     /* how many times each message comes in */
    const char *pin;
    size_t warmup;
    bool has_two_processes;          /* macro: the receiver is a process of its own */
    FILE *heap_series;               /* NULL: none */
    struct heap_growth *heap_growth; /* filled when there is a heap_series */
    uint64_t nonce; /* different for every run, so that no two make the same message */
};

static inline bool scenario_is_macro(const struct scenario *scenario)
{
    return scenario->kind == SCENARIO_MACRO_SHARED || scenario->kind == SCENARIO_MACRO_COPYING;
}

static inline bool scenario_shows_heap(const struct scenario *scenario)
{
    return scenario->heap_series != NULL;
}

/* Fills everything of sample but the limit. STATUS_... with a line on stderr when it cannot run. */
MUST_USE enum status run_shared(struct row_sample *sample, const struct workload *workload,
        const struct scenario *scenario);
MUST_USE enum status run_copying(struct row_sample *sample, const struct workload *workload,
        const struct scenario *scenario);
MUST_USE enum status run_macro(struct row_sample *sample, const struct workload *workload,
        const struct scenario *scenario);

/*
 * Messages a second of the slowest single step of the scenario's path done alone, on the same bytes:
 * its SHA-256 passes on one core (the better of one stream and two side by side), or the engine's own
 * insert in batches of the window.
 */
MUST_USE enum status measure_limit(
        double *msg_per_s, const struct workload *workload, const struct scenario *scenario);

/*
 * Messages a second that the processors could do for a macro row if nothing cost anything but what
 * must be done for each message: encode, hash and id, encrypt and send; receive and decrypt, hash and
 * id, store. All of it shared by the processors, and no step faster than one thread does it alone.
 */
MUST_USE enum status measure_macro_limit(
        double *msg_per_s, const struct workload *workload, const struct scenario *scenario);
