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

/* For (topic index, message bytes): the same bytes on two topics are two messages. */
uint64_t fast_key(uint32_t topic, struct span message);

/* The same in 128 bits, where nothing compares the bytes afterwards. */
struct wide_key fast_key_wide(uint32_t topic, struct span message);

/* For a name of any other kind. */
uint64_t fast_key_of_bytes(struct span bytes);
