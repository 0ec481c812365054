/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Gossipsub's peer score: its parameters, and the card on which the parts of a peer's score meet.
 *
 *   score = sum over topics (P1 + P2 + P4) + P5 + P6 + P7
 *
 * The topics' part is kept by the lane that owns them (router/topic_scores), the rest by lane 0
 * (router/peer_scores). Each writes its own cell of the peer's card; whoever needs the score adds the
 * cells up. A sum may mix moments: scores steer over seconds, so no order is needed between cells.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SCORE_LANES_MAX = 16
};

struct score_options {
    double topic_weight;           /* 1 */
    double mesh_time_weight;       /* P1: 0.01 */
    uint64_t mesh_time_quantum_ns; /* 1 s */
    double mesh_time_cap;          /* 10 quanta */
    double first_weight;           /* P2: 1 for each first delivery */
    double first_decay;            /* 0.5 */
    double first_cap;              /* 10 */
    double invalid_weight;         /* P4: -100 times the square of the count */
    double invalid_decay;          /* 0.5 */
    double colocation_weight;      /* P6: -50 times the square of the excess */
    size_t colocation_threshold;   /* 5 peers of one address; 0: P6 is off */
    double behaviour_weight;       /* P7: -10 times the square of the penalties */
    double behaviour_decay;        /* 0.986 */
    uint64_t decay_interval_ns;    /* 12 s */
    double decay_to_zero;          /* 0.01 */
    uint64_t retain_ns;            /* 10 min after the peer left, when it left with a bad part */
    size_t retained_max;           /* 10,000 peers; those past it are forgotten at once */
};

extern const struct score_options score_defaults;

/* One a connected peer. Thread: a cell has one writer, any thread reads. */
struct score_card {
    _Atomic double general;                 /* lane 0: P6, P7; there is no P5 */
    _Atomic double topics[SCORE_LANES_MAX]; /* each by its lane */
};

static inline void score_card_set(_Atomic double *cell, double value)
{
    /* relaxed: the value stands for itself */
    atomic_store_explicit(cell, value, memory_order_relaxed);
}

double score_card_total(const struct score_card *card);
