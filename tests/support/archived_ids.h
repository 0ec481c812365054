/* SPDX-License-Identifier: MIT */
#pragma once

/* What a running node's archive holds, and whether two hold the same. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash/sha256.h"
#include "node/node.h"

struct archived_ids {
    size_t count;
    uint8_t digest[SHA256_BYTES]; /* of all message hashes in their order */
};

struct archived_ids archived_ids(struct node *node);

/* Fails the test when that does not become true in a minute. */
void wait_archived(struct node *node, size_t count);
void wait_same_archive(struct node *a, struct node *b);
