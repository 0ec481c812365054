/* SPDX-License-Identifier: MIT */
#pragma once

/* flood --in-process: load for a router in this process, handed over as an io thread would. */

#include "base/options.h"

/* Options of this mode, besides those of both (flood_options) and the node's own. */
extern const struct option_spec flood_in_process_options[];

/* The exit status: 0 when everything came out once and whole and every ledger closes. */
int flood_in_process(const struct options *options);
