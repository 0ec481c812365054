/* SPDX-License-Identifier: MIT */
#include "tools/common/acknowledge.h"

#include <unistd.h>

#include "base/hex.h"
#include "queues/envelope.h"

void acknowledge_to_fd(void *context, const uint8_t *hash)
{
    int *fd = context;
    char line[MESSAGE_HASH_BYTES * 2 + 1];
    hex_encode(line, span_of(hash, MESSAGE_HASH_BYTES));
    line[sizeof(line) - 1] = '\n';
    if (*fd > 0 && write(*fd, line, sizeof(line)) != (ssize_t)sizeof(line)) {
        *fd = 0;
    }
}
