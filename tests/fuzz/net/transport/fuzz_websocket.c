/* SPDX-License-Identifier: MIT */

/* WebSocket frames from a peer, as a server sees them; the first byte says where they are cut. */

#include <stdlib.h>

#include "net/transport/websocket.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct result {
    uint64_t hash; /* of the payload, in order */
    size_t received;
    size_t sent;
};

static void on_received(void *context, struct span payload)
{
    struct result *result = context;
    REQUIRE(payload.length > 0);
    for (size_t i = 0; i < payload.length; i++) {
        result->hash = (result->hash ^ payload.bytes[i]) * UINT64_C(1099511628211);
    }
    result->received += payload.length;
}

static void on_send(void *context, struct span bytes)
{
    struct result *result = context;
    result->sent += bytes.length;
}

static enum status run(struct result *result, struct span input, size_t cut)
{
    static const struct websocket_events events = {.received = on_received, .send = on_send};
    struct websocket *websocket;
    enum status status = STATUS_OK;
    *result = (struct result){.hash = 1};
    REQUIRE(websocket_create(&websocket, true, &events, result) == STATUS_OK);
    while (status == STATUS_OK && input.length > 0) {
        size_t n = input.length < cut ? input.length : cut;
        status = websocket_receive(websocket, span_of(input.bytes, n));
        input.bytes += n;
        input.length -= n;
        if (status == STATUS_OK) {
            status = websocket_flush(websocket);
            REQUIRE(websocket_queued(websocket) == 0);
        }
    }
    websocket_destroy(&websocket);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct result whole;
    struct result cut;
    if (size < 1) {
        return 0;
    }
    struct span input = span_of(data + 1, size - 1);
    enum status status = run(&whole, input, SIZE_MAX);
    REQUIRE(whole.received <= size);
    /* How early a malformed close frame is refused depends on the cut; what is delivered does not. */
    enum status cut_status = run(&cut, input, (size_t)data[0] + 1);
    bool are_both_alive = status == STATUS_OK && cut_status == STATUS_OK;
    REQUIRE(!are_both_alive || (whole.hash == cut.hash && whole.sent == cut.sent));
    return 0;
}
