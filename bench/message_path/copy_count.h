/* SPDX-License-Identifier: MIT */
#pragma once

/* Counts memcpy and memmove calls of 1 KiB and more, in the build that is linked with --wrap. */

#include <stdbool.h>
#include <stdint.h>

uint64_t copy_count(void);
bool copy_count_is_on(void);
