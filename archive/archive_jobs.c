/* SPDX-License-Identifier: MIT */
#include "archive/archive_jobs.h"

#include <assert.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

/*
 * Posters push into an inbox. Whoever of the takers has the mutex moves what is in it into a line for
 * each origin, and takes from the line whose turn it is.
 *
 * Ordering:
 *
 *   IDLE  a taker sets its bit of `idle` and then looks for work; a poster pushes and then looks at
 *         `idle`. Both are acq_rel read-modify-writes of one word, so one comes first: either the taker
 *         sees the push, or the poster sees the bit, clears it and wakes the taker.
 *
 * A taker that was woken clears its bit and takes; if there is more to take then, it wakes the next one.
 * So a wake meant for a taker that had found something to do just before is passed on by it.
 */

enum {
    LINES = 256 /* of origins; the first is ARCHIVE_JOB_OWN's alone */
};

struct line {
    struct archive_job *first;
    struct archive_job **last;
    struct line *next; /* in the order of turns, while it has jobs */
    size_t running;
};

struct taker {
    alignas(CACHE_LINE) struct parking parking;
    struct line *running; /* whose job it has; NULL: none */
};

struct archive_jobs {
    alignas(CACHE_LINE) atomic_uint idle; /* a bit for each taker that sleeps or is about to */
    atomic_size_t depth;
    atomic_size_t high_water;
    struct inbox *inbox;
    size_t taker_count; /* constant */
    size_t running_max; /* of an origin; constant */

    alignas(CACHE_LINE) pthread_mutex_t mutex; /* for all below and the inbox's taking side */
    struct line *first;                        /* the one whose turn it is */
    struct line **last;
    struct line lines[LINES];
    struct taker takers[ARCHIVE_JOBS_TAKERS_MAX];
};

enum status archive_jobs_create(struct archive_jobs **out, size_t taker_count)
{
    assert(taker_count > 0 && taker_count <= ARCHIVE_JOBS_TAKERS_MAX);
    struct archive_jobs *jobs = memory_allocate_aligned(CACHE_LINE, sizeof(*jobs));
    if (jobs == NULL) {
        return STATUS_NO_MEMORY;
    }
    jobs->inbox = NULL;
    if (inbox_create(&jobs->inbox) != STATUS_OK) {
        memory_free(jobs);
        return STATUS_NO_MEMORY;
    }
    atomic_init(&jobs->idle, 0);
    atomic_init(&jobs->depth, 0);
    atomic_init(&jobs->high_water, 0);
    pthread_mutex_init(&jobs->mutex, NULL);
    jobs->taker_count = taker_count;
    jobs->running_max = taker_count > 1 ? taker_count - 1 : 1;
    jobs->first = NULL;
    jobs->last = &jobs->first;
    for (size_t i = 0; i < LINES; i++) {
        jobs->lines[i] = (struct line){.first = NULL};
    }
    for (size_t i = 0; i < ARCHIVE_JOBS_TAKERS_MAX; i++) {
        parking_init(&jobs->takers[i].parking);
        jobs->takers[i].running = NULL;
    }
    *out = jobs;
    return STATUS_OK;
}

void archive_jobs_destroy(struct archive_jobs **jobs)
{
    if (*jobs == NULL) {
        return;
    }
    assert((*jobs)->first == NULL);
    inbox_destroy(&(*jobs)->inbox);
    pthread_mutex_destroy(&(*jobs)->mutex);
    memory_free(*jobs);
    *jobs = NULL;
}

static void wake_one(struct archive_jobs *jobs)
{
    /* Adds nothing: a read-modify-write has a place in the order of idle, a load has none. */
    unsigned idle = atomic_fetch_or_explicit(&jobs->idle, 0, memory_order_acq_rel); /* IDLE */
    /* Ends because a failure means that another thread got through; then nobody may be left. */
    while (idle != 0) {
        /* The lowest: what little there is stays with the taker whose caches are warm. */
        unsigned taker = (unsigned)__builtin_ctz(idle);
        if (atomic_compare_exchange_weak_explicit(&jobs->idle, &idle, idle & ~(1u << taker),
                    memory_order_acq_rel, memory_order_acquire)) { /* IDLE */
            parking_wake(&jobs->takers[taker].parking);
            return;
        }
    }
}

void archive_jobs_post(struct archive_jobs *jobs, struct archive_job *job)
{
    /* relaxed: a number that orders nothing; before the push, so that it is never below zero */
    atomic_fetch_add_explicit(&jobs->depth, 1, memory_order_relaxed);
    inbox_push(jobs->inbox, &job->link);
    wake_one(jobs);
}

