/* SPDX-License-Identifier: MIT */
#include "net/switch/registry.h"

#include <assert.h>
#include <openssl/rand.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/switch/hash_table.h"
#include "net/switch/switch_private.h"
#include "net/transport/address.h"

enum {
    /* Two connections this close in time were dialled by both sides at once. */
    SIMULTANEOUS_MS = 10 * 1000
};

/* Connections from one IPv4 address or IPv6 /64. */
struct registry_group {
    struct hash_link link;
    uint64_t address;
    size_t count;
};

struct registry_entry {
    struct hash_link by_peer; /* while admitted */
    struct registry *registry;
    struct switch_shard *shard;
    struct registry_group *group; /* inbound under a group limit */
    struct registry_entry *next;  /* of the unfinished inbound ones, oldest first */
    struct registry_entry *previous;
    struct switch_dial dial; /* done is NULL for inbound, and once it was called */
    uint64_t started_ms;
    uint64_t admitted_ms;
    bool is_outbound;
    bool is_pending; /* in the list of unfinished inbound ones */
    bool is_admitted;

    /* Written by the io thread before the report that carries them. */
    struct io_task started;
    struct io_task upgraded;
    struct io_task closed;
    struct switch_peer peer;
    enum close_reason reason;
    enum status status;

    uint64_t connection; /* 0 before it is known here */
};

struct registry {
    struct net_switch *net_switch;
    struct hash_table peers;
    struct hash_table groups;
    struct registry_entry *oldest_pending;
    struct registry_entry *newest_pending;
    size_t pending_count; /* inbound */
    size_t admitted_count;
    size_t entry_count;
    uint64_t admissions; /* ever */
    uint64_t seed;
    struct switch_gatekeeper gatekeeper;
    void *gatekeeper_context;
};

static uint64_t now_ms(void)
{
    return clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
}

enum status registry_create(struct registry **out, struct net_switch *net_switch)
{
    struct registry *registry = memory_allocate_zeroed(sizeof(*registry));
    if (registry == NULL) {
        return STATUS_NO_MEMORY;
    }
    registry->net_switch = net_switch;
    enum status status = STATUS_SYSTEM;
    if (RAND_bytes((unsigned char *)&registry->seed, sizeof(registry->seed)) != 1) {
        goto fail;
    }
    status = hash_table_init(&registry->peers);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = hash_table_init(&registry->groups);
    if (status != STATUS_OK) {
        hash_table_fini(&registry->peers);
        goto fail;
    }
    *out = registry;
    return STATUS_OK;
fail:
    memory_free(registry);
    return status;
}

void registry_destroy(struct registry **registry)
{
    if (*registry == NULL) {
        return;
    }
    assert(registry_is_empty(*registry));
    hash_table_fini(&(*registry)->groups);
    hash_table_fini(&(*registry)->peers);
    memory_free(*registry);
    *registry = NULL;
}

bool registry_is_empty(const struct registry *registry)
{
    return registry->entry_count == 0;
}

void registry_set_gatekeeper(
        struct registry *registry, const struct switch_gatekeeper *gatekeeper, void *context)
{
    registry->gatekeeper = *gatekeeper;
    registry->gatekeeper_context = context;
}

static void publish_counts(struct registry *registry)
{
    size_t upgrades = registry->entry_count - registry->admitted_count;
    /* relaxed: numbers for those who look, which order nothing */
    atomic_store_explicit(&registry->net_switch->connection_count, registry->admitted_count,
            memory_order_relaxed);
    atomic_store_explicit(&registry->net_switch->upgrade_count, upgrades, memory_order_relaxed);
}

static struct registry_group *find_group(struct registry *registry, uint64_t address, uint64_t hash)
{
    struct hash_link *link = hash_table_first(&registry->groups, hash);
    while (link != NULL) {
        struct registry_group *group =
                (struct registry_group *)((char *)link - offsetof(struct registry_group, link));
        if (group->address == address) {
            return group;
        }
        link = hash_table_next(link);
    }
    return NULL;
}

