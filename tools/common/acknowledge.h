/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * --acknowledge-fd: the message hash of each message, in hexadecimal and one a line, once the archive has
 * it on disk. Who reads them knows what must be found after the process was killed.
 */

#include <stdint.h>

#include "base/options.h"

#define ACKNOWLEDGE_OPTION(group)                                                                  \
    {                                                                                              \
        "acknowledge-fd", OPTION_NUMBER, "0", 0, 1023, group,                                      \
                "write the hash of each message to this descriptor, one a line, once the "         \
                "archive has it on disk; 0: nowhere"                                               \
    }

/* context: an int, the descriptor, set to 0 when nobody reads it any more. An archive_acknowledge. */
void acknowledge_to_fd(void *context, const uint8_t *hash);
