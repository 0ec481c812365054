/* SPDX-License-Identifier: MIT */

/*
 * What an archive costs: inserts of each engine against a plain append with fdatasync of the same
 * bytes in the same batches, and how long queries take. Rounds are interleaved; figures are medians
 * with least and most.
 *
 *     bench_archive [--json] [--rounds=N] [--rows=N] [--folder=PATH]
 */

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "archive/archive.h"
#include "archive/file_ops.h"
#include "base/clock.h"
#include "bench/archive_messages.h"
#include "bench/folder.h"

enum {
    MIX_MESSAGES = 2000, /* 130 MB */
    SMALL_MESSAGES = 50000,
    CONTENT_TOPICS = 10,
    MAX_ROUNDS = 99,
    QUERIES = 2000,
    LOAD_BATCH = 1024
};

static const size_t mix_sizes[4] = {10240, 51200, 51200, 153000};
static const size_t small_sizes[4] = {200, 200, 200, 200};

static struct {
    bool is_json;
    unsigned rounds;
    unsigned rows;
    const char *folder;
} settings = {.rounds = 5, .rows = 100000, .folder = "."};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench_archive: %s\n", what);
    exit(1);
}

static void check(enum status status, const char *what)
{
    if (status != STATUS_OK) {
        fprintf(stderr, "bench_archive: %s: %s\n", what, status_text(status));
        exit(1);
    }
}

static struct envelope *make_envelope(unsigned number, size_t payload_bytes)
{
    struct archive_message message = {.number = number,
            .content_topics = CONTENT_TOPICS,
            .payload_bytes = payload_bytes,
            .timestamp_ns = 1700000000000000000 + (int64_t)number * 1000000};
    return archive_bench_envelope(&message);
}

struct load {
    const char *name;
    struct envelope **envelopes;
    size_t count;
    size_t batch;
    uint64_t bytes; /* of the serialised messages */
};

