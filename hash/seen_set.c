/* SPDX-License-Identifier: MIT */
#include "hash/seen_set.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/metrics.h"
#include "base/rcu.h"
#include "hash/fast_key.h"
#include "hash/seen_index.h"

/*
 * Entries lie in slabs in the order in which they were queued, as in a ring: position p is entry
 * p % N of slab p / N. Two indexes lead to them. Chains, linked through the entries, are for readers:
 * an entry that is being unlinked still leads on, and its slab outlives everyone who may stand on it.
 * The index of fast keys is the writer's alone.
 *
 * Ordering (every acquire or release below carries the name of its pair):
 *
 *   PUBLISH  release store of a chain link -> acquire load of it.
 *            The reader that follows the link sees the entry behind it whole.
 *   MOVE     release store of the link that leaves an entry out -> acquire load of it.
 *            An entry that is queued again is in its chain twice for a moment: its copy is put first,
 *            then the old one is left out. The reader that was past the first place and does not
 *            meet the old one any more sees that the first place has changed, and walks again.
 */

enum {
    PREFETCH_DISTANCE = 6 /* entries ahead of the oldest */
};

struct seen_link {
    _Atomic(struct seen_entry *) entry;
};

struct seen_entry {
    /* constant once published */
    uint8_t id[SHA256_BYTES];
    uint32_t topic;

    bool is_renewed;       /* seen by the writer only, as are key and queued_ns */
    struct seen_link next; /* in its chain: towards older entries */
    uint64_t key;
    uint64_t queued_ns;
};

struct seen_slab {
    alignas(CACHE_LINE) struct rcu_head reclaim;
    alignas(CACHE_LINE) struct seen_entry entries[SEEN_SET_SLAB_ENTRIES];
};

static_assert(sizeof(struct seen_entry) == CACHE_LINE, "an entry is one cache line");
static_assert(sizeof(struct seen_slab) == 16384, "a slab is a size class of the allocator");

struct seen_set {
    /* constant */
    uint64_t window_ns;
    size_t capacity;
    size_t fixed_bytes;   /* of everything but slabs */
    uint32_t positions;   /* of the ring: SEEN_SET_SLAB_ENTRIES a slab */
    uint32_t chain_shift; /* from a 64-bit hash to a chain */
    uint64_t chain_factor;
    struct seen_slab **slabs;
    struct seen_link *chains;

    /* written by the writer; the counts are read by others */
    alignas(CACHE_LINE) struct seen_index index;
    uint32_t head; /* position of the oldest entry */
    uint32_t tail; /* position of the next entry */
    atomic_size_t count;
    atomic_size_t slab_count;
};

/* What a limit in bytes buys. */
struct layout {
    uint32_t index_bits; /* log2 of the slots of the index, and of the chains */
    size_t capacity;
    size_t slab_count; /* two more than full ones: the first and the last are filled in part */
};

static size_t fixed_bytes(uint32_t index_bits, size_t slab_count)
{
    size_t slots = (size_t)1 << index_bits;
    return sizeof(struct seen_set) + slots * (sizeof(uint64_t) + sizeof(struct seen_link)) +
           slab_count * sizeof(struct seen_slab *);
}

/* The index is filled to three quarters at most, so every limit has one best size for it. */
static struct layout lay_out(size_t limit_bytes)
{
    enum {
        LEAST_BITS = 6,
        MOST_BITS = 31
    };
    struct layout best = {0};
    for (uint32_t bits = LEAST_BITS; bits <= MOST_BITS; bits++) {
        size_t fixed = fixed_bytes(bits, limit_bytes / sizeof(struct seen_slab));
        if (fixed + 3 * sizeof(struct seen_slab) > limit_bytes) {
            break;
        }
        size_t slabs = (limit_bytes - fixed) / sizeof(struct seen_slab);
        size_t affordable = (slabs - 2) * SEEN_SET_SLAB_ENTRIES;
        size_t indexable = ((size_t)3 << bits) / 4;
        size_t capacity = affordable < indexable ? affordable : indexable;
        if (capacity > best.capacity) {
            slabs = (capacity + SEEN_SET_SLAB_ENTRIES - 1) / SEEN_SET_SLAB_ENTRIES + 2;
            best = (struct layout){.index_bits = bits, .capacity = capacity, .slab_count = slabs};
        }
    }
    return best;
}

