/* SPDX-License-Identifier: MIT */

/*
 * The HTTP upgrade, both sides. The first byte says which side and where the bytes are cut; the
 * outcome must not depend on the cut.
 */

#include <stdlib.h>

#include "net/transport/websocket_upgrade.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    enum status status;
    size_t consumed;
    bool is_done;
};

static struct websocket_upgrade *create(bool is_server)
{
    struct websocket_upgrade *upgrade;
    enum status status = is_server ? websocket_upgrade_create_server(&upgrade)
                                   : websocket_upgrade_create_client(&upgrade, "localhost");
    REQUIRE(status == STATUS_OK);
    return upgrade;
}

static struct outcome run(bool is_server, struct span input, size_t cut)
{
    struct websocket_upgrade *upgrade = create(is_server);
    struct outcome outcome = {.status = STATUS_OK};
    while (outcome.status == STATUS_OK && outcome.consumed < input.length && !outcome.is_done) {
        size_t left = input.length - outcome.consumed;
        size_t n = left < cut ? left : cut;
        size_t consumed = 0;
        outcome.status = websocket_upgrade_receive(
                upgrade, span_of(input.bytes + outcome.consumed, n), &consumed);
        REQUIRE(consumed <= n);
        outcome.consumed += consumed;
        outcome.is_done = websocket_upgrade_is_done(upgrade);
        REQUIRE(outcome.status != STATUS_OK || outcome.is_done || consumed == n);
    }
    REQUIRE(outcome.consumed <= WEBSOCKET_UPGRADE_BYTES_MAX);
    REQUIRE(websocket_upgrade_output(upgrade).length < 1024);
    websocket_upgrade_destroy(&upgrade);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    bool is_server = (data[0] & 1) == 0;
    struct span input = span_of(data + 1, size - 1);
    struct outcome whole = run(is_server, input, SIZE_MAX);
    struct outcome cut = run(is_server, input, (size_t)(data[0] >> 1) + 1);
    REQUIRE(whole.status == cut.status);
    REQUIRE(whole.status != STATUS_OK || whole.consumed == cut.consumed);
    REQUIRE(whole.is_done == cut.is_done);
    return 0;
}
