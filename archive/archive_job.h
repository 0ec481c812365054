/* SPDX-License-Identifier: MIT */
#pragma once

/* Something to be asked of the archive on a thread that may wait for it: cargo of the query inbox. */

#include "archive/archive.h"
#include "queues/inbox.h"

struct archive_job {
    struct inbox_link link;
    /* On the query thread, which may block in it. Owns the job. */
    void (*run)(struct archive_job *CONSUMED job, struct archive_reader *BORROWED reader);
};
