/* SPDX-License-Identifier: MIT */
#include "bench/message_path/copy_count.h"

#include <stdatomic.h>
#ifdef SLUICE_WRAP_COPIES
enum {
    COUNTED_FROM_BYTES = 1024
};

static _Atomic uint64_t counted;
static uintptr_t left_out;
static size_t left_out_bytes;

void *__real_memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *__real_memmove(void *to, const void *from, size_t bytes);
void *__wrap_memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes);

static void count(const void *from, size_t bytes)
{
    if (bytes >= COUNTED_FROM_BYTES && (uintptr_t)from - left_out >= left_out_bytes) {
        /* relaxed: a count */
        atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed);
    }
}

void *__wrap_memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    count(from, bytes);
    return __real_memcpy(to, from, bytes);
}

void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
    count(from, bytes);
    return __real_memmove(to, from, bytes);
}

uint64_t copy_count(void)
{
    return atomic_load_explicit(&counted, memory_order_relaxed);
}

bool copy_count_is_on(void)
{
    return true;
}

void copy_count_leave_out(const void *from, size_t bytes)
{
    left_out = (uintptr_t)from;
    left_out_bytes = bytes;
}
#else
uint64_t copy_count(void)
{
    return 0;
}

bool copy_count_is_on(void)
{
    return false;
}

void copy_count_leave_out(const void *from, size_t bytes)
{
    (void)from;
    (void)bytes;
}
#endif
