/* SPDX-License-Identifier: MIT */

/*
 * The reference's message-path benchmark on this pipeline. Prints its CSV columns and ours for every
 * run, then the medians, then the gates; the exit status is theirs: 0, 1 for a gate that fails, 2 for
 * usage, 3 when the machine was too restless to tell.
 */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "bench/message_path/macro.h"
#include "bench/message_path/meter.h"
#include "bench/message_path/scenario.h"

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_RESTLESS = 3,
    ROWS_MAX = 64
};

#define SPREAD_MAX 0.15
#define GROWTH_MAX 1.05

static const struct option_spec bench_options[] = {
        {"scenario", OPTION_TEXT, "micro", 0, 0, "Benchmark",
                "micro: the pipeline in this process; macro: two nodes over loopback TCP"},
        {"rounds", OPTION_NUMBER, "5", 1, 99, "Benchmark", "runs of each row"},
        {"messages", OPTION_NUMBER, "1000", 10, 1000000, "Benchmark", "measured messages a run"},
        {"warmup", OPTION_NUMBER, "100", 0, 100000, "Benchmark", "messages before them"},
        {"rows", OPTION_TEXT, "", 0, 0, "Benchmark", "only rows whose name contains this"},
        {"pin", OPTION_TEXT, "auto", 0, 0, "Benchmark", "as the router's --pin"},
        {"disk", OPTION_TEXT, "", 0, 0, "Benchmark",
                "folder for the SQLite file; the current one when not given"},
        {"heap-series", OPTION_TEXT, "", 0, 0, "Benchmark",
                "file for allocated, active, resident and cumulative bytes every 50 messages; "
                "gate: "
                "with the memory archive they grow by 1.05 times the messages at most"},
        {"help", OPTION_BOOL, "false", 0, 0, "Benchmark", "print this help"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

struct archive_kind {
    const char *name;
    const char *address; /* NULL: a file in --disk */
};

static const struct archive_kind archive_kinds[] = {
        {"memory", "memory"}, {"sqlite", "sqlite://:memory:"}, {"disk", NULL}};

enum {
    ARCHIVE_KINDS = sizeof(archive_kinds) / sizeof(archive_kinds[0])
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
    struct bench_row rows[ROWS_MAX];
    size_t row_count;
    FILE *heap_series;
    struct heap_growth heap_growth;
    uint64_t next_nonce;
};

static void set_archive(
        struct bench_row *row, const struct bench *bench, const struct archive_kind *archive)
{
    const char *folder = options_text(bench->options, "disk");
    if (archive->address != NULL) {
        snprintf(row->archive, sizeof(row->archive), "%s", archive->address);
    } else {
        snprintf(row->archive, sizeof(row->archive), "sqlite://%.300s/message_path.%d.sqlite",
                folder[0] != '\0' ? folder : ".", (int)getpid());
    }
    row->is_on_disk = archive->address == NULL;
}

/* A row named so, unless --rows leaves it out. */
static void add_row(struct bench *bench, const char *name, const struct archive_kind *archive,
        const struct scenario *scenario)
{
    struct bench_row *row = &bench->rows[bench->row_count];
    if (strstr(name, options_text(bench->options, "rows")) == NULL) {
        return;
    }
    snprintf(row->row.name, sizeof(row->row.name), "%s", name);
    set_archive(row, bench, archive);
    row->row.messages = (size_t)options_number(bench->options, "messages");
    row->scenario = *scenario;
    row->scenario.archive = row->archive;
    row->scenario.pin = options_text(bench->options, "pin");
    row->scenario.warmup = (size_t)options_number(bench->options, "warmup");
    bench->row_count++;
}

static void add_micro(struct bench *bench, const char *kind_name, enum scenario_kind kind,
        const struct archive_kind *archive, size_t arrivals)
{
    static const size_t windows[] = {1, 32};
    for (size_t w = 0; w < 2; w++) {
        char name[64];
        struct scenario scenario = {.kind = kind, .window = windows[w], .arrivals = arrivals};
        snprintf(name, sizeof(name), "%s_%s_w%zu", kind_name, archive->name, windows[w]);
        add_row(bench, name, archive, &scenario);
    }
}

static void make_micro_rows(struct bench *bench)
{
    for (size_t a = 0; a < ARCHIVE_KINDS; a++) {
        const struct archive_kind *kind = &archive_kinds[a];
        add_micro(bench, "micro_shared", SCENARIO_MICRO_SHARED, kind, 1);
        add_micro(bench, "ingress_shared_x1", SCENARIO_INGRESS_SHARED, kind, 1);
        add_micro(bench, "ingress_shared_x6", SCENARIO_INGRESS_SHARED, kind, 6);
        add_micro(bench, "micro_copying", SCENARIO_MICRO_COPYING, kind, 1);
    }
}

/* 2p: the receiver in a process of its own. */
static void make_macro_rows(struct bench *bench)
{
    static const char *const names[] = {"macro_shared", "macro_copying"};
    static const enum scenario_kind kinds[] = {SCENARIO_MACRO_SHARED, SCENARIO_MACRO_COPYING};
    for (size_t i = 0; i < ARCHIVE_KINDS * 4; i++) {
        const struct archive_kind *archive = &archive_kinds[i / 4];
        size_t kind = i % 2;
        bool has_two = i / 2 % 2 == 1;
        char name[64];
        struct scenario scenario = {
                .kind = kinds[kind], .window = 32, .arrivals = 1, .has_two_processes = has_two};
        snprintf(name, sizeof(name), "%s_%s%s_w32", names[kind], has_two ? "2p_" : "",
                archive->name);
        add_row(bench, name, archive, &scenario);
    }
}

/* A run starts with no database; what the engine keeps beside the file goes too. */
static void remove_database(const struct bench_row *row)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".spill"};
    if (!row->is_on_disk) {
        return;
    }
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char path[600];
        snprintf(path, sizeof(path), "%s%s", row->archive + strlen("sqlite://"), suffixes[i]);
        unlink(path);
    }
}

