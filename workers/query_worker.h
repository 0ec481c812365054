/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The query role: carries out what others want to know from the archive. Each of its threads does one
 * job after the other from the queue that all share, by a reader of its own, so that no query ever
 * waits for or holds up the writer.
 */

#include <stddef.h>

#include "archive/archive_jobs.h"
#include "base/attributes.h"
#include "workers/worker.h"

struct query_worker {
    struct archive_jobs *BORROWED jobs;
    size_t index; /* which of the takers it is */
    struct archive *BORROWED archive;
    struct archive_reader *reader; /* from start to stop */
};

struct worker_role query_worker_role(struct query_worker *worker, const char *name);
