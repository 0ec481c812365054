/* SPDX-License-Identifier: MIT */

/*
 * The archive as a store node uses it: how long queries take on many messages, alone and while others
 * are stored, and what retention costs those that are.
 *
 *   bench_archive_store [--rows=1000000] [--folder=.]
 *
 * The messages (200 bytes of payload, 100 content topics) stand for two days.
 */

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/retention.h"
#include "base/clock.h"
#include "bench/archive_messages.h"
#include "bench/folder.h"

enum {
    BATCH = 256,
    CONTENT_TOPICS = 100,
    QUERIES = 500,
    PAYLOAD = 200,
    STORE_SECONDS = 10
};

static struct {
    unsigned rows;
    const char *folder;
} settings = {.rows = 1000000, .folder = "."};

static int64_t first_ns;
static int64_t step_ns;
static uint8_t (*hashes)[MESSAGE_HASH_BYTES];

static void check(enum status status, const char *what)
{
    if (status != STATUS_OK) {
        fprintf(stderr, "bench_archive_store: %s: %s\n", what, status_text(status));
        exit(1);
    }
}

static struct envelope *make_envelope(unsigned number)
{
    struct archive_message message = {.number = number,
            .content_topics = CONTENT_TOPICS,
            .payload_bytes = PAYLOAD,
            .timestamp_ns = first_ns + (int64_t)number * step_ns};
    return archive_bench_envelope(&message);
}

/* Nanoseconds that the put took. */
static uint64_t put_batch(struct archive *archive, unsigned first)
{
    struct envelope *batch[BATCH];
    struct archive_put_result result;
    for (unsigned i = 0; i < BATCH; i++) {
        batch[i] = make_envelope(first + i);
        if (first + i < settings.rows) {
            memcpy(hashes[first + i], batch[i]->hash, MESSAGE_HASH_BYTES);
        }
    }
    uint64_t start = clock_monotonic_ns();
    check(archive_put(archive, batch, BATCH, &result), "put");
    uint64_t taken = clock_monotonic_ns() - start;
    for (unsigned i = 0; i < BATCH; i++) {
        envelope_unref(batch[i]);
    }
    return taken;
}

static enum status take_row(void *context, const struct archive_row *row)
{
    *(uint64_t *)context += row->message.length;
    return STATUS_OK;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

typedef void make_query(struct archive_query *query, const struct span *known);

static void first_page(struct archive_query *query, const struct span *known)
{
    (void)known;
    query->is_backward = true;
}

static void deep_page(struct archive_query *query, const struct span *known)
{
    query->has_cursor = true;
    query->cursor = *known;
}

static void by_hash(struct archive_query *query, const struct span *known)
{
    query->hashes = known;
    query->hash_count = 1;
}

static void topic_of_a_day(struct archive_query *query, const struct span *known)
{
    static struct span name;
    (void)known;
    name = span_of_text("/bench/1/topic-3/proto");
    query->content_topics = &name;
    query->content_topic_count = 1;
    query->has_time_start = true;
    query->time_start_ns =
            first_ns + (int64_t)(archive_bench_random() % settings.rows) / 2 * step_ns;
    query->has_time_end = true;
    query->time_end_ns = query->time_start_ns + 86400LL * NANOSECONDS_PER_SECOND;
}

static void time_queries(struct archive_reader *reader, const char *when)
{
    static const struct {
        const char *name;
        make_query *make;
    } kinds[] = {{"first page", first_page}, {"page deep inside", deep_page}, {"by hash", by_hash},
            {"topic over a day", topic_of_a_day}};
    static uint64_t taken[QUERIES];
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        for (size_t i = 0; i < QUERIES; i++) {
            struct span known =
                    span_of(hashes[archive_bench_random() % settings.rows], MESSAGE_HASH_BYTES);
            struct archive_query query = {.include_data = true, .limit = 100};
            struct archive_page page;
            uint64_t bytes = 0;
            kinds[kind].make(&query, &known);
            uint64_t start = clock_monotonic_ns();
            check(archive_query(reader, &query, take_row, &bytes, &page), kinds[kind].name);
            taken[i] = clock_monotonic_ns() - start;
        }
        qsort(taken, QUERIES, sizeof(taken[0]), compare);
        uint64_t median_ns = taken[QUERIES / 2];
        uint64_t p99_ns = taken[QUERIES * 99 / 100];
        printf("%-16s %-17s p50 %8.0f us  p99 %8.0f us\n", when, kinds[kind].name,
                (double)median_ns / 1e3, (double)p99_ns / 1e3);
    }
    fflush(stdout);
}

