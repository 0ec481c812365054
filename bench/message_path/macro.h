/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The two sides of a macro run: node A publishes, B receives over loopback TCP, on threads of this
 * process or in one of its own. They speak by two sockets and by memory that both see, so that the
 * run is the same either way.
 *
 * Ordering:
 *
 *   FINISHED  release store of finished (B) -> acquire load (A). A then sees the arrivals before it.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/metrics.h"
#include "base/status.h"
#include "bench/message_path/meter.h"
#include "bench/message_path/scenario.h"
#include "net/identity/multiaddr.h"

enum {
    MACRO_CLUSTER = 66, /* of WORKLOAD_PUBSUB_TOPIC */
    MACRO_TEXT_BYTES = 512
};

#define MACRO_RECEIVER_COMMAND "receive-macro"

/* What was counted so far. */
struct macro_reading {
    uint64_t counters[METRIC_COUNT];
    struct meter meter;
    double peak_rss_mb;
};

struct macro_shared {
    /* of A, before B starts */
    size_t bytes; /* of all this */
    size_t count; /* messages of the workload */
    uint64_t nonce;
    bool is_copying;
    char archive[MACRO_TEXT_BYTES];
    char pin[MACRO_TEXT_BYTES];
    char address[MULTIADDR_TEXT_SIZE];

    /* of B */
    _Atomic uint64_t finished; /* messages that every stage of B is done with */
    struct macro_reading before;
    struct macro_reading after;
    uint64_t arrived_ns[]; /* at B's application, by position in the workload */
};

/* A's end of B. Every command is answered when it has been carried out. */
enum macro_command {
    MACRO_START = 'S', /* address and the rest are there: connect */
    MACRO_RESET = 'R', /* the peak of memory begins again, `before` is read */
    MACRO_READ = 'E',  /* `after` is read */
    MACRO_QUIT = 'Q'
};

struct macro_peer {
    struct macro_shared *shared;
    int commands;
    int acknowledgements; /* a byte whenever finished has grown */
};

/* B's own: serves commands until MACRO_QUIT. */
enum status macro_receive(struct macro_shared *shared, int commands, int acknowledgements);

/* The process of B: arguments behind MACRO_RECEIVER_COMMAND. Returns its exit status. */
int macro_receiver_main(int argc, char *argv[]);

/* run_macro.c: sets what a node needs in this benchmark; extra may be NULL. */
struct options;
MUST_USE enum status macro_set_options(struct options *options, const struct macro_shared *shared,
        const char *archive, const char *extra_name);
