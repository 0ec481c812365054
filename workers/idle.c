/* SPDX-License-Identifier: MIT */
#include "workers/idle.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>

#include "base/pause.h"

enum {
    AUTO_SPINS = 200,   /* some microseconds of empty turns before sleeping */
    STALLS_PER_STEP = 8 /* pauses between two looks at the queues */
};

bool idle_strategy_parse(enum idle_strategy *out, const char *text)
{
    static const char *const names[] = {"spin", "yield", "park", "auto"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum idle_strategy)i;
            return true;
        }
    }
    return false;
}

static void pause_briefly(void)
{
    for (int i = 0; i < STALLS_PER_STEP; i++) {
        cpu_pause();
    }
}

bool idle_step(enum idle_strategy strategy, uint64_t attempt)
{
    switch (strategy) {
    case IDLE_SPIN:
        pause_briefly();
        return false;
    case IDLE_YIELD:
        sched_yield();
        return false;
    case IDLE_PARK:
        return true;
    case IDLE_AUTO:
        if (attempt < AUTO_SPINS) {
            pause_briefly();
            return false;
        }
        return true;
    }
    return true;
}
