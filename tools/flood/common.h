/* SPDX-License-Identifier: MIT */
#pragma once

/* What both modes of flood take from the command line. */

#include <stdbool.h>
#include <stdint.h>

#include "base/options.h"
#include "tools/flood/generator.h"

extern const struct option_spec flood_options[];

/* False: said on stderr which option is wrong. *duplicate_percent: of --duplicates. */
bool flood_make_generator(struct generator **out, const struct options *options, uint64_t cluster,
        uint32_t *duplicate_percent);

/* "1.5%" or "1.5": 0 to 100. */
bool flood_parse_percent(double *out, const char *text);
