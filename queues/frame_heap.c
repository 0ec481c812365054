/* SPDX-License-Identifier: MIT */
#include "queues/frame_heap.h"

#include <assert.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/metrics.h"
#include "queues/frame_region.h"

enum {
    LOOK_AT_PARKED =
            16, /* so few a change of region, that the walk costs nothing beside its frames */
    KEPT_SHARE = 8
};

/*
 * What the list of parked regions hides from the walk is little: while the walk goes round n parked
 * regions, at most n / LOOK_AT_PARKED new ones are made.
 *
 * Ordering: the list and the empty regions belong to the mutex. used_bytes and region_count are counts
 * that guard no other memory: all accesses to them are relaxed.
 */
struct frame_heap {
    size_t region_bytes;
    size_t keep_regions;
    pthread_key_t owner_of_thread;

    pthread_mutex_t mutex;
    struct frame_region *parked; /* circular; the walk goes on here */
    struct frame_region *empty;
    size_t empty_count;
    size_t owner_count;

    alignas(CACHE_LINE) atomic_size_t region_count; /* written with the mutex held */
    alignas(CACHE_LINE) atomic_size_t used_bytes;   /* written by everyone */
};

/* The regions of one thread. */
struct owner {
    struct frame_heap *heap;
    struct frame_region *regions[FRAME_HEAP_OPEN_REGIONS];
};

/* Mutex held. */
static void link_parked(struct frame_heap *heap, struct frame_region *region)
{
    struct frame_region *next = heap->parked;
    if (next == NULL) {
        region->next = region;
        region->previous = region;
        heap->parked = region;
        return;
    }
    region->next = next;
    region->previous = next->previous;
    next->previous->next = region;
    next->previous = region;
}

/* Mutex held. */
static void unlink_parked(struct frame_heap *heap, struct frame_region *region)
{
    if (heap->parked == region) {
        heap->parked = region->next == region ? NULL : region->next;
    }
    region->next->previous = region->previous;
    region->previous->next = region->next;
}

/* Mutex held. The empty regions that are too many, as a list. */
static struct frame_region *take_surplus(struct frame_heap *heap)
{
    struct frame_region *surplus = NULL;
    /* relaxed: written under the mutex only */
    size_t count = atomic_load_explicit(&heap->region_count, memory_order_relaxed);
    while (heap->empty_count > heap->keep_regions + count / KEPT_SHARE) {
        struct frame_region *region = heap->empty;
        heap->empty = region->next;
        heap->empty_count--;
        count--;
        region->next = surplus;
        surplus = region;
    }
    atomic_store_explicit(&heap->region_count, count, memory_order_relaxed);
    return surplus;
}

static void destroy_list(struct frame_region *region)
{
    while (region != NULL) {
        struct frame_region *next = region->next;
        frame_region_destroy(region);
        region = next;
    }
}

/* Of a parked region whose last unit the caller saw go. */
static void put_aside(struct frame_heap *heap, struct frame_region *region)
{
    pthread_mutex_lock(&heap->mutex);
    unlink_parked(heap, region);
    region->next = heap->empty;
    heap->empty = region;
    heap->empty_count++;
    struct frame_region *surplus = take_surplus(heap);
    pthread_mutex_unlock(&heap->mutex);
    destroy_list(surplus);
}

static void park(struct frame_heap *heap, struct frame_region *region)
{
    pthread_mutex_lock(&heap->mutex);
    link_parked(heap, region);
    bool is_empty = frame_region_disown(region);
    pthread_mutex_unlock(&heap->mutex);
    if (is_empty) {
        put_aside(heap, region);
    }
}

/* The thread ends, or the heap does. */
static void leave(void *argument)
{
    struct owner *owner = argument;
    struct frame_heap *heap = owner->heap;
    for (size_t i = 0; i < FRAME_HEAP_OPEN_REGIONS; i++) {
        if (owner->regions[i] != NULL) {
            park(heap, owner->regions[i]);
        }
    }
    pthread_mutex_lock(&heap->mutex);
    heap->owner_count--;
    pthread_mutex_unlock(&heap->mutex);
    memory_free(owner);
}

