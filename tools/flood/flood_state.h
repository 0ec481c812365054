/* SPDX-License-Identifier: MIT */
#pragma once

/* What one run of flood --in-process knows, and its report at the end. */

#include <stdbool.h>
#include <stdint.h>

#include "node/node.h"
#include "tools/flood/checker.h"
#include "tools/flood/generator.h"

enum {
    FLOOD_RECENT = 64 /* messages that may be repeated */
};

/* Written by the filter thread that serves it, read after the threads have ended. */
struct flood_subscriber {
    uint64_t deliveries;
    uint64_t strangers; /* messages of another content topic */
    uint32_t content_topic;
};

struct flood {
    const struct options *options;
    struct generator *generator;
    struct node *node;
    struct checker *event_checker;
    struct flood_subscriber *subscribers;
    size_t subscriber_count;
    struct generator_message recent[FLOOD_RECENT];
    uint64_t messages;
    uint64_t window;
    uint64_t rate;
    uint32_t duplicate_percent;
    uint64_t random;
    uint64_t frames; /* sent, copies included */
    uint64_t copies;
    uint64_t bytes;
    uint64_t known_finished;
    uint64_t began_ns;
    uint64_t sent_ns;
    uint64_t finished_ns;
    uint64_t next_progress_ns;
    bool shows_progress;
    bool is_open_loop;
    int acknowledge_fd; /* 0: none; on the archive thread */
};

/* Prints the result; false when anything is lost, doubled, torn, or a ledger does not close. */
bool flood_report(struct flood *flood);
