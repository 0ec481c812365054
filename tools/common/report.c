/* SPDX-License-Identifier: MIT */
#include "tools/common/report.h"

#include <inttypes.h>
#include <string.h>

struct counter {
    const char *name;
    enum metric metric;
};

/* What the message path did, in the order of the pipeline. */
static const struct counter counters[] = {
        {"rpcs", METRIC_RPCS},
        {"rpcs_malformed", METRIC_RPCS_MALFORMED},
        {"decodes", METRIC_DECODES},
        {"decoded_bytes", METRIC_DECODED_BYTES},
        {"message_hashes", METRIC_MESSAGE_HASHES},
        {"hashed_bytes", METRIC_HASHED_BYTES},
        {"id_hashes", METRIC_ID_HASHES},
        {"id_hashed_bytes", METRIC_ID_HASHED_BYTES},
        {"copies", METRIC_COPIES},
        {"copied_bytes", METRIC_COPIED_BYTES},
        {"allocations", METRIC_ALLOCATIONS},
        {"allocated_bytes", METRIC_ALLOCATED_BYTES},
        {"filter_pushes", METRIC_FILTER_PUSHES},
        {"archive_batches", METRIC_ARCHIVE_BATCHES},
        {"archive_failures", METRIC_ARCHIVE_FAILURES},
        {"archive_spilled", METRIC_ARCHIVE_SPILLED},
};

enum {
    COUNTER_COUNT = sizeof(counters) / sizeof(counters[0])
};

static uint64_t sum_of(const struct node *node, enum metric metric)
{
    return metrics_sum(node_metrics(node), metric);
}

static void read_stage(struct ledger *out, const struct node *node, size_t stage)
{
    enum ledger_stage which = (enum ledger_stage)stage;
    ledger_read(out, node_metrics(node), which, node_held(node, which));
}

bool report_ledgers_are_closed(const struct node *node)
{
    bool closed = true;
    for (size_t stage = 0; stage < LEDGER_STAGES; stage++) {
        struct ledger ledger;
        read_stage(&ledger, node, stage);
        closed = closed && ledger_is_closed(&ledger);
    }
    return closed;
}

static char lower(char letter)
{
    if (letter >= 'A' && letter <= 'Z') {
        letter = (char)(letter - 'A' + 'a');
    }
    return letter;
}

static void lower_case(char *out, size_t capacity, const char *text)
{
    size_t i = 0;
    for (; text[i] != '\0' && i + 1 < capacity; i++) {
        out[i] = lower(text[i]);
    }
    out[i] = '\0';
}

/* Cells other than plain "received" and "delivered". */
static bool is_reason(const struct ledger_cell *cell)
{
    return cell->outcome == LEDGER_OUTCOME_REFUSED || cell->outcome == LEDGER_OUTCOME_DROPPED;
}

static void print_reasons(const struct node *node, size_t stage, FILE *out)
{
    for (size_t i = 0; i < ledger_cell_count; i++) {
        const struct ledger_cell *cell = &ledger_cells[i];
        uint64_t count = sum_of(node, cell->metric);
        char reason[64];
        if (cell->stage != (enum ledger_stage)stage || !is_reason(cell) || count == 0) {
            continue;
        }
        lower_case(reason, sizeof(reason), cell->reason);
        fprintf(out, "            %s(%s) %" PRIu64 "\n", ledger_outcome_name(cell->outcome), reason,
                count);
    }
}

bool report_print_ledgers(const struct node *node, FILE *out)
{
    bool all_closed = true;
    fprintf(out, "%-10s %12s %12s %12s %12s %12s\n", "stage", "received", "delivered", "refused",
            "dropped", "held");
    for (size_t stage = 0; stage < LEDGER_STAGES; stage++) {
        struct ledger ledger;
        read_stage(&ledger, node, stage);
        bool closed = ledger_is_closed(&ledger);
        fprintf(out,
                "%-10s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "%s\n",
                ledger_stage_name((enum ledger_stage)stage), ledger.sums[LEDGER_OUTCOME_RECEIVED],
                ledger.sums[LEDGER_OUTCOME_DELIVERED], ledger.sums[LEDGER_OUTCOME_REFUSED],
                ledger.sums[LEDGER_OUTCOME_DROPPED], ledger.held, closed ? "" : "  NOT CLOSED");
        print_reasons(node, stage, out);
        all_closed = all_closed && closed;
    }
    fprintf(out, "ledgers: %s\n", all_closed ? "closed" : "NOT CLOSED");
    return all_closed;
}

void report_print_counters(const struct node *node, FILE *out)
{
    for (size_t i = 0; i < COUNTER_COUNT; i++) {
        fprintf(out, "%-18s %15" PRIu64 "\n", counters[i].name, sum_of(node, counters[i].metric));
    }
}

json_t *report_counters_json(const struct node *node)
{
    json_t *object = json_object();
    for (size_t i = 0; i < COUNTER_COUNT; i++) {
        json_object_set_new(object, counters[i].name,
                json_integer((json_int_t)sum_of(node, counters[i].metric)));
    }
    return object;
}

static json_t *reasons_json(const struct node *node, size_t stage)
{
    json_t *reasons = json_object();
    for (size_t i = 0; i < ledger_cell_count; i++) {
        const struct ledger_cell *cell = &ledger_cells[i];
        char reason[64];
        if (cell->stage == (enum ledger_stage)stage && is_reason(cell)) {
            lower_case(reason, sizeof(reason), cell->reason);
            json_object_set_new(
                    reasons, reason, json_integer((json_int_t)sum_of(node, cell->metric)));
        }
    }
    return reasons;
}

json_t *report_ledgers_json(const struct node *node)
{
    json_t *stages = json_object();
    for (size_t stage = 0; stage < LEDGER_STAGES; stage++) {
        struct ledger ledger;
        json_t *object = json_object();
        read_stage(&ledger, node, stage);
        for (size_t i = 0; i < LEDGER_OUTCOMES; i++) {
            json_object_set_new(object, ledger_outcome_name((enum ledger_outcome)i),
                    json_integer((json_int_t)ledger.sums[i]));
        }
        json_object_set_new(object, "held", json_integer((json_int_t)ledger.held));
        json_object_set_new(object, "closed", json_boolean(ledger_is_closed(&ledger)));
        json_object_set_new(object, "reasons", reasons_json(node, stage));
        json_object_set_new(stages, ledger_stage_name((enum ledger_stage)stage), object);
    }
    return stages;
}
