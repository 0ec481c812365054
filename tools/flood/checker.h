/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Whether every generated message came out at one place, once and whole.
 *
 * Thread: checker_take on one thread (each place has a checker of its own); the rest afterwards.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

struct checker;

struct checker_result {
    uint64_t seen;    /* different numbers */
    uint64_t doubled; /* came again */
    uint64_t torn;    /* checksum wrong */
    uint64_t strange; /* number never sent */
};

/* For the numbers 0 to count - 1. */
MUST_USE enum status checker_create(struct checker **out, uint64_t count);
void checker_destroy(struct checker **checker);

/* For more numbers than before. */
MUST_USE enum status checker_expect(struct checker *checker, uint64_t count);
void checker_take(struct checker *checker, struct span payload);

/* Of a message that was found whole. True: it has not been seen before. */
bool checker_take_number(struct checker *checker, uint64_t number);
struct checker_result checker_result(const struct checker *checker);
