/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which web pages may read a server's answers (CORS), as patterns of origins: '*' any text, '?' one
 * character or none, case ignored; without "http://" or "https://" both. An item may be several
 * patterns with commas between them.
 *
 * Thread: any, after create.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/status.h"

struct http_origins;

/* STATUS_LIMIT_REACHED: more than 64 patterns, or one longer than 255 bytes. */
MUST_USE enum status http_origins_create(
        struct http_origins **out, const char *const *items, size_t count);
void http_origins_destroy(struct http_origins **origins);

/* No pattern at all: nothing is said and nothing refused. */
bool http_origins_is_empty(const struct http_origins *origins);
/* "*" is one of them. */
bool http_origins_has_all(const struct http_origins *origins);
bool http_origins_match(const struct http_origins *origins, const char *origin);