/* Of both scenarios, the row whose heap is worth seeing. */
static bool shows_heap(const struct bench *bench, const struct scenario *scenario, size_t round)
{
    bool is_shared = scenario->kind == SCENARIO_MICRO_SHARED ||
                     (scenario->kind == SCENARIO_MACRO_SHARED && !scenario->has_two_processes);
    return bench->heap_series != NULL && round == 0 && is_shared && scenario->window == 32 &&
           strcmp(scenario->archive, "memory") == 0;
}

static enum status run_scenario(
        struct row_sample *sample, const struct workload *workload, const struct scenario *scenario)
{
    if (scenario_is_macro(scenario)) {
        return run_macro(sample, workload, scenario);
    }
    return scenario->kind == SCENARIO_MICRO_COPYING ? run_copying(sample, workload, scenario)
                                                    : run_shared(sample, workload, scenario);
}

static bool measure_round(struct bench *bench, struct bench_row *row, size_t round)
{
    struct row_sample sample = {0};
    struct scenario scenario = row->scenario;
    const struct workload *workload = &bench->workload;
    scenario.heap_series = shows_heap(bench, &scenario, round) ? bench->heap_series : NULL;
    scenario.heap_growth = &bench->heap_growth;
    scenario.nonce = bench->next_nonce++;
    remove_database(row);
    enum status status = run_scenario(&sample, workload, &scenario);
    remove_database(row);
    scenario.nonce = bench->next_nonce++;
    if (status == STATUS_OK) {
        status = scenario_is_macro(&scenario)
                         ? measure_macro_limit(&sample.limit_msg_per_s, workload, &scenario)
                         : measure_limit(&sample.limit_msg_per_s, workload, &scenario);
    }
    remove_database(row);
    if (status != STATUS_OK) {
        fprintf(stderr, "message_path: %s: %s\n", row->row.name, status_text(status));
        return false;
    }
    sample.share_of_limit = sample.msg_per_s / sample.limit_msg_per_s;
    char suffix[24];
    snprintf(suffix, sizeof(suffix), "_run%zu", round + 1);
    row_print_sample(stdout, &row->row, &sample, suffix);
    fflush(stdout);
    row->row.samples[row->row.count++] = sample;
    return true;
}

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
    if (!is_copying && strcmp(row->archive, "memory") == 0) {
        good = gate(name, "receiver's copies/msg", median->receiver_copies, 0.0) && good;
        good = gate(name, "receiver's copies/msg, wrapped", median->receiver_wrapped_copies, 0.0) &&
               good;
    }
    return good;
}

