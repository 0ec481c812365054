/* SPDX-License-Identifier: MIT */
#include "workers/worker.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rcu.h"

enum {
    NAME_BYTES = 16,
    STALL_SLICE_NS = 5 * NANOSECONDS_PER_MILLISECOND
};

/*
 * READY  release store of state -> acquire load of state: the owner that sees STARTED or FAILED sees
 *        start_status.
 * STOP   release store of is_stopping -> acquire load in the loop: the thread that sees it sees
 *        everything that was queued before.
 */
struct worker {
    struct worker_role role;
    struct worker_options options;
    struct cpu_set cpus;
    pthread_t thread;
    struct parking ready;
    enum status start_status; /* written by the thread before READY */
    atomic_int state;
    atomic_bool is_stopping;
    _Atomic uint64_t busy_ns; /* written by the thread */
    _Atomic uint64_t stalled_until_ns;
    uint64_t started_ns;
    bool is_joined;
};

enum worker_state {
    WORKER_CREATED,
    WORKER_STARTED,
    WORKER_FAILED
};

enum status worker_create(
        struct worker **out, const struct worker_role *role, const struct worker_options *options)
{
    assert(role->turn != NULL);
    assert(role->parking != NULL || (role->wait != NULL && role->wake != NULL));
    assert(strlen(role->name) < NAME_BYTES);
    size_t whole = (sizeof(struct worker) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct worker *worker = aligned_alloc(CACHE_LINE, whole);
    if (worker == NULL) {
        return STATUS_NO_MEMORY;
    }
    memset(worker, 0, sizeof(*worker));
    worker->role = *role;
    worker->options = *options;
    if (options->cpus != NULL) {
        worker->cpus = *options->cpus;
        worker->options.cpus = &worker->cpus;
    }
    parking_init(&worker->ready);
    atomic_init(&worker->state, WORKER_CREATED);
    atomic_init(&worker->is_stopping, false);
    atomic_init(&worker->busy_ns, 0);
    atomic_init(&worker->stalled_until_ns, 0);
    *out = worker;
    return STATUS_OK;
}

static void announce(struct worker *worker, enum status status)
{
    worker->start_status = status;
    int state = status == STATUS_OK ? WORKER_STARTED : WORKER_FAILED;
    atomic_store_explicit(&worker->state, state, memory_order_release); /* READY */
    parking_wake(&worker->ready);
}

static bool is_stopping(struct worker *worker)
{
    return atomic_load_explicit(&worker->is_stopping, memory_order_acquire); /* STOP */
}

static uint64_t timeout_of(struct worker *worker)
{
    if (worker->role.deadline == NULL) {
        return UINT64_MAX;
    }
    uint64_t deadline = worker->role.deadline(worker->role.context);
    if (deadline == UINT64_MAX) {
        return UINT64_MAX;
    }
    uint64_t now = clock_monotonic_ns();
    return deadline > now ? deadline - now : 0;
}

static void sleep_until_woken(struct worker *worker)
{
    struct worker_role *role = &worker->role;
    if (role->wait != NULL) {
        uint64_t timeout = timeout_of(worker);
        rcu_offline();
        role->wait(role->context, timeout);
        rcu_online();
        return;
    }
    uint32_t ticket = parking_prepare(role->parking);
    bool has_work = role->has_work != NULL && role->has_work(role->context);
    if (has_work || is_stopping(worker)) {
        parking_cancel(role->parking, ticket);
        return;
    }
    uint64_t timeout = timeout_of(worker);
    rcu_offline();
    parking_wait(role->parking, ticket, timeout);
    rcu_online();
}

static void account_turn(struct worker *worker, uint64_t began_ns)
{
    /* relaxed: only this thread writes it, readers want a rough number */
    uint64_t busy = atomic_load_explicit(&worker->busy_ns, memory_order_relaxed);
    uint64_t now = clock_monotonic_ns();
    atomic_store_explicit(&worker->busy_ns, busy + (now - began_ns), memory_order_relaxed);
}

void worker_stall(struct worker *worker, uint64_t until_ns)
{
    /* relaxed: it orders nothing */
    atomic_store_explicit(&worker->stalled_until_ns, until_ns, memory_order_relaxed);
}

static bool is_stalled(struct worker *worker)
{
    /* relaxed: as above */
    uint64_t until = atomic_load_explicit(&worker->stalled_until_ns, memory_order_relaxed);
    return until != 0 && clock_monotonic_ns() < until && !is_stopping(worker);
}

static void sit_out_stall(struct worker *worker)
{
    if (!is_stalled(worker)) {
        return;
    }
    rcu_offline();
    while (is_stalled(worker)) {
        struct timespec slice = {.tv_nsec = STALL_SLICE_NS};
        nanosleep(&slice, NULL);
    }
    rcu_online();
}

static void run_turns(struct worker *worker)
{
    uint64_t attempt = 0;
    for (;;) {
        sit_out_stall(worker);
        bool stopping = is_stopping(worker);
        uint64_t began = clock_monotonic_ns();
        size_t done = worker->role.turn(worker->role.context);
        rcu_turn_over();
        if (done > 0) {
            account_turn(worker, began);
            attempt = 0;
            continue;
        }
        if (stopping) {
            return;
        }
        if (idle_step(worker->options.idle, attempt)) {
            sleep_until_woken(worker);
        }
        attempt++;
    }
}

static void *run(void *argument)
{
    struct worker *worker = argument;
    pthread_setname_np(pthread_self(), worker->role.name);
    if (metrics_attach_thread(worker->options.metrics) != STATUS_OK) {
        announce(worker, STATUS_NO_MEMORY);
        return NULL;
    }
    rcu_register();
    enum status status = STATUS_OK;
    if (worker->role.start != NULL) {
        status = worker->role.start(worker->role.context);
    }
    announce(worker, status);
    if (status == STATUS_OK) {
        run_turns(worker);
        if (worker->role.stop != NULL) {
            worker->role.stop(worker->role.context);
        }
    }
    rcu_unregister();
    metrics_detach_thread();
    return NULL;
}

/* The processors are set before the thread runs, so that its first allocation is already there. */
static enum status spawn(struct worker *worker)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return STATUS_NO_MEMORY;
    }
    int failed = 0;
    if (worker->options.cpus != NULL) {
        failed = pthread_attr_setaffinity_np(
                &attributes, sizeof(worker->cpus.mask), &worker->cpus.mask);
    }
    if (failed == 0) {
        failed = pthread_create(&worker->thread, &attributes, run, worker);
    }
    pthread_attr_destroy(&attributes);
    return failed == 0 ? STATUS_OK : STATUS_SYSTEM;
}