static struct load make_load(const char *name, const size_t sizes[4], size_t count, size_t batch)
{
    struct load load = {.name = name, .count = count, .batch = batch};
    load.envelopes = calloc(count, sizeof(struct envelope *));
    if (load.envelopes == NULL) {
        fail("out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        load.envelopes[i] = make_envelope((unsigned)i, sizes[i % 4]);
        load.bytes += load.envelopes[i]->message.length;
    }
    return load;
}

static void free_load(struct load *load)
{
    for (size_t i = 0; i < load->count; i++) {
        envelope_unref(load->envelopes[i]);
    }
    free(load->envelopes);
}

static void make_folder(char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s/bench-archive-XXXXXX", settings.folder);
    if (mkdtemp(out) == NULL) {
        fail("cannot make a folder");
    }
}

/* Seconds that it takes to put load into what address names; "disk" is a new file. */
static double time_engine(const struct load *load, const char *address)
{
    char folder[PATH_MAX] = "";
    char full[PATH_MAX + 64];
    bool is_on_disk = strcmp(address, "disk") == 0;
    if (is_on_disk) {
        make_folder(folder);
        snprintf(full, sizeof(full), "sqlite://%s/archive.db", folder);
    } else {
        snprintf(full, sizeof(full), "%s", address);
    }
    struct archive *archive = NULL;
    struct archive_error error;
    if (archive_open(&archive, full, NULL, &error) != STATUS_OK) {
        fail(error.text);
    }
    uint64_t start = clock_monotonic_ns();
    for (size_t i = 0; i < load->count; i += load->batch) {
        size_t count = load->count - i < load->batch ? load->count - i : load->batch;
        struct archive_put_result result;
        check(archive_put(archive, load->envelopes + i, count, &result), full);
    }
    uint64_t end = clock_monotonic_ns();
    archive_close(&archive);
    if (is_on_disk) {
        bench_remove_folder(folder);
    }
    return (double)(end - start) / 1e9;
}

/* The same bytes in the same batches, appended to a file and synced. */
static double time_append(const struct load *load, const char *unused)
{
    (void)unused;
    char folder[PATH_MAX];
    char path[PATH_MAX + 16];
    make_folder(folder);
    snprintf(path, sizeof(path), "%s/append", folder);
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    struct iovec *parts = calloc(load->batch, sizeof(*parts));
    if (fd < 0 || parts == NULL) {
        fail(path);
    }
    uint64_t offset = 0;
    uint64_t start = clock_monotonic_ns();
    for (size_t i = 0; i < load->count; i += load->batch) {
        size_t count = load->count - i < load->batch ? load->count - i : load->batch;
        uint64_t size = 0;
        for (size_t j = 0; j < count; j++) {
            struct span message = load->envelopes[i + j]->message;
            parts[j] = (struct iovec){(void *)message.bytes, message.length};
            size += message.length;
        }
        check(file_write_all(&file_ops_of_system, fd, parts, count, offset), path);
        if (fdatasync(fd) != 0) {
            fail(path);
        }
        offset += size;
    }
    uint64_t end = clock_monotonic_ns();
    close(fd);
    free(parts);
    bench_remove_folder(folder);
    return (double)(end - start) / 1e9;
}

static const struct {
    const char *name;
    double (*time)(const struct load *load, const char *address);
    const char *address;
} writers[] = {
        {"append", time_append, NULL},
        {"memory", time_engine, "memory"},
        {"sqlite-memory", time_engine, "sqlite://:memory:"},
        {"sqlite-disk", time_engine, "disk"},
};

enum {
    WRITERS = sizeof(writers) / sizeof(writers[0])
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_insert(
        const struct load *load, const char *name, const double seconds[], double append)
{
    double count = (double)load->count;
    double median = seconds[settings.rounds / 2];
    const char *format =
            settings.is_json ? "{\"bench\":\"archive-insert\",\"load\":\"%s\",\"writer\":\"%s\","
                               "\"batch\":%zu,"
                               "\"msg_per_s\":%.0f,\"msg_per_s_min\":%.0f,\"msg_per_s_max\":%.0f,"
                               "\"MB_per_s\":%.1f,\"share_of_append\":%.3f}\n"
                             : "%-6s %-14s batch %4zu %11.0f msg/s (%.0f .. %.0f) %9.1f MB/s %7.3f "
                               "of append\n";
    printf(format, load->name, name, load->batch, count / median,
            count / seconds[settings.rounds - 1], count / seconds[0],
            (double)load->bytes / median / 1e6, append / median);
}

static void bench_inserts(const struct load *load)
{
    double seconds[WRITERS][MAX_ROUNDS];
    for (unsigned round = 0; round < settings.rounds; round++) {
        for (unsigned i = 0; i < WRITERS; i++) {
            seconds[i][round] = writers[i].time(load, writers[i].address);
        }
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        qsort(seconds[i], settings.rounds, sizeof(double), compare_doubles);
        print_insert(load, writers[i].name, seconds[i], seconds[0][settings.rounds / 2]);
    }
}

/* Some of the hashes, to ask for. */
struct known {
    uint8_t (*hashes)[MESSAGE_HASH_BYTES];
    size_t count;
};

static enum status count_bytes(void *context, const struct archive_row *row)
{
    *(uint64_t *)context += row->message.length;
    return STATUS_OK;
}

/* What a kind of query asks for; hash is one that is there. */
typedef void make_query(struct archive_query *query, struct span *hash);

static void ask_first_page(struct archive_query *query, struct span *hash)
{
    (void)hash;
    query->is_backward = true;
}

static void ask_deep_page(struct archive_query *query, struct span *hash)
{
    query->has_cursor = true;
    query->cursor = *hash;
}

static void ask_by_hash(struct archive_query *query, struct span *hash)
{
    query->hashes = hash;
    query->hash_count = 1;
}

static void ask_by_content_topic(struct archive_query *query, struct span *hash)
{
    static const char name[] = "/bench/1/topic-3/proto";
    static struct span topics[1];
    topics[0] = span_of(name, sizeof(name) - 1);
    query->content_topics = topics;
    query->content_topic_count = 1;
    query->has_cursor = true;
    query->cursor = *hash;
}

static const struct {
    const char *name;
    make_query *make;
} questions[] = {{"first-page", ask_first_page}, {"deep-page", ask_deep_page},
        {"by-hash", ask_by_hash}, {"by-content-topic", ask_by_content_topic}};

static void time_queries(struct archive_reader *reader, const char *engine, unsigned question,
        const struct known *known)
{
    static double micros[QUERIES];
    for (unsigned i = 0; i < QUERIES; i++) {
        struct span hash =
                span_of(known->hashes[archive_bench_random() % known->count], MESSAGE_HASH_BYTES);
        struct archive_query query = {.include_data = true};
        questions[question].make(&query, &hash);
        uint64_t bytes = 0;
        struct archive_page page;
        uint64_t start = clock_monotonic_ns();
        check(archive_query(reader, &query, count_bytes, &bytes, &page), "query");
        micros[i] = (double)(clock_monotonic_ns() - start) / 1e3;
    }
    qsort(micros, QUERIES, sizeof(double), compare_doubles);
    const char *format =
            settings.is_json
                    ? "{\"bench\":\"archive-query\",\"engine\":\"%s\",\"query\":\"%s\",\"rows\":%u,"
                      "\"us_p50\":%.1f,\"us_p99\":%.1f}\n"
                    : "%-14s %-17s %u rows: p50 %8.1f us, p99 %8.1f us\n";
    printf(format, engine, questions[question].name, settings.rows, micros[QUERIES / 2],
            micros[QUERIES * 99 / 100]);
}

static void fill(struct archive *archive, struct known *known)
{
    for (unsigned i = 0; i < settings.rows;) {
        struct envelope *batch[LOAD_BATCH];
        size_t count = 0;
        for (; count < LOAD_BATCH && i < settings.rows; i++) {
            batch[count] = make_envelope(i, 200);
            memcpy(known->hashes[known->count++], batch[count++]->hash, MESSAGE_HASH_BYTES);
        }
        struct archive_put_result result;
        check(archive_put(archive, batch, count, &result), "put");
        while (count > 0) {
            envelope_unref(batch[--count]);
        }
    }
}

static void bench_queries(const char *name, const char *address)
{
    struct archive *archive = NULL;
    struct archive_reader *reader = NULL;
    struct archive_error error;
    struct known known = {.hashes = calloc(settings.rows, MESSAGE_HASH_BYTES)};
    if (known.hashes == NULL || archive_open(&archive, address, NULL, &error) != STATUS_OK) {
        fail(address);
    }
    fill(archive, &known);
    check(archive_reader_open(&reader, archive), address);
    for (unsigned i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        time_queries(reader, name, i, &known);
    }
    archive_reader_close(&reader);
    archive_close(&archive);
    free(known.hashes);
}

static void read_arguments(int argc, char *argv[])
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            settings.is_json = true;
        } else if (strncmp(argv[i], "--rounds=", 9) == 0) {
            settings.rounds = (unsigned)strtoul(argv[i] + 9, NULL, 10);
        } else if (strncmp(argv[i], "--rows=", 7) == 0) {
            settings.rows = (unsigned)strtoul(argv[i] + 7, NULL, 10);
        } else if (strncmp(argv[i], "--folder=", 9) == 0) {
            settings.folder = argv[i] + 9;
        } else {
            fprintf(stderr, "bench_archive: unknown argument '%s'\n", argv[i]);
            exit(2);
        }
    }
    if (settings.rounds < 1 || settings.rounds > MAX_ROUNDS || settings.rows < 1) {
        fprintf(stderr, "bench_archive: --rounds is 1..%d, --rows at least 1\n", MAX_ROUNDS);
        exit(2);
    }
}

int main(int argc, char *argv[])
{
    read_arguments(argc, argv);
    struct load mix = make_load("mix", mix_sizes, MIX_MESSAGES, 64);
    bench_inserts(&mix);
    free_load(&mix);
    struct load small = make_load("200B", small_sizes, SMALL_MESSAGES, 256);
    bench_inserts(&small);
    free_load(&small);

    char folder[PATH_MAX];
    char address[PATH_MAX + 32];
    make_folder(folder);
    snprintf(address, sizeof(address), "sqlite://%s/archive.db", folder);
    bench_queries("memory", "memory");
    bench_queries("sqlite-memory", "sqlite://:memory:");
    bench_queries("sqlite-disk", address);
    bench_remove_folder(folder);
    return 0;
}
