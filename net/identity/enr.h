/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Node records, "enr:-...": what a node says of itself, signed with its secp256k1 key; only the
 * identity scheme "v4".
 *
 * Specifications: EIP-778; 31/WAKU2-ENR (multiaddrs, waku2), relay sharding (rs).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/identity/identity.h"
#include "net/identity/multiaddr.h"

enum {
    ENR_BYTES_MAX = 300, /* of a record, as the EIP says */
    ENR_TEXT_SIZE = 4 + ENR_BYTES_MAX / 3 * 4 + 1,
    ENR_SHARDS_MAX = 64 /* of the list; more are not said */
};

/* Bits of the field waku2. */
enum enr_capability {
    ENR_RELAY = 1,
    ENR_STORE = 2,
    ENR_FILTER = 4,
    ENR_LIGHTPUSH = 8,
    ENR_SYNC = 16
};

struct enr_options {
    uint64_t sequence;
    const struct multiaddr *addresses; /* the first TCP one of IPv4 is ip and tcp */
    size_t address_count;              /* what does not fit is left out */
    uint16_t cluster_id;
    const uint16_t *shards;
    size_t shard_count;
    uint8_t capabilities;
};

/* The text and a final zero. STATUS_UNSUPPORTED: the identity is no secp256k1 key. */
MUST_USE enum status enr_write(char out[ENR_TEXT_SIZE], const struct identity *identity,
        const struct enr_options *options);

/*
 * The address that the record's node is dialled by, with /p2p. STATUS_BAD_FIELD (malformed),
 * STATUS_BAD_SIGNATURE, STATUS_BAD_KEY, STATUS_UNSUPPORTED (another scheme), STATUS_NOT_FOUND (it says
 * no address of TCP or WebSocket).
 */
MUST_USE enum status enr_address(struct multiaddr *out, struct span text);
