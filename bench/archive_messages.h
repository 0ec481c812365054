/* SPDX-License-Identifier: MIT */
#pragma once

/* Messages as an archive gets them, for its benchmarks. Thread: one. */

#include <stdint.h>

#include "queues/envelope.h"

struct archive_message {
    unsigned number; /* stands at the payload's beginning and chooses the content topic */
    unsigned content_topics;
    size_t payload_bytes; /* 4 to 256 KiB */
    int64_t timestamp_ns;
};

/* The same numbers in every run. */
uint64_t archive_bench_random(void);

/* Random bytes stand for the hash: what it costs is not what is measured. Ends the program when there
 * is no memory. */
struct envelope *archive_bench_envelope(const struct archive_message *message);
