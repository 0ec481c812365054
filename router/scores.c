/* SPDX-License-Identifier: MIT */
#include "router/scores.h"

#include "base/clock.h"

const struct score_options score_defaults = {
        .topic_weight = 1,
        .mesh_time_weight = 0.01,
        .mesh_time_quantum_ns = NANOSECONDS_PER_SECOND,
        .mesh_time_cap = 10,
        .first_weight = 1,
        .first_decay = 0.5,
        .first_cap = 10,
        .invalid_weight = -100,
        .invalid_decay = 0.5,
        .colocation_weight = -50,
        .colocation_threshold = 5,
        .behaviour_weight = -10,
        .behaviour_decay = 0.986,
        .decay_interval_ns = (uint64_t)12 * NANOSECONDS_PER_SECOND,
        .decay_to_zero = 0.01,
        .retain_ns = (uint64_t)600 * NANOSECONDS_PER_SECOND,
        .retained_max = 10000,
};

double score_card_total(const struct score_card *card)
{
    /* relaxed: see score_card_set */
    double total = atomic_load_explicit(&card->general, memory_order_relaxed);
    for (size_t i = 0; i < SCORE_LANES_MAX; i++) {
        total += atomic_load_explicit(&card->topics[i], memory_order_relaxed);
    }
    return total;
}
