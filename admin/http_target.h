/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The target of an HTTP request, "/relay/v1/messages/%2Fwaku%2F2%2Frs%2F0%2F1?key=value": percent
 * encoding is undone once, after the split, so that an encoded slash is part of its segment.
 *
 * Specification: RFC 3986, section 3; '+' stands for a space in the query only (HTML forms).
 * Ownership:     all texts stand in the target's own buffer.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/status.h"

enum {
    HTTP_SEGMENTS_MAX = 12,
    HTTP_PARAMETERS_MAX = 32,
};

struct http_parameter {
    const char *name; /* NULL: the value is part of an earlier one */
    const char *value;
};

struct http_target {
    char *text; /* of http_target_parse; freed by http_target_fini */
    size_t segment_count;
    const char *segments[HTTP_SEGMENTS_MAX];
    size_t parameter_count;
    struct http_parameter parameters[HTTP_PARAMETERS_MAX];
};

/*
 * STATUS_BAD_ADDRESS: no path. STATUS_BAD_FIELD: a '%' that two hex digits do not follow, or an encoded NUL.
 * STATUS_LIMIT_REACHED: more segments or parameters than there is room for. Empty segments but the
 * first are kept, but for one at the end ("/health/" is "/health").
 */
MUST_USE enum status http_target_parse(struct http_target *out, const char *raw);
void http_target_fini(struct http_target *target);

/* NULL when it is not there. Several of one name are one value, with commas between them. */
const char *BORROWED http_target_find(const struct http_target *target, const char *name);

/*
 * True when the target's path has the pattern's segments; "{name}" in a pattern stands for one segment
 * that is not empty, "*" as the last for all the rest.
 */
bool http_target_matches(const struct http_target *target, const char *pattern);