static struct line *line_of(struct archive_jobs *jobs, uint64_t origin)
{
    /* Fibonacci hashing: numbers that follow each other fall far apart. */
    uint64_t mixed = origin * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    return &jobs->lines[origin == ARCHIVE_JOB_OWN ? 0 : 1 + mixed % (LINES - 1)];
}

static void append_line(struct archive_jobs *jobs, struct line *line)
{
    line->next = NULL;
    *jobs->last = line;
    jobs->last = &line->next;
}

static void append_job(struct archive_jobs *jobs, struct archive_job *job)
{
    struct line *line = line_of(jobs, job->origin);
    job->next = NULL;
    if (line->first == NULL) {
        line->last = &line->first;
        append_line(jobs, line);
    }
    *line->last = job;
    line->last = &job->next;
}

/* Mutex held, as for all below. */
static void sort_in(struct archive_jobs *jobs)
{
    struct inbox_link *link;
    /* relaxed: the mutex orders the takers, and readers want no more than a number */
    size_t depth = atomic_load_explicit(&jobs->depth, memory_order_relaxed);
    if (depth > atomic_load_explicit(&jobs->high_water, memory_order_relaxed)) {
        atomic_store_explicit(&jobs->high_water, depth, memory_order_relaxed);
    }
    while ((link = inbox_try_pop(jobs->inbox)) != NULL) {
        append_job(jobs, (struct archive_job *)((char *)link - offsetof(struct archive_job, link)));
    }
}

static bool may_run(const struct archive_jobs *jobs, const struct line *line)
{
    return line == &jobs->lines[0] || line->running < jobs->running_max;
}

/* Where the line whose turn it is hangs; few are passed over, those that have all they may have. */
static struct line **next_turn(struct archive_jobs *jobs)
{
    struct line **place = &jobs->first;
    while (*place != NULL && !may_run(jobs, *place)) {
        place = &(*place)->next;
    }
    return place;
}

static struct archive_job *take_from(struct archive_jobs *jobs, struct line **place)
{
    struct line *line = *place;
    struct archive_job *job = line->first;
    *place = line->next;
    if (line->next == NULL) {
        jobs->last = place;
    }
    line->first = job->next;
    if (line->first != NULL) {
        append_line(jobs, line);
    }
    return job;
}

struct archive_job *archive_jobs_try_take(struct archive_jobs *jobs, size_t taker)
{
    struct archive_job *job = NULL;
    atomic_fetch_and_explicit(&jobs->idle, ~(1u << taker), memory_order_acq_rel); /* IDLE */
    /* relaxed: who may sleep for it looks again, with has_work */
    if (atomic_load_explicit(&jobs->depth, memory_order_relaxed) == 0) {
        return NULL;
    }
    pthread_mutex_lock(&jobs->mutex);
    sort_in(jobs);
    struct line **place = next_turn(jobs);
    if (*place != NULL) {
        struct line *line = *place;
        job = take_from(jobs, place);
        line->running++;
        jobs->takers[taker].running = line;
        /* relaxed: as in post */
        atomic_fetch_sub_explicit(&jobs->depth, 1, memory_order_relaxed);
    }
    bool has_more = job != NULL && *next_turn(jobs) != NULL;
    pthread_mutex_unlock(&jobs->mutex);
    if (has_more) {
        wake_one(jobs);
    }
    return job;
}

void archive_jobs_done(struct archive_jobs *jobs, size_t taker)
{
    pthread_mutex_lock(&jobs->mutex);
    struct line *line = jobs->takers[taker].running;
    assert(line != NULL);
    /* What waited for this is found when the taker takes again, and passed on if it takes another. */
    line->running--;
    jobs->takers[taker].running = NULL;
    pthread_mutex_unlock(&jobs->mutex);
}

bool archive_jobs_has_work(struct archive_jobs *jobs, size_t taker)
{
    atomic_fetch_or_explicit(&jobs->idle, 1u << taker, memory_order_acq_rel); /* IDLE */
    pthread_mutex_lock(&jobs->mutex);
    sort_in(jobs);
    /* A push that is half done is work too: its job is there in a moment. */
    bool has_work = *next_turn(jobs) != NULL || !inbox_is_empty(jobs->inbox);
    pthread_mutex_unlock(&jobs->mutex);
    return has_work;
}

struct parking *archive_jobs_parking(struct archive_jobs *jobs, size_t taker)
{
    return &jobs->takers[taker].parking;
}

size_t archive_jobs_depth_estimate(const struct archive_jobs *jobs)
{
    return atomic_load_explicit(&jobs->depth, memory_order_relaxed); /* a reading */
}

size_t archive_jobs_high_water(const struct archive_jobs *jobs)
{
    return atomic_load_explicit(&jobs->high_water, memory_order_relaxed); /* a reading */
}
