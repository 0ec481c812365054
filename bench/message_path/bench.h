/* SPDX-License-Identifier: MIT */
#pragma once

/* The rows of one run of the benchmark, and what is said of them at its end. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options.h"
#include "bench/message_path/row.h"
#include "bench/message_path/scenario.h"
#include "bench/message_path/workload.h"

enum {
    BENCH_ROWS_MAX = 64
};

struct bench_row {
    struct row row;
    struct scenario scenario;
    char archive[512];
    bool is_on_disk;
};

struct bench {
    const struct options *options;
    struct workload workload;
    struct bench_row rows[BENCH_ROWS_MAX];
    size_t row_count;
    FILE *heap_series;
    struct heap_growth heap_growth;
    uint64_t next_nonce;
};

/* verdict.c, on standard output. */
void verdict_print(const struct bench *bench);

/* Counts of work are exact: one that is not as wanted fails the run. */
bool verdict_gates_hold(const struct bench *bench);

/* The rounds of some row lie too far apart to say anything. */
bool verdict_is_restless(const struct bench *bench);
