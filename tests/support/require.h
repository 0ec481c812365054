/* SPDX-License-Identifier: MIT */
#pragma once

/* An assertion for fuzz targets, on in every build. */

#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition) ((condition) ? (void)0 : require_failed(__FILE__, __LINE__, #condition))

_Noreturn static inline void require_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, condition);
    abort();
}
