/* SPDX-License-Identifier: MIT */

/* What is taken prints as text that parses to the same bytes, in either form of the input. */

#include <assert.h>

#include "net/identity/multiaddr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct multiaddr *address)
{
    char text[MULTIADDR_TEXT_SIZE];
    struct multiaddr again;
    struct multiaddr_endpoint endpoint;
    struct peer_id peer;
    multiaddr_print(text, address);
    enum status status = multiaddr_parse(&again, span_of_text(text));
    assert(status == STATUS_OK && span_equal(multiaddr_span(address), multiaddr_span(&again)));
    if (multiaddr_endpoint(&endpoint, address) == STATUS_OK) {
        status = multiaddr_from_endpoint(&again, &endpoint);
        assert(status == STATUS_OK || status == STATUS_TOO_LARGE);
    }
    multiaddr_canonicalize(&again);
    if (multiaddr_peer(&peer, address) && multiaddr_set_peer(&again, &peer) == STATUS_OK) {
        struct peer_id found;
        bool has_peer = multiaddr_peer(&found, &again);
        assert(has_peer && peer_id_equal(&peer, &found));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct multiaddr address;
    if (multiaddr_parse(&address, span_of(data, size)) == STATUS_OK) {
        check(&address);
    }
    if (multiaddr_from_bytes(&address, span_of(data, size)) == STATUS_OK) {
        check(&address);
    }
    return 0;
}
