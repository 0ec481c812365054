/* SPDX-License-Identifier: MIT */

/*
 * What a hand-over costs: one producer to 1, 2 and 4 consumers through spmc_ring, waiting by parking or
 * by yielding, against a mutex and two condition variables around an array of the same capacity. Every
 * case is run in turn in each round, so that a noisy machine is noisy for all of them.
 */

#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu_set.h"
#include "queues/envelope.h"
#include "queues/spmc_ring.h"

enum {
    CONSUMERS_MAX = 4,
    ROUNDS_MAX = 101,
    TRIES_BEFORE_PARKING = 8,
    PUSHES_PER_WAKE = 32
};

/* Only its address travels: this measures queues, not messages. */
static struct envelope cargo;
static struct envelope end_mark;

struct channel {
    const struct channel_kind *kind;
    struct spmc_ring *ring;
    struct parking parking;
    unsigned unannounced; /* pushes since the last wake; the producer's */

    alignas(CACHE_LINE) pthread_mutex_t mutex;
    pthread_cond_t has_item;
    pthread_cond_t has_room;
    size_t head;
    size_t depth;
    size_t capacity;
    struct envelope **slots;
};

struct channel_kind {
    const char *name;
    void (*push)(struct channel *channel, struct envelope *item); /* both wait */
    struct envelope *(*pop)(struct channel *channel);
    void (*flush)(struct channel *channel); /* no push follows for a while */
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_rings: %s\n", what);
    exit(1);
}

static void push_yielding(struct channel *channel, struct envelope *item)
{
    while (!spmc_ring_try_push(channel->ring, item)) {
        sched_yield();
    }
}

static struct envelope *pop_yielding(struct channel *channel)
{
    struct envelope *item;
    while ((item = spmc_ring_try_pop(channel->ring)) == NULL) {
        sched_yield();
    }
    return item;
}

static void flush_nothing(struct channel *channel)
{
    (void)channel;
}

static void flush_parking(struct channel *channel)
{
    channel->unannounced = 0;
    spmc_ring_wake(channel->ring);
}

static void push_waking(struct channel *channel, struct envelope *item)
{
    push_yielding(channel, item);
    spmc_ring_wake(channel->ring);
}

static void push_waking_seldom(struct channel *channel, struct envelope *item)
{
    while (!spmc_ring_try_push(channel->ring, item)) {
        flush_parking(channel);
        sched_yield();
    }
    if (++channel->unannounced == PUSHES_PER_WAKE) {
        flush_parking(channel);
    }
}

static struct envelope *pop_parking(struct channel *channel)
{
    for (unsigned tries = 0;; tries++) {
        struct envelope *item = spmc_ring_try_pop(channel->ring);
        if (item != NULL) {
            return item;
        }
        if (tries < TRIES_BEFORE_PARKING) {
            sched_yield();
            continue;
        }
        uint32_t ticket = parking_prepare(&channel->parking);
        if (spmc_ring_depth_estimate(channel->ring) > 0) {
            parking_cancel(&channel->parking, ticket);
        } else {
            parking_wait(&channel->parking, ticket, UINT64_MAX);
        }
    }
}

static void push_locked(struct channel *channel, struct envelope *item)
{
    pthread_mutex_lock(&channel->mutex);
    while (channel->depth == channel->capacity) {
        pthread_cond_wait(&channel->has_room, &channel->mutex);
    }
    channel->slots[(channel->head + channel->depth++) % channel->capacity] = item;
    pthread_cond_signal(&channel->has_item);
    pthread_mutex_unlock(&channel->mutex);
}

static struct envelope *pop_locked(struct channel *channel)
{
    pthread_mutex_lock(&channel->mutex);
    while (channel->depth == 0) {
        pthread_cond_wait(&channel->has_item, &channel->mutex);
    }
    struct envelope *item = channel->slots[channel->head];
    channel->head = (channel->head + 1) % channel->capacity;
    channel->depth--;
    pthread_cond_signal(&channel->has_room);
    pthread_mutex_unlock(&channel->mutex);
    return item;
}

static const struct channel_kind kinds[] = {
        {"ring, park", push_waking, pop_parking, flush_parking},
        {"ring, park, wake each 32", push_waking_seldom, pop_parking, flush_parking},
        {"ring, yield", push_yielding, pop_yielding, flush_nothing},
        {"mutex", push_locked, pop_locked, flush_nothing},
};

