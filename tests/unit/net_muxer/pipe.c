/* SPDX-License-Identifier: MIT */
#include "tests/unit/net_muxer/pipe.h"

#include <string.h>

size_t pipe_fill(struct pipe *pipe, struct end *from)
{
    size_t taken = 0;
    size_t n;
    while ((n = end_output(from, pipe->bytes + pipe->length, pipe->capacity - pipe->length)) > 0) {
        pipe->length += n;
        taken += n;
    }
    return taken;
}

enum status pipe_drain(struct pipe *pipe, struct end *to, size_t n)
{
    n = n < pipe->length ? n : pipe->length;
    enum status status = end_receive(to, pipe->bytes, n, 0);
    memmove(pipe->bytes, pipe->bytes + n, pipe->length - n);
    pipe->length -= n;
    return status;
}
