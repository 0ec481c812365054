/* SPDX-License-Identifier: MIT */
#include "archive/message_table.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    FIRST_SLOTS = 64
};

static uint64_t key_of(const struct message_table *table, const uint8_t *hash)
{
    return XXH3_64bits_withSeed(hash, MESSAGE_HASH_BYTES, table->seed);
}

static struct message_table_slot *slots_of(size_t count)
{
    return memory_allocate_zeroed(count * sizeof(struct message_table_slot));
}

enum status message_table_init(struct message_table *table)
{
    *table = (struct message_table){0};
    if (getrandom(&table->seed, sizeof(table->seed), 0) != (ssize_t)sizeof(table->seed)) {
        return STATUS_SYSTEM;
    }
    table->slots = slots_of(FIRST_SLOTS);
    table->slot_count = FIRST_SLOTS;
    return table->slots == NULL ? STATUS_NO_MEMORY : STATUS_OK;
}

void message_table_fini(struct message_table *table)
{
    memory_free(table->slots);
    table->slots = NULL;
}

/* The slot that holds hash, or the free one where it belongs. */
static size_t place_of(const struct message_table *table, uint64_t key, const uint8_t *hash)
{
    size_t mask = table->slot_count - 1;
    size_t i = (size_t)key & mask;
    while (table->slots[i].envelope != NULL &&
            (table->slots[i].key != key ||
                    memcmp(table->slots[i].envelope->hash, hash, MESSAGE_HASH_BYTES) != 0)) {
        i = (i + 1) & mask;
    }
    return i;
}

struct envelope *message_table_find(
        const struct message_table *table, const uint8_t hash[MESSAGE_HASH_BYTES])
{
    return table->slots[place_of(table, key_of(table, hash), hash)].envelope;
}

static void link_slot(struct message_table *table, struct message_table_slot slot)
{
    table->slots[place_of(table, slot.key, slot.envelope->hash)] = slot;
}

static enum status grow(struct message_table *table)
{
    struct message_table old = *table;
    struct message_table_slot *slots = slots_of(2 * old.slot_count);
    if (slots == NULL) {
        return STATUS_NO_MEMORY;
    }
    table->slots = slots;
    table->slot_count = 2 * old.slot_count;
    size_t mask = table->slot_count - 1;
    for (size_t i = 0; i < old.slot_count; i++) {
        if (old.slots[i].envelope == NULL) {
            continue;
        }
        /* All are different, so the envelopes themselves need not be looked at. */
        size_t to = (size_t)old.slots[i].key & mask;
        while (slots[to].envelope != NULL) {
            to = (to + 1) & mask;
        }
        slots[to] = old.slots[i];
    }
    memory_free(old.slots);
    return STATUS_OK;
}

enum status message_table_insert(struct message_table *table, struct envelope *envelope)
{
    if (table->count >= table->slot_count / 4 * 3) {
        enum status status = grow(table);
        if (status != STATUS_OK) {
            return status;
        }
    }
    link_slot(table, (struct message_table_slot){key_of(table, envelope->hash), envelope});
    table->count++;
    return STATUS_OK;
}

void message_table_remove(struct message_table *table, const struct envelope *envelope)
{
    size_t mask = table->slot_count - 1;
    size_t hole = place_of(table, key_of(table, envelope->hash), envelope->hash);
    assert(table->slots[hole].envelope == envelope);
    table->slots[hole].envelope = NULL;
    table->count--;
    /* Moves up what would not be found across the hole. */
    for (size_t i = (hole + 1) & mask; table->slots[i].envelope != NULL; i = (i + 1) & mask) {
        size_t home = (size_t)table->slots[i].key & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            table->slots[hole] = table->slots[i];
            table->slots[i].envelope = NULL;
            hole = i;
        }
    }
}

size_t message_table_bytes(const struct message_table *table)
{
    return table->slot_count * sizeof(*table->slots);
}
