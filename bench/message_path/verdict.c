/* SPDX-License-Identifier: MIT */

/* Medians, ratios of rows, gates. */

#include <string.h>

#include "bench/message_path/bench.h"
#include "bench/message_path/meter.h"

#define SPREAD_MAX 0.15
#define GROWTH_MAX 1.05

static void print_medians(const struct bench *bench)
{
    printf("\nmedians of %zu rounds\n", bench->rows[0].row.count);
    row_print_header(stdout);
    for (size_t i = 0; i < bench->row_count; i++) {
        struct row_sample median = row_median(&bench->rows[i].row);
        row_print_sample(stdout, &bench->rows[i].row, &median, "");
    }
    printf("\n%-28s %10s %10s %10s %8s %8s\n", "row", "min msg/s", "median", "max", "spread",
            "share");
    for (size_t i = 0; i < bench->row_count; i++) {
        const struct row *row = &bench->rows[i].row;
        struct row_sample median = row_median(row);
        printf("%-28s %10.0f %10.0f %10.0f %7.1f%% %8.3f\n", row->name, row_least(row),
                median.msg_per_s, row_most(row), row_spread(row) * 100, median.share_of_limit);
    }
}

static const struct row *find_row(const struct bench *bench, const char *name)
{
    for (size_t i = 0; i < bench->row_count; i++) {
        if (strcmp(bench->rows[i].row.name, name) == 0) {
            return &bench->rows[i].row;
        }
    }
    return NULL;
}

/* Two rows of the same rounds, one over the other; the median of the rounds' ratios. */
static void print_ratio(
        const struct bench *bench, const char *what, const char *above, const char *below)
{
    const struct row *a = find_row(bench, above);
    const struct row *b = find_row(bench, below);
    double ratios[ROUNDS_MAX];
    if (a == NULL || b == NULL) {
        return;
    }
    for (size_t i = 0; i < a->count; i++) {
        ratios[i] = a->samples[i].msg_per_s / b->samples[i].msg_per_s;
    }
    printf("%-44s %6.2f\n", what, median_of(ratios, a->count));
}

/* How many times faster a copy of a message is handled than a new one. */
static void print_duplicate_ratio(const struct bench *bench, const char *x1, const char *x6)
{
    const struct row *once = find_row(bench, x1);
    const struct row *six = find_row(bench, x6);
    double ratios[ROUNDS_MAX];
    if (once == NULL || six == NULL) {
        return;
    }
    for (size_t i = 0; i < once->count; i++) {
        double copies_ms = (six->samples[i].wall_ms - once->samples[i].wall_ms) / 5;
        ratios[i] = copies_ms > 0 ? once->samples[i].wall_ms / copies_ms : 1000;
    }
    printf("%-44s %6.2f\n", "a copy, times faster than a new message",
            median_of(ratios, once->count));
}

/* What the CSV has no column for: the receiver alone, and the time from publish to callback. */
static void print_macro(const struct bench *bench)
{
    if (!scenario_is_macro(&bench->rows[0].scenario)) {
        return;
    }
    printf("\n%-28s %8s %8s %8s %8s %8s %8s %10s %8s %8s\n", "receiver", "decodes", "hashes", "ids",
            "copies", "wrapped", "cpu us", "beyond MB", "p50 ms", "p99 ms");
    for (size_t i = 0; i < bench->row_count; i++) {
        struct row_sample median = row_median(&bench->rows[i].row);
        printf("%-28s %8.3f %8.3f %8.3f %8.3f %8.3f %8.1f %10.1f %8.2f %8.2f\n",
                bench->rows[i].row.name, median.receiver_decodes, median.receiver_hashes,
                median.receiver_ids, median.receiver_copies, median.receiver_wrapped_copies,
                median.receiver_cpu_us, median.receiver_beyond_archive_mb, median.latency_p50_ms,
                median.latency_p99_ms);
    }
    printf("cpu and memory beyond what the archive keeps: only of receivers in their own "
           "process\n");
}

static void print_ratios(const struct bench *bench)
{
    printf("\n");
    print_ratio(bench, "macro: shared over copying, memory", "macro_shared_memory_w32",
            "macro_copying_memory_w32");
    print_ratio(bench, "macro: shared over copying, sqlite", "macro_shared_sqlite_w32",
            "macro_copying_sqlite_w32");
    print_ratio(bench, "shared over copying, memory, window 32", "micro_shared_memory_w32",
            "micro_copying_memory_w32");
    print_ratio(bench, "shared over copying, sqlite, window 32", "micro_shared_sqlite_w32",
            "micro_copying_sqlite_w32");
    print_ratio(bench, "shared over copying, disk, window 32", "micro_shared_disk_w32",
            "micro_copying_disk_w32");
    print_duplicate_ratio(bench, "ingress_shared_x1_memory_w32", "ingress_shared_x6_memory_w32");
}

