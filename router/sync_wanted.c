/* SPDX-License-Identifier: MIT */
#include "router/sync_wanted.h"

#include <assert.h>

#include "base/memory.h"
#include "base/metrics.h"
#include "hash/fast_key.h"

enum {
    TRIED_SLOTS = 65536, /* 512 KiB, from the first id on that was let go */
    TRIED_MASK = 3,      /* how often, in the lowest bits of a slot */
    ASKS = 64
};

/* A peer of whom something is wanted; its place in the array is what the tree keeps of an id. */
struct source {
    uint64_t peer;
    uint64_t deadline_ms;
    uint64_t last_deadline_ms;
    size_t count;       /* 0: free */
    bool has_delivered; /* since tended last: the patience begins anew */
    bool is_ended;      /* nothing more comes */
    bool is_over;       /* its ids are being let go */
};

struct question {
    uint64_t asker;
    int64_t from_ns;
    int64_t to_ns;
    uint64_t deadline_ms; /* 0: free */
};

struct sync_wanted {
    size_t max;
    uint64_t patience_ms;
    struct id_tree *ids; /* scope is the source's place */
    uint64_t *tried;     /* keys of ids and how often they were let go; NULL: none was */
    size_t over_count;   /* ids of sources that are over */
    struct id_key sweep; /* how far they were looked for */
    uint64_t now_ms;     /* of the last call that told */
    struct source sources[SYNC_WANTED_PEERS];
    struct question questions[ASKS];
};

enum status sync_wanted_create(struct sync_wanted **out, size_t max, uint64_t patience_ms)
{
    struct sync_wanted *wanted = memory_allocate_zeroed(sizeof(*wanted));
    enum status status = STATUS_NO_MEMORY;
    assert(patience_ms > 0);
    if (wanted != NULL) {
        wanted->max = max;
        wanted->patience_ms = patience_ms;
        status = id_tree_create(&wanted->ids);
    }
    if (status != STATUS_OK) {
        memory_free(wanted);
        return status;
    }
    *out = wanted;
    return STATUS_OK;
}

void sync_wanted_destroy(struct sync_wanted **wanted)
{
    if (*wanted == NULL) {
        return;
    }
    id_tree_destroy(&(*wanted)->ids);
    memory_free((*wanted)->tried);
    memory_free(*wanted);
    *wanted = NULL;
}

size_t sync_wanted_count(const struct sync_wanted *wanted)
{
    return id_tree_count(wanted->ids);
}

static uint64_t tried_key(const struct id_key *id)
{
    return fast_key_of_bytes(span_of(id->hash, sizeof(id->hash)));
}

/* How often the id was let go. Another one in its slot has made that forgotten. */
static unsigned tries_of(const struct sync_wanted *wanted, const struct id_key *id)
{
    if (wanted->tried == NULL) {
        return 0;
    }
    uint64_t key = tried_key(id);
    uint64_t slot = wanted->tried[(key >> 32) % TRIED_SLOTS];
    bool is_same = ((slot ^ key) & ~(uint64_t)TRIED_MASK) == 0;
    return is_same ? (unsigned)(slot & TRIED_MASK) : 0;
}

static void count_try(struct sync_wanted *wanted, const struct id_key *id)
{
    if (wanted->tried == NULL) {
        wanted->tried = memory_allocate_zeroed(TRIED_SLOTS * sizeof(wanted->tried[0]));
    }
    if (wanted->tried == NULL) {
        return;
    }
    uint64_t key = tried_key(id);
    unsigned tries = tries_of(wanted, id) + 1;
    tries = tries < SYNC_WANTED_TRIES ? tries : SYNC_WANTED_TRIES;
    wanted->tried[(key >> 32) % TRIED_SLOTS] = (key & ~(uint64_t)TRIED_MASK) | tries;
}

static struct source *find_source(struct sync_wanted *wanted, uint64_t peer)
{
    for (size_t i = 0; i < SYNC_WANTED_PEERS; i++) {
        struct source *source = &wanted->sources[i];
        if (source->count > 0 && source->peer == peer && !source->is_over) {
            return source;
        }
    }
    return NULL;
}

static struct source *find_or_add_source(struct sync_wanted *wanted, uint64_t peer, uint64_t now_ms)
{
    struct source *source = find_source(wanted, peer);
    for (size_t i = 0; source == NULL && i < SYNC_WANTED_PEERS; i++) {
        if (wanted->sources[i].count == 0) {
            source = &wanted->sources[i];
            *source = (struct source){.peer = peer,
                    .last_deadline_ms = now_ms + SYNC_WANTED_WAITS_MAX * wanted->patience_ms};
        }
    }
    return source;
}

/* Something has come, or was found out to come. */
static void go_on_waiting(struct sync_wanted *wanted, struct source *source, uint64_t now_ms)
{
    uint64_t deadline_ms = now_ms + wanted->patience_ms;
    source->deadline_ms =
            deadline_ms < source->last_deadline_ms ? deadline_ms : source->last_deadline_ms;
}

void sync_wanted_expect(struct sync_wanted *wanted, uint64_t peer, const struct id_key *ids,
        size_t count, uint64_t now_ms)
{
    struct source *source = count == 0 ? NULL : find_or_add_source(wanted, peer, now_ms);
    wanted->now_ms = now_ms;
    if (source == NULL) {
        return;
    }
    uint32_t place = (uint32_t)(source - wanted->sources);
    for (size_t i = 0; i < count; i++) {
        struct id_entry entry = {.key = ids[i], .scope = place};
        if (source->count >= wanted->max / SYNC_WANTED_SHARE ||
                id_tree_count(wanted->ids) >= wanted->max) {
            break;
        }
        if (tries_of(wanted, &ids[i]) < SYNC_WANTED_TRIES &&
                id_tree_insert(wanted->ids, &entry) == STATUS_OK) {
            source->count++;
        }
    }
    source->is_ended = false;
    go_on_waiting(wanted, source, now_ms);
}

