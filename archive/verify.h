/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads a whole SQLite archive and says what is wrong with it: every record's checksum and message
 * hash, whether it decodes, whether index and segments agree in both directions, and the index itself.
 * It changes nothing, and a node may be writing the archive meanwhile.
 *
 * Thread: any; blocks as long as it takes.
 */

#include "archive/archive.h"
#include "base/attributes.h"
#include "base/status.h"

/* One line a problem; a note (is_problem false) is about what the next start of a node mends. */
typedef void archive_finding(void *context, bool is_problem, const char *text);

struct archive_verify_result {
    uint64_t segments;
    uint64_t messages; /* that are good */
    uint64_t dead;     /* records that retention or moving has left behind */
    uint64_t bytes;    /* read */
    uint64_t problems;
};

/*
 * address: sqlite://PATH. STATUS_OK: it was read; problems says whether it is good. Otherwise it could
 * not be: as archive_open with is_read_only.
 */
MUST_USE enum status archive_verify(const char *address, archive_finding *finding, void *context,
        struct archive_verify_result *result, struct archive_error *error);
