/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The query role: carries out what others want to know from the archive, one job after the other, by
 * a reader of its own, so that no query ever waits for or holds up the writer.
 */

#include "archive/archive_job.h"
#include "base/attributes.h"
#include "queues/inbox.h"
#include "workers/worker.h"

struct query_worker {
    struct inbox *BORROWED jobs; /* of archive jobs */
    struct archive *BORROWED archive;
    struct archive_reader *reader; /* from start to stop */
};

struct worker_role query_worker_role(struct query_worker *worker, const char *name);
