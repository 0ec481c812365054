/* SPDX-License-Identifier: MIT */
#pragma once

/* Counts memcpy and memmove calls of 1 KiB and more, in the build that is linked with --wrap. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t copy_count(void);
bool copy_count_is_on(void);

/* Copies out of that memory are not counted. One range a process; before its threads start. */
void copy_count_leave_out(const void *from, size_t bytes);
