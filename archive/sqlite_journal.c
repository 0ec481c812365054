/* SPDX-License-Identifier: MIT */
#include "archive/sqlite_journal.h"

#include "archive/sqlite_engine.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics.h"

static const uint64_t quiet_ns = NANOSECONDS_PER_SECOND;
static const uint64_t stand_back_ns = 20 * (uint64_t)NANOSECONDS_PER_MILLISECOND;

void sqlite_tending_init(struct sqlite_tending *tending)
{
    atomic_init(&tending->is_there, false);
    atomic_init(&tending->journal, 0);
    atomic_init(&tending->taken_in, 0);
    atomic_init(&tending->tried, 0);
    atomic_init(&tending->quiet_until_ns, 0);
    parking_init(&tending->quiet);
    tending->journal_pages = SQLITE_JOURNAL_PAGES;
    tending->quiet_pages = SQLITE_QUIET_PAGES;
    tending->quiet_at_pages = SQLITE_QUIET_PAGES;
    atomic_init(&tending->doomed_count, 0);
    atomic_init(&tending->doomed_bytes, 0);
    pthread_mutex_init(&tending->mutex, NULL);
}

void sqlite_tending_fini(struct sqlite_tending *tending)
{
    memory_free(tending->doomed);
    pthread_mutex_destroy(&tending->mutex);
}

/* Pages of journal that are not among those of part, which counts nothing of another generation. */
static uint32_t pages_beyond(uint64_t journal, uint64_t part)
{
    bool is_same = journal >> SQLITE_GENERATION_SHIFT == part >> SQLITE_GENERATION_SHIFT;
    uint32_t pages = (uint32_t)journal;
    uint32_t done = is_same ? (uint32_t)part : 0;
    return pages > done ? pages - done : 0;
}

static uint32_t pages_left(const struct sqlite_tending *tending, const _Atomic uint64_t *part)
{
    /* relaxed: numbers that decide when to work, and order nothing */
    return pages_beyond(atomic_load_explicit(&tending->journal, memory_order_relaxed),
            atomic_load_explicit(part, memory_order_relaxed));
}

uint32_t sqlite_untried_pages(const struct sqlite_tending *tending)
{
    return pages_left(tending, &tending->tried);
}

bool sqlite_wants_tending(const struct sqlite_tending *tending)
{
    /* relaxed: the mutex orders the list */
    return sqlite_untried_pages(tending) >= SQLITE_TENDED_PAGES ||
           atomic_load_explicit(&tending->doomed_count, memory_order_relaxed) > 0;
}

/* Whether the archive's thread has to take the journal in itself. */
static bool is_own_turn(const struct sqlite_tending *tending, uint32_t pages)
{
    /* relaxed: a tender that comes or goes meanwhile changes who does it only */
    bool is_tended = atomic_load_explicit(&tending->is_there, memory_order_relaxed);
    if (pages < tending->journal_pages) {
        return false;
    }
    return !is_tended || pages >= SQLITE_MOST_PAGES ||
           pages_left(tending, &tending->taken_in) <= SQLITE_LEFT_PAGES;
}

bool sqlite_wants_quiet(const struct sqlite_tending *tending)
{
    /* relaxed: a number that decides who waits, and orders nothing */
    uint64_t until = atomic_load_explicit(&tending->quiet_until_ns, memory_order_relaxed);
    return until != 0 && clock_monotonic_ns() < until;
}

void sqlite_stand_back(struct sqlite_tending *tending)
{
    uint32_t ticket = parking_prepare(&tending->quiet);
    if (sqlite_wants_quiet(tending)) {
        parking_wait(&tending->quiet, ticket, stand_back_ns);
    } else {
        parking_cancel(&tending->quiet, ticket);
    }
}

