/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Peers on disk: one multiaddr with /p2p a line. What is not one is skipped, so that a file that was
 * cut short or edited still gives what it has.
 *
 * Thread: any; it blocks on the disk.
 */

#include <stddef.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"

enum {
    PEER_FILE_MAX_BYTES = 16 * 1024 * 1024
};

/* Calls found for each address. STATUS_NOT_FOUND when there is no file. */
MUST_USE enum status peer_file_read(const char *path,
        void (*found)(void *context, const struct multiaddr *address), void *context);

/* Whether it could be written, as far as can be seen without writing; STATUS_SYSTEM, errno says why. */
MUST_USE enum status peer_file_check(const char *path);

/* The file appears whole or stays as it was. */
MUST_USE enum status peer_file_write(const char *path, const char *text, size_t length);
