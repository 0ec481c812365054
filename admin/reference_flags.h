/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The reference's flags that do nothing here (admin/reference_flags.def): they are options like
 * others, so that every source may have them, and what is set is judged afterwards.
 */

#include "admin/config_report.h"
#include "base/attributes.h"
#include "base/options.h"
#include "base/status.h"

/* A table for options_create. */
extern const struct option_spec reference_flags_table[];

/*
 * One note a flag that is set and passed over, one for all that the reference has on by default; one
 * error a flag that is refused, then STATUS_UNSUPPORTED. options has the table.
 */
MUST_USE enum status reference_flags_check(
        const struct options *options, const struct config_reporter *reporter);
