/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Settings that contradict each other (admin/config_limits.def), and budgets that the machine has no
 * memory for: one note each; the node starts all the same.
 */

#include <stdint.h>

#include "admin/config_report.h"
#include "base/options.h"

/* options has the tables of the node and of reference_flags. */
void config_limits_check(const struct options *options, const struct config_reporter *reporter);

/* When all budgets together are above machine_bytes; 0: it is not known. */
void config_memory_check(const struct options *options, uint64_t machine_bytes,
        const struct config_reporter *reporter);

/* What this process may use at most: the machine's memory or its control group's limit. 0: unknown. */
uint64_t config_machine_bytes(void);
