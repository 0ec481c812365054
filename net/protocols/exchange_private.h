/* SPDX-License-Identifier: MIT */
#pragma once

/* What both sides of an exchange need. */

#include "net/protocols/exchange.h"

/* Writes the length and the pieces, which are released even on failure, then closes this side. */
MUST_USE enum status exchange_write(
        struct stream *stream, const struct muxer_piece pieces[], size_t count);

void exchange_release(const struct muxer_piece pieces[], size_t count);
