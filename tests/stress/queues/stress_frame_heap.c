/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdbool.h>

#include "queues/frame_heap.h"
#include "tests/stress/queues/stress.h"

/*
 * Threads put blocks into shared places and take out what another one left there: nearly every block
 * is checked and freed by a thread that did not allocate it, often after that one has ended.
 */

enum {
    THREADS = 4,
    GENERATIONS = 4,
    PLACES = 48,
    REGION = 64 * 1024,
    LARGEST = REGION / 4,
    KEEP = 1,
    SMALLEST_WORDS = 4
};

struct block {
    uint64_t words;
    uint64_t salt;
    uint64_t values[];
};

/* PLACE: the exchange releases a filled block and acquires another thread's. */
static _Atomic(struct block *) places[PLACES];
static struct frame_heap *heap;

struct swapper {
    uint64_t seed;
    uint64_t swaps;
    pthread_t thread;
};

static size_t bytes_of(uint64_t words)
{
    return sizeof(struct block) + (size_t)words * sizeof(uint64_t);
}

static uint64_t value_at(const struct block *block, uint64_t index)
{
    return block->salt * 0x9e3779b97f4a7c15ULL + block->words * 31 + index;
}

static struct block *fill_block(uint64_t words, uint64_t salt)
{
    struct block *block = frame_heap_try_allocate(heap, bytes_of(words));
    if (block == NULL) {
        return NULL; /* the heap may not grow now */
    }
    block->words = words;
    block->salt = salt;
    for (uint64_t i = 0; i < words; i++) {
        block->values[i] = value_at(block, i);
    }
    return block;
}

static void check_and_free(struct block *block)
{
    if (block == NULL) {
        return;
    }
    for (uint64_t i = 0; i < block->words; i++) {
        CHECK(block->values[i] == value_at(block, i));
    }
    frame_heap_free(heap, block, bytes_of(block->words));
}

static void *swap_blocks(void *argument)
{
    struct swapper *swapper = argument;
    const uint64_t most = (LARGEST - sizeof(struct block)) / sizeof(uint64_t);
    for (uint64_t i = 0; i < swapper->swaps; i++) {
        /* One in eight is large, so that regions fill unevenly and change hands. */
        uint64_t draw = random_next(&swapper->seed);
        uint64_t range = draw % 8 == 0 ? most : most / 16;
        uint64_t words = SMALLEST_WORDS + (draw >> 8) % (range - SMALLEST_WORDS);
        struct block *block = draw % 5 == 0 ? NULL : fill_block(words, draw);
        check_and_free(atomic_exchange_explicit(
                &places[(draw >> 40) % PLACES], block, memory_order_acq_rel)); /* PLACE */
    }
    return NULL;
}

static void run_generation(uint64_t generation)
{
    struct swapper swappers[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        swappers[i].seed = generation * THREADS + i + 1;
        swappers[i].swaps = rounds(100000);
        start_thread(&swappers[i].thread, swap_blocks, &swappers[i]);
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        join_thread(swappers[i].thread);
    }
}

static void every_byte_lasts_until_another_thread_frees_it(void **state)
{
    (void)state;
    struct frame_heap_options options = {.region_bytes = REGION, .keep_regions = KEEP};
    assert_int_equal(frame_heap_create(&heap, &options), STATUS_OK);
    for (uint64_t generation = 0; generation < GENERATIONS; generation++) {
        run_generation(generation);
        size_t most = (size_t)PLACES * LARGEST * 2 +
                      (KEEP + THREADS * FRAME_HEAP_OPEN_REGIONS) * (size_t)REGION;
        assert_true(frame_heap_held_bytes(heap) <= most + most / 8);
    }
    for (size_t i = 0; i < PLACES; i++) {
        check_and_free(
                atomic_exchange_explicit(&places[i], NULL, memory_order_acq_rel)); /* PLACE */
    }
    assert_int_equal(frame_heap_used_bytes(heap), 0);
    /* All threads have ended, so that nothing is open: what is left are the empty ones it keeps. */
    assert_true(frame_heap_held_bytes(heap) <= (KEEP + 1) * (size_t)REGION);
    frame_heap_destroy(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_byte_lasts_until_another_thread_frees_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
