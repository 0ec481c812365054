/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the reference did with a message before it shared one envelope, in C, for comparison only: one
 * thread, the message decoded with its fields copied out by the validator and once more by the
 * handler, a deep copy for each of the asynchronous hops behind it, one hash for the archive and one
 * for store-sync. Decoder, hash and archive engine are the product's own.
 *
 * Thread: one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive.h"
#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "hash/sha256.h"
#include "queues/envelope.h"

enum {
    COPYING_BATCH_MAX = 256
};

struct copying {
    struct archive *BORROWED archive;
    struct topic topic;
    size_t batch_max;   /* messages put in the archive together, at most COPYING_BATCH_MAX */
    bool has_observers; /* of real traffic: two more decodes and one more hash */
    struct envelope *batch[COPYING_BATCH_MAX];
    size_t batch_count;
    uint8_t sync_fingerprint[SHA256_BYTES]; /* XOR of all, as of a set */
};

MUST_USE enum status copying_take(struct copying *copying, struct span bytes);

/* Puts what waits into the archive. */
MUST_USE enum status copying_flush(struct copying *copying);
