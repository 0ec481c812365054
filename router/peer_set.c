/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/memory.h"
#include "router/mesh_private.h"

enum {
    FIRST_CAPACITY = 8
};

void peer_set_fini(struct peer_set *set)
{
    memory_free(set->peers);
    *set = (struct peer_set){.count = 0};
}

static size_t position_in(const struct peer_set *set, const struct mesh_peer *peer)
{
    size_t i = 0;
    while (i < set->count && set->peers[i] != peer) {
        i++;
    }
    return i;
}

bool peer_set_has(const struct peer_set *set, const struct mesh_peer *peer)
{
    return position_in(set, peer) < set->count;
}

bool peer_set_add(struct peer_set *set, struct mesh_peer *peer)
{
    if (set->count == set->capacity) {
        size_t capacity = set->capacity == 0 ? FIRST_CAPACITY : set->capacity * 2;
        struct mesh_peer **grown = memory_resize(set->peers, capacity * sizeof(void *));
        if (grown == NULL) {
            return false;
        }
        set->peers = grown;
        set->capacity = capacity;
    }
    set->peers[set->count++] = peer;
    return true;
}

bool peer_set_remove(struct peer_set *set, const struct mesh_peer *peer)
{
    size_t i = position_in(set, peer);
    if (i == set->count) {
        return false;
    }
    set->peers[i] = set->peers[--set->count];
    if (set->count == 0) {
        peer_set_fini(set);
    }
    return true;
}

size_t peer_set_outbound_count(const struct peer_set *set)
{
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        count += set->peers[i]->is_outbound;
    }
    return count;
}

double mesh_score(const struct mesh_peer *peer)
{
    return score_card_total(peer->card);
}

/* splitmix64; the choices need no secrecy beyond the seed. */
static uint64_t next_random(struct mesh *mesh)
{
    uint64_t z = (mesh->random += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

size_t mesh_random_below(struct mesh *mesh, size_t bound)
{
    return (size_t)(next_random(mesh) % bound);
}

void mesh_shuffle(struct mesh *mesh, struct peer_set *set)
{
    for (size_t i = set->count; i > 1; i--) {
        size_t other = mesh_random_below(mesh, i);
        struct mesh_peer *peer = set->peers[i - 1];
        set->peers[i - 1] = set->peers[other];
        set->peers[other] = peer;
    }
}

static size_t best_from(const struct peer_set *set, size_t first)
{
    size_t best = first;
    double best_score = mesh_score(set->peers[first]);
    for (size_t i = first + 1; i < set->count; i++) {
        double score = mesh_score(set->peers[i]);
        if (score > best_score) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

void peer_set_best_first(struct peer_set *set, size_t count)
{
    for (size_t i = 0; i < count && i < set->count; i++) {
        size_t best = best_from(set, i);
        struct mesh_peer *peer = set->peers[i];
        set->peers[i] = set->peers[best];
        set->peers[best] = peer;
    }
}