static struct registry_group *group_of(
        struct registry *registry, const struct sockaddr_storage *remote)
{
    uint64_t address = address_group(remote);
    uint64_t hash = XXH3_64bits_withSeed(&address, sizeof(address), registry->seed);
    struct registry_group *group = find_group(registry, address, hash);
    if (group != NULL) {
        return group;
    }
    group = memory_allocate_zeroed(sizeof(*group));
    if (group != NULL) {
        group->address = address;
        hash_table_insert(&registry->groups, &group->link, hash);
    }
    return group;
}

static void leave_group(struct registry *registry, struct registry_group *group)
{
    group->count--;
    if (group->count == 0) {
        hash_table_remove(&registry->groups, &group->link);
        memory_free(group);
    }
}

static void refuse(enum close_reason reason, const struct sockaddr_storage *remote, size_t limit)
{
    static struct log_limit limit_of_lines;
    char text[ADDRESS_TEXT_SIZE];
    metrics_add(close_reason_metric(reason), 1);
    log_write_limited(&limit_of_lines, LOG_WARN, "switch", "connection from %s refused: %s (%zu)",
            address_print_group(text, remote), close_reason_text(reason), limit);
}

static struct registry_entry *add_entry(struct registry *registry, bool is_outbound)
{
    struct registry_entry *entry = memory_allocate_zeroed(sizeof(*entry));
    if (entry == NULL) {
        metrics_add(METRIC_NET_CLOSED_NO_MEMORY, 1);
        return NULL;
    }
    entry->registry = registry;
    entry->is_outbound = is_outbound;
    entry->started_ms = now_ms();
    registry->entry_count++;
    publish_counts(registry);
    return entry;
}

static void add_pending(struct registry *registry, struct registry_entry *entry)
{
    entry->is_pending = true;
    entry->previous = registry->newest_pending;
    if (registry->newest_pending != NULL) {
        registry->newest_pending->next = entry;
    } else {
        registry->oldest_pending = entry;
    }
    registry->newest_pending = entry;
    registry->pending_count++;
}

static void remove_pending(struct registry *registry, struct registry_entry *entry)
{
    if (!entry->is_pending) {
        return;
    }
    entry->is_pending = false;
    if (entry->previous != NULL) {
        entry->previous->next = entry->next;
    } else {
        registry->oldest_pending = entry->next;
    }
    if (entry->next != NULL) {
        entry->next->previous = entry->previous;
    } else {
        registry->newest_pending = entry->previous;
    }
    entry->next = NULL;
    entry->previous = NULL;
    registry->pending_count--;
}

/*
 * Silent peers must not keep honest ones out: when all places for unfinished handshakes are taken,
 * the one that has had the most time gives way.
 */
static void make_room_for_pending(struct registry *registry)
{
    while (registry->pending_count >= registry->net_switch->options.upgrades_max) {
        struct registry_entry *entry = registry->oldest_pending;
        remove_pending(registry, entry);
        if (entry->connection != 0) {
            switch_close_connection(registry->net_switch, entry->connection, CLOSE_UPGRADES_MAX);
        }
    }
}

struct registry_entry *registry_begin_inbound(
        struct registry *registry, const struct sockaddr_storage *remote)
{
    const struct switch_options *options = &registry->net_switch->options;
    if (registry->admitted_count >= options->connections_max) {
        refuse(CLOSE_CONNECTIONS_MAX, remote, options->connections_max);
        return NULL;
    }
    struct registry_group *group = NULL;
    if (options->group_max > 0) {
        group = group_of(registry, remote);
        if (group == NULL) {
            return NULL;
        }
        if (group->count >= options->group_max) {
            refuse(CLOSE_GROUP_MAX, remote, options->group_max);
            return NULL;
        }
        group->count++;
    }
    make_room_for_pending(registry);
    struct registry_entry *entry = add_entry(registry, false);
    if (entry == NULL) {
        if (group != NULL) {
            leave_group(registry, group);
        }
        return NULL;
    }
    entry->group = group;
    add_pending(registry, entry);
    return entry;
}

struct registry_entry *registry_begin_outbound(
        struct registry *registry, const struct switch_dial *dial)
{
    struct registry_entry *entry = add_entry(registry, true);
    if (entry != NULL) {
        entry->dial = *dial;
    }
    return entry;
}

void registry_entry_set_shard(struct registry_entry *entry, struct switch_shard *shard)
{
    entry->shard = shard;
}

uint64_t registry_entry_started_ms(const struct registry_entry *entry)
{
    return entry->started_ms;
}

