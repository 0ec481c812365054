/* SPDX-License-Identifier: MIT */
#include "hash/seen_set.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/metrics.h"
#include "hash/fast_key.h"
#include "hash/seen_index.h"

/*
 * Entries lie in slabs in the order in which they were queued, as in a ring: position p is entry
 * p % N of slab p / N. Two indexes lead to them, one by fast key and one by id.
 */

enum {
    PREFETCH_DISTANCE = 6 /* entries ahead of the oldest */
};

struct seen_entry {
    uint8_t id[SHA256_BYTES];
    uint64_t key;
    uint64_t id_key;
    uint64_t queued_ns;
    uint32_t topic;
    bool is_renewed;
};

struct seen_slab {
    alignas(CACHE_LINE) struct seen_entry entries[SEEN_SET_SLAB_ENTRIES];
};

static_assert(sizeof(struct seen_entry) == CACHE_LINE, "an entry is one cache line");
static_assert(sizeof(struct seen_slab) == 16384, "a slab is a size class of the allocator");

struct seen_set {
    /* constant */
    uint64_t window_ns;
    uint64_t id_factor;
    size_t capacity;
    uint32_t positions; /* of the ring: SEEN_SET_SLAB_ENTRIES a slab */
    struct seen_slab **slabs;

    struct seen_index keys;
    struct seen_index ids;
    uint32_t head; /* position of the oldest entry */
    uint32_t tail; /* position of the next entry */
    /* read by others too */
    atomic_size_t count;
    atomic_size_t bytes;
};

/* What a limit in bytes buys. */
struct layout {
    uint32_t index_bits; /* log2 of the slots that each index may come to have */
    size_t capacity;
    size_t slab_count; /* two more than full ones: the first and the last are filled in part */
};

static size_t fixed_bytes(uint32_t index_bits, size_t slab_count)
{
    size_t slots = (size_t)1 << index_bits;
    return sizeof(struct seen_set) + slots * 2 * sizeof(uint64_t) +
           slab_count * sizeof(struct seen_slab *);
}

/* The index is filled to three quarters at most, so every limit has one best size for it. */
static struct layout lay_out(size_t limit_bytes)
{
    struct layout best = {0};
    for (uint32_t bits = SEEN_INDEX_LEAST_BITS; bits <= SEEN_INDEX_MOST_BITS; bits++) {
        size_t fixed = fixed_bytes(bits, limit_bytes / sizeof(struct seen_slab));
        if (fixed + 3 * sizeof(struct seen_slab) > limit_bytes) {
            break;
        }
        size_t slabs = (limit_bytes - fixed) / sizeof(struct seen_slab);
        size_t affordable = (slabs - 2) * SEEN_SET_SLAB_ENTRIES;
        size_t indexable = seen_index_capacity(bits);
        size_t capacity = affordable < indexable ? affordable : indexable;
        if (capacity > best.capacity) {
            slabs = (capacity + SEEN_SET_SLAB_ENTRIES - 1) / SEEN_SET_SLAB_ENTRIES + 2;
            best = (struct layout){.index_bits = bits, .capacity = capacity, .slab_count = slabs};
        }
    }
    return best;
}

