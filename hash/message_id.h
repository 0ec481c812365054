/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The gossipsub message id: SHA-256 of the serialised WakuMessage as received. It names a message to
 * the mesh; it is not the message hash, which covers other bytes (hash/message_hash.h).
 *
 * Counts METRIC_ID_HASHES and METRIC_ID_HASHED_BYTES.
 *
 * Thread: any.
 */

#include <stdint.h>

#include "base/span.h"
#include "hash/sha256.h"

void message_id(uint8_t id[SHA256_BYTES], struct span message);
