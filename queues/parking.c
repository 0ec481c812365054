/* SPDX-License-Identifier: MIT */
#include "queues/parking.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"

/*
 * state holds, in one word, how many threads have announced that they will sleep (low 8 bits) and how
 * often sleepers were woken (the rest, the epoch). A wake that finds sleepers raises the epoch and sets
 * their number to zero in one step, so that the wakes until they run again cost no system call. Only
 * read-modify-writes touch it: they have one total order, and each continues the release sequence of
 * those before it.
 *
 * Ordering:
 *
 *   ANNOUNCE  release read-modify-write in wake -> acquire read-modify-write in prepare, acquire
 *             load in wait. What was put in the queue before the wake is seen after the prepare, or
 *             after the wait.
 *
 * Why no wake is lost: of the wake's first read-modify-write and the sleeper's prepare, one comes
 * first in the order of state. If it is the wake, the prepare synchronises with it (ANNOUNCE), so the
 * sleeper's look at the queue finds the work. If it is the prepare, the wake reads a number of sleepers
 * above zero and raises the epoch, or finds that another wake, cancel or timeout took the sleeper off
 * meanwhile: then the epoch is raised already, or the sleeper does not sleep. The kernel compares the
 * word again under its own lock before it puts the thread to sleep, so a raise before that makes the
 * futex return at once, and a raise after it is followed by FUTEX_WAKE.
 *
 * Both sides write the same word, so acquire and release are enough: there is no store-load pair on two
 * variables that would need seq_cst.
 *
 * The epoch has 24 bits. A sleeper would miss a wake if exactly 2^24 wakes that each found another
 * sleeper came between its prepare and its futex call.
 */
enum {
    SLEEPERS = 0xff,
    EPOCH_STEP = SLEEPERS + 1
};

static uint32_t epoch_of(uint32_t state)
{
    return state & ~(uint32_t)SLEEPERS;
}

static long futex(struct parking *parking, int operation, uint32_t value, struct timespec *deadline)
{
    return syscall(SYS_futex, &parking->state, operation | FUTEX_PRIVATE_FLAG, value, deadline,
            NULL, FUTEX_BITSET_MATCH_ANY);
}

void parking_init(struct parking *parking)
{
    atomic_init(&parking->state, 0);
}

uint32_t parking_prepare(struct parking *parking)
{
    uint32_t before = atomic_fetch_add_explicit(&parking->state, 1, memory_order_acquire);
    assert((before & SLEEPERS) < SLEEPERS); /* ANNOUNCE */
    return epoch_of(before);
}

/* False when a wake had taken the sleeper off already. */
static bool withdraw(struct parking *parking, uint32_t ticket)
{
    /* relaxed: a sleeper that gives up tells nothing to anyone */
    uint32_t now = atomic_load_explicit(&parking->state, memory_order_relaxed);
    /* Ends because a failure means that another sleeper or a wake got through. */
    while (epoch_of(now) == ticket) {
        if (atomic_compare_exchange_weak_explicit(
                    &parking->state, &now, now - 1, memory_order_relaxed, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

void parking_cancel(struct parking *parking, uint32_t ticket)
{
    withdraw(parking, ticket);
}

static struct timespec deadline_after(uint64_t timeout_ns)
{
    uint64_t now = clock_monotonic_ns();
    uint64_t end = timeout_ns > (uint64_t)INT64_MAX - now ? (uint64_t)INT64_MAX : now + timeout_ns;
    return (struct timespec){.tv_sec = (time_t)(end / NANOSECONDS_PER_SECOND),
            .tv_nsec = (long)(end % NANOSECONDS_PER_SECOND)};
}

bool parking_wait(struct parking *parking, uint32_t ticket, uint64_t timeout_ns)
{
    uint32_t now = atomic_load_explicit(&parking->state, memory_order_acquire); /* ANNOUNCE */
    if (epoch_of(now) != ticket) {
        return true;
    }
    struct timespec deadline = {0};
    if (timeout_ns != UINT64_MAX) {
        deadline = deadline_after(timeout_ns);
    }
    metrics_add(METRIC_PARKS, 1);
    do {
        long result =
                futex(parking, FUTEX_WAIT_BITSET, now, timeout_ns == UINT64_MAX ? NULL : &deadline);
        if (result != 0 && errno == ETIMEDOUT && withdraw(parking, ticket)) {
            return false;
        }
        now = atomic_load_explicit(&parking->state, memory_order_acquire); /* ANNOUNCE */
    } while (epoch_of(now) == ticket);
    return true;
}

void parking_wake(struct parking *parking)
{
    /* Adds nothing: a read-modify-write has a place in the order of state, a load has none. */
    uint32_t now =
            atomic_fetch_add_explicit(&parking->state, 0, memory_order_release); /* ANNOUNCE */

    /* Ends because a failure means that another thread got through; then nobody may be left to wake. */
    while ((now & SLEEPERS) != 0) {
        /* relaxed: it continues the release sequence of the line above */
        if (atomic_compare_exchange_weak_explicit(&parking->state, &now, epoch_of(now) + EPOCH_STEP,
                    memory_order_relaxed, memory_order_relaxed)) {
            long woken = futex(parking, FUTEX_WAKE, INT32_MAX, NULL);
            metrics_add(METRIC_WAKES, woken > 0 ? (uint64_t)woken : 0);
            return;
        }
    }
}
