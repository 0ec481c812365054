/* SPDX-License-Identifier: MIT */

/* The node's counters by the names that they are exported with. */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/ledger.h"
#include "node/api_private.h"

enum {
    NAME_BYTES = 160
};

static const struct {
    const char *name;
    const char *labels;
} exported[METRIC_COUNT] = {
#define METRIC(id, name, labels, kind, help) {name, labels},
#define LEDGER(stage, outcome, reason, help)                                                       \
    {"sluice_stage_messages_total",                                                                \
            "stage=\"" #stage "\",outcome=\"" #outcome "\",reason=\"" #reason "\""},
#include "base/metrics.def"
};

static char names[METRIC_COUNT][NAME_BYTES];
static pthread_once_t names_once = PTHREAD_ONCE_INIT;

void api_lower(char *text)
{
    for (; *text != '\0'; text++) {
        if (*text >= 'A' && *text <= 'Z') {
            *text = (char)(*text + ('a' - 'A'));
        }
    }
}

/* The tables' capitals are those of their ids. */
static void make_names(void)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        bool has_labels = exported[i].labels[0] != '\0';
        snprintf(names[i], NAME_BYTES, has_labels ? "%s{%s}" : "%s", exported[i].name,
                exported[i].labels);
        api_lower(names[i]);
    }
}

const char *sluice_counter_name(size_t i)
{
    (void)pthread_once(&names_once, make_names);
    return i < METRIC_COUNT ? names[i] : NULL;
}

enum sluice_result sluice_node_counter(
        const struct sluice_node *node, const char *name, uint64_t *out)
{
    bool is_found = false;
    uint64_t sum = 0;
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        if (strcmp(sluice_counter_name(i), name) == 0 || strcmp(exported[i].name, name) == 0) {
            sum += metrics_sum(node_metrics(node->node), (enum metric)i);
            is_found = true;
        }
    }
    if (!is_found) {
        return SLUICE_NOT_FOUND;
    }
    *out = sum;
    return SLUICE_OK;
}