static struct owner *join(struct frame_heap *heap)
{
    struct owner *owner = memory_allocate_zeroed(sizeof(*owner));
    if (owner == NULL || pthread_setspecific(heap->owner_of_thread, owner) != 0) {
        memory_free(owner);
        return NULL;
    }
    owner->heap = heap;
    pthread_mutex_lock(&heap->mutex);
    heap->owner_count++;
    pthread_mutex_unlock(&heap->mutex);
    return owner;
}

/* Mutex held. A parked region with a run for bytes, now the caller's. */
static struct frame_region *take_parked(struct frame_heap *heap, size_t bytes)
{
    struct frame_region *start = heap->parked;
    struct frame_region *region = start;
    for (size_t i = 0; i < LOOK_AT_PARKED && region != NULL; i++) {
        heap->parked = region->next;
        /* relaxed: try_own decides */
        size_t used = atomic_load_explicit(&region->used, memory_order_relaxed);
        if (used <= region->unit_count / 2 &&
                frame_region_find_run(region, frame_region_units(bytes)) != 0 &&
                frame_region_try_own(region)) {
            unlink_parked(heap, region);
            return region;
        }
        region = heap->parked != start ? heap->parked : NULL;
    }
    return NULL;
}

/* Mutex held. */
static struct frame_region *take_empty(struct frame_heap *heap)
{
    struct frame_region *region = heap->empty;
    if (region != NULL) {
        heap->empty = region->next;
        heap->empty_count--;
        region->cursor = region->first_unit;
        /* relaxed: nobody else knows the region, and the mutex ordered what was before */
        atomic_store_explicit(&region->used, FRAME_REGION_OWNED, memory_order_relaxed);
    }
    return region;
}

/* Mutex held. */
static bool try_grow(struct frame_heap *heap)
{
    /* relaxed: see top */
    size_t used = atomic_load_explicit(&heap->used_bytes, memory_order_relaxed);
    size_t count = atomic_load_explicit(&heap->region_count, memory_order_relaxed);
    size_t spare = (heap->owner_count + 1) * FRAME_HEAP_OPEN_REGIONS;
    if (count > spare && count - spare > used / heap->region_bytes * 2) {
        return false;
    }
    atomic_store_explicit(&heap->region_count, count + 1, memory_order_relaxed);
    return true;
}

static struct frame_region *make_region(struct frame_heap *heap)
{
    struct frame_region *region = frame_region_create(heap->region_bytes);
    if (region == NULL) {
        pthread_mutex_lock(&heap->mutex);
        /* relaxed: see top */
        atomic_fetch_sub_explicit(&heap->region_count, 1, memory_order_relaxed);
        pthread_mutex_unlock(&heap->mutex);
    }
    return region;
}

/* A region with a run for bytes. */
static struct frame_region *find_region(struct frame_heap *heap, size_t bytes)
{
    pthread_mutex_lock(&heap->mutex);
    struct frame_region *region = take_parked(heap, bytes);
    if (region == NULL) {
        region = take_empty(heap);
    }
    bool may_grow = region == NULL && try_grow(heap);
    pthread_mutex_unlock(&heap->mutex);
    return may_grow ? make_region(heap) : region;
}

/* The last of the open ones is parked for it: they are in the order in which they were opened. */
static void open_region(struct owner *owner, struct frame_region *region)
{
    struct frame_region *oldest = owner->regions[0];
    for (size_t i = 1; i < FRAME_HEAP_OPEN_REGIONS; i++) {
        owner->regions[i - 1] = owner->regions[i];
    }
    owner->regions[FRAME_HEAP_OPEN_REGIONS - 1] = region;
    if (oldest != NULL) {
        park(owner->heap, oldest);
    }
}

