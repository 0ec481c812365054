/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * flood --peer=MULTIADDR: publishing and receiving relay peers in this process, connected to nodes
 * somewhere else, and what became of every message between them.
 */

#include "base/options.h"

/* Options of this mode, besides those of both (flood_options). */
extern const struct option_spec flood_network_options[];

/* The exit status. */
int flood_network(const struct options *options);
