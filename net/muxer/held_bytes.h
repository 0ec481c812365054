/* SPDX-License-Identifier: MIT */
#pragma once

/* Received bytes that nobody reserved a place for yet: a list of chunks, no memory while empty. */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"

struct held_chunk;

struct held_bytes {
    struct held_chunk *first;
    struct held_chunk *last;
    size_t size; /* bytes held */
};

/* Where the next bytes may be written: the capacity at *to, 0 when there is no memory. */
MUST_USE size_t held_bytes_reserve(struct held_bytes *held, size_t wanted, uint8_t **to);
void held_bytes_commit(struct held_bytes *held, size_t n);

/* The oldest bytes that lie together; not to be called while empty. */
struct span held_bytes_front(const struct held_bytes *held);

/* Forgets n of the front. */
void held_bytes_drop(struct held_bytes *held, size_t n);

void held_bytes_fini(struct held_bytes *held);