struct asking {
    struct archive *archive;
    atomic_bool is_over;
};

static void *ask(void *context)
{
    struct asking *asking = context;
    struct archive_reader *reader = NULL;
    check(archive_reader_open(&reader, asking->archive), "reader");
    time_queries(reader, "while storing");
    archive_reader_close(&reader);
    atomic_store(&asking->is_over, true);
    return NULL;
}

static uint64_t count_of(struct archive *archive)
{
    struct archive_totals totals;
    check(archive_totals(archive, &totals), "totals");
    return totals.count;
}

static void print_size(struct archive *archive, const char *when)
{
    struct archive_totals totals;
    check(archive_totals(archive, &totals), "totals");
    printf("%-16s %" PRIu64 " messages, %.1f MB on disk\n", when, totals.count,
            (double)totals.size_bytes / 1e6);
}

struct stalls {
    uint64_t longest_put_ns;
    uint64_t longest_step_ns;
    uint64_t longest_ns;  /* from the end of one put to the end of the next */
    uint64_t removing_ns; /* until there was nothing more to remove */
    unsigned stored;
    size_t removed;
};

/* A step when it is time for one; returns how long it took. */
static uint64_t remove_some(struct archive *archive, struct retention *retention,
        const struct retention_policy *policy, struct stalls *stalls, uint64_t start)
{
    uint64_t began = clock_monotonic_ns();
    if (began < retention_due_ns(retention)) {
        return 0;
    }
    size_t removed = 0;
    check(retention_step(retention, true, &removed), "retention");
    uint64_t now = clock_monotonic_ns();
    stalls->removed += removed;
    if (policy != NULL && stalls->removing_ns == 0 &&
            count_of(archive) <= policy->max_count + BATCH) {
        stalls->removing_ns = now - start;
    }
    return now - began;
}

/* As the archive thread does it with a ring that is never empty; policy NULL: without retention. */
static struct stalls store(
        struct archive *archive, unsigned first, const struct retention_policy *policy)
{
    struct stalls stalls = {0};
    struct retention retention;
    struct retention_policy none = {0};
    retention_init(&retention, archive, policy != NULL ? policy : &none, retention_now());
    uint64_t start = clock_monotonic_ns();
    uint64_t end = start + (uint64_t)STORE_SECONDS * NANOSECONDS_PER_SECOND;
    while (clock_monotonic_ns() < end || (policy != NULL && stalls.removing_ns == 0)) {
        uint64_t step = remove_some(archive, &retention, policy, &stalls, start);
        uint64_t put = put_batch(archive, first + stalls.stored);
        retention_note_batch(&retention, BATCH, clock_monotonic_ns());
        stalls.stored += BATCH;
        stalls.longest_put_ns = put > stalls.longest_put_ns ? put : stalls.longest_put_ns;
        stalls.longest_step_ns = step > stalls.longest_step_ns ? step : stalls.longest_step_ns;
        stalls.longest_ns = put + step > stalls.longest_ns ? put + step : stalls.longest_ns;
    }
    printf("%-16s %.0f messages/s; longest put %.1f ms, step %.1f ms, both %.1f ms\n",
            policy != NULL ? "with retention" : "storing",
            stalls.stored / ((double)(clock_monotonic_ns() - start) / 1e9),
            (double)stalls.longest_put_ns / 1e6, (double)stalls.longest_step_ns / 1e6,
            (double)stalls.longest_ns / 1e6);
    return stalls;
}

