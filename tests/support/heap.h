/* SPDX-License-Identifier: MIT */
#pragma once

/* Bytes that this process has allocated and not freed: unlike its resident memory exact. */

#include <stddef.h>

#include "base/tsan.h"

#if defined(TSAN_ON) || defined(__SANITIZE_ADDRESS__)
#define HEAP_OF_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEAP_OF_SANITIZER 1
#endif
#endif

#ifdef HEAP_OF_SANITIZER
size_t __sanitizer_get_current_allocated_bytes(void); /* of its run-time library */

static inline size_t heap_bytes(void)
{
    return __sanitizer_get_current_allocated_bytes();
}
#else
#include <malloc.h>

static inline size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}
#endif
