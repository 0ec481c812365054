/* SPDX-License-Identifier: MIT */
#pragma once

/* The message of identify: read with all its limits, and written. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"
#include "net/identity/peer_id.h"

enum {
    IDENTIFY_MESSAGE_MAX = 16 * 1024,
    IDENTIFY_PROTOCOLS_MAX = 256, /* what comes after is not looked at */
    IDENTIFY_ADDRESSES_MAX = 32
};

/* Everything points into the message that it was read from. */
struct identify_info {
    struct span agent;
    struct span protocol_version;
    struct span public_key; /* the protobuf; length 0: absent */
    struct span observed_address;
    bool has_protocols; /* a push may leave out what has not changed */
    struct span protocols[IDENTIFY_PROTOCOLS_MAX];
    size_t protocol_count;
    struct span addresses[IDENTIFY_ADDRESSES_MAX];
    size_t address_count;
};

/*
 * STATUS_BAD_FIELD when it is no such message; STATUS_WRONG_PEER when it names the key of another peer
 * than the one proven.
 */
MUST_USE enum status identify_message_read(
        struct identify_info *out, struct span message, const struct peer_id *peer);

bool identify_info_has_protocol(const struct identify_info *info, const char *id);

/* A new block with the message; it is the caller's to free with memory_free. */
MUST_USE enum status identify_message_write(
        uint8_t **out, size_t *length, const struct identify_info *info);
