/* SPDX-License-Identifier: MIT */
#pragma once

/* The two processes of bench_requests: the client (client.c) and the node (main.c). */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define REQUESTS_PUBSUB "/waku/2/rs/16/0"

enum {
    REQUESTS_CODES = 600
};

/* In memory of both. */
struct requests_shared {
    _Atomic size_t done; /* answered, or broken off */
    _Atomic size_t broken_off;
    _Atomic size_t codes[REQUESTS_CODES]; /* 0: an answer without a code of its own */
    _Atomic size_t most_under_way;
    _Atomic size_t lost; /* connections */
    atomic_bool has_failed;
    atomic_bool is_over;
};

bool requests_know(const char *protocol);

/* Reads the node's address from descriptor; returns when is_over is set. */
void requests_make(struct requests_shared *shared, int descriptor, const char *protocol,
        size_t count, size_t at_once);