/* The oldest first, so that what is left at its end is filled before it is parked. */
static void *take_open(struct owner *owner, size_t bytes)
{
    for (size_t i = 0; i < FRAME_HEAP_OPEN_REGIONS; i++) {
        struct frame_region *region = owner->regions[i];
        size_t first =
                region == NULL ? 0 : frame_region_find_run(region, frame_region_units(bytes));
        if (first != 0) {
            return frame_region_take(region, first, bytes);
        }
    }
    return NULL;
}

static size_t whole_units(size_t bytes)
{
    return frame_region_units(bytes) * FRAME_UNIT_BYTES;
}

void *frame_heap_try_allocate(struct frame_heap *heap, size_t bytes)
{
    if (bytes > frame_heap_max_bytes(heap)) {
        return NULL;
    }
    struct owner *owner = pthread_getspecific(heap->owner_of_thread);
    if (owner == NULL && (owner = join(heap)) == NULL) {
        return NULL;
    }
    void *block = take_open(owner, bytes);
    if (block == NULL) {
        struct frame_region *region = find_region(heap, bytes);
        if (region == NULL) {
            return NULL;
        }
        open_region(owner, region);
        block = frame_region_take(
                region, frame_region_find_run(region, frame_region_units(bytes)), bytes);
    }
    /* relaxed: see top */
    atomic_fetch_add_explicit(&heap->used_bytes, whole_units(bytes), memory_order_relaxed);
    metrics_add(METRIC_ALLOCATIONS, 1);
    metrics_add(METRIC_ALLOCATED_BYTES, bytes);
    return block;
}

void frame_heap_free(struct frame_heap *heap, void *block, size_t bytes)
{
    struct frame_region *region =
            (struct frame_region *)((char *)block - (uintptr_t)block % heap->region_bytes);
    /* relaxed: see top */
    atomic_fetch_sub_explicit(&heap->used_bytes, whole_units(bytes), memory_order_relaxed);
    if (frame_region_give_back(region, block, bytes)) {
        put_aside(heap, region);
    }
}

enum status frame_heap_create(struct frame_heap **out, const struct frame_heap_options *options)
{
    struct frame_heap *heap = memory_allocate_aligned(CACHE_LINE, sizeof(*heap));
    if (heap == NULL) {
        return STATUS_NO_MEMORY;
    }
    *heap = (struct frame_heap){
            .region_bytes = options->region_bytes, .keep_regions = options->keep_regions};
    if (pthread_key_create(&heap->owner_of_thread, leave) != 0) {
        memory_free(heap);
        return STATUS_LIMIT_REACHED;
    }
    pthread_mutex_init(&heap->mutex, NULL);
    *out = heap;
    return STATUS_OK;
}

void frame_heap_destroy(struct frame_heap **heap)
{
    if (*heap == NULL) {
        return;
    }
    struct owner *owner = pthread_getspecific((*heap)->owner_of_thread);
    if (owner != NULL) {
        leave(owner);
    }
    assert((*heap)->parked == NULL && (*heap)->owner_count == 0);
    destroy_list((*heap)->empty);
    pthread_key_delete((*heap)->owner_of_thread);
    pthread_mutex_destroy(&(*heap)->mutex);
    memory_free(*heap);
    *heap = NULL;
}

static struct frame_heap *process_heap;

static void create_process_heap(void)
{
    struct frame_heap_options options = {
            .region_bytes = FRAME_HEAP_REGION_BYTES, .keep_regions = FRAME_HEAP_KEEP_REGIONS};
    (void)!frame_heap_create(&process_heap, &options);
}

struct frame_heap *frame_heap_of_process(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_process_heap);
    return process_heap;
}

size_t frame_heap_max_bytes(const struct frame_heap *heap)
{
    return heap->region_bytes / 4;
}

size_t frame_heap_used_bytes(const struct frame_heap *heap)
{
    /* relaxed: see top */
    return atomic_load_explicit(&heap->used_bytes, memory_order_relaxed);
}

size_t frame_heap_held_bytes(const struct frame_heap *heap)
{
    /* relaxed: see top */
    return atomic_load_explicit(&heap->region_count, memory_order_relaxed) * heap->region_bytes;
}
