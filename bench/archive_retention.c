/* SPDX-License-Identifier: MIT */

/*
 * What retention costs those who store messages: how many they store a second and how long a put and a
 * step of retention take at most, with and without retention, with and without a tender. As the
 * archive thread does it with a ring that is never empty. The four ways come in turn, several rounds of
 * them; shown are medians over the rounds, and the ratios of the median with retention to that without.
 *
 *     bench_archive_retention [--json] [--rows=N] [--rounds=N] [--seconds=N] [--folder=PATH]
 *
 * Retention is to keep three quarters of the first rows, so it has to remove what the other ways have
 * stored before it, and what comes meanwhile.
 */

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "archive/retention.h"
#include "archive/tender.h"
#include "base/clock.h"
#include "bench/archive_messages.h"
#include "bench/folder.h"

enum {
    BATCH = 256,
    CONTENT_TOPICS = 100,
    PAYLOAD = 200,
    MAX_ROUNDS = 99,
    MAX_PUTS = 1 << 20
};

static struct {
    bool is_json;
    unsigned rows;
    unsigned rounds;
    unsigned seconds;
    const char *folder;
} settings = {.rows = 300000, .rounds = 3, .seconds = 5, .folder = "."};

static unsigned next_number;
static int64_t first_ns;

static void check(enum status status, const char *what)
{
    if (status != STATUS_OK) {
        fprintf(stderr, "bench_archive_retention: %s: %s\n", what, status_text(status));
        exit(1);
    }
}

/* Nanoseconds that the put took. */
static uint64_t put_batch(struct archive *archive)
{
    struct envelope *batch[BATCH];
    struct archive_put_result result;
    for (unsigned i = 0; i < BATCH; i++) {
        struct archive_message message = {.number = next_number,
                .content_topics = CONTENT_TOPICS,
                .payload_bytes = PAYLOAD,
                .timestamp_ns = first_ns + (int64_t)next_number * NANOSECONDS_PER_MILLISECOND};
        batch[i] = archive_bench_envelope(&message);
        next_number++;
    }
    uint64_t start = clock_monotonic_ns();
    check(archive_put(archive, batch, BATCH, &result), "put");
    uint64_t taken = clock_monotonic_ns() - start;
    for (unsigned i = 0; i < BATCH; i++) {
        envelope_unref(batch[i]);
    }
    return taken;
}

struct way {
    const char *name;
    bool has_tender;
    bool has_retention;
};

static const struct way ways[] = {{"alone", false, false}, {"alone, retention", false, true},
        {"tender", true, false}, {"tender, retention", true, true}};

enum {
    WAYS = sizeof(ways) / sizeof(ways[0])
};

struct figures {
    double stored_per_s;
    double removed_per_s;
    double longest_put_ms;
    double p99_put_ms;
    double longest_step_ms;
    double longest_gap_ms; /* from the end of one put to the end of the next */
};

struct tending {
    struct archive_tender *tender;
    atomic_bool is_over;
};