enum status worker_start(struct worker *worker)
{
    worker->started_ns = clock_monotonic_ns();
    enum status status = spawn(worker);
    if (status != STATUS_OK) {
        return status;
    }
    for (;;) {
        uint32_t ticket = parking_prepare(&worker->ready);
        int state = atomic_load_explicit(&worker->state, memory_order_acquire); /* READY */
        if (state != WORKER_CREATED) {
            parking_cancel(&worker->ready, ticket);
            break;
        }
        parking_wait(&worker->ready, ticket, UINT64_MAX);
    }
    if (worker->start_status != STATUS_OK) {
        pthread_join(worker->thread, NULL);
        worker->is_joined = true;
    }
    return worker->start_status;
}

void worker_request_stop(struct worker *worker)
{
    atomic_store_explicit(&worker->is_stopping, true, memory_order_release); /* STOP */
    if (worker->role.wake != NULL) {
        worker->role.wake(worker->role.context);
    } else {
        parking_wake(worker->role.parking);
    }
}

bool worker_is_started(const struct worker *worker)
{
    /* READY: what start made is seen with it */
    return atomic_load_explicit(&worker->state, memory_order_acquire) == WORKER_STARTED;
}

void worker_join(struct worker *worker)
{
    if (worker_is_started(worker) && !worker->is_joined) {
        pthread_join(worker->thread, NULL);
        worker->is_joined = true;
    }
}

void worker_destroy(struct worker **worker)
{
    if (*worker == NULL) {
        return;
    }
    assert((*worker)->is_joined || !worker_is_started(*worker));
    free(*worker);
    *worker = NULL;
}

void worker_times(const struct worker *worker, uint64_t *busy_ns, uint64_t *total_ns)
{
    /* relaxed: a rough number */
    *busy_ns = atomic_load_explicit(&worker->busy_ns, memory_order_relaxed);
    *total_ns = clock_monotonic_ns() - worker->started_ns;
}

const char *worker_name(const struct worker *worker)
{
    return worker->role.name;
}

void worker_block_begin(void)
{
    rcu_offline();
}

void worker_block_end(void)
{
    rcu_online();
}
