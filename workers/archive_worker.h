/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The archive role and the spill role, which share the archive rings. The archive thread gives batches
 * to the engine; while that is slow or gone, the rings fill up and the spill thread writes what is in
 * them to the spill file, which the archive thread reads back when it has caught up. What neither ring
 * nor file has room for is dropped, counted. The network never waits for any of this.
 *
 * Between batches it takes a step of retention (archive/retention.h) when one is due; also while the
 * engine refuses batches, since that may be for want of the space that retention gives back.
 *
 * "Delivered" is counted after the engine has synced the batch.
 *
 * What a spill file of an earlier process holds counts as received when the archive thread starts.
 *
 * Thread: init before both workers start; archive_stage_health, archive_stage_held and
 *          archive_stage_extent on any.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive.h"
#include "archive/retention.h"
#include "archive/spill.h"
#include "base/attributes.h"
#include "base/status.h"
#include "queues/frame_budget.h"
#include "queues/progress.h"
#include "workers/ring_set.h"
#include "workers/worker.h"

enum {
    ARCHIVE_BATCH_MAX = 4096,
    SPILLED_BATCH_MAX = 256,
    SPILLED_BATCH_BYTES = 8 * 1024 * 1024,
    ARCHIVE_EXTENT_MS = 1000
};

/* The engine has synced the message with that hash; on the archive thread, must not block. */
typedef void archive_acknowledge(void *context, const uint8_t hash[MESSAGE_HASH_BYTES]);

/* A message that was taken has been dropped; on the archive's or the spill thread, must not block. */
typedef void archive_lost(void *context, const struct envelope *envelope);

struct archive_stage {
    struct ring_set archive_rings; /* the same rings, each thread with its own place in turn */
    struct ring_set spill_rings;
    size_t ring_capacity; /* of each ring */
    struct parking *BORROWED archive_parking;
    struct parking *BORROWED spill_parking;
    struct parking *BORROWED tend_parking; /* of the archive's tender; NULL: there is none */
    struct archive *BORROWED archive;
    struct spill *BORROWED spill; /* NULL: nothing behind the ring */
    pthread_mutex_t spill_lock;   /* of the file; never held while the engine works */
    const struct frame_budget *BORROWED budget;
    struct progress *BORROWED progress;
    size_t archive_slot;
    size_t spill_slot;
    struct retention_policy retention_policy; /* all zero: nothing is removed */
    size_t batch_max;                         /* messages in one put, at most ARCHIVE_BATCH_MAX */
    archive_acknowledge *acknowledge;         /* NULL: nobody wants to know */
    void *acknowledge_context;
    archive_lost *lost; /* NULL: nobody wants to know */
    void *lost_context;

    /* archive thread */
    struct envelope *batch[ARCHIVE_BATCH_MAX]; /* what the engine has not taken yet */
    size_t batch_count;
    struct archive_record spilled[SPILLED_BATCH_MAX]; /* read back, while the engine takes them */
    uint64_t retry_at_ns;
    uint64_t retry_delay_ns;
    size_t batch_bytes; /* of frames in batch */
    struct retention retention;
    uint64_t extent_due_ns;
    bool is_extent_stale; /* what was published is older than the last change */
    size_t inherited;     /* spilled records of an earlier process: no producer of this one waits */

    /* spill thread */
    bool is_spilling;

    /* read by others */
    atomic_int health;                 /* enum status of the last put; STATUS_OK: fine */
    _Atomic uint64_t failing_since_ns; /* monotonic; 0: the last put succeeded */
    _Atomic uint64_t end_ns;           /* monotonic; 0: it goes on */
    atomic_size_t batch_held;
    atomic_size_t spill_held;
    struct {
        _Atomic uint64_t count;
        _Atomic uint64_t size_bytes;
        _Atomic int64_t oldest_ns;
        _Atomic int64_t newest_ns;
    } extent;
};

MUST_USE enum status archive_stage_init(struct archive_stage *stage);

/*
 * Before the workers are asked to stop: what the engine has not taken by end_ns (monotonic), or when
 * it fails, goes to the spill file, and what is there stays. Without one the engine gets all of it.
 * Thread: any.
 */
void archive_stage_end_by(struct archive_stage *stage, uint64_t end_ns);
void archive_stage_fini(struct archive_stage *stage);

struct worker_role archive_stage_archive_role(struct archive_stage *stage, const char *name);
struct worker_role archive_stage_spill_role(struct archive_stage *stage, const char *name);

/* Messages received and not yet delivered, refused or dropped: rings, batch and spill file. */
size_t archive_stage_held(const struct archive_stage *stage);

/* Those of them in the spill file. Thread: any. */
size_t archive_stage_spilled(const struct archive_stage *stage);

/* STATUS_OK, or why the engine refused the last batch; *since_ns: monotonic time of the first refusal. */
enum status archive_stage_health(const struct archive_stage *stage, uint64_t *since_ns);

/* What is in the archive, as it was at most ARCHIVE_EXTENT_MS ago while batches come. */
struct archive_totals archive_stage_extent(const struct archive_stage *stage);