static void *tend(void *context)
{
    struct tending *tending = context;
    const struct timespec nap = {.tv_nsec = NANOSECONDS_PER_MILLISECOND};
    while (!atomic_load(&tending->is_over)) {
        if (archive_tender_due_ns(tending->tender) <= clock_monotonic_ns()) {
            check(archive_tend(tending->tender), "tend");
        } else {
            nanosleep(&nap, NULL);
        }
    }
    return NULL;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void raise_to(double *most, uint64_t taken_ns)
{
    double taken_ms = (double)taken_ns / 1e6;
    *most = taken_ms > *most ? taken_ms : *most;
}

static struct figures store(struct archive *archive, const struct retention_policy *policy)
{
    static uint64_t puts[MAX_PUTS];
    size_t count = 0;
    size_t removed = 0;
    struct figures figures = {0};
    struct retention retention;
    retention_init(&retention, archive, policy, retention_now());
    uint64_t start = clock_monotonic_ns();
    uint64_t end = start + (uint64_t)settings.seconds * NANOSECONDS_PER_SECOND;
    while (clock_monotonic_ns() < end && count < MAX_PUTS) {
        uint64_t began = clock_monotonic_ns();
        uint64_t step = 0;
        if (began >= retention_due_ns(&retention)) {
            size_t gone = 0;
            check(retention_step(&retention, true, &gone), "retention");
            step = clock_monotonic_ns() - began;
            removed += gone;
        }
        uint64_t put = put_batch(archive);
        retention_note_batch(&retention, BATCH, clock_monotonic_ns());
        puts[count++] = put;
        raise_to(&figures.longest_put_ms, put);
        raise_to(&figures.longest_step_ms, step);
        raise_to(&figures.longest_gap_ms, put + step);
    }
    double seconds = (double)(clock_monotonic_ns() - start) / 1e9;
    qsort(puts, count, sizeof(puts[0]), compare_numbers);
    size_t p99 = count * 99 / 100;
    figures.p99_put_ms = (double)puts[p99] / 1e6;
    figures.stored_per_s = (double)(count * BATCH) / seconds;
    figures.removed_per_s = (double)removed / seconds;
    return figures;
}

static struct figures run_way(struct archive *archive, const struct way *way)
{
    struct retention_policy policy = {.max_count = way->has_retention ? settings.rows * 3 / 4 : 0};
    struct tending tending;
    pthread_t thread;
    atomic_init(&tending.is_over, false);
    if (!way->has_tender) {
        return store(archive, &policy);
    }
    check(archive_tender_open(&tending.tender, archive), "tender");
    if (pthread_create(&thread, NULL, tend, &tending) != 0) {
        check(STATUS_SYSTEM, "thread");
    }
    struct figures figures = store(archive, &policy);
    atomic_store(&tending.is_over, true);
    pthread_join(thread, NULL);
    archive_tender_close(&tending.tender);
    return figures;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median over the rounds of the double that stands offset bytes into each way's figures. */
static double median_of(struct figures rounds[][WAYS], unsigned way, size_t offset)
{
    double values[MAX_ROUNDS];
    for (unsigned i = 0; i < settings.rounds; i++) {
        memcpy(&values[i], (const char *)&rounds[i][way] + offset, sizeof(double));
    }
    qsort(values, settings.rounds, sizeof(double), compare_doubles);
    return values[settings.rounds / 2];
}

/* before: of the same way without retention; 0: that is this one. */
static void show_value(const char *name, double value, double before)
{
    printf(settings.is_json ? ",\"%s\":%.1f" : "  %s %.1f", name, value);
    if (before > 0) {
        printf(settings.is_json ? ",\"%s_ratio\":%.2f" : "%.0s (x%.2f)", name, value / before);
    }
}

static void show(struct figures rounds[][WAYS])
{
    static const struct {
        const char *name;
        size_t offset;
    } kinds[] = {{"stored_per_s", offsetof(struct figures, stored_per_s)},
            {"removed_per_s", offsetof(struct figures, removed_per_s)},
            {"longest_put_ms", offsetof(struct figures, longest_put_ms)},
            {"p99_put_ms", offsetof(struct figures, p99_put_ms)},
            {"longest_step_ms", offsetof(struct figures, longest_step_ms)},
            {"longest_gap_ms", offsetof(struct figures, longest_gap_ms)}};
    for (unsigned way = 0; way < WAYS; way++) {
        printf(settings.is_json ? "{\"bench\":\"archive-retention\",\"way\":\"%s\"" : "%-18s",
                ways[way].name);
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
            double value = median_of(rounds, way, kinds[i].offset);
            bool is_compared = ways[way].has_retention && way > 0;
            show_value(kinds[i].name, value,
                    is_compared ? median_of(rounds, way - 1, kinds[i].offset) : 0);
        }
        printf("%s\n", settings.is_json ? "}" : "");
    }
}

static unsigned number_from(const char *text)
{
    return (unsigned)strtoul(text, NULL, 10);
}

static void read_arguments(int argc, char *argv[])
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            settings.is_json = true;
        } else if (strncmp(argv[i], "--rows=", 7) == 0) {
            settings.rows = number_from(argv[i] + 7);
        } else if (strncmp(argv[i], "--rounds=", 9) == 0) {
            settings.rounds = number_from(argv[i] + 9);
        } else if (strncmp(argv[i], "--seconds=", 10) == 0) {
            settings.seconds = number_from(argv[i] + 10);
        } else if (strncmp(argv[i], "--folder=", 9) == 0) {
            settings.folder = argv[i] + 9;
        } else {
            fprintf(stderr, "bench_archive_retention: unknown argument '%s'\n", argv[i]);
            exit(2);
        }
    }
    if (settings.rows < BATCH || settings.rounds < 1 || settings.rounds > MAX_ROUNDS ||
            settings.seconds < 1) {
        fprintf(stderr, "bench_archive_retention: rows from %d, rounds 1..%d, seconds from 1\n",
                BATCH, MAX_ROUNDS);
        exit(2);
    }
}

int main(int argc, char *argv[])
{
    static struct figures rounds[MAX_ROUNDS][WAYS];
    char folder[PATH_MAX];
    char address[PATH_MAX + 32];
    struct archive *archive = NULL;
    struct archive_error error = {.text = ""};
    read_arguments(argc, argv);
    snprintf(folder, sizeof(folder), "%s/bench-archive-XXXXXX", settings.folder);
    if (mkdtemp(folder) == NULL) {
        check(STATUS_SYSTEM, folder);
    }
    snprintf(address, sizeof(address), "sqlite://%s/archive.db", folder);
    check(archive_open(&archive, address, NULL, &error), error.text);
    first_ns = clock_wall_ns() - 86400LL * NANOSECONDS_PER_SECOND;
    while (next_number < settings.rows) {
        put_batch(archive);
    }
    for (unsigned round = 0; round < settings.rounds; round++) {
        for (unsigned way = 0; way < WAYS; way++) {
            rounds[round][way] = run_way(archive, &ways[way]);
        }
    }
    show(rounds);
    archive_close(&archive);
    bench_remove_folder(folder);
    return 0;
}
