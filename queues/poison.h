/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Fills memory about to be freed in debug builds, so that a use after the read-side section that
 * protected it is seen: TSan misses that one, because the next section's hand-over hides it.
 */

#include <stddef.h>
#include <string.h>

enum {
    POISON_BYTE = 0xdd
};

static inline void poison(void *memory, size_t size_bytes)
{
#ifdef SLUICE_DEBUG
    memset(memory, POISON_BYTE, size_bytes);
#else
    (void)memory;
    (void)size_bytes;
#endif
}