static bool check_gates(const struct bench *bench)
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

static bool is_restless(const struct bench *bench)
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

static int run_rounds(struct bench *bench)
{
    size_t rounds = (size_t)options_number(bench->options, "rounds");
    row_print_header(stdout);
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < bench->row_count; i++) {
            if (!measure_round(bench, &bench->rows[i], round)) {
                return EXIT_FAILED;
            }
        }
    }
    print_medians(bench);
    print_macro(bench);
    print_ratios(bench);
    if (meter_counts_copies()) {
        printf("copies of 1 KiB and more were counted by wrapping memcpy and memmove too\n");
    }
    bool good = check_gates(bench);
    if (!good) {
        return EXIT_FAILED;
    }
    return is_restless(bench) ? EXIT_RESTLESS : 0;
}

static int run_bench(struct bench *bench)
{
    const char *series = options_text(bench->options, "heap-series");
    size_t count = (size_t)(options_number(bench->options, "messages") +
                            options_number(bench->options, "warmup"));
    if (series[0] != '\0') {
        bench->heap_series = fopen(series, "w");
        if (bench->heap_series == NULL) {
            fprintf(stderr, "message_path: cannot write %s\n", series);
            return EXIT_FAILED;
        }
        fprintf(bench->heap_series, "message,allocated_bytes,active_bytes,resident_bytes,rss_bytes,"
                                    "cumulative_bytes,serialised_bytes,held_bytes\n");
    }
    if (workload_create(&bench->workload, count, WORKLOAD_SEED) != STATUS_OK) {
        return EXIT_FAILED;
    }
    if (strcmp(options_text(bench->options, "scenario"), "macro") == 0) {
        make_macro_rows(bench);
    } else {
        make_micro_rows(bench);
    }
    if (bench->row_count == 0) {
        fprintf(stderr, "message_path: no row has \"%s\" in its name\n",
                options_text(bench->options, "rows"));
        return EXIT_USAGE;
    }
    int exit_status = run_rounds(bench);
    workload_destroy(&bench->workload);
    if (bench->heap_series != NULL) {
        fclose(bench->heap_series);
    }
    return exit_status;
}

int main(int argc, char *argv[])
{
    static struct bench bench;
    const struct option_spec *const tables[] = {bench_options, NULL};
    struct options *options = NULL;
    struct options_error error;
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && strcmp(argv[1], MACRO_RECEIVER_COMMAND) == 0) {
        return macro_receiver_main(argc - 2, argv + 2);
    }
    if (options_create(&options, tables) != STATUS_OK) {
        return EXIT_FAILED;
    }
    bench.options = options;
    int exit_status = EXIT_USAGE;
    if (options_parse_arguments(options, argc - 1, argv + 1, &error) != STATUS_OK) {
        fprintf(stderr, "message_path: %s\n", error.text);
    } else if (options_flag(options, "help")) {
        printf("usage: message_path [OPTIONS]\n");
        options_print_help(options, stdout);
        exit_status = 0;
    } else if (strcmp(options_text(options, "scenario"), "micro") != 0 &&
               strcmp(options_text(options, "scenario"), "macro") != 0) {
        fprintf(stderr, "message_path: --scenario=%s is not there; there are micro and macro\n",
                options_text(options, "scenario"));
    } else {
        exit_status = run_bench(&bench);
    }
    options_destroy(&options);
    return exit_status;
}
