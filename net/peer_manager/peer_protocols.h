/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How many connected peers speak each protocol of the network, by direction. What else peers claim to
 * speak is not counted.
 *
 * Thread: one writer; readers on any.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PEER_PROTOCOLS_COUNTED = 9
};

extern const char *const peer_protocols_counted[PEER_PROTOCOLS_COUNTED];

struct peer_protocols {
    _Atomic uint64_t of[PEER_PROTOCOLS_COUNTED][2]; /* [1]: of connections that we dialled */
};

/* A peer that says it speaks these has come (is_more) or gone. A name that is said twice counts once. */
void peer_protocols_change(struct peer_protocols *counts, const char *const names[],
        size_t name_count, bool is_outbound, bool is_more);
