/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The tend role: the archive's work on the disk that the archive thread is not to wait for
 * (archive/tender.h). An archive that cannot have a tender does that work itself.
 */

#include "archive/tender.h"
#include "queues/parking.h"
#include "workers/worker.h"

struct tend_worker {
    struct archive *BORROWED archive;
    struct parking *BORROWED parking; /* woken by the archive thread */
    struct archive_tender *tender;    /* from start to stop */
};

struct worker_role tend_worker_role(struct tend_worker *worker, const char *name);
