/* SPDX-License-Identifier: MIT */
#pragma once

/* What options say of a node's dealings with the archives of other nodes: store-sync, store-resume. */

#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/options.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"
#include "net/protocols/store_sync.h"

struct node_error;

struct store_settings {
    bool has_node; /* storenode */
    struct multiaddr node;
    struct peer_id node_peer;

    bool has_sync;
    struct store_sync_options sync; /* only limits and times are set */

    bool has_resume;
    int64_t resume_range_ns;
    uint64_t resume_messages_max;
    int64_t resume_overlap_ns; /* before the last archived message: they come in no order */
};

MUST_USE enum status store_settings_read(
        struct store_settings *out, const struct options *options, struct node_error *error);
