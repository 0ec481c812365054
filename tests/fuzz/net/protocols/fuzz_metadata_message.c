/* SPDX-License-Identifier: MIT */

/* No bytes of a peer do harm, and what is counted was there. */

#include "net/protocols/metadata.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct metadata_message message;
    if (metadata_message_read(&message, span_of(data, size)) == STATUS_OK) {
        REQUIRE(message.shard_count <= size);
    }
    return 0;
}
