/* SPDX-License-Identifier: MIT */
#pragma once

/* What the command-line programs print of a node: ledgers, counters and rates, as text and as JSON. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "node/node.h"

/* True when every ledger is closed. A table, one line a stage, then the reasons that are not zero. */
bool report_print_ledgers(const struct node *node, FILE *out);
void report_print_counters(const struct node *node, FILE *out);

/* {"intake": {"received": n, ..., "closed": true, "reasons": {...}}, ...}; NULL: no memory. */
json_t *report_ledgers_json(const struct node *node);
json_t *report_counters_json(const struct node *node);

bool report_ledgers_are_closed(const struct node *node);
