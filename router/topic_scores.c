/* SPDX-License-Identifier: MIT */
#include "router/topic_scores.h"

#include "base/memory.h"
#include "router/peer_map.h"

struct conduct {
    uint32_t topic;
    bool is_in_mesh;
    uint64_t grafted_ns;
    double first;
    double invalid;
};

struct scored {
    struct score_card *card; /* NULL: it has left */
    uint64_t left_ns;
    struct conduct *topics;
    size_t topic_count;
    size_t topic_capacity;
};

struct topic_scores {
    struct score_options options;
    uint32_t lane;
    struct peer_map peers;
    size_t retained;
    uint64_t next_decay_ns;
};

enum status topic_scores_create(
        struct topic_scores **out, const struct score_options *options, uint32_t lane)
{
    if (lane >= SCORE_LANES_MAX) {
        return STATUS_BAD_ARGUMENT;
    }
    struct topic_scores *scores = memory_allocate_zeroed(sizeof(*scores));
    if (scores == NULL) {
        return STATUS_NO_MEMORY;
    }
    scores->options = *options;
    scores->lane = lane;
    *out = scores;
    return STATUS_OK;
}

static void free_scored(struct scored *scored)
{
    memory_free(scored->topics);
    memory_free(scored);
}

void topic_scores_destroy(struct topic_scores **scores)
{
    struct topic_scores *old = *scores;
    if (old == NULL) {
        return;
    }
    size_t position = 0;
    struct peer_slot *slot;
    while ((slot = peer_map_next(&old->peers, &position)) != NULL) {
        free_scored(slot->value);
    }
    peer_map_fini(&old->peers);
    memory_free(old);
    *scores = NULL;
}

static double mesh_time_score(
        const struct score_options *options, const struct conduct *conduct, uint64_t now_ns)
{
    if (!conduct->is_in_mesh || now_ns <= conduct->grafted_ns) {
        return 0;
    }
    double quanta = (double)(now_ns - conduct->grafted_ns) / (double)options->mesh_time_quantum_ns;
    return options->mesh_time_weight *
           (quanta < options->mesh_time_cap ? quanta : options->mesh_time_cap);
}

static void publish(const struct topic_scores *scores, struct scored *scored, uint64_t now_ns)
{
    const struct score_options *options = &scores->options;
    double sum = 0;
    for (size_t i = 0; i < scored->topic_count; i++) {
        const struct conduct *conduct = &scored->topics[i];
        sum += options->topic_weight *
               (mesh_time_score(options, conduct, now_ns) + options->first_weight * conduct->first +
                       options->invalid_weight * conduct->invalid * conduct->invalid);
    }
    if (scored->card != NULL) {
        score_card_set(&scored->card->topics[scores->lane], sum);
    }
}

enum status topic_scores_connect(
        struct topic_scores *scores, uint64_t peer, struct score_card *card, uint64_t now_ns)
{
    struct scored *scored = peer_map_find(&scores->peers, peer);
    if (scored == NULL) {
        scored = memory_allocate_zeroed(sizeof(*scored));
        if (scored == NULL || !peer_map_put(&scores->peers, peer, scored)) {
            memory_free(scored);
            return STATUS_NO_MEMORY;
        }
    } else if (scored->card == NULL) {
        scores->retained--;
    }
    scored->card = card;
    publish(scores, scored, now_ns);
    return STATUS_OK;
}

static void forget(struct topic_scores *scores, uint64_t peer)
{
    struct scored *scored = peer_map_take(&scores->peers, peer);
    free_scored(scored);
}

/* Only invalid deliveries are worth remembering of who has gone: the rest would be to his favour. */
static bool keep_bad_conduct(struct scored *scored)
{
    size_t kept = 0;
    for (size_t i = 0; i < scored->topic_count; i++) {
        struct conduct conduct = scored->topics[i];
        conduct.is_in_mesh = false;
        conduct.first = 0;
        if (conduct.invalid > 0) {
            scored->topics[kept++] = conduct;
        }
    }
    scored->topic_count = kept;
    return kept > 0;
}

void topic_scores_disconnect(struct topic_scores *scores, uint64_t peer, uint64_t now_ns)
{
    struct scored *scored = peer_map_find(&scores->peers, peer);
    if (scored == NULL || scored->card == NULL) {
        return;
    }
    scored->card = NULL;
    scored->left_ns = now_ns;
    if (scores->retained < scores->options.retained_max && keep_bad_conduct(scored)) {
        scores->retained++;
    } else {
        forget(scores, peer);
    }
}

static struct conduct *find_conduct(struct scored *scored, uint32_t topic)
{
    for (size_t i = 0; i < scored->topic_count; i++) {
        if (scored->topics[i].topic == topic) {
            return &scored->topics[i];
        }
    }
    return NULL;
}

