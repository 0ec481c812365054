/* SPDX-License-Identifier: MIT */
#include "archive/sqlite_engine.h"
#include "base/clock.h"
#include "base/memory.h"

struct sqlite_tender {
    struct archive_tender base;
    struct sqlite_connection connection;
    struct segment_removal removal; /* the file that is going; fd -1: none */
    uint64_t due_ns;                /* monotonic: nothing is done before */
};

static const uint64_t retry_ns = NANOSECONDS_PER_SECOND;
static const uint64_t busy_ns = 20 * (uint64_t)NANOSECONDS_PER_MILLISECOND;

static struct sqlite_tender *tender_of(struct archive_tender *tender)
{
    return (struct sqlite_tender *)tender;
}

static struct sqlite_archive *archive_of(const struct archive_tender *tender)
{
    return (struct sqlite_archive *)tender->archive;
}

enum status sqlite_tender_open(struct archive_tender **out, struct archive *archive)
{
    struct sqlite_archive *sqlite = (struct sqlite_archive *)archive;
    int64_t version = 0;
    if (sqlite->target.is_memory || sqlite->target.is_read_only) {
        return STATUS_OK;
    }
    struct sqlite_tender *tender = memory_allocate_zeroed(sizeof(*tender));
    if (tender == NULL) {
        return STATUS_NO_MEMORY;
    }
    tender->base.archive = archive;
    tender->removal.fd = -1;
    enum status status = sqlite_connection_init(&tender->connection, &sqlite->target);
    if (status == STATUS_OK) {
        status = sqlite_execute(&tender->connection, "PRAGMA wal_autocheckpoint = 0");
    }
    /* Has it open the journal. */
    if (status == STATUS_OK) {
        status = sqlite_read_number(&tender->connection, "PRAGMA schema_version", &version);
    }
    if (status != STATUS_OK) {
        sqlite_connection_fini(&tender->connection);
        memory_free(tender);
        return status;
    }
    /* relaxed: as where it is read */
    atomic_store_explicit(&sqlite->tending.is_there, true, memory_order_relaxed);
    *out = &tender->base;
    return STATUS_OK;
}

void sqlite_tender_close(struct archive_tender *base)
{
    struct sqlite_tender *tender = tender_of(base);
    struct sqlite_archive *archive = archive_of(base);
    /* relaxed: as where it is read */
    atomic_store_explicit(&archive->tending.is_there, false, memory_order_relaxed);
    segments_end_removal(archive->segments, &tender->removal);
    sqlite_connection_fini(&tender->connection);
    memory_free(tender);
}

bool sqlite_archive_wants_tending(const struct archive *archive)
{
    const struct sqlite_tending *tending = &((const struct sqlite_archive *)archive)->tending;
    return atomic_load_explicit(&tending->is_there, memory_order_relaxed) &&
           sqlite_wants_tending(tending);
}

uint64_t sqlite_tender_due_ns(const struct archive_tender *base)
{
    const struct sqlite_tender *tender = (const struct sqlite_tender *)base;
    bool has_work = tender->removal.fd >= 0 || sqlite_archive_wants_tending(tender->base.archive);
    return has_work ? tender->due_ns : UINT64_MAX;
}

/* What the writer adds meanwhile is left for the next time. */
static enum status take_in_journal(struct sqlite_tender *tender)
{
    struct sqlite_tending *tending = &archive_of(&tender->base)->tending;
    /* relaxed: if the journal begins anew meanwhile, what is noted is of a generation that is gone */
    uint64_t journal = atomic_load_explicit(&tending->journal, memory_order_relaxed);
    uint64_t generation = journal >> SQLITE_GENERATION_SHIFT << SQLITE_GENERATION_SHIFT;
    int pages = 0;
    int taken_in = 0;
    int result = sqlite3_wal_checkpoint_v2(
            tender->connection.db, "main", SQLITE_CHECKPOINT_PASSIVE, &pages, &taken_in);
    if (result == SQLITE_BUSY) {
        /* Somebody takes it in already. */
        tender->due_ns = clock_monotonic_ns() + busy_ns;
        return STATUS_OK;
    }
    if (result != SQLITE_OK) {
        return sqlite_status_of(&tender->connection, result);
    }
    atomic_store_explicit(
            &tending->taken_in, generation | (uint32_t)taken_in, memory_order_relaxed);
    if (taken_in < pages && sqlite_wants_quiet(tending)) {
        /* Readers are on their way out. */
        tender->due_ns = clock_monotonic_ns() + busy_ns;
        return STATUS_OK;
    }
    /* What a reader holds back is not tried again before there is more. */
    atomic_store_explicit(&tending->tried, generation | (uint32_t)pages, memory_order_relaxed);
    return STATUS_OK;
}

/* The first piece of the removal of one file. */
static enum status begin_removal(struct sqlite_tender *tender)
{
    struct sqlite_archive *archive = archive_of(&tender->base);
    struct sqlite_doomed doomed = sqlite_last_doomed(&archive->tending);
    if (doomed.segment == 0) {
        return STATUS_OK;
    }
    enum status status = sqlite_sync_journal(&tender->connection);
    if (status == STATUS_OK) {
        status = segments_removal_begin(archive->segments);
    }
    if (status != STATUS_OK) {
        return status;
    }
    status = segments_begin_removal(archive->segments, doomed.segment, &tender->removal);
    segments_removal_end(archive->segments);
    if (status == STATUS_OK) {
        sqlite_forget_doomed(&archive->tending, &doomed);
    }
    return status;
}

static enum status do_piece(struct sqlite_tender *tender)
{
    struct sqlite_archive *archive = archive_of(&tender->base);
    if (sqlite_untried_pages(&archive->tending) >= SQLITE_TENDED_PAGES) {
        return take_in_journal(tender);
    }
    if (tender->removal.fd >= 0) {
        segments_step_removal(archive->segments, &tender->removal);
        return STATUS_OK;
    }
    enum status status = begin_removal(tender);
    if (status == STATUS_BUSY) {
        /* A backup is being made. */
        tender->due_ns = clock_monotonic_ns() + retry_ns;
        status = STATUS_OK;
    }
    return status;
}

enum status sqlite_tend(struct archive_tender *base)
{
    struct sqlite_tender *tender = tender_of(base);
    if (clock_monotonic_ns() < tender->due_ns) {
        return STATUS_OK;
    }
    enum status status = do_piece(tender);
    if (status != STATUS_OK) {
        tender->due_ns = clock_monotonic_ns() + retry_ns;
    }
    return status;
}
