/* SPDX-License-Identifier: MIT */
#pragma once

/* How a thread without work waits: burning its core, giving it up, or sleeping. */

#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"

enum idle_strategy {
    IDLE_SPIN,  /* never leaves its core: lowest latency, needs a core of its own */
    IDLE_YIELD, /* gives the core to others that are ready, never sleeps */
    IDLE_PARK,  /* sleeps at once */
    IDLE_AUTO   /* spins for some microseconds, then sleeps */
};

/* "spin", "yield", "park", "auto". False for anything else. */
MUST_USE bool idle_strategy_parse(enum idle_strategy *out, const char *text);

/* One step of waiting; attempt counts the empty turns in a row. True: the caller should sleep. */
MUST_USE bool idle_step(enum idle_strategy strategy, uint64_t attempt);
