/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A disk for tests that keeps only what was synced: writes stay in this process until the sync of
 * their file, so that a kill loses them as a power cut would. It can also be full.
 *
 * Thread: one.
 */

#include <stdbool.h>

#include "archive/file_ops.h"

extern const struct file_ops forgetful_file_ops;

/* The name of the SQLite VFS that behaves in the same way; registers it. */
const char *forgetful_vfs(void);

/* From now on every write fails for want of space, or works again. */
void forgetful_disk_set_full(bool is_full);

/* From now on every sync fails with an input/output error, or works again. */
void forgetful_disk_set_broken(bool is_broken);

/* Kills the process at the operation (write, sync, change of length, removal) with that number from now, from 1 on. */
void forgetful_disk_die_at(unsigned long operation);
