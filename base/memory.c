/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"

static void *counted(void *block, size_t size_bytes)
{
    if (block != NULL) {
        metrics_add(METRIC_ALLOCATIONS, 1);
        metrics_add(METRIC_ALLOCATED_BYTES, size_bytes);
    }
    return block;
}

void *memory_allocate(size_t size_bytes)
{
    return counted(malloc(size_bytes), size_bytes);
}

void *memory_allocate_zeroed(size_t size_bytes)
{
    return counted(calloc(1, size_bytes), size_bytes);
}

void *memory_allocate_aligned(size_t alignment, size_t size_bytes)
{
    size_t whole = (size_bytes + alignment - 1) / alignment * alignment;
    return counted(aligned_alloc(alignment, whole), whole);
}

void *memory_resize(void *block, size_t size_bytes)
{
    return counted(realloc(block, size_bytes), size_bytes);
}

void memory_free(void *block)
{
    free(block);
}

void memory_copy_message(void *restrict to, const void *restrict from, size_t size_bytes)
{
    metrics_add(METRIC_COPIES, 1);
    metrics_add(METRIC_COPIED_BYTES, size_bytes);
    memcpy(to, from, size_bytes);
}
