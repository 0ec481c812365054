/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Whole store-sync sessions between two sets, in memory. Every payload is also read by the rules that
 * the reference's decoder has. What fails, fails the test.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/reconciliation.h"

#define SECOND_NS INT64_C(1000000000)
#define START_NS  (INT64_C(1700000000) * SECOND_NS)
#define HOUR_NS   (3600 * SECOND_NS)

extern struct topic sync_side_topics[2];
extern const struct sync_scope sync_side_everything;

/* The set-up of a group of tests: gives the topics their names. */
int sync_side_name_topics(void **state);

/* One side of a session. */
struct sync_side {
    struct sync_set *set;
    struct sync_scope scope;
    struct sync_wanted *wanted; /* NULL: it keeps nothing of that in mind */
    struct reconciliation_answer answer;
    struct sync_ids they_lack; /* of all rounds */
    struct sync_ids we_lack;
    bool is_incomplete;
};

void sync_side_init(struct sync_side *side);
void sync_side_fini(struct sync_side *side);

/* A new id; its topic is one of the two by its number. */
void sync_side_insert(struct sync_side *side, int64_t timestamp_ns, uint64_t number);

/* What a session came to. */
struct sync_talk_size {
    unsigned payloads;
    size_t bytes;
    size_t largest;
};

struct sync_talk_size sync_talk(struct sync_side *starter, struct sync_side *other,
        struct sync_gap window, const struct reconciliation_limits *limits);
void sync_talk_report(const char *what, const struct sync_talk_size *size);
