/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Options that stand for others: --preset fills in a network's values where nobody has set them,
 * --entry-node becomes a --staticnode, --store with its database becomes the --archive.
 */

#include "admin/config_report.h"
#include "base/attributes.h"
#include "base/options.h"
#include "base/status.h"

/*
 * After all sources are read. Values that are set stay, and one that differs from the preset's gets a
 * note. Errors: STATUS_NOT_FOUND for an unknown preset, STATUS_UNSUPPORTED for one that this node
 * cannot take part in and for entry nodes that are no multiaddr; reported.
 */
MUST_USE enum status config_preset_apply(
        struct options *options, const struct config_reporter *reporter);
