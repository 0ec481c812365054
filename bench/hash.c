/* SPDX-License-Identifier: MIT */

/*
 * What the two hashes of a message cost: OpenSSL and our kernels over one message of each size, in
 * MB/s of all bytes hashed, median of interleaved rounds with least and most.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "hash/fast_key.h"
#include "hash/message_hash.h"
#include "hash/message_id.h"
#include "hash/sha256_pair.h"

enum {
    ROUNDS = 9,
    ROUND_BYTES = 16000000,
    LONGEST = 150000,
    ENVELOPE_BYTES = 60 /* of a serialised message, around its payload */
};

static uint8_t message_bytes[LONGEST + ENVELOPE_BYTES];
static uint8_t sink[SHA256_BYTES];

struct work {
    struct span message;
    struct message_hash_input fields;
};

/* Returns the number of bytes hashed. */
typedef size_t hash_once(const struct work *work);

static size_t hashed_length(const struct work *work)
{
    return work->fields.pubsub_topic.length + work->fields.payload.length +
           work->fields.content_topic.length + work->fields.meta.length + 8;
}

static size_t openssl_single(const struct work *work)
{
    message_id(sink, work->message);
    return work->message.length;
}

/* The pair kernel with nothing in its second stream: the single kernel. */
static size_t own_single(const struct work *work)
{
    uint8_t other[SHA256_BYTES];
    struct sha256_pieces none = {.spans = NULL, .count = 0};
    sha256_both(sink, (struct sha256_pieces){.spans = &work->message, .count = 1}, other, none);
    return work->message.length;
}

static size_t own_pair(const struct work *work)
{
    uint8_t id[SHA256_BYTES];
    message_hash_and_id(sink, id, &work->fields, work->message);
    return work->message.length + hashed_length(work);
}

static size_t openssl_serial_pair(const struct work *work)
{
    uint8_t id[SHA256_BYTES];
    message_hash(sink, &work->fields);
    message_id(id, work->message);
    return work->message.length + hashed_length(work);
}

static size_t fast_key_alone(const struct work *work)
{
    uint64_t key = fast_key(1, work->message);
    memcpy(sink, &key, sizeof(key));
    return work->message.length;
}

static const struct {
    const char *name;
    hash_once *run;
} methods[] = {
        {"openssl_single", openssl_single},
        {"own_single", own_single},
        {"openssl_serial_pair", openssl_serial_pair},
        {"own_pair", own_pair},
        {"fast_key", fast_key_alone},
};

enum {
    METHODS = sizeof(methods) / sizeof(methods[0])
};

static double measure(hash_once *run, const struct work *work)
{
    size_t bytes = 0;
    uint64_t start = clock_thread_cpu_ns();
    while (bytes < ROUND_BYTES) {
        bytes += run(work);
    }
    return (double)bytes * 1000 / (double)(clock_thread_cpu_ns() - start);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_size(size_t payload_bytes)
{
    double rates[METHODS][ROUNDS];
    struct work work = {
            .message = span_of(message_bytes, payload_bytes + ENVELOPE_BYTES),
            .fields =
                    {
                            .pubsub_topic = span_of_text("/waku/2/rs/1/0"),
                            .payload = span_of(message_bytes + 5, payload_bytes),
                            .content_topic = span_of_text("/bench/1/hash/proto"),
                            .timestamp_ns = 1681964442000000000,
                    },
    };
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t method = 0; method < METHODS; method++) {
            rates[method][round] = measure(methods[method].run, &work);
        }
    }
    for (size_t method = 0; method < METHODS; method++) {
        qsort(rates[method], ROUNDS, sizeof(double), compare);
        printf("%zu,%s,%.0f,%.0f,%.0f\n", payload_bytes, methods[method].name,
                rates[method][ROUNDS / 2], rates[method][0], rates[method][ROUNDS - 1]);
    }
    printf("%zu,own_pair/openssl_serial_pair,%.2f,,\n", payload_bytes,
            rates[3][ROUNDS / 2] / rates[2][ROUNDS / 2]);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(message_bytes); i++) {
        message_bytes[i] = (uint8_t)(i * 31 + (i >> 8));
    }
    printf("side by side: %s\n", sha256_pair_is_side_by_side() ? "yes" : "no");
    printf("payload_bytes,method,MB_per_s_median,min,max\n");
    run_size(200);
    run_size(10000);
    run_size(50000);
    run_size(150000);
    return 0;
}
