/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Hashes for tables inside the process: XXH3 keyed with a secret drawn at random once a process, so
 * that a peer cannot prepare bytes that collide. Never sent, stored or logged.
 *
 * Thread: any.
 */

#include <stdint.h>

#include "base/span.h"

struct wide_key {
    uint64_t low;
    uint64_t high;
};

/*
 * For (topic index, message bytes): the same bytes on two topics are two messages. The same bytes
 * always have the same key; of a message above 1 KiB only its length, its ends and some chunks at
 * places that are drawn once a process are looked at, so whoever finds a key compares the bytes or
 * the message id. Two messages that differ nowhere else cost such a comparison and nothing more.
 */
uint64_t fast_key(uint32_t topic, struct span message);

/* Asks for the cache lines that fast_key of that message will read. */
void fast_key_prefetch(struct span message);

/* fast_key in the low half, a hash of every byte in the high one: nothing need be compared then. */
struct wide_key fast_key_wide(uint32_t topic, struct span message);

/* For a name of any other kind. */
uint64_t fast_key_of_bytes(struct span bytes);
