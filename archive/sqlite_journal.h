/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the SQLite archive leaves to its tender: the index's journal (SQLite's write-ahead log) is taken
 * into the index on the tender's connection, beside the writer, and files that are done with go.
 * Private to archive/.
 *
 * The journal begins anew when all of it is in the index at the moment when the writer begins, and
 * nobody reads what it was before. A writer that never rests gets there by taking in itself the little
 * that the tender has left. Readers that follow each other without a break would never let it: when the
 * journal has grown to half as much again, they stand back for a moment.
 *
 * Thread: sqlite_note_commit and sqlite_doom_segment on the archive's, others on any.
 */

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/sqlite_connection.h"
#include "base/attributes.h"
#include "base/status.h"
#include "queues/parking.h"

struct sqlite_archive;

struct sqlite_doomed {
    int64_t segment;
    int64_t bytes;
};

struct sqlite_tending {
    atomic_bool is_there; /* a tender is open */

    /* Lengths of the journal; constant while threads run, smaller in tests. */
    uint32_t journal_pages; /* from here on it is to begin anew */
    uint32_t quiet_pages;   /* here readers stand back, and again when it is so much longer */

    /* Pages of the journal, with a number in the high half that changes when it begins anew. */
    _Atomic uint64_t journal;  /* written by the archive's thread */
    _Atomic uint64_t taken_in; /* by the tender: how many of them are in the index */
    _Atomic uint64_t tried;    /* by the tender: how many there were when it tried last; by the
                                  archive's thread: to have it try again */

    /* By the archive's thread: readers stand back until then, monotonic; 0: they need not. */
    _Atomic uint64_t quiet_until_ns;
    struct parking quiet;    /* where they wait */
    uint32_t quiet_at_pages; /* the archive's: the length at which they are asked to next */

    pthread_mutex_t mutex;        /* for doomed */
    struct sqlite_doomed *doomed; /* segments that the index knows no more but that have a file */
    size_t capacity;
    atomic_size_t doomed_count;
    _Atomic int64_t doomed_bytes;
};

void sqlite_tending_init(struct sqlite_tending *tending);
void sqlite_tending_fini(struct sqlite_tending *tending);

/* SQLite's hook behind each commit, context is the archive: makes sure that the journal has an end. */
int sqlite_note_commit(void *context, sqlite3 *db, const char *name, int pages);

/* Whether readers are to stand back; and waits, 20 ms at most, while they are. */
bool sqlite_wants_quiet(const struct sqlite_tending *tending);
void sqlite_stand_back(struct sqlite_tending *tending);

/* The journal, as far as it goes, is on disk when this returns. */
MUST_USE enum status sqlite_sync_journal(struct sqlite_connection *connection);

/* The segment's row is gone; its file goes when the journal is synced and no backup is being made. */
MUST_USE enum status sqlite_doom_segment(
        struct sqlite_tending *tending, const struct sqlite_doomed *doomed);

/* The last one doomed, segment 0 when there is none; it stays in the list until it is forgotten. */
struct sqlite_doomed sqlite_last_doomed(struct sqlite_tending *tending);
void sqlite_forget_doomed(struct sqlite_tending *tending, const struct sqlite_doomed *doomed);

/* Pages of the journal that the tender has neither taken in nor tried to since. */
uint32_t sqlite_untried_pages(const struct sqlite_tending *tending);
bool sqlite_wants_tending(const struct sqlite_tending *tending);

enum {
    SQLITE_TENDED_PAGES = 1024,   /* so many are taken in at a time */
    SQLITE_JOURNAL_PAGES = 8192,  /* 32 MiB: the journal is to begin anew */
    SQLITE_LEFT_PAGES = 1024,     /* and the archive's thread takes in so many for that */
    SQLITE_QUIET_PAGES = 12288,   /* 48 MiB: readers stand back */
    SQLITE_MOST_PAGES = 8 * 8192, /* then it takes in all of them, whatever it costs */
    SQLITE_GENERATION_SHIFT = 32
};
