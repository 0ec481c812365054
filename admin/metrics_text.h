/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Writes numbers in the text format that Prometheus reads (exposition format 0.0.4).
 *
 * A series whose value is 0 is left out until it has shown another one, and stays from then on: most
 * of what a node counts are faults that never happen. Series that are marked as always there, and
 * pages written without a memory of what was shown, have their zeros.
 *
 * Ownership: texts are copied. Want of memory is remembered until the end.
 * Thread:    one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"

enum {
    METRICS_NAME_MAX = 96,
    METRICS_LABEL_VALUE_MAX = 256,
    METRICS_SEEN_MAX = 8192 /* half of them are used; series beyond lose their zeros */
};

/* Which series were shown; all zero at first. */
struct metrics_seen {
    uint64_t keys[METRICS_SEEN_MAX];
    size_t count;
};

/* What a family is called on this page; false: it is left out. */
typedef bool metrics_rename(char out[METRICS_NAME_MAX], const char *name);

struct metrics_text {
    struct metrics_seen *BORROWED seen; /* NULL: all zeros are shown */
    char *bytes;
    size_t length;
    size_t capacity;
    bool has_failed;
    bool has_header; /* of the family at hand */
    bool is_left_out;
    metrics_rename *rename; /* NULL: families have the names that they are given */
    char name[METRICS_NAME_MAX];
    const char *type;
    const char *help;
};

void metrics_text_begin(struct metrics_text *text, struct metrics_seen *seen);

/*
 * What follows belongs to it; type and help live until the next family. Families come once each. A name
 * is shorter than METRICS_NAME_MAX.
 */
void metrics_text_family(
        struct metrics_text *text, const char *name, const char *type, const char *help);

/*
 * A series of the family: suffix is "" but for the parts of a histogram, labels as in
 * direction="in",kind="x" or "".
 */
struct metrics_series {
    const char *suffix;
    const char *labels;
    bool is_always_there;
};
void metrics_text_count(
        struct metrics_text *text, const struct metrics_series *series, uint64_t value);
void metrics_text_number(
        struct metrics_text *text, const struct metrics_series *series, double value);

/* The page, to be freed by free(); NULL when there was no memory. */
MUST_USE char *metrics_text_end(struct metrics_text *text, size_t *length);

/* A label's value as it stands between quotes; cut when it is too long. Returns out. */
const char *metrics_label_value(char out[METRICS_LABEL_VALUE_MAX], const char *value);