static void take_out(struct sync_wanted *wanted, const struct id_key *id)
{
    struct id_entry entry;
    if (id_tree_remove(wanted->ids, id, &entry)) {
        struct source *source = &wanted->sources[entry.scope];
        wanted->over_count -= source->is_over;
        source->count--;
    }
}

void sync_wanted_arrived(struct sync_wanted *wanted, const struct id_key *id)
{
    struct id_entry entry;
    if (id_tree_count(wanted->ids) == 0 || !id_tree_find(wanted->ids, id, &entry)) {
        return;
    }
    wanted->sources[entry.scope].has_delivered = true;
    take_out(wanted, id);
}

void sync_wanted_peer_ended(struct sync_wanted *wanted, uint64_t peer, uint64_t now_ms)
{
    struct source *source = find_source(wanted, peer);
    if (source == NULL) {
        return;
    }
    source->is_ended = true;
    if (source->deadline_ms > now_ms + SYNC_WANTED_SETTLE_MS) {
        source->deadline_ms = now_ms + SYNC_WANTED_SETTLE_MS;
    }
}

static void end_sources(struct sync_wanted *wanted, uint64_t now_ms)
{
    for (size_t i = 0; i < SYNC_WANTED_PEERS; i++) {
        struct source *source = &wanted->sources[i];
        if (source->has_delivered && !source->is_ended) {
            go_on_waiting(wanted, source, now_ms);
        }
        source->has_delivered = false;
        if (source->count > 0 && !source->is_over && now_ms >= source->deadline_ms) {
            source->is_over = true;
            wanted->over_count += source->count;
            metrics_add(METRIC_SYNC_UNDELIVERED, source->count);
        }
    }
}

/* Round and round: a source that is over while half of the tree was looked at is found in the next. */
static void sweep(struct sync_wanted *wanted)
{
    struct id_key let_go[SYNC_WANTED_STEP_IDS];
    size_t count = 0;
    struct id_cursor cursor = id_tree_seek_first(wanted->ids, &wanted->sweep);
    for (size_t i = 0; i < SYNC_WANTED_STEP_IDS && id_cursor_is_valid(&cursor); i++) {
        struct id_entry entry = id_cursor_entry(&cursor);
        if (wanted->sources[entry.scope].is_over) {
            let_go[count++] = entry.key;
        }
        id_cursor_next(&cursor);
    }
    struct id_key next = {.timestamp_ns = INT64_MIN};
    if (id_cursor_is_valid(&cursor)) {
        next = id_cursor_entry(&cursor).key;
    }
    wanted->sweep = next;
    for (size_t i = 0; i < count; i++) {
        count_try(wanted, &let_go[i]);
        take_out(wanted, &let_go[i]);
    }
}

bool sync_wanted_tend(struct sync_wanted *wanted, uint64_t now_ms)
{
    wanted->now_ms = now_ms;
    if (id_tree_count(wanted->ids) == 0) {
        return false;
    }
    end_sources(wanted, now_ms);
    if (wanted->over_count > 0) {
        sweep(wanted);
    }
    return wanted->over_count > 0;
}

bool sync_wanted_contains(const struct sync_wanted *wanted, const struct id_key *id)
{
    struct id_entry entry;
    return id_tree_count(wanted->ids) > 0 && id_tree_find(wanted->ids, id, &entry) &&
           !wanted->sources[entry.scope].is_over;
}

static bool is_asked_between(const struct sync_wanted *wanted, int64_t from_ns, int64_t to_ns)
{
    for (size_t i = 0; i < ASKS; i++) {
        const struct question *question = &wanted->questions[i];
        if (question->deadline_ms > wanted->now_ms && question->from_ns <= to_ns &&
                question->to_ns >= from_ns) {
            return true;
        }
    }
    return false;
}

bool sync_wanted_is_asked(const struct sync_wanted *wanted, int64_t at_ns)
{
    return is_asked_between(wanted, at_ns, at_ns);
}

bool sync_wanted_has_between(const struct sync_wanted *wanted, int64_t from_ns, int64_t to_ns)
{
    struct id_key from = {.timestamp_ns = from_ns};
    struct id_key to = {.timestamp_ns = to_ns < INT64_MAX ? to_ns + 1 : to_ns};
    struct id_summary summary = {.count = 0};
    if (id_tree_count(wanted->ids) > 0) {
        id_tree_summarise(wanted->ids, &from, &to, &summary);
    }
    return summary.count > 0 || is_asked_between(wanted, from_ns, to_ns);
}

void sync_wanted_answered(struct sync_wanted *wanted, uint64_t asker)
{
    for (size_t i = 0; i < ASKS; i++) {
        if (wanted->questions[i].asker == asker) {
            wanted->questions[i].deadline_ms = 0;
        }
    }
}

void sync_wanted_ask(
        struct sync_wanted *wanted, uint64_t asker, int64_t from_ns, int64_t to_ns, uint64_t now_ms)
{
    wanted->now_ms = now_ms;
    sync_wanted_answered(wanted, asker);
    for (size_t i = 0; i < ASKS; i++) {
        if (wanted->questions[i].deadline_ms <= now_ms) {
            wanted->questions[i] = (struct question){.asker = asker,
                    .from_ns = from_ns,
                    .to_ns = to_ns,
                    .deadline_ms = now_ms + SYNC_WANTED_ASK_MS};
            return;
        }
    }
}
