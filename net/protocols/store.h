/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The store service: takes queries on the io threads, has them carried out on the query threads and
 * sends the pages from the bytes that are stored.
 *
 *   200   a page, perhaps empty
 *   400   the request is malformed, contradictory or too large, or its cursor is unknown
 *   429   the peer has made as many requests as it may, or has as many queries
 *   503   too many queries or answers in all, the deadline passed, or the archive failed
 *
 * Lifetime: create before the loops run; outlives the switch. Destroyed when nothing is pending.
 */

#include <stddef.h>
#include <stdint.h>

#include "archive/archive_jobs.h"
#include "base/attributes.h"
#include "base/status.h"
#include "net/switch/switch.h"
#include "router/rate_limit.h"

struct store;

/* What is 0 has no default: all but rate are to be set. */
struct store_options {
    struct net_switch *BORROWED net_switch;
    struct archive_jobs *BORROWED jobs;
    size_t connection_queries_max; /* of one connection, until their answers are read */
    size_t queries_max;
    size_t answer_bytes_max;  /* of one answer; a page is cut to it, but for its first message */
    size_t answers_bytes_max; /* of all answers that are not read yet */
    uint64_t timeout_ms;      /* of a query */
    struct rate_limit rate;
    uint64_t time_range_max_ns; /* of a query that names no hashes; 0: as long as it likes */
};

MUST_USE enum status store_create(struct store **out, const struct store_options *options);
void store_destroy(struct store **store);

/* Queries that are not over. Thread: any. */
size_t store_pending(struct store *store);
