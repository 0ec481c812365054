/* SPDX-License-Identifier: MIT */
#pragma once

/* One measured run of one row, and the table of all runs: medians, spreads, CSV. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    ROUNDS_MAX = 99
};

/* The reference's columns, in its order, then ours. */
struct row_sample {
    double wall_ms;
    double msg_per_s;
    double ns_per_msg_p50;
    double ns_per_msg_p99;
    double decodes_per_msg;
    double hashes_per_msg;
    double hashed_mb;
    double decoded_mb;
    double occupied_mem_delta_mb;
    double gc_collections;
    double id_hashes_per_msg;
    double copies_per_msg;
    double copied_mb;
    double allocs_per_msg;
    double allocated_mb;
    double peak_rss_mb;
    double cpu_us_per_msg;
    double limit_msg_per_s;
    double share_of_limit;

    /* of macro rows, not in the CSV: see print_macro in verdict.c */
    double receiver_decodes;
    double receiver_hashes;
    double receiver_ids;
    double receiver_copies;
    double receiver_stored;
    double receiver_wrapped_copies;
    double receiver_cpu_us;
    double receiver_beyond_archive_mb;
    double latency_p50_ms;
    double latency_p99_ms;
};

enum {
    ROW_COLUMNS = sizeof(struct row_sample) / sizeof(double)
};

struct row {
    char name[64]; /* scenario */
    size_t messages;
    struct row_sample samples[ROUNDS_MAX];
    size_t count;
};

void row_print_header(FILE *out);

/* One run as CSV; suffix goes behind the scenario's name ("_run1"), may be empty. */
void row_print_sample(
        FILE *out, const struct row *row, const struct row_sample *sample, const char *suffix);

/* Column by column. */
struct row_sample row_median(const struct row *row);

/* (max - min) / median of msg_per_s. */
double row_spread(const struct row *row);
double row_least(const struct row *row);
double row_most(const struct row *row);

/* The middle value; sorts values. */
double median_of(double *values, size_t count);
