/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "queues/frame_heap.h"
#include "queues/frame_region.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define IS_FORBIDDEN(address) (__asan_address_is_poisoned(address) != 0)
#else
#define IS_FORBIDDEN(address) ((void)(address), true)
#endif

enum {
    REGION = 64 * 1024,
    KEEP = 2,
    LARGEST = REGION / 4
};

static struct frame_heap *make_heap(void)
{
    struct frame_heap *heap = NULL;
    struct frame_heap_options options = {.region_bytes = REGION, .keep_regions = KEEP};
    assert_int_equal(frame_heap_create(&heap, &options), STATUS_OK);
    return heap;
}

static void *allocate(struct frame_heap *heap, size_t bytes)
{
    void *block = frame_heap_try_allocate(heap, bytes);
    assert_non_null(block);
    return block;
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

struct held {
    uint8_t *bytes;
    size_t length;
    uint8_t fill;
};

static void drop(struct frame_heap *heap, struct held *held)
{
    for (size_t i = 0; i < held->length; i++) {
        assert_int_equal(held->bytes[i], held->fill);
    }
    if (held->bytes != NULL) {
        frame_heap_free(heap, held->bytes, held->length);
    }
    *held = (struct held){0};
}

static void blocks_never_overlap_whatever_order_they_come_and_go_in(void **state)
{
    (void)state;
    struct frame_heap *heap = make_heap();
    struct held live[96] = {{0}};
    uint32_t random = 42;
    for (size_t i = 0; i < 5000; i++) {
        struct held *held = &live[next_random(&random) % 96];
        drop(heap, held);
        size_t length = 1 + next_random(&random) % LARGEST;
        held->bytes = frame_heap_try_allocate(heap, length);
        if (held->bytes == NULL) {
            continue;
        }
        held->length = length;
        held->fill = (uint8_t)i;
        assert_int_equal((uintptr_t)held->bytes % FRAME_UNIT_BYTES, 0);
        memset(held->bytes, held->fill, length);
    }
    for (size_t i = 0; i < 96; i++) {
        drop(heap, &live[i]);
    }
    assert_int_equal(frame_heap_used_bytes(heap), 0);
    frame_heap_destroy(&heap);
}

static void counts_what_is_used_and_what_is_held(void **state)
{
    (void)state;
    struct frame_heap *heap = make_heap();
    assert_int_equal(frame_heap_held_bytes(heap), 0);
    void *block = allocate(heap, 1000);
    assert_true(frame_heap_used_bytes(heap) >= 1000);
    assert_int_equal(frame_heap_used_bytes(heap), frame_region_units(1000) * FRAME_UNIT_BYTES);
    assert_int_equal(frame_heap_held_bytes(heap), REGION);
    frame_heap_free(heap, block, 1000);
    assert_int_equal(frame_heap_used_bytes(heap), 0);
    frame_heap_destroy(&heap);
}

static void refuses_more_than_a_quarter_of_a_region(void **state)
{
    (void)state;
    struct frame_heap *heap = make_heap();
    assert_int_equal(frame_heap_max_bytes(heap), LARGEST);
    assert_null(frame_heap_try_allocate(heap, LARGEST + 1));
    assert_null(frame_heap_try_allocate(heap, SIZE_MAX));
    assert_int_equal(frame_heap_held_bytes(heap), 0);
    void *block = allocate(heap, LARGEST);
    frame_heap_free(heap, block, LARGEST);
    frame_heap_destroy(&heap);
}

enum {
    MANY = 400,
    LONG = 11 * 1024,
    SHORT = 1024
};

/* Long blocks with a short one behind each. */
static void fill(struct frame_heap *heap, void *long_blocks[MANY], void *short_blocks[MANY])
{
    for (size_t i = 0; i < MANY; i++) {
        long_blocks[i] = allocate(heap, LONG);
        short_blocks[i] = allocate(heap, SHORT);
    }
}

static void free_all(struct frame_heap *heap, void *blocks[MANY], size_t bytes)
{
    for (size_t i = 0; i < MANY; i++) {
        frame_heap_free(heap, blocks[i], bytes);
    }
}

static void gives_back_all_but_a_few_empty_regions(void **state)
{
    (void)state;
    struct frame_heap *heap = make_heap();
    void *long_blocks[MANY];
    void *short_blocks[MANY];
    fill(heap, long_blocks, short_blocks);
    size_t peak = frame_heap_held_bytes(heap);
    assert_true(peak <= (size_t)MANY * (LONG + SHORT) * 5 / 4);
    free_all(heap, long_blocks, LONG);
    free_all(heap, short_blocks, SHORT);
    assert_true(
            frame_heap_held_bytes(heap) <= (KEEP + 1 + FRAME_HEAP_OPEN_REGIONS) * (size_t)REGION);
    frame_heap_destroy(&heap);
}

static void fills_the_holes_of_regions_that_are_less_than_half_full(void **state)
{
    (void)state;
    struct frame_heap *heap = make_heap();
    void *long_blocks[MANY];
    void *short_blocks[MANY];
    fill(heap, long_blocks, short_blocks);
    size_t peak = frame_heap_held_bytes(heap);
    free_all(heap, long_blocks, LONG);
    assert_int_equal(frame_heap_held_bytes(heap), peak);
    for (size_t i = 0; i < MANY; i++) {
        long_blocks[i] = allocate(heap, LONG);
    }
    assert_true(frame_heap_held_bytes(heap) <= peak + peak / 16 + REGION);
    free_all(heap, long_blocks, LONG);
    free_all(heap, short_blocks, SHORT);
    frame_heap_destroy(&heap);
}

static void does_not_grow_past_twice_what_is_used_when_no_hole_is_large_enough(void **state)
{
    (void)state;
    struct frame_heap *heap = make_heap();
    void *long_blocks[MANY];
    void *short_blocks[MANY];
    fill(heap, long_blocks, short_blocks);
    free_all(heap, long_blocks, LONG);
    size_t held = frame_heap_held_bytes(heap);
    assert_true(held > 2 * frame_heap_used_bytes(heap) + 8 * (size_t)REGION);
    for (size_t i = 0; i < MANY; i++) {
        void *block = frame_heap_try_allocate(heap, LARGEST);
        if (block != NULL) { /* at the end of an open region */
            frame_heap_free(heap, block, LARGEST);
        }
    }
    assert_int_equal(frame_heap_held_bytes(heap), held);
    free_all(heap, short_blocks, SHORT);
    frame_heap_destroy(&heap);
}

static void *allocate_one(void *heap)
{
    return frame_heap_try_allocate(heap, LARGEST);
}

static void a_thread_that_ends_leaves_its_region_to_others(void **state)
{
    (void)state;
    struct frame_heap *heap = make_heap();
    pthread_t thread;
    void *block = NULL;
    assert_int_equal(pthread_create(&thread, NULL, allocate_one, heap), 0);
    pthread_join(thread, &block);
    assert_non_null(block);
    assert_int_equal(frame_heap_held_bytes(heap), REGION);
    void *mine = allocate(heap, LARGEST);
    assert_int_equal(frame_heap_held_bytes(heap), REGION);
    frame_heap_free(heap, mine, LARGEST);
    frame_heap_free(heap, block, LARGEST);
    frame_heap_destroy(&heap);
}

static void what_is_free_is_forbidden_under_a_sanitizer(void **state)
{
    (void)state;
    struct frame_heap *heap = make_heap();
    char *block = allocate(heap, 1000);
    char *neighbour = allocate(heap, 1000);
    assert_true(IS_FORBIDDEN(block + 1000));
    memset(neighbour, 1, 1000);
    frame_heap_free(heap, block, 1000);
    assert_true(IS_FORBIDDEN(block));
    assert_true(IS_FORBIDDEN(block + 999));
    assert_int_equal(neighbour[999], 1);
    frame_heap_free(heap, neighbour, 1000);
    frame_heap_destroy(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(blocks_never_overlap_whatever_order_they_come_and_go_in),
            cmocka_unit_test(counts_what_is_used_and_what_is_held),
            cmocka_unit_test(refuses_more_than_a_quarter_of_a_region),
            cmocka_unit_test(gives_back_all_but_a_few_empty_regions),
            cmocka_unit_test(fills_the_holes_of_regions_that_are_less_than_half_full),
            cmocka_unit_test(does_not_grow_past_twice_what_is_used_when_no_hole_is_large_enough),
            cmocka_unit_test(a_thread_that_ends_leaves_its_region_to_others),
            cmocka_unit_test(what_is_free_is_forbidden_under_a_sanitizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