/* A foreign reader does not stand back: then ours go on after a while, until there is as much more. */
static void see_to_readers(struct sqlite_tending *tending, uint32_t pages, bool has_begun_anew)
{
    if (has_begun_anew) {
        tending->quiet_at_pages = tending->quiet_pages;
        /* relaxed, here and below: as in sqlite_wants_quiet */
        if (atomic_exchange_explicit(&tending->quiet_until_ns, 0, memory_order_relaxed) != 0) {
            parking_wake(&tending->quiet);
        }
    } else if (pages >= tending->quiet_at_pages) {
        tending->quiet_at_pages = pages + tending->quiet_pages;
        atomic_store_explicit(
                &tending->quiet_until_ns, clock_monotonic_ns() + quiet_ns, memory_order_relaxed);
        /* What a reader held back is tried again. */
        atomic_store_explicit(&tending->tried,
                atomic_load_explicit(&tending->taken_in, memory_order_relaxed),
                memory_order_relaxed);
        metrics_add(METRIC_ARCHIVE_QUIETS, 1);
    }
}

int sqlite_note_commit(void *context, sqlite3 *db, const char *name, int pages)
{
    struct sqlite_tending *tending = &((struct sqlite_archive *)context)->tending;
    /* relaxed: this thread alone writes it */
    uint64_t before = atomic_load_explicit(&tending->journal, memory_order_relaxed);
    uint64_t generation = before >> SQLITE_GENERATION_SHIFT;
    /* A commit only adds, unless the journal has begun anew. */
    bool has_begun_anew = (uint32_t)pages <= (uint32_t)before;
    generation += has_begun_anew;
    atomic_store_explicit(&tending->journal,
            generation << SQLITE_GENERATION_SHIFT | (uint32_t)pages, memory_order_relaxed);
    see_to_readers(tending, (uint32_t)pages, has_begun_anew);
    if (is_own_turn(tending, (uint32_t)pages)) {
        /* One that fails is tried again by the next commit; this commit is complete without it. */
        sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    }
    return SQLITE_OK;
}

enum status sqlite_sync_journal(struct sqlite_connection *connection)
{
    sqlite3_file *file = NULL;
    int result = sqlite3_file_control(connection->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
    if (result != SQLITE_OK || file == NULL || file->pMethods == NULL) {
        return STATUS_SYSTEM;
    }
    result = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    return result == SQLITE_OK ? STATUS_OK : STATUS_SYSTEM;
}

enum status sqlite_doom_segment(struct sqlite_tending *tending, const struct sqlite_doomed *doomed)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&tending->mutex);
    /* relaxed, here and below: the mutex orders the list; others only look whether there is one */
    size_t count = atomic_load_explicit(&tending->doomed_count, memory_order_relaxed);
    if (count == tending->capacity) {
        size_t capacity = count == 0 ? 16 : 2 * count;
        struct sqlite_doomed *grown = memory_resize(tending->doomed, capacity * sizeof(*grown));
        status = grown == NULL ? STATUS_NO_MEMORY : STATUS_OK;
        tending->doomed = grown != NULL ? grown : tending->doomed;
        tending->capacity = grown != NULL ? capacity : tending->capacity;
    }
    if (status == STATUS_OK) {
        tending->doomed[count] = *doomed;
        atomic_store_explicit(&tending->doomed_count, count + 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&tending->doomed_bytes, doomed->bytes, memory_order_relaxed);
    }
    pthread_mutex_unlock(&tending->mutex);
    return status;
}

struct sqlite_doomed sqlite_last_doomed(struct sqlite_tending *tending)
{
    struct sqlite_doomed doomed = {0};
    pthread_mutex_lock(&tending->mutex);
    size_t count = atomic_load_explicit(&tending->doomed_count, memory_order_relaxed);
    if (count > 0) {
        doomed = tending->doomed[count - 1];
    }
    pthread_mutex_unlock(&tending->mutex);
    return doomed;
}

void sqlite_forget_doomed(struct sqlite_tending *tending, const struct sqlite_doomed *doomed)
{
    pthread_mutex_lock(&tending->mutex);
    size_t count = atomic_load_explicit(&tending->doomed_count, memory_order_relaxed);
    for (size_t i = 0; i < count; i++) {
        if (tending->doomed[i].segment == doomed->segment) {
            tending->doomed[i] = tending->doomed[count - 1];
            atomic_store_explicit(&tending->doomed_count, count - 1, memory_order_relaxed);
            atomic_fetch_sub_explicit(&tending->doomed_bytes, doomed->bytes, memory_order_relaxed);
            break;
        }
    }
    pthread_mutex_unlock(&tending->mutex);
}
