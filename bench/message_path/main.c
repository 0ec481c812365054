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

#include "bench/folder.h"
#include "bench/message_path/bench.h"
#include "bench/message_path/macro.h"

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_RESTLESS = 3
};

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
    for (size_t i = 0; i < (size_t)ARCHIVE_KINDS * 4; i++) {
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
    char folder[600];
    static const char *const suffixes[] = {"", "-wal", "-shm", ".spill"};
    if (!row->is_on_disk) {
        return;
    }
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char path[600];
        snprintf(path, sizeof(path), "%s%s", row->archive + strlen("sqlite://"), suffixes[i]);
        unlink(path);
    }
    snprintf(folder, sizeof(folder), "%s-segments", row->archive + strlen("sqlite://"));
    bench_remove_folder(folder);
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

static bool run_round(struct bench *bench, size_t round)
{
    for (size_t i = 0; i < bench->row_count; i++) {
        if (!measure_round(bench, &bench->rows[i], round)) {
            return false;
        }
    }
    return true;
}

static int run_rounds(struct bench *bench)
{
    size_t rounds = (size_t)options_number(bench->options, "rounds");
    row_print_header(stdout);
    for (size_t round = 0; round < rounds; round++) {
        if (!run_round(bench, round)) {
            return EXIT_FAILED;
        }
    }
    verdict_print(bench);
    if (!verdict_gates_hold(bench)) {
        return EXIT_FAILED;
    }
    return verdict_is_restless(bench) ? EXIT_RESTLESS : 0;
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
