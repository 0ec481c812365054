/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Envelopes by message hash: open addressing with linear probing, keyed so that whoever chooses the
 * messages cannot choose their places. Private to archive/.
 *
 * Ownership:  the caller's references; the table only points.
 * Thread:     callers lock.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "queues/envelope.h"

struct message_table_slot {
    uint64_t key;
    struct envelope *envelope; /* NULL: free */
};

struct message_table {
    struct message_table_slot *slots;
    size_t slot_count; /* a power of two, or 0 */
    size_t count;
    uint64_t seed;
};

MUST_USE enum status message_table_init(struct message_table *table);
void message_table_fini(struct message_table *table);

struct envelope *BORROWED message_table_find(
        const struct message_table *table, const uint8_t hash[MESSAGE_HASH_BYTES]);

/* The hash must not be there yet. */
MUST_USE enum status message_table_insert(struct message_table *table, struct envelope *envelope);

/* It must be there. */
void message_table_remove(struct message_table *table, const struct envelope *envelope);

size_t message_table_bytes(const struct message_table *table);
