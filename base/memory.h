/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * malloc with counting: every allocation of the message path goes through here, so that
 * allocations and allocated bytes per message are metrics (METRIC_ALLOCATIONS and
 * METRIC_ALLOCATED_BYTES) in every build. All of them return NULL when there is no memory.
 */

#include <stddef.h>

#include "base/attributes.h"

MUST_USE void *memory_allocate(size_t size_bytes);
MUST_USE void *memory_allocate_zeroed(size_t size_bytes);

/* alignment is a power of two; size_bytes is rounded up to a multiple of it. */
MUST_USE void *memory_allocate_aligned(size_t alignment, size_t size_bytes);

/* Like realloc: on NULL the old block still belongs to the caller. */
MUST_USE void *memory_resize(void *block, size_t size_bytes);

/* Takes blocks of all functions above; NULL is accepted. */
void memory_free(void *block);

/* memcpy of message bytes: counted as METRIC_COPIES and METRIC_COPIED_BYTES. */
void memory_copy_message(void *restrict to, const void *restrict from, size_t size_bytes);
