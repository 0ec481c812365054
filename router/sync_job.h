/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Something to be asked of the sync set on the thread that owns it: cargo of the sync inbox, as
 * archive jobs are of the query inbox.
 */

#include <stdbool.h>

#include "base/attributes.h"
#include "queues/inbox.h"
#include "router/sync_set.h"

struct sync_job {
    struct inbox_link link;
    struct sync_job *next; /* of those that wait; the sync thread's */
    bool needs_whole_set;  /* it may wait a little until the set has been filled from the archive */
    /* On the sync thread, must not block. Owns the job. */
    void (*run)(struct sync_job *CONSUMED job, struct sync_set *BORROWED set);
};

static inline struct sync_job *sync_job_of(struct inbox_link *link)
{
    return link == NULL ? NULL
                        : (struct sync_job *)((char *)link - offsetof(struct sync_job, link));
}
