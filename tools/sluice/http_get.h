/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One GET to an HTTP server of a node, for programs that show what it answers.
 *
 * Thread: any; blocks, at most timeout_s for each step.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"

struct http_place {
    char host[256];
    char port[8];
};

/* From http://HOST[:PORT], HOST:PORT, [IPV6]:PORT or a multiaddr with a TCP port; false: none of them. */
MUST_USE bool http_place_parse(struct http_place *out, const char *text, const char *default_port);

struct http_answer {
    unsigned status;
    char *body; /* ends with NUL; to be freed by free() */
    size_t length;
};

/* NULL and the answer, or what went wrong (good until the next call). */
const char *BORROWED http_get(struct http_answer *out, const struct http_place *place,
        const char *path, unsigned timeout_s);
