/* SPDX-License-Identifier: MIT */
#include "router/topic_registry.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"

/*
 * An open-addressed table of at least twice max_topics slots: insert only, never resized, so that a
 * reader needs one acquire load a slot and nothing can be taken away under it.
 *
 * Ordering (every acquire or release below carries the name of its pair):
 *
 *   INTERN     release store of a slot -> acquire load of it. Who sees the entry sees its fields.
 *   LIST       release store of count -> acquire load of it. Who sees the count sees the entries
 *              below it in the list.
 *   SUBSCRIBE  release store of is_subscribed -> acquire load of it. What the writer set up for the
 *              topic before is visible to who finds it subscribed.
 */
struct entry {
    struct topic topic;
    atomic_bool is_subscribed;
    char name[]; /* NUL-terminated */
};

struct topic_registry {
    struct topic_registry_options options; /* constant */
    uint32_t mask;                         /* slots - 1 */
    struct entry **list;                   /* by index; below count constant */
    _Atomic uint32_t count;                /* written by the writer */
    _Atomic(struct entry *) slots[];
};

static uint32_t slots_for(uint32_t max_topics)
{
    uint32_t slots = 4;
    while (slots < max_topics * 2) {
        slots *= 2;
    }
    return slots;
}

enum status topic_registry_create(
        struct topic_registry **out, const struct topic_registry_options *options)
{
    if (options->max_topics == 0 || options->max_topics > UINT16_MAX + 1 ||
            options->lane_count == 0) {
        return STATUS_BAD_ARGUMENT;
    }
    uint32_t slots = slots_for(options->max_topics);
    struct topic_registry *registry =
            memory_allocate_zeroed(sizeof(*registry) + slots * sizeof(registry->slots[0]));
    if (registry == NULL) {
        return STATUS_NO_MEMORY;
    }
    registry->list = memory_allocate_zeroed(options->max_topics * sizeof(struct entry *));
    if (registry->list == NULL) {
        memory_free(registry);
        return STATUS_NO_MEMORY;
    }
    registry->options = *options;
    registry->mask = slots - 1;
    *out = registry;
    return STATUS_OK;
}

void topic_registry_destroy(struct topic_registry **registry)
{
    struct topic_registry *old = *registry;
    if (old == NULL) {
        return;
    }
    uint32_t count = topic_registry_count(old);
    for (uint32_t i = 0; i < count; i++) {
        memory_free(old->list[i]);
    }
    memory_free(old->list);
    memory_free(old);
    *registry = NULL;
}

static uint64_t hash_of(struct span name)
{
    return XXH3_64bits(name.bytes, name.length);
}

/* The entry, or NULL with *free_slot = where it would go. At least half of the slots are empty. */
static struct entry *probe(
        const struct topic_registry *registry, struct span name, uint32_t *free_slot)
{
    uint32_t slot = (uint32_t)hash_of(name) & registry->mask;
    for (;;) {
        struct entry *entry =
                atomic_load_explicit(&registry->slots[slot], memory_order_acquire); /* INTERN */
        if (entry == NULL) {
            *free_slot = slot;
            return NULL;
        }
        if (span_equal(entry->topic.name, name)) {
            return entry;
        }
        slot = (slot + 1) & registry->mask;
    }
}

static bool is_valid_name(struct span name)
{
    return name.length > 0 && name.length <= TOPIC_NAME_MAX_BYTES &&
           memchr(name.bytes, 0, name.length) == NULL;
}

static struct entry *find(const struct topic_registry *registry, struct span name)
{
    uint32_t slot;
    if (name.length == 0 || name.length > TOPIC_NAME_MAX_BYTES) {
        return NULL;
    }
    return probe(registry, name, &slot);
}

static uint32_t lane_for(const struct topic_registry *registry, uint32_t index, struct span name)
{
    if (registry->options.lane_policy == TOPIC_LANE_BY_HASH) {
        /* The upper half: the lower one chose the slot. */
        return (uint32_t)(hash_of(name) >> 32) % registry->options.lane_count;
    }
    return index % registry->options.lane_count;
}

static enum status intern(
        struct topic_registry *registry, struct entry **out, struct span name, uint32_t slot)
{
    uint32_t index = topic_registry_count(registry);
    if (index == registry->options.max_topics) {
        return STATUS_LIMIT_REACHED;
    }
    struct entry *entry = memory_allocate_zeroed(sizeof(*entry) + name.length + 1);
    if (entry == NULL) {
        return STATUS_NO_MEMORY;
    }
    memcpy(entry->name, name.bytes, name.length);
    entry->topic = (struct topic){
            .index = index,
            .lane = lane_for(registry, index, name),
            .name = span_of(entry->name, name.length),
    };
    registry->list[index] = entry;
    atomic_store_explicit(&registry->slots[slot], entry, memory_order_release); /* INTERN */
    atomic_store_explicit(&registry->count, index + 1, memory_order_release);   /* LIST */
    *out = entry;
    return STATUS_OK;
}

static enum status find_or_intern(
        struct topic_registry *registry, struct entry **out, struct span name)
{
    if (!is_valid_name(name)) {
        return STATUS_BAD_TOPIC;
    }
    uint32_t slot = 0;
    *out = probe(registry, name, &slot);
    return *out != NULL ? STATUS_OK : intern(registry, out, name, slot);
}

enum status topic_registry_subscribe(
        struct topic_registry *registry, const struct topic **out, struct span name)
{
    struct entry *entry;
    enum status status = find_or_intern(registry, &entry, name);
    if (status != STATUS_OK) {
        return status;
    }
    atomic_store_explicit(&entry->is_subscribed, true, memory_order_release); /* SUBSCRIBE */
    if (out != NULL) {
        *out = &entry->topic;
    }
    return STATUS_OK;
}

enum status topic_registry_intern(struct topic_registry *registry, struct span name)
{
    struct entry *entry;
    return find_or_intern(registry, &entry, name);
}

enum status topic_registry_unsubscribe(struct topic_registry *registry, struct span name)
{
    struct entry *entry = find(registry, name);
    /* relaxed: only this thread writes the mark */
    if (entry == NULL || !atomic_load_explicit(&entry->is_subscribed, memory_order_relaxed)) {
        return STATUS_NOT_FOUND;
    }
    atomic_store_explicit(&entry->is_subscribed, false, memory_order_release); /* SUBSCRIBE */
    return STATUS_OK;
}

static bool is_subscribed(const struct entry *entry)
{
    return atomic_load_explicit(&entry->is_subscribed, memory_order_acquire); /* SUBSCRIBE */
}

const struct topic *topic_registry_find_subscribed(
        const struct topic_registry *registry, struct span name)
{
    const struct entry *entry = find(registry, name);
    return entry != NULL && is_subscribed(entry) ? &entry->topic : NULL;
}

const struct topic *topic_registry_find_interned(
        const struct topic_registry *registry, struct span name)
{
    const struct entry *entry = find(registry, name);
    return entry != NULL ? &entry->topic : NULL;
}

bool topic_registry_is_subscribed(const struct topic_registry *registry, const struct topic *topic)
{
    assert(topic_registry_at(registry, topic->index) == topic);
    return is_subscribed(registry->list[topic->index]);
}

uint32_t topic_registry_count(const struct topic_registry *registry)
{
    return atomic_load_explicit(&registry->count, memory_order_acquire); /* LIST */
}

const struct topic *topic_registry_at(const struct topic_registry *registry, uint32_t index)
{
    assert(index < topic_registry_count(registry));
    return &registry->list[index]->topic;
}
