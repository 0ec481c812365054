/* SPDX-License-Identifier: MIT */
#pragma once

/* Something to be asked of the archive on a thread that may wait for it: cargo of archive/archive_jobs.h. */

#include <stdint.h>

#include "archive/archive.h"
#include "queues/inbox.h"

enum {
    ARCHIVE_JOB_OWN =
            0 /* origin: the node's own questions, store-sync's and those of REST clients */
};

struct archive_job {
    /* On a query thread, which may block in it. Owns the job. */
    void (*run)(struct archive_job *CONSUMED job, struct archive_reader *BORROWED reader);
    uint64_t origin; /* whose it is: the number of a connection, or ARCHIVE_JOB_OWN */

    /* of the queue */
    struct inbox_link link;
    struct archive_job *next;
};
