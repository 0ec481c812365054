/* SPDX-License-Identifier: MIT */
#pragma once

/* Tells the processor that this is a spin loop. */

static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}
