/* SPDX-License-Identifier: MIT */
#pragma once

/* What limits are measured on: the messages of a workload as envelopes outside any node. */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "bench/message_path/workload.h"
#include "hash/message_hash.h"
#include "queues/envelope.h"

struct material {
    size_t count;
    struct topic topic;
    struct envelope **envelopes;
};

/* On failure, too, material_fini frees what was made. */
MUST_USE enum status material_init(
        struct material *material, const struct workload *workload, uint64_t nonce);
void material_fini(struct material *material);

struct message_hash_input material_hash_input(const struct envelope *envelope);