enum status seen_set_create(struct seen_set **out, size_t limit_bytes, uint64_t window_ns)
{
    assert(limit_bytes >= SEEN_SET_MIN_LIMIT_BYTES);
    struct layout layout = lay_out(limit_bytes);
    size_t chain_count = (size_t)1 << layout.index_bits;
    struct seen_set *set = memory_allocate_aligned(CACHE_LINE, sizeof(*set));
    if (set == NULL) {
        return STATUS_NO_MEMORY;
    }
    *set = (struct seen_set){
            .window_ns = window_ns,
            .capacity = layout.capacity,
            .fixed_bytes = fixed_bytes(layout.index_bits, layout.slab_count),
            .positions = (uint32_t)(layout.slab_count * SEEN_SET_SLAB_ENTRIES),
            .chain_shift = 64 - layout.index_bits,
            .chain_factor = fast_key_of_bytes(span_of_text("chains of a seen set")) | 1,
            .slabs = memory_allocate_zeroed(layout.slab_count * sizeof(struct seen_slab *)),
            .chains = memory_allocate_zeroed(chain_count * sizeof(struct seen_link)),
    };
    if (seen_index_init(&set->index, layout.index_bits) != STATUS_OK || set->slabs == NULL ||
            set->chains == NULL) {
        seen_set_destroy(&set);
        return STATUS_NO_MEMORY;
    }
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
    memory_free((*set)->chains);
    seen_index_fini(&(*set)->index);
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
 * Ids are made by peers, who could choose them to share a chain: multiplying by a secret odd number
 * and taking the upper bits lets any two of them meet by chance only.
 */
static struct seen_link *chain_of(const struct seen_set *set, uint32_t topic, const uint8_t *id)
{
    uint64_t start;
    memcpy(&start, id, sizeof(start));
    return &set->chains[(start + topic) * set->chain_factor >> set->chain_shift];
}

static void free_slab(struct rcu_head *head)
{
    rcu_reclaim_begin();
    memory_free((char *)head - offsetof(struct seen_slab, reclaim));
}

/* relaxed here and in add_to: one writer, and a count orders nothing */
static size_t read_count(const atomic_size_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

static void add_to(atomic_size_t *count, size_t amount)
{
    atomic_store_explicit(count, read_count(count) + amount, memory_order_relaxed);
}

/* The entry at tail, whose slab is made when it is the first of one. NULL when there is no memory. */
static struct seen_entry *try_claim_tail(struct seen_set *set)
{
    struct seen_slab **slab = slab_of(set, set->tail);
    if (set->tail % SEEN_SET_SLAB_ENTRIES == 0) {
        assert(*slab == NULL);
        *slab = memory_allocate_aligned(CACHE_LINE, sizeof(**slab));
        if (*slab == NULL) {
            return NULL;
        }
        add_to(&set->slab_count, 1);
    }
    return entry_at(set, set->tail);
}

/* Links the entry at tail into its chain, as the newest. */
static void publish_tail(struct seen_set *set)
{
    struct seen_entry *entry = entry_at(set, set->tail);
    struct seen_link *chain = chain_of(set, entry->topic, entry->id);
    /* relaxed: only this thread writes links; the entry is not published yet */
    struct seen_entry *newest = atomic_load_explicit(&chain->entry, memory_order_relaxed);
    atomic_init(&entry->next.entry, newest);
    atomic_store_explicit(&chain->entry, entry, memory_order_release); /* PUBLISH */
    set->tail = position_after(set, set->tail, 1);
    add_to(&set->count, 1);
}

/* Takes the entry at head out of its chain and lets it go; the caller has seen to the index. */
static void unlink_head(struct seen_set *set)
{
    struct seen_entry *entry = entry_at(set, set->head);
    struct seen_link *link = chain_of(set, entry->topic, entry->id);
    /* relaxed: only this thread writes links */
    struct seen_entry *at = atomic_load_explicit(&link->entry, memory_order_relaxed);
    while (at != entry) {
        link = &at->next;
        at = atomic_load_explicit(&link->entry, memory_order_relaxed); /* relaxed: as above */
    }
    struct seen_entry *older = atomic_load_explicit(&entry->next.entry, memory_order_relaxed);
    atomic_store_explicit(&link->entry, older, memory_order_release); /* MOVE */

    struct seen_slab **slab = slab_of(set, set->head);
    set->head = position_after(set, set->head, 1);
    add_to(&set->count, (size_t)-1);
    if (set->head % SEEN_SET_SLAB_ENTRIES == 0) {
        rcu_retire(&(*slab)->reclaim, free_slab);
        *slab = NULL;
        add_to(&set->slab_count, (size_t)-1);
    }
}

/* Fetches what forgetting will touch a few entries from now. */
static void prefetch(const struct seen_set *set)
{
    if (seen_set_count(set) > PREFETCH_DISTANCE) {
        const struct seen_entry *entry =
                entry_at(set, position_after(set, set->head, PREFETCH_DISTANCE));
        seen_index_prefetch(&set->index, entry->key);
        __builtin_prefetch(chain_of(set, entry->topic, entry->id), 1);
    }
}

static void forget_head(struct seen_set *set, enum metric reason)
{
    prefetch(set);
    seen_index_remove(&set->index, entry_at(set, set->head)->key, set->head);
    unlink_head(set);
    metrics_add(reason, 1);
}

static struct seen_entry *find(const struct seen_set *set, uint32_t topic, uint64_t key)
{
    struct seen_index_search search = seen_index_search(&set->index, key);
    for (;;) {
        uint32_t position = seen_index_next(&set->index, &search);
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

enum status seen_set_insert(struct seen_set *set, uint32_t topic, const uint8_t id[SHA256_BYTES],
        uint64_t key, uint64_t now_ns)
{
    struct seen_entry *entry = try_claim_tail(set);
    if (entry == NULL) {
        return STATUS_NO_MEMORY;
    }
    memcpy(entry->id, id, SHA256_BYTES);
    entry->topic = topic;
    entry->is_renewed = false;
    entry->key = key;
    entry->queued_ns = now_ns;
    if (seen_set_count(set) == set->capacity) {
        forget_head(set, METRIC_SEEN_EVICTED);
    }
    seen_index_insert(&set->index, key, set->tail);
    publish_tail(set);
    return STATUS_OK;
}

void seen_set_renew(struct seen_set *set, uint32_t topic, uint64_t key)
{
    struct seen_entry *entry = find(set, topic, key);
    if (entry != NULL) {
        entry->is_renewed = true;
    }
}

/* Queues the oldest entry again, as the newest; first the copy comes, then the old one goes (MOVE). */
static bool try_requeue_head(struct seen_set *set)
{
    const struct seen_entry *old = entry_at(set, set->head);
    struct seen_entry *entry = try_claim_tail(set);
    if (entry == NULL) {
        return false;
    }
    memcpy(entry->id, old->id, SHA256_BYTES);
    entry->topic = old->topic;
    entry->is_renewed = false;
    entry->key = old->key;
    entry->queued_ns = old->queued_ns + set->window_ns; /* not now: expire may be late */
    seen_index_move(&set->index, old->key, set->head, set->tail);
    publish_tail(set);
    unlink_head(set);
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

/* Walks a chain from entry to its end. */
static bool chain_has(const struct seen_entry *entry, uint32_t topic, const uint8_t *id)
{
    while (entry != NULL) {
        if (entry->topic == topic && memcmp(entry->id, id, SHA256_BYTES) == 0) {
            return true;
        }
        entry = atomic_load_explicit(&entry->next.entry, memory_order_acquire); /* PUBLISH, MOVE */
    }
    return false;
}

bool seen_set_contains(const struct seen_set *set, uint32_t topic, const uint8_t id[SHA256_BYTES])
{
    const struct seen_link *chain = chain_of(set, topic, id);
    const struct seen_entry *first = atomic_load_explicit(&chain->entry, memory_order_acquire);
    for (;;) { /* PUBLISH */
        if (chain_has(first, topic, id)) {
            return true;
        }
        /* Ends unless the writer got another entry into this very chain, perhaps the one sought. */
        const struct seen_entry *now_first =
                atomic_load_explicit(&chain->entry, memory_order_acquire); /* PUBLISH */
        if (now_first == first) {
            return false;
        }
        first = now_first;
    }
}

size_t seen_set_count(const struct seen_set *set)
{
    return read_count(&set->count);
}

size_t seen_set_bytes(const struct seen_set *set)
{
    return set->fixed_bytes + read_count(&set->slab_count) * sizeof(struct seen_slab);
}

size_t seen_set_capacity(const struct seen_set *set)
{
    return set->capacity;
}
