/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The messages in an SQLite database of the reference (nwaku, logos-delivery): its table Message, of
 * schema 7 to 10. It is only read: not even a side file is made, unless there is a journal that has to
 * be read with it.
 *
 * A row has the fields of a message and not its bytes, so the bytes are made anew, as the reference
 * would send them. The hash is computed from them: the one in the table may be a random number, which
 * the reference put there when it brought an old table up to date.
 *
 * Thread: one at a time.
 */

#include "archive/archive.h"
#include "base/attributes.h"
#include "base/status.h"

struct reference_database;

/* STATUS_NOT_FOUND, STATUS_NOT_A_DATABASE (not the reference's), STATUS_NEWER_SCHEMA, STATUS_SYSTEM ... */
MUST_USE enum status reference_database_open(struct reference_database **out, const char *path);
void reference_database_close(struct reference_database **database);

struct reference_row {
    struct archive_record record; /* good until the next call */
    bool had_other_hash;
};

/*
 * The next message, oldest first; *has_row false behind the last. STATUS_BAD_FIELD: this row is no
 * message (no topic, or too large); the call after it goes on. STATUS_BUSY at the end: somebody wrote
 * the database meanwhile, so what was read may be no moment of it; it is to be read again.
 */
MUST_USE enum status reference_database_next(
        struct reference_database *database, struct reference_row *row, bool *has_row);