enum {
    KIND_COUNT = sizeof(kinds) / sizeof(kinds[0])
};

static void channel_init(struct channel *channel, const struct channel_kind *kind, size_t capacity)
{
    memset(channel, 0, sizeof(*channel));
    channel->kind = kind;
    /* A ring leaves one slot empty. */
    channel->capacity = capacity - 1;
    channel->slots = calloc(capacity, sizeof(struct envelope *));
    parking_init(&channel->parking);
    if (channel->slots == NULL ||
            spmc_ring_create(&channel->ring, capacity, &channel->parking) != STATUS_OK) {
        fail("no memory");
    }
    pthread_mutex_init(&channel->mutex, NULL);
    pthread_cond_init(&channel->has_item, NULL);
    pthread_cond_init(&channel->has_room, NULL);
}

static void channel_fini(struct channel *channel)
{
    spmc_ring_destroy(&channel->ring);
    free(channel->slots);
    pthread_cond_destroy(&channel->has_room);
    pthread_cond_destroy(&channel->has_item);
    pthread_mutex_destroy(&channel->mutex);
}

struct options {
    uint64_t messages;
    uint64_t turns;
    uint64_t rounds;
    uint64_t capacity;
    bool is_json;
};

static void *take_all(void *argument)
{
    struct channel *channel = argument;
    while (channel->kind->pop(channel) != &end_mark) {
    }
    return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    if (pthread_create(thread, NULL, run, argument) != 0) {
        fail("cannot start a thread");
    }
}

/* Nanoseconds a message. */
static double run_throughput(
        const struct channel_kind *kind, unsigned consumers, const struct options *options)
{
    struct channel channel;
    channel_init(&channel, kind, options->capacity);
    pthread_t threads[CONSUMERS_MAX];
    for (unsigned i = 0; i < consumers; i++) {
        start(&threads[i], take_all, &channel);
    }
    uint64_t begin = clock_monotonic_ns();
    for (uint64_t i = 0; i < options->messages; i++) {
        kind->push(&channel, &cargo);
    }
    for (unsigned i = 0; i < consumers; i++) {
        kind->push(&channel, &end_mark);
    }
    kind->flush(&channel);
    for (unsigned i = 0; i < consumers; i++) {
        pthread_join(threads[i], NULL);
    }
    uint64_t end = clock_monotonic_ns();
    channel_fini(&channel);
    return (double)(end - begin) / (double)options->messages;
}

struct table {
    struct channel there;
    struct channel back;
};

static void *return_all(void *argument)
{
    struct table *table = argument;
    struct envelope *item;
    do {
        item = table->there.kind->pop(&table->there);
        table->back.kind->push(&table->back, item);
        table->back.kind->flush(&table->back);
    } while (item != &end_mark);
    return NULL;
}

/* Nanoseconds one way, with one message in flight. */
static double run_ping_pong(const struct channel_kind *kind, const struct options *options)
{
    struct table table;
    channel_init(&table.there, kind, options->capacity);
    channel_init(&table.back, kind, options->capacity);
    pthread_t other;
    start(&other, return_all, &table);
    uint64_t begin = clock_monotonic_ns();
    for (uint64_t i = 1; i <= options->turns; i++) {
        kind->push(&table.there, i == options->turns ? &end_mark : &cargo);
        kind->flush(&table.there);
        (void)kind->pop(&table.back);
    }
    uint64_t end = clock_monotonic_ns();
    pthread_join(other, NULL);
    channel_fini(&table.there);
    channel_fini(&table.back);
    return (double)(end - begin) / (double)options->turns / 2;
}

struct row {
    const struct channel_kind *kind;
    unsigned consumers; /* 0: ping-pong */
    double ns[ROUNDS_MAX];
};

static const unsigned consumer_counts[] = {0, 1, 2, 4};

enum {
    COUNTS = sizeof(consumer_counts) / sizeof(consumer_counts[0]),
    ROWS = COUNTS * KIND_COUNT
};

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static void print_text(const struct row *row, const struct options *options)
{
    double median = row->ns[options->rounds / 2];
    double least = row->ns[0];
    double most = row->ns[options->rounds - 1];
    if (row->consumers == 0) {
        printf("%-26s one way, ping-pong    %9.0f %9.0f %9.0f\n", row->kind->name, median, least,
                most);
        return;
    }
    printf("%-26s 1 to %u               %9.1f %9.1f %9.1f  %8.2f\n", row->kind->name,
            row->consumers, median, least, most, 1000 / median);
}

