/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The messages a lane accepted last, held so that an exact copy is recognised by comparing bytes: no
 * decode and no SHA-256. Under a byte cap; the oldest go first.
 *
 * Ownership:  one reference to each envelope it holds.
 * Thread:     the lane's decode thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "queues/envelope.h"

struct recent;

/* limit_bytes of frames; 0 holds nothing. */
MUST_USE enum status recent_create(struct recent **out, size_t limit_bytes);
void recent_destroy(struct recent **recent);

/* The held envelope with that topic and exactly these bytes, or NULL. */
struct envelope *BORROWED recent_find(
        struct recent *recent, const struct topic *topic, struct span message, uint64_t key);

/* Takes a reference of its own. Without memory the message is simply not held. */
void recent_add(struct recent *recent, struct envelope *BORROWED envelope, uint64_t key);

size_t recent_bytes(const struct recent *recent);
size_t recent_count(const struct recent *recent);
