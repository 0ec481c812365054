/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files of the metrics page share. */

#include "admin/metrics_text.h"
#include "node/metrics_export.h"
#include "node/reading.h"

enum {
    METRICS_LABELS_MAX = 2 * METRICS_LABEL_VALUE_MAX
};

/* A counter of base/metrics.def; all NULL: a cell of a ledger. */
struct counter_name {
    const char *name;
    const char *labels;
    const char *help;
};

extern const struct counter_name counter_names[METRIC_COUNT];

enum metrics_presence {
    ONCE_SEEN, /* a series appears when it is not 0 for the first time */
    ALWAYS
};

void metrics_count(struct metrics_text *text, const char *labels, enum metrics_presence presence,
        uint64_t value);
void metrics_number(struct metrics_text *text, const char *labels, double value);

/* node/metrics_reference.c: the reference's names, as options->names says. */
void metrics_write_reference(struct metrics_text *text, const struct node_reading *reading,
        const struct metrics_export_options *options);

/* What is written there as a histogram and not as the single counters that it is made of. */
bool metrics_is_part_of_histogram(size_t metric);

/* node/metrics_topics.c: of each pubsub topic. */
void metrics_write_reference_topics(struct metrics_text *text, const struct node_reading *reading);
void metrics_write_topics(struct metrics_text *text, const struct node_reading *reading);
