/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a node sends on a gossipsub stream: the header in front of a message that is forwarded as
 * received, and whole RPCs of subscriptions and control entries.
 *
 * Thread: any; no state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "codec/gossip_rpc.h"

/*
 * All of a frame that carries one message, up to the message's own bytes:
 *
 *     length of the RPC | publish, its length | topic | data, its length || the message as received
 *
 * The topic stands before the data, though its number is higher: protobuf leaves the order free, and
 * so nothing has to follow the message. The frame is header and message sent one after the other.
 */
size_t gossip_publish_header_size(struct span topic, size_t message_length);

/* Returns the bytes written; 0 when capacity is below gossip_publish_header_size. */
size_t gossip_publish_header_write(
        uint8_t *out, size_t capacity, struct span topic, size_t message_length);

struct gossip_subscription {
    struct span topic;
    bool subscribe;
};

struct gossip_id_list {
    struct span topic;
    const struct span *ids;
    size_t id_count;
};

struct gossip_prune {
    struct span topic;
    const struct gossip_peer *peers;
    size_t peer_count;
    uint64_t backoff_s; /* always written */
};

/* An RPC to be sent; arrays that are not used are NULL and 0. */
struct gossip_outgoing {
    const struct gossip_subscription *subscriptions;
    size_t subscription_count;
    const struct gossip_id_list *ihave;
    size_t ihave_count;
    const struct span *graft; /* topics */
    size_t graft_count;
    const struct gossip_prune *prune;
    size_t prune_count;
    const struct span *iwant; /* ids */
    size_t iwant_count;
    const struct span *idontwant; /* ids */
    size_t idontwant_count;
};

/* The bytes of the frame, its length prefix included. 0 when there is nothing to send. */
size_t gossip_outgoing_size(const struct gossip_outgoing *rpc);

/*
 * Writes the frame and returns its bytes; 0 when capacity is below gossip_outgoing_size. All control
 * entries go into one control message, since js takes the last of several instead of merging them.
 */
size_t gossip_outgoing_write(uint8_t *out, size_t capacity, const struct gossip_outgoing *rpc);
