/* SPDX-License-Identifier: MIT */
#pragma once

/* A small secret on disk: mode 0600, there whole or not at all, never written over. */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    KEY_FILE_MAX_BYTES = 4096
};

/*
 * STATUS_NOT_FOUND, STATUS_TOO_LARGE from KEY_FILE_MAX_BYTES on, STATUS_SYSTEM. A file that others
 * can read is taken, with a warning in the log.
 */
MUST_USE enum status key_file_read(
        uint8_t out[KEY_FILE_MAX_BYTES], size_t *length, const char *path);

/* STATUS_ALREADY_EXISTS, STATUS_SYSTEM. */
MUST_USE enum status key_file_write(const char *path, struct span content);
