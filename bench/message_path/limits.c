/* SPDX-License-Identifier: MIT */

/* The slowest single step of a row's path, done alone on the same bytes. */

#include <stdio.h>

#include "archive/archive.h"
#include "base/clock.h"
#include "bench/message_path/material.h"
#include "bench/message_path/scenario.h"

static double rate(const struct material *material, uint64_t began_ns)
{
    return (double)material->count * 1e9 / (double)(clock_monotonic_ns() - began_ns);
}

/* What hash() writes goes nowhere else; the counters see it, so it is not optimised away. */
static double hash_alone(const struct material *material)
{
    uint8_t hash[SHA256_BYTES];
    uint64_t began = clock_monotonic_ns();
    for (size_t i = 0; i < material->count; i++) {
        struct message_hash_input input = material_hash_input(material->envelopes[i]);
        message_hash(hash, &input);
    }
    return rate(material, began);
}

/* Two at once, the next one beside the other as soon as one is done. */
static double hash_side_by_side(const struct material *material)
{
    uint8_t hash[SHA256_BYTES];
    enum {
        TASKS = 8
    };
    struct message_hash_task tasks[TASKS];
    struct sha256_pair *pair = NULL;
    if (sha256_pair_create(&pair) != STATUS_OK) {
        return 0;
    }
    uint64_t began = clock_monotonic_ns();
    for (size_t i = 0; i < material->count; i++) {
        struct message_hash_input input = material_hash_input(material->envelopes[i]);
        if (i >= TASKS) {
            message_hash_finish(pair, &tasks[i % TASKS]);
        }
        message_hash_start(pair, &tasks[i % TASKS], hash, &input);
    }
    for (size_t i = 0; i < TASKS && i < material->count; i++) {
        message_hash_finish(pair, &tasks[i]);
    }
    double result = rate(material, began);
    sha256_pair_destroy(&pair);
    return result;
}

static double hash_and_id_serial(const struct material *material)
{
    uint8_t hash[SHA256_BYTES];
    uint64_t began = clock_monotonic_ns();
    for (size_t i = 0; i < material->count; i++) {
        struct message_hash_input input = material_hash_input(material->envelopes[i]);
        message_hash(hash, &input);
        message_id(hash, material->envelopes[i]->message);
    }
    return rate(material, began);
}

static double hash_and_id_pair(const struct material *material)
{
    uint8_t hash[SHA256_BYTES];
    uint8_t id[SHA256_BYTES];
    uint64_t began = clock_monotonic_ns();
    for (size_t i = 0; i < material->count; i++) {
        struct message_hash_input input = material_hash_input(material->envelopes[i]);
        message_hash_and_id(hash, id, &input, material->envelopes[i]->message);
    }
    return rate(material, began);
}

static double better(double a, double b)
{
    return a > b ? a : b;
}

static double hash_limit(const struct material *material, const struct scenario *scenario)
{
    if (scenario->kind == SCENARIO_INGRESS_SHARED) {
        return better(hash_and_id_serial(material), hash_and_id_pair(material));
    }
    /* One message at a time leaves nothing to run beside it. */
    double alone = hash_alone(material);
    return scenario->window == 1 ? alone : better(alone, hash_side_by_side(material));
}

static enum status engine_limit(
        double *msg_per_s, const struct material *material, const struct scenario *scenario)
{
    struct archive *archive = NULL;
    struct archive_error error;
    struct archive_options options = {.memory_limit_bytes = UINT64_MAX};
    enum status status = archive_open(&archive, scenario->archive, &options, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "message_path: %s\n", error.text);
        return status;
    }
    uint64_t began = clock_monotonic_ns();
    for (size_t i = 0; status == STATUS_OK && i < material->count; i += scenario->window) {
        struct archive_put_result result;
        size_t left = material->count - i;
        status = archive_put(archive, material->envelopes + i,
                left < scenario->window ? left : scenario->window, &result);
    }
    *msg_per_s = rate(material, began);
    archive_close(&archive);
    return status;
}

enum status measure_limit(
        double *msg_per_s, const struct workload *workload, const struct scenario *scenario)
{
    struct material material = {0};
    double engine = 0;
    enum status status = material_init(&material, workload, scenario->nonce);
    if (status == STATUS_OK) {
        status = engine_limit(&engine, &material, scenario);
    }
    if (status == STATUS_OK) {
        double hashes = hash_limit(&material, scenario);
        *msg_per_s = hashes < engine ? hashes : engine;
    }
    material_fini(&material);
    return status;
}
