/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Every stage's account of its messages, read from the metrics: received = delivered + refused +
 * dropped + held. What is held is counted by looking into the queues, so that the ledger can fail.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"

enum ledger_stage {
    LEDGER_STAGE_INTAKE,
    LEDGER_STAGE_ARCHIVE,
    LEDGER_STAGE_FILTER,
    LEDGER_STAGE_SYNC,
    LEDGER_STAGE_EVENT,
    LEDGER_STAGE_RELAY_OUT,
    LEDGER_STAGE_FILTER_OUT,
    LEDGER_STAGES
};

enum ledger_outcome {
    LEDGER_OUTCOME_RECEIVED,
    LEDGER_OUTCOME_DELIVERED,
    LEDGER_OUTCOME_REFUSED,
    LEDGER_OUTCOME_DROPPED,
    LEDGER_OUTCOMES
};

/* One line of metrics.def. */
struct ledger_cell {
    enum metric metric;
    enum ledger_stage stage;
    enum ledger_outcome outcome;
    const char *reason; /* as in the table: upper case */
};

extern const struct ledger_cell ledger_cells[];
extern const size_t ledger_cell_count;

const char *ledger_stage_name(enum ledger_stage stage);
const char *ledger_outcome_name(enum ledger_outcome outcome);

struct ledger {
    uint64_t sums[LEDGER_OUTCOMES];
    uint64_t held;
};

void ledger_read(
        struct ledger *out, const struct metrics *metrics, enum ledger_stage stage, uint64_t held);
bool ledger_is_closed(const struct ledger *ledger);
