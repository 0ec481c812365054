/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Recorded conversations: a line is the side (d, l) and its bytes in hexadecimal, where xx*N stands
 * for N times the byte xx.
 */

#include "tests/unit/net_muxer/muxer_end.h"

/*
 * Feeds what side sent to end, line by line, cut into secure frames of at most cut bytes (0: one a
 * line); false when it failed.
 */
bool transcript_replay(const char *path, char side, struct end *end, size_t cut);

/* The first capacity bytes side sent; returns how many there are. */
size_t transcript_load(const char *path, char side, uint8_t *out, size_t capacity);