static struct registry_entry *find_admitted(
        const struct registry *registry, const struct peer_id *peer)
{
    struct hash_link *link = hash_table_first(&registry->peers, peer_id_hash(peer, registry->seed));
    while (link != NULL) {
        struct registry_entry *entry =
                (struct registry_entry *)((char *)link - offsetof(struct registry_entry, by_peer));
        if (peer_id_equal(&entry->peer.peer, peer)) {
            return entry;
        }
        link = hash_table_next(link);
    }
    return NULL;
}

uint64_t registry_find_peer(const struct registry *registry, const struct peer_id *peer)
{
    const struct registry_entry *entry = find_admitted(registry, peer);
    return entry == NULL ? 0 : entry->connection;
}

static void finish_dial(struct registry_entry *entry, enum status status, uint64_t connection)
{
    if (entry->dial.done != NULL) {
        void (*done)(void *, enum status, uint64_t) = entry->dial.done;
        entry->dial.done = NULL;
        done(entry->dial.context, status, connection);
    }
}

/* Takes an admitted entry out of what counts, before its connection is really gone. */
static void withdraw(
        struct registry *registry, struct registry_entry *entry, enum close_reason reason)
{
    entry->is_admitted = false;
    registry->admitted_count--;
    hash_table_remove(&registry->peers, &entry->by_peer);
    publish_counts(registry);
    if (registry->gatekeeper.left != NULL) {
        registry->gatekeeper.left(registry->gatekeeper_context, &entry->peer, reason);
    }
}

/*
 * Which of two connections to one peer stays. When both sides dialled at once, both must choose the
 * same one: that of the dialler with the smaller id. Otherwise the newer: a peer that connects again
 * has lost the older one, whether we know it yet or not.
 */
static bool is_new_one_kept(const struct registry *registry, const struct registry_entry *old,
        const struct registry_entry *new)
{
    bool is_simultaneous =
            old->is_outbound != new->is_outbound &&now_ms() - old->admitted_ms < SIMULTANEOUS_MS;
    if (!is_simultaneous) {
        return true;
    }
    const struct peer_id *own = identity_peer_id(registry->net_switch->options.identity);
    bool is_own_smaller = peer_id_compare(own, &new->peer.peer) < 0;
    return new->is_outbound == is_own_smaller;
}

/* The verdict on a proven peer: true when it may stay, else *reason. */
static bool judge(
        struct registry *registry, struct registry_entry *entry, enum close_reason *reason)
{
    const struct switch_options *options = &registry->net_switch->options;
    const struct peer_id *peer = &entry->peer.peer;
    if (registry->net_switch->is_stopping) {
        *reason = CLOSE_STOPPING;
        return false;
    }
    if (peer_id_equal(peer, identity_peer_id(options->identity))) {
        *reason = CLOSE_SELF;
        return false;
    }
    struct registry_entry *old = find_admitted(registry, peer);
    if (old != NULL && !is_new_one_kept(registry, old, entry)) {
        *reason = CLOSE_DUPLICATE;
        finish_dial(entry, STATUS_OK, old->connection);
        return false;
    }
    if (old != NULL) {
        withdraw(registry, old, CLOSE_DUPLICATE);
        switch_close_connection(registry->net_switch, old->connection, CLOSE_DUPLICATE);
    }
    if (registry->admitted_count >= options->connections_max) {
        *reason = CLOSE_CONNECTIONS_MAX;
        return false;
    }
    /* A peer that comes again takes the place that its older connection had. */
    if (old == NULL && registry->gatekeeper.admit != NULL &&
            !registry->gatekeeper.admit(registry->gatekeeper_context, &entry->peer)) {
        *reason = CLOSE_SLOTS_MAX;
        return false;
    }
    return true;
}

