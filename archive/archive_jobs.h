/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What waits for the query threads: one queue for all of them, so that none stands idle while a job
 * waits, and fair, so that a peer whose queries take long holds up its own.
 *
 * Turns:      the origins that have jobs waiting take turns, each with its oldest one. An origin has at
 *             most all takers but one at work at a time; one taker is for the others, whatever it asks.
 *             ARCHIVE_JOB_OWN has one turn as the others have, and as many takers as there are. Origins
 *             are told apart by a few bits: two may now and then count as one.
 * Progress:   post is wait-free but for waking a taker. Takers share a mutex, held for the moment of
 *             choosing, never while a job runs.
 * Ownership:  post moves the job in, take moves it out.
 * Thread:     post, depth and high water on any; the rest on the taker of that number.
 */

#include <stdbool.h>
#include <stddef.h>

#include "archive/archive_job.h"
#include "base/attributes.h"
#include "base/status.h"
#include "queues/parking.h"

enum {
    ARCHIVE_JOBS_TAKERS_MAX = 16
};

struct archive_jobs;

/* taker_count: 1 to ARCHIVE_JOBS_TAKERS_MAX. */
MUST_USE enum status archive_jobs_create(struct archive_jobs **out, size_t taker_count);

/* It must be empty. */
void archive_jobs_destroy(struct archive_jobs **jobs);

/* Wakes one taker that sleeps. Bounded by the poster's own cap. */
void archive_jobs_post(struct archive_jobs *jobs, struct archive_job *CONSUMED job);

/* NULL: there is none, or none that is not to be left to another taker. After take comes done. */
MUST_USE struct archive_job *archive_jobs_try_take(struct archive_jobs *jobs, size_t taker);
void archive_jobs_done(struct archive_jobs *jobs, size_t taker);

/* What a taker looks at between parking_prepare and parking_wait: false says that it may sleep. */
bool archive_jobs_has_work(struct archive_jobs *jobs, size_t taker);

/* What the taker sleeps on. */
struct parking *BORROWED archive_jobs_parking(struct archive_jobs *jobs, size_t taker);

/* Jobs that no taker has yet, now and at most ever. */
size_t archive_jobs_depth_estimate(const struct archive_jobs *jobs);
size_t archive_jobs_high_water(const struct archive_jobs *jobs);
