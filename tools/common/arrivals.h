/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How many messages each of several receivers has got, and the slowest of them: a window that goes by
 * the average would let one fall so far behind that the node has to drop its messages.
 *
 * Thread: one.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"

struct arrivals {
    uint64_t *counts;
    size_t receiver_count;
    uint64_t least;
    size_t slowest_count; /* receivers that have got just so many */
};

MUST_USE enum status arrivals_init(struct arrivals *arrivals, size_t receiver_count);
void arrivals_fini(struct arrivals *arrivals);

/* One more at that receiver. */
void arrivals_add(struct arrivals *arrivals, size_t receiver);

/* Whatever has not come by now counts as if it had: nobody waits for it any more. */
void arrivals_write_off(struct arrivals *arrivals, uint64_t sent);

/* Of sent messages, how many some receiver has not got; without receivers 0. */
uint64_t arrivals_in_flight(const struct arrivals *arrivals, uint64_t sent);