static struct conduct *find_or_add_conduct(struct scored *scored, uint32_t topic)
{
    struct conduct *conduct = find_conduct(scored, topic);
    if (conduct != NULL) {
        return conduct;
    }
    if (scored->topic_count == scored->topic_capacity) {
        size_t capacity = scored->topic_capacity == 0 ? 2 : scored->topic_capacity * 2;
        struct conduct *grown = memory_resize(scored->topics, capacity * sizeof(scored->topics[0]));
        if (grown == NULL) {
            return NULL;
        }
        scored->topics = grown;
        scored->topic_capacity = capacity;
    }
    conduct = &scored->topics[scored->topic_count++];
    *conduct = (struct conduct){.topic = topic};
    return conduct;
}

/* NULL: the peer is not connected, or there is no memory to note it down. */
static struct conduct *conduct_of(
        struct topic_scores *scores, uint64_t peer, uint32_t topic, struct scored **scored)
{
    *scored = peer_map_find(&scores->peers, peer);
    if (*scored == NULL || (*scored)->card == NULL) {
        return NULL;
    }
    return find_or_add_conduct(*scored, topic);
}

void topic_scores_grafted(
        struct topic_scores *scores, uint64_t peer, uint32_t topic, uint64_t now_ns)
{
    struct scored *scored;
    struct conduct *conduct = conduct_of(scores, peer, topic, &scored);
    if (conduct != NULL) {
        conduct->is_in_mesh = true;
        conduct->grafted_ns = now_ns;
        publish(scores, scored, now_ns);
    }
}

void topic_scores_pruned(
        struct topic_scores *scores, uint64_t peer, uint32_t topic, uint64_t now_ns)
{
    struct scored *scored;
    struct conduct *conduct = conduct_of(scores, peer, topic, &scored);
    if (conduct != NULL) {
        conduct->is_in_mesh = false;
        publish(scores, scored, now_ns);
    }
}

void topic_scores_delivered_first(
        struct topic_scores *scores, uint64_t peer, uint32_t topic, uint64_t now_ns)
{
    struct scored *scored;
    struct conduct *conduct = conduct_of(scores, peer, topic, &scored);
    if (conduct != NULL && conduct->first < scores->options.first_cap) {
        double more = conduct->first + 1;
        conduct->first = more < scores->options.first_cap ? more : scores->options.first_cap;
        publish(scores, scored, now_ns);
    }
}

void topic_scores_delivered_invalid(
        struct topic_scores *scores, uint64_t peer, uint32_t topic, uint64_t now_ns)
{
    struct scored *scored;
    struct conduct *conduct = conduct_of(scores, peer, topic, &scored);
    if (conduct != NULL) {
        conduct->invalid += 1;
        publish(scores, scored, now_ns);
    }
}

static double decayed(double value, double factor, double zero)
{
    value *= factor;
    return value < zero ? 0 : value;
}

/* Conduct of which nothing is left is dropped, so that a peer costs no more than what it does now. */
static void decay(const struct score_options *options, struct scored *scored)
{
    size_t kept = 0;
    for (size_t i = 0; i < scored->topic_count; i++) {
        struct conduct conduct = scored->topics[i];
        conduct.first = decayed(conduct.first, options->first_decay, options->decay_to_zero);
        conduct.invalid = decayed(conduct.invalid, options->invalid_decay, options->decay_to_zero);
        if (conduct.is_in_mesh || conduct.first > 0 || conduct.invalid > 0) {
            scored->topics[kept++] = conduct;
        }
    }
    scored->topic_count = kept;
}

static bool is_forgotten(
        const struct topic_scores *scores, const struct scored *scored, uint64_t now_ns)
{
    return scored->card == NULL && now_ns - scored->left_ns > scores->options.retain_ns;
}

void topic_scores_tick(struct topic_scores *scores, uint64_t now_ns)
{
    bool is_decay_due = now_ns >= scores->next_decay_ns;
    if (is_decay_due) {
        scores->next_decay_ns = now_ns + scores->options.decay_interval_ns;
    }
    size_t position = 0;
    struct peer_slot *slot;
    while ((slot = peer_map_next(&scores->peers, &position)) != NULL) {
        struct scored *scored = slot->value;
        if (is_forgotten(scores, scored, now_ns)) {
            scores->retained--;
            forget(scores, slot->key);
            peer_map_step_back(&position);
            continue;
        }
        /* As in the other implementations, the score of who is away stays as it was. */
        if (is_decay_due && scored->card != NULL) {
            decay(&scores->options, scored);
        }
        publish(scores, scored, now_ns);
    }
}

size_t topic_scores_peer_count(const struct topic_scores *scores)
{
    return scores->peers.count;
}