/* relaxed here and in add_to: one thread writes, and a count orders nothing */
static size_t read_count(const atomic_size_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

static void add_to(atomic_size_t *count, size_t amount)
{
    atomic_store_explicit(count, read_count(count) + amount, memory_order_relaxed);
}

enum status seen_set_create(struct seen_set **out, size_t limit_bytes, uint64_t window_ns)
{
    assert(limit_bytes >= SEEN_SET_MIN_LIMIT_BYTES);
    struct layout layout = lay_out(limit_bytes);
    struct seen_set *set = memory_allocate_aligned(CACHE_LINE, sizeof(*set));
    if (set == NULL) {
        return STATUS_NO_MEMORY;
    }
    *set = (struct seen_set){
            .window_ns = window_ns,
            .capacity = layout.capacity,
            .positions = (uint32_t)(layout.slab_count * SEEN_SET_SLAB_ENTRIES),
            .id_factor = fast_key_of_bytes(span_of_text("ids of a seen set")) | 1,
            .slabs = memory_allocate_zeroed(layout.slab_count * sizeof(struct seen_slab *)),
    };
    if (set->slabs == NULL || seen_index_init(&set->keys, SEEN_INDEX_LEAST_BITS) != STATUS_OK ||
            seen_index_init(&set->ids, SEEN_INDEX_LEAST_BITS) != STATUS_OK) {
        seen_set_destroy(&set);
        return STATUS_NO_MEMORY;
    }
    add_to(&set->bytes, fixed_bytes(SEEN_INDEX_LEAST_BITS, layout.slab_count));
    *out = set;
    return STATUS_OK;
}

void seen_set_destroy(struct seen_set **set)
{
    if (*set == NULL) {
        return;
    }
    size_t slab_count = (*set)->slabs == NULL ? 0 : (*set)->positions / SEEN_SET_SLAB_ENTRIES;
    for (size_t i = 0; i < slab_count; i++) {
        memory_free((*set)->slabs[i]);
    }
    memory_free((*set)->slabs);
    seen_index_fini(&(*set)->keys);
    seen_index_fini(&(*set)->ids);
    memory_free(*set);
    *set = NULL;
}

static struct seen_slab **slab_of(const struct seen_set *set, uint32_t position)
{
    return &set->slabs[position / SEEN_SET_SLAB_ENTRIES];
}

static struct seen_entry *entry_at(const struct seen_set *set, uint32_t position)
{
    return &(*slab_of(set, position))->entries[position % SEEN_SET_SLAB_ENTRIES];
}

static uint32_t position_after(const struct seen_set *set, uint32_t position, uint32_t distance)
{
    uint32_t after = position + distance;
    return after < set->positions ? after : after - set->positions;
}

/*
 * Ids are made by peers, who could choose them to share a slot: multiplying by a secret odd number
 * and going by the upper bits lets any two of them meet by chance only.
 */
static uint64_t id_key_of(const struct seen_set *set, uint32_t topic, const uint8_t *id)
{
    uint64_t start;
    memcpy(&start, id, sizeof(start));
    return (start + topic) * set->id_factor;
}

/* The entry at tail, whose slab is made when it is the first of one. NULL when there is no memory. */
static struct seen_entry *try_claim_tail(struct seen_set *set)
{
    struct seen_slab **slab = slab_of(set, set->tail);
    if (*slab == NULL) {
        *slab = memory_allocate_aligned(CACHE_LINE, sizeof(**slab));
        if (*slab == NULL) {
            return NULL;
        }
        add_to(&set->bytes, sizeof(**slab));
    }
    return entry_at(set, set->tail);
}

static void pass_tail(struct seen_set *set)
{
    set->tail = position_after(set, set->tail, 1);
    add_to(&set->count, 1);
}

/* Lets the entry at head go; the caller has seen to the indexes. */
static void pass_head(struct seen_set *set)
{
    struct seen_slab **slab = slab_of(set, set->head);
    set->head = position_after(set, set->head, 1);
    add_to(&set->count, (size_t)-1);
    if (set->head % SEEN_SET_SLAB_ENTRIES == 0) {
        memory_free(*slab);
        *slab = NULL;
        add_to(&set->bytes, 0 - sizeof(**slab));
    }
}

/* Fetches what forgetting will touch a few entries from now. */
static void prefetch(const struct seen_set *set)
{
    if (seen_set_count(set) > PREFETCH_DISTANCE) {
        const struct seen_entry *entry =
                entry_at(set, position_after(set, set->head, PREFETCH_DISTANCE));
        seen_index_prefetch(&set->keys, entry->key);
        seen_index_prefetch(&set->ids, entry->id_key);
    }
}

static void forget_head(struct seen_set *set, enum metric reason)
{
    const struct seen_entry *entry = entry_at(set, set->head);
    prefetch(set);
    seen_index_remove(&set->keys, entry->key, set->head);
    seen_index_remove(&set->ids, entry->id_key, set->head);
    pass_head(set);
    metrics_add(reason, 1);
}

static struct seen_entry *find(const struct seen_set *set, uint32_t topic, uint64_t key)
{
    struct seen_index_search search = seen_index_search(&set->keys, key);
    for (;;) {
        uint32_t position = seen_index_next(&set->keys, &search);
        if (position == SEEN_INDEX_NONE) {
            return NULL;
        }
        struct seen_entry *entry = entry_at(set, position);
        if (entry->key == key && entry->topic == topic) {
            return entry;
        }
    }
}

const uint8_t *seen_set_find_fast(const struct seen_set *set, uint32_t topic, uint64_t key)
{
    const struct seen_entry *entry = find(set, topic, key);
    return entry == NULL ? NULL : entry->id;
}

static enum status make_room(struct seen_set *set)
{
    size_t count = seen_set_count(set) + 1;
    if (count > set->capacity) {
        return STATUS_OK; /* the oldest will go */
    }
    size_t before = seen_index_bytes(&set->keys) + seen_index_bytes(&set->ids);
    enum status status = seen_index_reserve(&set->keys, count);
    if (status == STATUS_OK) {
        status = seen_index_reserve(&set->ids, count);
    }
    add_to(&set->bytes, seen_index_bytes(&set->keys) + seen_index_bytes(&set->ids) - before);
    return status;
}

enum status seen_set_insert(struct seen_set *set, uint32_t topic, const uint8_t id[SHA256_BYTES],
        uint64_t key, uint64_t now_ns)
{
    struct seen_entry *entry = make_room(set) == STATUS_OK ? try_claim_tail(set) : NULL;
    if (entry == NULL) {
        return STATUS_NO_MEMORY;
    }
    memcpy(entry->id, id, SHA256_BYTES);
    entry->topic = topic;
    entry->is_renewed = false;
    entry->key = key;
    entry->id_key = id_key_of(set, topic, id);
    entry->queued_ns = now_ns;
    if (seen_set_count(set) == set->capacity) {
        forget_head(set, METRIC_SEEN_EVICTED);
    }
    seen_index_insert(&set->keys, key, set->tail);
    seen_index_insert(&set->ids, entry->id_key, set->tail);
    pass_tail(set);
    return STATUS_OK;
}

void seen_set_renew(struct seen_set *set, uint32_t topic, uint64_t key)
{
    struct seen_entry *entry = find(set, topic, key);
    if (entry != NULL) {
        entry->is_renewed = true;
    }
}

/* Queues the oldest entry again, as the newest. */
static bool try_requeue_head(struct seen_set *set)
{
    const struct seen_entry *old = entry_at(set, set->head);
    struct seen_entry *entry = try_claim_tail(set);
    if (entry == NULL) {
        return false;
    }
    *entry = *old;
    entry->is_renewed = false;
    entry->queued_ns = old->queued_ns + set->window_ns; /* not now: expire may be late */
    seen_index_move(&set->keys, old->key, set->head, set->tail);
    seen_index_move(&set->ids, old->id_key, set->head, set->tail);
    pass_tail(set);
    pass_head(set);
    return true;
}

bool seen_set_expire(struct seen_set *set, uint64_t now_ns)
{
    for (int i = 0; i < SEEN_SET_EXPIRE_STEP; i++) {
        if (set->head == set->tail) {
            return false;
        }
        const struct seen_entry *oldest = entry_at(set, set->head);
        uint64_t end_ns = oldest->queued_ns + set->window_ns;
        if (now_ns < end_ns) {
            return false;
        }
        bool is_kept = oldest->is_renewed && now_ns < end_ns + set->window_ns;
        /* Without memory to queue it again it is forgotten, as it would be at the limit. */
        if (!is_kept || !try_requeue_head(set)) {
            forget_head(set, METRIC_SEEN_EXPIRED);
        }
    }
    return true;
}

bool seen_set_contains(const struct seen_set *set, uint32_t topic, const uint8_t id[SHA256_BYTES])
{
    struct seen_index_search search = seen_index_search(&set->ids, id_key_of(set, topic, id));
    for (;;) {
        uint32_t position = seen_index_next(&set->ids, &search);
        if (position == SEEN_INDEX_NONE) {
            return false;
        }
        const struct seen_entry *entry = entry_at(set, position);
        if (entry->topic == topic && memcmp(entry->id, id, SHA256_BYTES) == 0) {
            return true;
        }
    }
}

size_t seen_set_count(const struct seen_set *set)
{
    return read_count(&set->count);
}

size_t seen_set_bytes(const struct seen_set *set)
{
    return read_count(&set->bytes);
}

size_t seen_set_capacity(const struct seen_set *set)
{
    return set->capacity;
}
