/* SPDX-License-Identifier: MIT */
#pragma once

/* What one run of flood over the network knows; written on its one thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/options.h"
#include "base/span.h"
#include "net/transport/io_loop.h"
#include "tools/common/arrivals.h"
#include "tools/common/histogram.h"
#include "tools/common/light_peer.h"
#include "tools/common/process_meter.h"
#include "tools/flood/checker.h"
#include "tools/flood/generator.h"

enum {
    NETWORK_NODES_MAX = 16,
    NETWORK_RECENT = 64 /* messages that may be repeated */
};

/*
 * A message's number is RUN | n: what another run has left behind in a mesh is told apart. Probes, by
 * which the ways from publishers to receivers are found open, have a bit of their own.
 */
#define NETWORK_RUN_SHIFT 40
#define NETWORK_PROBE     (1ULL << 39)
#define NETWORK_MASK      (NETWORK_PROBE - 1)

enum network_phase {
    NETWORK_CONNECTING,
    NETWORK_PROBING,
    NETWORK_SENDING,
    NETWORK_DRAINING,
    NETWORK_OVER
};

struct network;

struct network_peer {
    struct network *network;
    struct light_peer *peer;
    const char *address;
    size_t index; /* among the publishers or the receivers */
    bool is_receiver;
    bool has_ended;

    /* of receivers */
    struct checker *checker;
    uint64_t *probes_of; /* bits by publisher */
    size_t probed_count;
};

/* A process of this machine that is under test. */
struct network_node {
    pid_t pid;
    struct process_reading began;
    struct process_reading last;
};

struct network {
    const struct options *options;
    struct generator *generator;
    struct io_loop *loop;
    struct span topics[LIGHT_PEER_TOPICS_MAX];
    struct network_peer *publishers;
    struct network_peer *receivers;
    size_t publisher_count;
    size_t receiver_count;
    struct network_node nodes[NETWORK_NODES_MAX];
    size_t node_count;
    uv_timer_t timer;
    uv_check_t turn_end;
    uv_signal_t signals[2];

    enum network_phase phase;
    bool has_failed; /* could not be begun */
    bool is_interrupted;
    bool is_pumping;
    size_t turn_bytes; /* sent since the loop's turn began */
    uint64_t run;
    uint64_t messages_max; /* UINT64_MAX: until the time is over */
    uint64_t duration_ns;  /* UINT64_MAX: until the messages are sent */
    uint64_t window;       /* UINT64_MAX: none */
    uint64_t rate;         /* 0: none */
    uint32_t duplicate_percent;
    uint64_t random;
    struct generator_message recent[NETWORK_RECENT];

    uint64_t expected_count; /* numbers that the checkers know */
    uint64_t probe_count;
    uint64_t published;
    uint64_t repeated;
    uint64_t published_bytes;
    uint64_t delivered; /* first copies, of all receivers */
    uint64_t delivered_bytes;
    struct arrivals arrivals;

    int64_t wall_base_ns; /* wall time at began_ns */
    uint64_t phase_began_ns;
    uint64_t began_ns; /* of sending */
    uint64_t sent_ns;
    uint64_t last_delivery_ns;
    uint64_t next_probe_ns;
    uint64_t cpu_began_ns; /* of this process */
    struct histogram latency;

    /* of the progress line */
    uint64_t next_progress_ns;
    uint64_t shown_ns;
    uint64_t shown_published;
    uint64_t shown_delivered;
    uint64_t shown_bytes;
    struct histogram recent_latency;
};

/* network_peers.c. False: said why on stderr. */
bool network_make_peers(struct network *network);
void network_end_peers(struct network *network);
bool network_all_ready(const struct network *network);
bool network_all_probed(const struct network *network);

/* network_send.c */
void network_send_probes(struct network *network);

/* Sends what rate, window and streams allow now. */
void network_pump(struct network *network);
bool network_is_all_sent(const struct network *network, uint64_t now_ns);

/* Messages that some receiver may still get. */
uint64_t network_in_flight(const struct network *network);
uint64_t network_process_cpu_ns(void);

/* network_report.c */
void network_find_nodes(struct network *network);
void network_read_nodes(struct network *network, bool begins);
void network_show_progress(struct network *network, bool is_last);

/* Prints the result; false when more than --max-loss was lost, or anything is doubled or torn. */
bool network_report(struct network *network);
