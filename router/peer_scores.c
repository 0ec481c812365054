/* SPDX-License-Identifier: MIT */
#include "router/peer_scores.h"

#include "base/memory.h"
#include "router/peer_map.h"

struct place {
    size_t peer_count;
};

struct scored {
    struct score_card *card; /* NULL: it has left */
    uint64_t left_ns;
    struct place *place; /* NULL: it has left, or nobody knows where it is */
    uint64_t address;
    double behaviour;
    double application;
};

struct peer_scores {
    struct score_options options;
    struct peer_map peers;
    struct peer_map places;
    size_t retained;
    uint64_t next_decay_ns;
};

enum status peer_scores_create(struct peer_scores **out, const struct score_options *options)
{
    struct peer_scores *scores = memory_allocate_zeroed(sizeof(*scores));
    if (scores == NULL) {
        return STATUS_NO_MEMORY;
    }
    scores->options = *options;
    *out = scores;
    return STATUS_OK;
}

static void free_values(struct peer_map *map)
{
    size_t position = 0;
    struct peer_slot *slot;
    while ((slot = peer_map_next(map, &position)) != NULL) {
        memory_free(slot->value);
    }
    peer_map_fini(map);
}

void peer_scores_destroy(struct peer_scores **scores)
{
    if (*scores == NULL) {
        return;
    }
    free_values(&(*scores)->peers);
    free_values(&(*scores)->places);
    memory_free(*scores);
    *scores = NULL;
}

static double colocation_score(const struct score_options *options, const struct place *place)
{
    if (options->colocation_threshold == 0 || place == NULL ||
            place->peer_count <= options->colocation_threshold) {
        return 0;
    }
    double excess = (double)(place->peer_count - options->colocation_threshold);
    return options->colocation_weight * excess * excess;
}

static void publish(const struct peer_scores *scores, struct scored *scored)
{
    const struct score_options *options = &scores->options;
    if (scored->card != NULL) {
        score_card_set(&scored->card->general,
                colocation_score(options, scored->place) +
                        options->behaviour_weight * scored->behaviour * scored->behaviour);
    }
}

/* The value under key, made zeroed if need be; NULL: no memory. */
static void *find_or_add(struct peer_map *map, uint64_t key, size_t size_bytes)
{
    void *value = peer_map_find(map, key);
    if (value == NULL) {
        value = memory_allocate_zeroed(size_bytes);
        if (value != NULL && !peer_map_put(map, key, value)) {
            memory_free(value);
            value = NULL;
        }
    }
    return value;
}

static void leave_place(struct peer_scores *scores, struct scored *scored)
{
    if (scored->place == NULL) {
        return;
    }
    scored->place->peer_count--;
    if (scored->place->peer_count == 0) {
        memory_free(peer_map_take(&scores->places, scored->address));
    }
    scored->place = NULL;
}

enum status peer_scores_connect(
        struct peer_scores *scores, uint64_t peer, uint64_t address, struct score_card *card)
{
    bool is_new = peer_map_find(&scores->peers, peer) == NULL;
    struct scored *scored = find_or_add(&scores->peers, peer, sizeof(*scored));
    if (scored == NULL) {
        return STATUS_NO_MEMORY;
    }
    bool was_retained = !is_new && scored->card == NULL;
    struct place *place =
            address == 0 ? NULL : find_or_add(&scores->places, address, sizeof(*place));
    if (place == NULL && address != 0) {
        if (is_new) {
            memory_free(peer_map_take(&scores->peers, peer));
        }
        return STATUS_NO_MEMORY;
    }
    if (place != NULL) {
        place->peer_count++;
    }
    leave_place(scores, scored);
    scores->retained -= was_retained ? 1 : 0;
    scored->card = card;
    scored->place = place;
    scored->address = address;
    publish(scores, scored);
    return STATUS_OK;
}

void peer_scores_disconnect(struct peer_scores *scores, uint64_t peer, uint64_t now_ns)
{
    struct scored *scored = peer_map_find(&scores->peers, peer);
    if (scored == NULL || scored->card == NULL) {
        return;
    }
    leave_place(scores, scored);
    scored->card = NULL;
    scored->left_ns = now_ns;
    if (scored->behaviour > 0 && scores->retained < scores->options.retained_max) {
        scores->retained++;
    } else {
        memory_free(peer_map_take(&scores->peers, peer));
    }
}

static struct scored *find_connected(struct peer_scores *scores, uint64_t peer)
{
    struct scored *scored = peer_map_find(&scores->peers, peer);
    return scored != NULL && scored->card != NULL ? scored : NULL;
}

void peer_scores_penalise(struct peer_scores *scores, uint64_t peer, double amount)
{
    struct scored *scored = find_connected(scores, peer);
    if (scored != NULL) {
        scored->behaviour += amount;
        publish(scores, scored);
    }
}

void peer_scores_tick(struct peer_scores *scores, uint64_t now_ns)
{
    bool is_decay_due = now_ns >= scores->next_decay_ns;
    if (is_decay_due) {
        scores->next_decay_ns = now_ns + scores->options.decay_interval_ns;
    }
    size_t position = 0;
    struct peer_slot *slot;
    while ((slot = peer_map_next(&scores->peers, &position)) != NULL) {
        struct scored *scored = slot->value;
        if (scored->card == NULL && now_ns - scored->left_ns > scores->options.retain_ns) {
            scores->retained--;
            memory_free(peer_map_take(&scores->peers, slot->key));
            peer_map_step_back(&position);
            continue;
        }
        if (is_decay_due && scored->card != NULL) {
            scored->behaviour *= scores->options.behaviour_decay;
            scored->behaviour =
                    scored->behaviour < scores->options.decay_to_zero ? 0 : scored->behaviour;
        }
        publish(scores, scored);
    }
}

size_t peer_scores_peer_count(const struct peer_scores *scores)
{
    return scores->peers.count;
}

size_t peer_scores_address_count(const struct peer_scores *scores)
{
    return scores->places.count;
}
