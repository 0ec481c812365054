/* SPDX-License-Identifier: MIT */
#include "router/recent.h"

#include "base/memory.h"

enum {
    FIRST_CAPACITY = 1024, /* slots of both tables at first, a power of two */
    PROBES_MAX = 64,       /* beyond it a copy falls back to its message id */
    COMPARES_MAX = 4       /* byte comparisons for one key, so that crafted keys cost little */
};

struct recent_slot {
    uint64_t key;
    struct envelope *envelope; /* NULL: empty */
};

/*
 * slots is open addressing by key; order holds the same envelopes in order of arrival, as a ring.
 * Both have capacity slots, a power of two, and are at most half full.
 */
struct recent {
    size_t limit_bytes;
    size_t bytes;
    size_t capacity;
    size_t count;
    size_t head; /* position of the oldest in order */
    struct recent_slot *slots;
    struct recent_slot *order;
};

static enum status allocate_tables(struct recent *recent, size_t capacity)
{
    recent->slots = memory_allocate_zeroed(capacity * sizeof(*recent->slots));
    recent->order = memory_allocate_zeroed(capacity * sizeof(*recent->order));
    if (recent->slots == NULL || recent->order == NULL) {
        memory_free(recent->slots);
        memory_free(recent->order);
        return STATUS_NO_MEMORY;
    }
    recent->capacity = capacity;
    return STATUS_OK;
}

enum status recent_create(struct recent **out, size_t limit_bytes)
{
    struct recent *recent = memory_allocate_zeroed(sizeof(*recent));
    if (recent == NULL) {
        return STATUS_NO_MEMORY;
    }
    recent->limit_bytes = limit_bytes;
    enum status status = allocate_tables(recent, FIRST_CAPACITY);
    if (status != STATUS_OK) {
        memory_free(recent);
        return status;
    }
    *out = recent;
    return STATUS_OK;
}

static size_t home_of(const struct recent *recent, uint64_t key)
{
    return (size_t)key & (recent->capacity - 1);
}

static void place(struct recent *recent, uint64_t key, struct envelope *envelope)
{
    size_t i = home_of(recent, key);
    while (recent->slots[i].envelope != NULL) {
        i = (i + 1) & (recent->capacity - 1);
    }
    recent->slots[i] = (struct recent_slot){.key = key, .envelope = envelope};
}

/* Backward-shift deletion: no tombstones, so probes stay short. */
static void unplace(struct recent *recent, uint64_t key, const struct envelope *envelope)
{
    size_t mask = recent->capacity - 1;
    size_t hole = home_of(recent, key);
    while (recent->slots[hole].envelope != envelope) {
        hole = (hole + 1) & mask;
    }
    for (size_t i = (hole + 1) & mask; recent->slots[i].envelope != NULL; i = (i + 1) & mask) {
        size_t home = home_of(recent, recent->slots[i].key);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            recent->slots[hole] = recent->slots[i];
            hole = i;
        }
    }
    recent->slots[hole].envelope = NULL;
}

static void drop_oldest(struct recent *recent)
{
    struct recent_slot oldest = recent->order[recent->head];
    recent->head = (recent->head + 1) & (recent->capacity - 1);
    recent->count--;
    recent->bytes -= envelope_pinned_bytes(oldest.envelope);
    unplace(recent, oldest.key, oldest.envelope);
    envelope_unref(oldest.envelope);
}

void recent_destroy(struct recent **recent)
{
    if (*recent == NULL) {
        return;
    }
    while ((*recent)->count > 0) {
        drop_oldest(*recent);
    }
    memory_free((*recent)->slots);
    memory_free((*recent)->order);
    memory_free(*recent);
    *recent = NULL;
}

static enum status grow(struct recent *recent)
{
    struct recent old = *recent;
    enum status status = allocate_tables(recent, old.capacity * 2);
    if (status != STATUS_OK) {
        *recent = old;
        return status;
    }
    recent->head = 0;
    for (size_t i = 0; i < old.count; i++) {
        struct recent_slot slot = old.order[(old.head + i) & (old.capacity - 1)];
        recent->order[i] = slot;
        place(recent, slot.key, slot.envelope);
    }
    memory_free(old.slots);
    memory_free(old.order);
    return STATUS_OK;
}

static bool is_candidate(const struct recent_slot *slot, const struct topic *topic, uint64_t key)
{
    return slot->key == key && slot->envelope->topic == topic;
}

struct envelope *recent_find(
        struct recent *recent, const struct topic *topic, struct span message, uint64_t key)
{
    size_t compares = 0;
    size_t i = home_of(recent, key);
    for (size_t probe = 0; probe < PROBES_MAX && recent->slots[i].envelope != NULL; probe++) {
        const struct recent_slot *slot = &recent->slots[i];
        bool candidate = is_candidate(slot, topic, key);
        if (candidate && span_equal(slot->envelope->message, message)) {
            return slot->envelope;
        }
        compares += candidate;
        if (compares == COMPARES_MAX) {
            return NULL;
        }
        i = (i + 1) & (recent->capacity - 1);
    }
    return NULL;
}

void recent_add(struct recent *recent, struct envelope *envelope, uint64_t key)
{
    size_t bytes = envelope_pinned_bytes(envelope);
    if (bytes > recent->limit_bytes) {
        return;
    }
    while (recent->bytes + bytes > recent->limit_bytes) {
        drop_oldest(recent);
    }
    if ((recent->count + 1) * 2 > recent->capacity && grow(recent) != STATUS_OK) {
        return;
    }
    envelope_ref(envelope);
    size_t tail = (recent->head + recent->count) & (recent->capacity - 1);
    recent->order[tail] = (struct recent_slot){.key = key, .envelope = envelope};
    recent->count++;
    recent->bytes += bytes;
    place(recent, key, envelope);
}

size_t recent_bytes(const struct recent *recent)
{
    return recent->bytes;
}

size_t recent_count(const struct recent *recent)
{
    return recent->count;
}
