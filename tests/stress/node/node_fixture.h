/* SPDX-License-Identifier: MIT */
#pragma once

/* A whole node with tiny queues, what is posted to it, and what must hold when it has ended. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "node/node.h"
#include "tools/flood/checker.h"
#include "tools/flood/generator.h"

enum {
    FIXTURE_BUDGET_BYTES = 16 << 20,
    FIXTURE_TOPICS = 7,
    FIXTURE_MESSAGES_MAX = 1 << 20,
    FIXTURE_STORED_WAIT_S = 60
};

struct node_fixture {
    struct node *node;
    struct options *options;
    struct generator *generator;
    struct checker *event_checker; /* what the application got */
    char folder[256];
    int64_t timestamp_ns;
    uint64_t shared_freed; /* envelopes freed by threads without a row, at the start */
};

struct node_fixture_options {
    bool is_on_disk;   /* SQLite with a spill file; false: memory */
    const char *sizes; /* as flood's */
    const char *ring;  /* slots of every ring; NULL: 16 */
};

void node_fixture_start(struct node_fixture *fixture, const struct node_fixture_options *options);

/* One frame with message number; false when there is no credit and may_wait is false. Any thread. */
bool node_fixture_post(struct node_fixture *fixture, uint64_t number, bool may_wait);

/* As above, but keeps below a stage's share of the budget. */
void node_fixture_post_closed(struct node_fixture *fixture, uint64_t number);

uint64_t node_fixture_count(const struct node_fixture *fixture, enum metric metric);

/* Waits until the archive holds nothing that is not stored, and fails the test after a minute. */
void node_fixture_wait_stored(const struct node_fixture *fixture);

/*
 * Stops the node and checks that every ledger closes, that the budget was kept, that posted frames
 * were all received and all but the first copy of each of unique_count messages were recognised,
 * that what the archive and the application have is whole and is there once. Messages that a stop has
 * left in the spill file are held, not lost.
 */
void node_fixture_stop_checked(
        struct node_fixture *fixture, uint64_t posted_count, uint64_t unique_count);

/* Destroys the node and checks that every envelope was freed. */
void node_fixture_end(struct node_fixture *fixture);

/* A small generator of random numbers; state is not 0. */
uint32_t node_fixture_draw(uint64_t *state);
