/* SPDX-License-Identifier: MIT */
#include "router/criteria.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

/* LIST: rcu_publish of criterion->list -> rcu_read. Who sees a list sees its entries. */

enum {
    KEY_PREFIX_BYTES = 2,
    KEY_MAX_BYTES = KEY_PREFIX_BYTES + 2 * CRITERION_TOPIC_MAX_BYTES,
    FIRST_CAPACITY = 4
};

bool criterion_is_valid(struct span pubsub_topic, struct span content_topic)
{
    return pubsub_topic.length > 0 && pubsub_topic.length <= CRITERION_TOPIC_MAX_BYTES &&
           content_topic.length > 0 && content_topic.length <= CRITERION_TOPIC_MAX_BYTES;
}

/* The length of the first topic comes first, so that the border between the two is part of the key. */
static struct span write_key(uint8_t *to, struct span pubsub_topic, struct span content_topic)
{
    to[0] = (uint8_t)(pubsub_topic.length >> 8);
    to[1] = (uint8_t)pubsub_topic.length;
    memcpy(to + KEY_PREFIX_BYTES, pubsub_topic.bytes, pubsub_topic.length);
    memcpy(to + KEY_PREFIX_BYTES + pubsub_topic.length, content_topic.bytes, content_topic.length);
    return span_of(to, KEY_PREFIX_BYTES + pubsub_topic.length + content_topic.length);
}

static struct criterion *criterion_of(const struct shared_map_node *node)
{
    return node == NULL ? NULL
                        : (struct criterion *)((char *)node - offsetof(struct criterion, node));
}

bool criterion_matches(const struct shared_map_node *node, struct span key)
{
    const struct criterion *criterion = criterion_of(node);
    return span_equal(span_of(criterion->key, criterion->key_length), key);
}

struct criterion *criterion_find(
        struct shared_map *map, struct span pubsub_topic, struct span content_topic)
{
    uint8_t key[KEY_MAX_BYTES];
    if (!criterion_is_valid(pubsub_topic, content_topic)) {
        return NULL;
    }
    return criterion_of(shared_map_find(map, write_key(key, pubsub_topic, content_topic)));
}

struct criterion *criterion_find_or_add(
        struct shared_map *map, struct span pubsub_topic, struct span content_topic)
{
    struct criterion *criterion = criterion_find(map, pubsub_topic, content_topic);
    if (criterion != NULL) {
        return criterion;
    }
    size_t length = KEY_PREFIX_BYTES + pubsub_topic.length + content_topic.length;
    criterion = memory_allocate_zeroed(sizeof(*criterion) + length);
    if (criterion == NULL) {
        return NULL;
    }
    struct span key = write_key(criterion->key, pubsub_topic, content_topic);
    criterion->key_length = key.length;
    criterion->pubsub_topic = span_of(criterion->key + KEY_PREFIX_BYTES, pubsub_topic.length);
    criterion->content_topic =
            span_of(criterion->key + KEY_PREFIX_BYTES + pubsub_topic.length, content_topic.length);
    struct shared_map_node *held = shared_map_add_unique(map, key, &criterion->node);
    assert(held == &criterion->node); /* there is one writer, and it was not there */
    return criterion;
}

const struct subscriber_list *criterion_list(const struct criterion *criterion)
{
    const struct criterion_list *list = rcu_read(&criterion->list); /* LIST */
    return list == NULL ? NULL : &list->face;
}

static struct entry_block *create_block(const struct subscriber_list *from, size_t capacity)
{
    struct entry_block *block =
            memory_allocate(sizeof(*block) + capacity * sizeof(block->entries[0]));
    if (block == NULL) {
        return NULL;
    }
    block->capacity = capacity;
    if (from != NULL && from->count > 0) {
        memcpy(block->entries, from->entries, from->count * sizeof(block->entries[0]));
    }
    return block;
}

