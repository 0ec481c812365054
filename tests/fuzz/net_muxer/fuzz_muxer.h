/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Feeds what a peer sends to a muxer three times: whole; cut anywhere, with owners that take it in
 * pieces of any size (both must understand the same); and with owners that write, close and reset
 * meanwhile. The first two bytes of data choose the cuts and acts.
 */

#include "net/muxer/muxer.h"

void fuzz_muxer(enum muxer_kind kind, const uint8_t *data, size_t size);
