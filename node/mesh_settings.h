/* SPDX-License-Identifier: MIT */
#pragma once

/* The mesh's and the scores' numbers, read from options. */

#include "base/options.h"
#include "router/mesh.h"
#include "router/scores.h"

/* All but mesh->cache_bytes_max and what the caller gives (seed, is_known). */
void mesh_settings_read(
        struct mesh_options *mesh, struct score_options *scores, const struct options *options);