bool criterion_prepare(struct criterion *criterion, struct subscriber_entry entry)
{
    const struct criterion_list *old = criterion->list;
    size_t count = old == NULL ? 0 : old->face.count;
    struct criterion_list *next = memory_allocate(sizeof(*next));
    if (next == NULL) {
        return false;
    }
    if (old != NULL && count < old->block->capacity) {
        next->block = old->block;
    } else {
        next->block = create_block(
                old == NULL ? NULL : &old->face, count == 0 ? FIRST_CAPACITY : count * 2);
    }
    if (next->block == NULL) {
        memory_free(next);
        return false;
    }
    next->block->entries[count] = entry;
    next->face = (struct subscriber_list){.count = count + 1, .entries = next->block->entries};
    criterion->next = next;
    return true;
}

static void reclaim_list(struct rcu_head *head)
{
    rcu_reclaim_begin();
    memory_free(caa_container_of(head, struct criterion_list, reclaim));
}

static void reclaim_block(struct rcu_head *head)
{
    rcu_reclaim_begin();
    memory_free(caa_container_of(head, struct entry_block, reclaim));
}

static void reclaim_criterion(struct rcu_head *head)
{
    rcu_reclaim_begin();
    memory_free(caa_container_of(head, struct criterion, reclaim));
}

static void replace_list(struct criterion *criterion, struct criterion_list *next)
{
    struct criterion_list *old = rcu_publish(&criterion->list, next); /* LIST */
    if (old == NULL) {
        return;
    }
    if (next == NULL || next->block != old->block) {
        rcu_retire(&old->block->reclaim, reclaim_block);
    }
    rcu_retire(&old->reclaim, reclaim_list);
}

void criterion_publish(struct criterion *criterion)
{
    struct criterion_list *next = criterion->next;
    criterion->next = NULL;
    replace_list(criterion, next);
}

void criterion_give_up(struct criterion *criterion)
{
    struct criterion_list *next = criterion->next;
    if (next == NULL) {
        return;
    }
    criterion->next = NULL;
    if (criterion->list == NULL || criterion->list->block != next->block) {
        memory_free(next->block);
    }
    memory_free(next);
}

static size_t position_of(const struct subscriber_list *list, uint64_t id)
{
    size_t i = 0;
    while (i < list->count && list->entries[i].id != id) {
        i++;
    }
    assert(i < list->count);
    return i;
}

/* The last entry takes the place of the removed one. */
static void close_gap(struct criterion_list *list, size_t position)
{
    list->face.count--;
    list->block->entries[position] = list->block->entries[list->face.count];
}

/* Takes the list from the readers, changes it when they have gone, and gives it back. */
static void remove_in_place(struct criterion *criterion, size_t position)
{
    struct criterion_list *list = rcu_publish(&criterion->list, NULL); /* LIST */
    rcu_drain();
    close_gap(list, position);
    (void)rcu_publish(&criterion->list, list); /* LIST */
}

void criterion_remove(struct criterion *criterion, uint64_t id)
{
    struct criterion_list *old = criterion->list;
    size_t position = position_of(&old->face, id);
    if (old->face.count == 1) {
        replace_list(criterion, NULL);
        return;
    }
    struct criterion_list *next = memory_allocate(sizeof(*next));
    struct entry_block *block = create_block(&old->face, old->face.count);
    if (next == NULL || block == NULL) {
        memory_free(next);
        memory_free(block);
        remove_in_place(criterion, position);
        return;
    }
    next->block = block;
    next->face = (struct subscriber_list){.count = old->face.count, .entries = block->entries};
    close_gap(next, position);
    replace_list(criterion, next);
}

void criterion_release(struct shared_map *map, struct criterion *criterion)
{
    if (criterion->list != NULL) {
        return;
    }
    bool is_removed = shared_map_remove(map, &criterion->node);
    assert(is_removed); /* there is one writer */
    rcu_retire(&criterion->reclaim, reclaim_criterion);
}
