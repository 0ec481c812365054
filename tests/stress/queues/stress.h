/* SPDX-License-Identifier: MIT */
#pragma once

/* What the stress tests of queues/ share: checks on any thread, random choices, smaller counts. */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/tsan.h"

/* cmocka's assertions jump, which only its own thread may do. */
#define CHECK(fact) ((fact) ? (void)0 : fail_check(__FILE__, __LINE__, #fact))

static inline _Noreturn void fail_check(const char *file, int line, const char *fact)
{
    fprintf(stderr, "%s:%d: CHECK(%s)\n", file, line, fact);
    abort();
}

/* How long a sleeper that was not woken waits before its test fails. */
static const uint64_t LOST_WAKE_NS = 60ULL * NANOSECONDS_PER_SECOND;

/* Sanitizers slow everything down about tenfold. SLUICE_STRESS_FACTOR: so many times more. */
static inline uint64_t rounds(uint64_t count)
{
    const char *factor = getenv("SLUICE_STRESS_FACTOR");
    count *= factor != NULL ? strtoull(factor, NULL, 10) : 1;
#if defined(TSAN_ON) || defined(__SANITIZE_ADDRESS__)
    return count / 10;
#else
    return count;
#endif
}

/* Marsaglia's xorshift64; state is never zero. */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline bool one_in(uint64_t *state, uint64_t count)
{
    return random_next(state) % count == 0;
}

static inline void start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    CHECK(pthread_create(thread, NULL, run, argument) == 0);
}

static inline void join_thread(pthread_t thread)
{
    CHECK(pthread_join(thread, NULL) == 0);
}
