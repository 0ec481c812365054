/* SPDX-License-Identifier: MIT */
#include "net/peer_manager/peer_protocols.h"

#include <string.h>

const char *const peer_protocols_counted[PEER_PROTOCOLS_COUNTED] = {"/vac/waku/relay/2.0.0",
        "/vac/waku/filter-subscribe/2.0.0-beta1", "/vac/waku/filter-push/2.0.0-beta1",
        "/vac/waku/store-query/3.0.0", "/vac/waku/lightpush/3.0.0",
        "/vac/waku/lightpush/2.0.0-beta1", "/vac/waku/metadata/1.0.0",
        "/vac/waku/reconciliation/1.0.0", "/vac/waku/transfer/1.0.0"};

static bool is_among(const char *const names[], size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

void peer_protocols_change(struct peer_protocols *counts, const char *const names[],
        size_t name_count, bool is_outbound, bool is_more)
{
    for (size_t i = 0; i < PEER_PROTOCOLS_COUNTED; i++) {
        if (is_among(names, name_count, peer_protocols_counted[i])) {
            /* relaxed: counts order nothing */
            atomic_fetch_add_explicit(
                    &counts->of[i][is_outbound], is_more ? 1 : UINT64_MAX, memory_order_relaxed);
        }
    }
}
