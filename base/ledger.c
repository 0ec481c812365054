/* SPDX-License-Identifier: MIT */
#include "base/ledger.h"

#include <string.h>

const struct ledger_cell ledger_cells[] = {
#define LEDGER(stage, outcome, reason, help)                                                       \
    {LEDGER_##stage##_##reason, LEDGER_STAGE_##stage, LEDGER_OUTCOME_##outcome, #reason},
#include "base/metrics.def"
};

const size_t ledger_cell_count = sizeof(ledger_cells) / sizeof(ledger_cells[0]);

const char *ledger_stage_name(enum ledger_stage stage)
{
    static const char *const names[] = {
            "intake", "archive", "filter", "sync", "event", "relay_out", "filter_out"};
    return names[stage];
}

const char *ledger_outcome_name(enum ledger_outcome outcome)
{
    static const char *const names[] = {"received", "delivered", "refused", "dropped"};
    return names[outcome];
}

void ledger_read(
        struct ledger *out, const struct metrics *metrics, enum ledger_stage stage, uint64_t held)
{
    memset(out, 0, sizeof(*out));
    out->held = held;
    for (size_t i = 0; i < ledger_cell_count; i++) {
        if (ledger_cells[i].stage == stage) {
            out->sums[ledger_cells[i].outcome] += metrics_sum(metrics, ledger_cells[i].metric);
        }
    }
}

bool ledger_is_closed(const struct ledger *ledger)
{
    const uint64_t *sums = ledger->sums;
    return sums[LEDGER_OUTCOME_RECEIVED] == sums[LEDGER_OUTCOME_DELIVERED] +
                                                    sums[LEDGER_OUTCOME_REFUSED] +
                                                    sums[LEDGER_OUTCOME_DROPPED] + ledger->held;
}
