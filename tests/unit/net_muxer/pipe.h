/* SPDX-License-Identifier: MIT */
#pragma once

/* A link of fixed capacity in one direction: a sender that is stopped by it, bytes cut anywhere. */

#include "tests/unit/net_muxer/muxer_end.h"

enum {
    PIPE_MAX = 65536
};

struct pipe {
    uint8_t bytes[PIPE_MAX];
    size_t length;
    size_t capacity;
};

/* Takes outputs of end while they fit; returns the bytes taken. */
size_t pipe_fill(struct pipe *pipe, struct end *from);

/* Delivers the first n bytes (or all there are) as one secure frame. */
enum status pipe_drain(struct pipe *pipe, struct end *to, size_t n);