static void take_upgraded(struct registry_entry *entry)
{
    struct registry *registry = entry->registry;
    enum close_reason reason = CLOSE_REQUESTED;
    remove_pending(registry, entry);
    if (!judge(registry, entry, &reason)) {
        switch_close_connection(registry->net_switch, entry->peer.connection, reason);
        return;
    }
    entry->is_admitted = true;
    entry->admitted_ms = now_ms();
    registry->admitted_count++;
    hash_table_insert(
            &registry->peers, &entry->by_peer, peer_id_hash(&entry->peer.peer, registry->seed));
    publish_counts(registry);
    registry->admissions++;
    switch_tell_admitted(registry->net_switch, entry->connection, registry->admissions);
    if (registry->gatekeeper.admitted != NULL) {
        registry->gatekeeper.admitted(registry->gatekeeper_context, &entry->peer);
    }
    finish_dial(entry, STATUS_OK, entry->connection);
}

static enum status status_of_reason(enum close_reason reason, enum status status)
{
    switch ((int)reason) {
    case CLOSE_UPGRADE_TIMED_OUT:
        return STATUS_TIMED_OUT;
    case CLOSE_NO_COMMON_SECURITY:
    case CLOSE_NO_COMMON_MUXER:
        return STATUS_NO_COMMON_PROTOCOL;
    case CLOSE_SELF:
        return STATUS_WRONG_PEER;
    case CLOSE_SLOTS_MAX:
    case CLOSE_CONNECTIONS_MAX:
        return STATUS_LIMIT_REACHED;
    default:
        return status == STATUS_OK ? STATUS_CLOSED : status;
    }
}

/* Of a connection that was never admitted; a second one to the same peer is no failure. */
static void count_failure(const struct registry_entry *entry)
{
    if (entry->admitted_ms != 0 || entry->reason == CLOSE_DUPLICATE) {
        return;
    }
    metrics_add(METRIC_NET_DIALS_FAILED, entry->is_outbound);
    if (entry->reason != CLOSE_UNREACHABLE) {
        metrics_add(
                entry->is_outbound ? METRIC_NET_UPGRADES_FAILED_OUT : METRIC_NET_UPGRADES_FAILED_IN,
                1);
    }
}

static void take_closed(struct registry_entry *entry)
{
    struct registry *registry = entry->registry;
    struct net_switch *net_switch = registry->net_switch;
    remove_pending(registry, entry);
    count_failure(entry);
    if (entry->is_admitted) {
        withdraw(registry, entry, entry->reason);
    }
    if (entry->group != NULL) {
        leave_group(registry, entry->group);
    }
    finish_dial(entry, status_of_reason(entry->reason, entry->status), 0);
    registry->entry_count--;
    publish_counts(registry);
    memory_free(entry);
    switch_check_stopped(net_switch);
}

static struct registry_entry *entry_of_task(struct io_task *task, size_t offset)
{
    return (struct registry_entry *)((char *)task - offset);
}

static void run_started(struct io_task *task)
{
    struct registry_entry *entry = entry_of_task(task, offsetof(struct registry_entry, started));
    entry->connection = entry->peer.connection;
    if (!entry->is_outbound && !entry->is_pending) {
        /* It had to give way before there was anything to close. */
        switch_close_connection(entry->registry->net_switch, entry->connection, CLOSE_UPGRADES_MAX);
    }
}

static void run_upgraded(struct io_task *task)
{
    take_upgraded(entry_of_task(task, offsetof(struct registry_entry, upgraded)));
}

static void run_closed(struct io_task *task)
{
    take_closed(entry_of_task(task, offsetof(struct registry_entry, closed)));
}

/* Runs the report now on the control thread's own connections, else over there. */
static void report(
        struct registry_entry *entry, struct io_task *task, void (*run)(struct io_task *))
{
    struct net_switch *net_switch = entry->registry->net_switch;
    task->run = run;
    if (shard_is_control(entry->shard)) {
        run(task);
    } else {
        io_loop_post(net_switch->shards[0].loop, task);
    }
}

void registry_report_started(struct registry_entry *entry, uint64_t connection)
{
    entry->peer.connection = connection;
    entry->peer.is_outbound = entry->is_outbound;
    report(entry, &entry->started, run_started);
}

void registry_report_upgraded(
        struct registry_entry *entry, const struct peer_id *peer, const struct multiaddr *remote)
{
    entry->peer.peer = *peer;
    entry->peer.remote = *remote;
    report(entry, &entry->upgraded, run_upgraded);
}

void registry_report_closed(
        struct registry_entry *entry, enum close_reason reason, enum status status)
{
    entry->reason = reason;
    entry->status = status;
    report(entry, &entry->closed, run_closed);
}
