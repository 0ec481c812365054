/* SPDX-License-Identifier: MIT */

/* The identify message; what is read is written again and read to the same. */

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "net/protocols/identify_message.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct span part, struct span whole)
{
    REQUIRE(part.length == 0 ||
            (part.bytes >= whole.bytes && part.bytes + part.length <= whole.bytes + whole.length));
}

static void check_again(const struct identify_info *info, const struct peer_id *peer)
{
    struct identify_info again;
    uint8_t *bytes;
    size_t length;
    REQUIRE(identify_message_write(&bytes, &length, info) == STATUS_OK);
    REQUIRE(identify_message_read(&again, span_of(bytes, length), peer) == STATUS_OK);
    REQUIRE(span_equal(again.agent, info->agent));
    REQUIRE(again.protocol_count == info->protocol_count);
    REQUIRE(again.address_count == info->address_count);
    for (size_t i = 0; i < info->protocol_count; i++) {
        REQUIRE(span_equal(again.protocols[i], info->protocols[i]));
    }
    memory_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t peer_bytes[] = {0, 2, 8, 1};
    struct peer_id peer = {.length = sizeof(peer_bytes)};
    struct identify_info info;
    memcpy(peer.bytes, peer_bytes, sizeof(peer_bytes));
    struct span message = span_of(data, size);
    if (identify_message_read(&info, message, &peer) != STATUS_OK) {
        return 0;
    }
    check_inside(info.agent, message);
    check_inside(info.observed_address, message);
    for (size_t i = 0; i < info.protocol_count; i++) {
        check_inside(info.protocols[i], message);
    }
    for (size_t i = 0; i < info.address_count; i++) {
        check_inside(info.addresses[i], message);
    }
    check_again(&info, &peer);
    return 0;
}
