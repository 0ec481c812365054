/* SPDX-License-Identifier: MIT */
#include "router/sync_sent.h"

#include "hash/fast_key.h"

enum {
    SWEEP_MS = 1000 /* at most so often is looked for what is not under way any more */
};

/* Times are kept plus one, as the map has no place for 0. */
static void *const queued = (void *)UINTPTR_MAX;

static uint64_t key_of(const struct id_key *id)
{
    return fast_key_of_bytes(span_of(id->hash, sizeof(id->hash)));
}

static void give_back(struct sync_sent_account *account, size_t count)
{
    /* relaxed: a bound, nothing is read on the strength of it */
    atomic_fetch_sub_explicit(&account->count, count, memory_order_relaxed);
}

void sync_sent_fini(struct sync_sent *sent, struct sync_sent_account *account)
{
    give_back(account, sent->by_key.count);
    peer_map_fini(&sent->by_key);
    *sent = (struct sync_sent){.next_sweep_ms = 0};
}

static bool is_under_way(const void *value, uint64_t now_ms, uint64_t patience_ms)
{
    return value == queued || (value != NULL && now_ms < (uintptr_t)value - 1 + patience_ms);
}

static void sweep(struct sync_sent *sent, struct sync_sent_account *account, uint64_t now_ms)
{
    size_t position = 0;
    struct peer_slot *slot;
    if (now_ms < sent->next_sweep_ms) {
        return;
    }
    sent->next_sweep_ms = now_ms + SWEEP_MS;
    while ((slot = peer_map_next(&sent->by_key, &position)) != NULL) {
        if (!is_under_way(slot->value, now_ms, account->patience_ms)) {
            (void)peer_map_take(&sent->by_key, slot->key);
            give_back(account, 1);
            peer_map_step_back(&position);
        }
    }
    if (sent->by_key.count == 0) {
        peer_map_fini(&sent->by_key);
    }
}

static void remember(struct sync_sent *sent, struct sync_sent_account *account, uint64_t key)
{
    bool is_there = peer_map_find(&sent->by_key, key) != NULL;
    /* relaxed: see give_back */
    size_t before = atomic_fetch_add_explicit(&account->count, !is_there, memory_order_relaxed);
    if ((!is_there && before >= account->max) || !peer_map_put(&sent->by_key, key, queued)) {
        give_back(account, !is_there);
    }
}

size_t sync_sent_queue(struct sync_sent *sent, struct sync_sent_account *account,
        struct id_key *ids, size_t count, uint64_t now_ms)
{
    size_t kept = 0;
    sweep(sent, account, now_ms);
    for (size_t i = 0; i < count; i++) {
        uint64_t key = key_of(&ids[i]);
        if (!is_under_way(peer_map_find(&sent->by_key, key), now_ms, account->patience_ms)) {
            ids[kept++] = ids[i];
            remember(sent, account, key);
        }
    }
    return kept;
}

void sync_sent_mark(struct sync_sent *sent, const struct id_key *id, uint64_t now_ms)
{
    uint64_t key = key_of(id);
    if (peer_map_find(&sent->by_key, key) != NULL) {
        /* It is there, so this succeeds. */
        (void)!peer_map_put(&sent->by_key, key, (void *)(uintptr_t)(now_ms + 1));
    }
}

void sync_sent_forget(
        struct sync_sent *sent, struct sync_sent_account *account, const struct id_key *id)
{
    if (peer_map_take(&sent->by_key, key_of(id)) != NULL) {
        give_back(account, 1);
    }
}
