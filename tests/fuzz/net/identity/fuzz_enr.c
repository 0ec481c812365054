/* SPDX-License-Identifier: MIT */

/* Node records: whatever the text is, an address comes out of a good record only. */

#include "net/identity/enr.h"

#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct multiaddr address;
    struct peer_id peer;
    if (enr_address(&address, span_of(data, size)) == STATUS_OK) {
        REQUIRE(multiaddr_peer(&peer, &address));
    }
    return 0;
}