/* Half of the messages go: while others come, and what is left of the space when nobody does. */
static void bench_retention(struct archive *archive, unsigned first)
{
    struct retention_policy policy = {.max_count = settings.rows / 2};
    print_size(archive, "before retention");
    struct stalls stalls = store(archive, first, &policy);
    printf("%-16s %zu messages in %.1f s while others were stored\n", "removed", stalls.removed,
            (double)stalls.removing_ns / 1e9);
    struct archive_prune_limits limits = archive_prune_nothing;
    struct archive_prune_result result = {.has_more = true};
    limits.max_count = policy.max_count / 2;
    uint64_t start = clock_monotonic_ns();
    while (result.has_more) {
        check(archive_prune(archive, &limits, 512, &result), "prune");
    }
    printf("%-16s a further half in %.1f s with nobody else\n", "removed",
            (double)(clock_monotonic_ns() - start) / 1e9);
    print_size(archive, "after retention");
}

static void run(const char *address)
{
    struct archive *archive = NULL;
    struct archive_reader *reader = NULL;
    struct archive_error error;
    struct asking asking;
    pthread_t asker;
    check(archive_open(&archive, address, NULL, &error), address);
    uint64_t start = clock_monotonic_ns();
    for (unsigned i = 0; i < settings.rows; i += BATCH) {
        put_batch(archive, i);
    }
    printf("%-16s %u messages in %.1f s\n", "filled", settings.rows,
            (double)(clock_monotonic_ns() - start) / 1e9);
    check(archive_reader_open(&reader, archive), "reader");
    time_queries(reader, "alone");
    archive_reader_close(&reader);
    unsigned next = (settings.rows / BATCH + 1) * BATCH;
    next += store(archive, next, NULL).stored;
    asking.archive = archive;
    atomic_init(&asking.is_over, false);
    if (pthread_create(&asker, NULL, ask, &asking) != 0) {
        check(STATUS_SYSTEM, "thread");
    }
    unsigned stored = 0;
    start = clock_monotonic_ns();
    while (!atomic_load(&asking.is_over)) {
        put_batch(archive, next + stored);
        stored += BATCH;
    }
    printf("%-16s %.0f messages/s\n", "while asked",
            stored / ((double)(clock_monotonic_ns() - start) / 1e9));
    pthread_join(asker, NULL);
    bench_retention(archive, next + stored);
    archive_close(&archive);
}

int main(int argc, char *argv[])
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--rows=", 7) == 0) {
            settings.rows = (unsigned)strtoul(argv[i] + 7, NULL, 10);
        } else if (strncmp(argv[i], "--folder=", 9) == 0) {
            settings.folder = argv[i] + 9;
        } else {
            fprintf(stderr, "usage: bench_archive_store [--rows=N] [--folder=PATH]\n");
            return 2;
        }
    }
    if (settings.rows < 1000 || settings.rows > 100000000) {
        fprintf(stderr, "bench_archive_store: --rows is 1000..100000000\n");
        return 2;
    }
    char folder[PATH_MAX];
    char address[PATH_MAX + 32];
    snprintf(folder, sizeof(folder), "%s/bench-archive-XXXXXX", settings.folder);
    hashes = calloc(settings.rows, MESSAGE_HASH_BYTES);
    if (hashes == NULL || mkdtemp(folder) == NULL) {
        check(STATUS_SYSTEM, "folder");
    }
    step_ns = 2 * 86400LL * NANOSECONDS_PER_SECOND / (int64_t)settings.rows;
    first_ns = clock_wall_ns() - 2 * 86400LL * NANOSECONDS_PER_SECOND;
    snprintf(address, sizeof(address), "sqlite://%s/archive.db", folder);
    run(address);
    bench_remove_folder(folder);
    free(hashes);
    return 0;
}
