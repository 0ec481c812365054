/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Room on the disk that is kept for retention: removing messages writes to the index's journal, which a
 * full disk does not let grow, so without it nothing would ever be removed there again. Once it was
 * given up nothing is stored until there is room for it again. Private to archive/.
 *
 * Thread: the archive's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"

struct sqlite_reserve {
    int fd; /* -1: none is kept: in memory, or the file system cannot set room aside */
    bool is_held;
};

/* In the folder of the segments; NULL: none is kept. */
void sqlite_reserve_init(struct sqlite_reserve *reserve, const char *folder);
void sqlite_reserve_fini(struct sqlite_reserve *reserve);

/* STATUS_OK when it is there, or there is none to keep; STATUS_DISK_FULL when there is no room for it. */
MUST_USE enum status sqlite_reserve_hold(struct sqlite_reserve *reserve);

/* False when there was nothing to give up. */
MUST_USE bool sqlite_reserve_give_up(struct sqlite_reserve *reserve);
