/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Work on the disk that nobody who stores messages is to wait for: what the index's journal holds is
 * taken into the index, and the files of segments that are done with are given back in small pieces.
 * While a tender is open the archive leaves it that; else archive_put and archive_prune do it.
 *
 * Lifetime:  opened while the archive is open, one at a time; closed before it.
 * Thread:    one at a time, which may be another than the archive's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "archive/archive.h"
#include "base/attributes.h"
#include "base/status.h"

/* *out NULL: the engine has no such work, and neither has archive_tend. */
MUST_USE enum status archive_tender_open(struct archive_tender **out, struct archive *archive);
void archive_tender_close(struct archive_tender **tender);

/* Whether there is work for the tender, which may be asleep. Thread: the archive's. */
bool archive_wants_tending(const struct archive *archive);

/* Monotonic time at which archive_tend has something to do; UINT64_MAX: not before the archive wants it. */
uint64_t archive_tender_due_ns(const struct archive_tender *tender);

/* One piece of the work. What fails is tried again a second later. */
MUST_USE enum status archive_tend(struct archive_tender *tender);
