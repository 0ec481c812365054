/* SPDX-License-Identifier: MIT */
#include "hash/message_id.h"

#include "base/metrics.h"

void message_id(uint8_t id[SHA256_BYTES], struct span message)
{
    metrics_add(METRIC_ID_HASHES, 1);
    metrics_add(METRIC_ID_HASHED_BYTES, message.length);
    sha256(id, (struct sha256_pieces){.spans = &message, .count = 1});
}
