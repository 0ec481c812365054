/* SPDX-License-Identifier: MIT */
#include "net/switch/slot_table.h"

#include <stddef.h>

#include "base/memory.h"

/* A number is generation (32 bits), tag (8), index (24), the generation on top. */
enum {
    INDEX_BITS = 24,
    CAPACITY_MAX = 1 << INDEX_BITS,
    CAPACITY_FIRST = 16
};

struct slot {
    void *object; /* NULL: free */
    uint32_t generation;
    uint32_t next_free; /* index + 1 */
};

void slot_table_fini(struct slot_table *table)
{
    memory_free(table->slots);
    *table = (struct slot_table){0};
}

static bool grow(struct slot_table *table)
{
    uint32_t capacity = table->capacity == 0 ? CAPACITY_FIRST : table->capacity * 2;
    if (capacity > CAPACITY_MAX) {
        return false;
    }
    struct slot *slots = memory_resize(table->slots, capacity * sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    for (uint32_t i = capacity; i > table->capacity; i--) {
        slots[i - 1] = (struct slot){.generation = 1, .next_free = table->first_free};
        table->first_free = i;
    }
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

uint64_t slot_table_add(struct slot_table *table, void *object)
{
    if (table->first_free == 0 && !grow(table)) {
        return 0;
    }
    uint32_t index = table->first_free - 1;
    struct slot *slot = &table->slots[index];
    table->first_free = slot->next_free;
    slot->object = object;
    table->count++;
    return (uint64_t)slot->generation << 32 | (uint64_t)table->tag << INDEX_BITS | index;
}

static struct slot *find_slot(const struct slot_table *table, uint64_t number)
{
    uint32_t index = (uint32_t)number & (CAPACITY_MAX - 1);
    if (index >= table->capacity || slot_table_tag_of(number) != table->tag) {
        return NULL;
    }
    struct slot *slot = &table->slots[index];
    return slot->object != NULL && slot->generation == number >> 32 ? slot : NULL;
}

void slot_table_remove(struct slot_table *table, uint64_t number)
{
    struct slot *slot = find_slot(table, number);
    if (slot == NULL) {
        return;
    }
    slot->object = NULL;
    slot->generation = slot->generation == UINT32_MAX ? 1 : slot->generation + 1;
    slot->next_free = table->first_free;
    table->first_free = (uint32_t)(slot - table->slots) + 1;
    table->count--;
}

void *slot_table_find(const struct slot_table *table, uint64_t number)
{
    struct slot *slot = find_slot(table, number);
    return slot == NULL ? NULL : slot->object;
}

void *slot_table_at(const struct slot_table *table, uint32_t index)
{
    return table->slots[index].object;
}