static bool gate(const char *row, const char *what, double value, double wanted)
{
    bool good = value > wanted - 0.0005 && value < wanted + 0.0005;
    if (!good) {
        printf("gate: %s: %s is %.3f, expected %.3f\n", row, what, value, wanted);
    }
    return good;
}

/* What the memory archive keeps is the messages and little else. */
static bool check_growth(const struct bench *bench)
{
    const struct heap_growth *growth = &bench->heap_growth;
    if (bench->heap_series == NULL || scenario_is_macro(&bench->rows[0].scenario)) {
        return true;
    }
    if (!growth->is_known) {
        printf("gate: the heap series needs the row micro_shared_memory_w32 and 100 messages\n");
        return false;
    }
    double rss = growth->rss_bytes / growth->serialised_bytes;
    double held = growth->held_bytes / growth->serialised_bytes;
    printf("bytes kept for each serialised byte: %.3f resident, %.3f allocated and in regions\n",
            rss, held);
    if (rss > GROWTH_MAX || held > GROWTH_MAX) {
        printf("gate: more than %.2f\n", GROWTH_MAX);
        return false;
    }
    return true;
}

/* The receiver's work, and that of the whole: the publisher encodes, hashes and decodes nothing. */
static bool check_macro(const struct bench_row *row, const struct row_sample *median)
{
    const char *name = row->row.name;
    bool is_copying = row->scenario.kind == SCENARIO_MACRO_COPYING;
    double decodes = is_copying ? 4.0 : 1.0;
    double hashes = is_copying ? 3.0 : 1.0;
    bool good = gate(name, "receiver's decodes/msg", median->receiver_decodes, decodes);
    good = gate(name, "receiver's hashes/msg", median->receiver_hashes, hashes) && good;
    good = gate(name, "decodes/msg", median->decodes_per_msg, decodes) && good;
    good = gate(name, "hashes/msg", median->hashes_per_msg, hashes + 1.0) && good;
    if (!is_copying) {
        good = gate(name, "receiver's stored/msg", median->receiver_stored, 1.0) && good;
    }
    if (!is_copying && strcmp(row->archive, "memory") == 0) {
        good = gate(name, "receiver's copies/msg", median->receiver_copies, 0.0) && good;
        good = gate(name, "receiver's copies/msg, wrapped", median->receiver_wrapped_copies, 0.0) &&
               good;
    }
    return good;
}

bool verdict_gates_hold(const struct bench *bench)
{
    bool good = true;
    for (size_t i = 0; i < bench->row_count; i++) {
        const struct bench_row *row = &bench->rows[i];
        struct row_sample median = row_median(&row->row);
        if (scenario_is_macro(&row->scenario)) {
            good = check_macro(row, &median) && good;
            continue;
        }
        double wanted = row->scenario.kind == SCENARIO_MICRO_COPYING ? 2.0 : 1.0;
        good = gate(row->row.name, "decodes/msg", median.decodes_per_msg, wanted) && good;
        good = gate(row->row.name, "hashes/msg", median.hashes_per_msg, wanted) && good;
        if (row->scenario.kind != SCENARIO_MICRO_COPYING && strcmp(row->archive, "memory") == 0) {
            good = gate(row->row.name, "copies/msg", median.copies_per_msg, 0.0) && good;
            good = gate(row->row.name, "copied MB", median.copied_mb, 0.0) && good;
        }
    }
    good = check_growth(bench) && good;
    printf("gates: %s\n", good ? "passed" : "FAILED");
    return good;
}

bool verdict_is_restless(const struct bench *bench)
{
    bool restless = false;
    for (size_t i = 0; i < bench->row_count; i++) {
        double spread = row_spread(&bench->rows[i].row);
        if (spread > SPREAD_MAX) {
            printf("%s: the rounds spread by %.0f %%\n", bench->rows[i].row.name, spread * 100);
            restless = true;
        }
    }
    if (restless) {
        printf("no verdict: the machine was too restless\n");
    }
    return restless;
}

void verdict_print(const struct bench *bench)
{
    print_medians(bench);
    print_macro(bench);
    print_ratios(bench);
    if (meter_counts_copies()) {
        printf("copies of 1 KiB and more were counted by wrapping memcpy and memmove too\n");
    }
}