static void print_json(const struct row *row, const struct options *options, const char *separator)
{
    double median = row->ns[options->rounds / 2];
    printf("%s{\"queue\":\"%s\",\"consumers\":%u,\"measure\":\"%s\",\"ns\":%.1f,\"ns_min\":%.1f,"
           "\"ns_max\":%.1f,\"million_per_s\":%.3f}",
            separator, row->kind->name, row->consumers > 0 ? row->consumers : 1,
            row->consumers > 0 ? "throughput" : "one_way", median, row->ns[0],
            row->ns[options->rounds - 1], 1000 / median);
}

static void report(const struct row *rows, const struct options *options)
{
    struct cpu_set allowed;
    int cores = cpu_set_allowed(&allowed) == STATUS_OK ? cpu_set_count(&allowed) : 0;
    if (options->is_json) {
        printf("{\"cores\":%d,\"capacity\":%llu,\"messages\":%llu,\"rounds\":%llu,\"rows\":[",
                cores, (unsigned long long)options->capacity, (unsigned long long)options->messages,
                (unsigned long long)options->rounds);
    } else {
        printf("%d cores, capacity %llu, %llu messages, %llu rounds\n", cores,
                (unsigned long long)options->capacity, (unsigned long long)options->messages,
                (unsigned long long)options->rounds);
        printf("%-26s %-20s  %9s %9s %9s  %8s\n", "queue", "", "ns", "min", "max", "M/s");
    }
    for (size_t i = 0; i < ROWS; i++) {
        if (options->is_json) {
            print_json(&rows[i], options, i > 0 ? "," : "");
        } else {
            print_text(&rows[i], options);
        }
    }
    if (options->is_json) {
        printf("]}\n");
    }
}

static uint64_t number_within(const char *text, uint64_t min, uint64_t max)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text == '-' || end == text || *end != '\0' || number < min || number > max) {
        fprintf(stderr, "bench_rings: %s is not a number from %llu to %llu\n", text,
                (unsigned long long)min, (unsigned long long)max);
        exit(2);
    }
    return number;
}

static void parse_options(struct options *options, int argc, char **argv)
{
    static const struct option known[] = {{"messages", required_argument, NULL, 'm'},
            {"turns", required_argument, NULL, 't'}, {"rounds", required_argument, NULL, 'r'},
            {"capacity", required_argument, NULL, 'c'}, {"json", no_argument, NULL, 'j'}, {0}};
    int letter;
    while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (letter) {
        case 'm':
            options->messages = number_within(optarg, 1, 1000000000);
            break;
        case 't':
            options->turns = number_within(optarg, 1, 1000000000);
            break;
        case 'r':
            options->rounds = number_within(optarg, 1, ROUNDS_MAX);
            break;
        case 'c':
            options->capacity = number_within(optarg, 2, 1 << 20);
            break;
        case 'j':
            options->is_json = true;
            break;
        default:
            fprintf(stderr, "usage: bench_rings [--messages=N] [--turns=N] [--rounds=N] "
                            "[--capacity=N] [--json]\n");
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    struct options options = {.messages = 500000, .turns = 20000, .rounds = 7, .capacity = 1024};
    parse_options(&options, argc, argv);
    if ((options.capacity & (options.capacity - 1)) != 0) {
        fprintf(stderr, "bench_rings: --capacity is no power of two\n");
        return 2;
    }
    static struct row rows[ROWS];
    for (uint64_t round = 0; round < options.rounds; round++) {
        for (size_t i = 0; i < ROWS; i++) {
            rows[i].kind = &kinds[i % KIND_COUNT];
            rows[i].consumers = consumer_counts[i / KIND_COUNT];
            rows[i].ns[round] = rows[i].consumers == 0
                                        ? run_ping_pong(rows[i].kind, &options)
                                        : run_throughput(rows[i].kind, rows[i].consumers, &options);
        }
    }
    for (size_t i = 0; i < ROWS; i++) {
        qsort(rows[i].ns, options.rounds, sizeof(rows[i].ns[0]), by_value);
    }
    report(rows, &options);
    return 0;
}
