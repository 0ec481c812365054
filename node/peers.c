/* SPDX-License-Identifier: MIT */
#include "node/peers.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "node/node_private.h"
#include "node/peer_report.h"

/*
 * Ordering:
 *
 *   PART  release decrement of pending -> acquire load that finds 0: the caller sees what all parts
 *         wrote.
 *   LAST  the decrement of references that finds the last one frees.
 */

/* What an io thread knows of a connection. */
struct link_fact {
    uint64_t connection;
    uint64_t peer; /* the number that lanes know it by; 0: it does not speak relay */
    double score;
    uint64_t round_trip_ns;
};

struct link_part {
    struct link_fact *facts;
    size_t count;
    size_t capacity;
};

/* A peer in the mesh of a topic. */
struct mesh_fact {
    uint64_t peer;
    const struct topic *topic; /* the registry's: as long as the node */
};

struct mesh_part {
    struct peers_request *request;
    struct mesh_fact *facts;
    size_t count;
    size_t capacity;
};

struct peers_request {
    struct node *node;
    atomic_uint references;
    atomic_uint pending;
    atomic_bool has_failed; /* no memory */
    struct peer_report *report;
    struct link_part links[NODE_IO_MAX]; /* by loop */
    struct mesh_part meshes[NODE_LANES_MAX];
};

static void unref_request(struct peers_request *request)
{
    /* LAST */
    if (atomic_fetch_sub_explicit(&request->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    peer_report_destroy(request->report);
    for (size_t i = 0; i < NODE_IO_MAX; i++) {
        memory_free(request->links[i].facts);
    }
    for (size_t i = 0; i < NODE_LANES_MAX; i++) {
        memory_free(request->meshes[i].facts);
    }
    memory_free(request);
}

static void finish_part(struct peers_request *request)
{
    struct node *node = request->node;
    /* PART */
    if (atomic_fetch_sub_explicit(&request->pending, 1, memory_order_acq_rel) == 1) {
        parking_wake(&node->reply_parking);
    }
    unref_request(request);
}

static void fail(struct peers_request *request)
{
    /* relaxed: PART orders it */
    atomic_store_explicit(&request->has_failed, true, memory_order_relaxed);
}

/* On the control thread. */
static void on_peer(void *context, const struct peer_view *view)
{
    struct peers_request *request = context;
    if (view == NULL) {
        finish_part(request);
    } else if (!peer_report_add(request->report, view)) {
        fail(request);
    }
}

/* On each io thread. */
static void on_connection(void *context, struct connection *connection)
{
    struct peers_request *request = context;
    if (connection == NULL) {
        finish_part(request);
        return;
    }
    struct link_part *part = &request->links[io_loop_index(connection_loop(connection))];
    struct relay *relay = network_relay(request->node->network);
    struct relay_standing standing = {.peer = 0};
    if (!peer_report_grow(
                (void **)&part->facts, &part->capacity, part->count, sizeof(*part->facts))) {
        fail(request);
        return;
    }
    bool speaks_relay = relay != NULL && relay_standing_of(relay, connection, &standing);
    part->facts[part->count++] = (struct link_fact){
            .connection = connection_id(connection),
            .peer = speaks_relay ? standing.peer : 0,
            .score = standing.score,
            .round_trip_ns = connection_round_trip_ns(connection),
    };
}

/* On each decode thread. */
static void on_mesh_peer(void *owner, const struct topic *topic, uint64_t peer)
{
    struct mesh_part *part = owner;
    if (!peer_report_grow(
                (void **)&part->facts, &part->capacity, part->count, sizeof(*part->facts))) {
        fail(part->request);
        return;
    }
    part->facts[part->count++] = (struct mesh_fact){.peer = peer, .topic = topic};
}

static void on_mesh_listed(void *owner)
{
    struct mesh_part *part = owner;
    finish_part(part->request);
}

static size_t lanes_with_relay(const struct node *node)
{
    return node->relay_port.post != NULL ? node->settings.lane_count : 0;
}

/* What could not be asked is finished at once. */
static void drop_parts(struct peers_request *request, size_t count)
{
    fail(request);
    for (size_t i = 0; i < count; i++) {
        finish_part(request);
    }
}

static void ask_lane(struct peers_request *request, uint32_t lane)
{
    struct mesh_part *part = &request->meshes[lane];
    struct lane_event *event = lane_event_create(LANE_EVENT_LIST_MESH, 0, NULL);
    if (event == NULL) {
        drop_parts(request, 1);
        return;
    }
    part->request = request;
    event->visit = on_mesh_peer;
    event->release = on_mesh_listed;
    event->owner = part;
    intake_post_event(&request->node->intake, lane, event);
}

static void ask(struct peers_request *request)
{
    const struct network *network = request->node->network;
    struct net_switch *net_switch = network_switch(network);
    if (peer_manager_visit(network_peer_manager(network), on_peer, request) != STATUS_OK) {
        drop_parts(request, 1);
    }
    if (switch_visit_loops(net_switch, on_connection, request) != STATUS_OK) {
        drop_parts(request, switch_loop_count(net_switch));
    }
    for (size_t i = 0; i < lanes_with_relay(request->node); i++) {
        ask_lane(request, (uint32_t)i);
    }
}

static bool wait_for_parts(struct peers_request *request, uint64_t timeout_ms)
{
    struct parking *parking = &request->node->reply_parking;
    uint64_t end_ns = clock_monotonic_ns() + timeout_ms * NANOSECONDS_PER_MILLISECOND;
    for (;;) {
        uint32_t ticket = parking_prepare(parking);
        uint64_t now_ns = clock_monotonic_ns();
        bool is_done =
                atomic_load_explicit(&request->pending, memory_order_acquire) == 0; /* PART */
        if (is_done || now_ns >= end_ns) {
            parking_cancel(parking, ticket);
            return is_done;
        }
        parking_wait(parking, ticket, end_ns - now_ns);
    }
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_links(const void *a, const void *b)
{
    return compare_numbers(
            ((const struct link_fact *)a)->connection, ((const struct link_fact *)b)->connection);
}

static int compare_meshes(const void *a, const void *b)
{
    return compare_numbers(
            ((const struct mesh_fact *)a)->peer, ((const struct mesh_fact *)b)->peer);
}

static const struct link_fact *find_link(const struct peers_request *request, uint64_t connection)
{
    struct link_fact key = {.connection = connection};
    const struct link_fact *found = NULL;
    for (size_t i = 0; found == NULL && connection != 0 && i < NODE_IO_MAX; i++) {
        const struct link_part *part = &request->links[i];
        found = part->count == 0
                        ? NULL
                        : bsearch(&key, part->facts, part->count, sizeof(key), compare_links);
    }
    return found;
}

/* The facts of a peer in a sorted part: *count of them from the result on. */
static const struct mesh_fact *find_meshes(
        const struct mesh_part *part, uint64_t peer, size_t *count)
{
    struct mesh_fact key = {.peer = peer};
    *count = 0;
    const struct mesh_fact *found =
            part->count == 0 ? NULL
                             : bsearch(&key, part->facts, part->count, sizeof(key), compare_meshes);
    if (found == NULL) {
        return NULL;
    }
    const struct mesh_fact *first = found;
    const struct mesh_fact *end = part->facts + part->count;
    while (first > part->facts && first[-1].peer == peer) {
        first--;
    }
    for (const struct mesh_fact *fact = first; fact < end && fact->peer == peer; fact++) {
        (*count)++;
    }
    return first;
}

static const char *copy_name(struct peer_report *report, struct span name)
{
    char *copy = peer_report_take(report, name.length + 1);
    if (copy != NULL) {
        memcpy(copy, name.bytes, name.length);
        copy[name.length] = '\0';
    }
    return copy;
}

static size_t count_meshes(const struct peers_request *request, uint64_t number)
{
    size_t total = 0;
    for (size_t i = 0; i < NODE_LANES_MAX; i++) {
        size_t count;
        (void)find_meshes(&request->meshes[i], number, &count);
        total += count;
    }
    return total;
}

static bool add_names(struct peer_report *report, const char **topics, size_t *count,
        const struct mesh_fact *facts, size_t fact_count)
{
    for (size_t i = 0; i < fact_count; i++) {
        topics[*count] = copy_name(report, facts[i].topic->name);
        if (topics[*count] == NULL) {
            return false;
        }
        (*count)++;
    }
    return true;
}

static bool set_meshes(struct peers_request *request, struct node_peer *peer, uint64_t number)
{
    struct peer_report *report = request->report;
    const char **topics = peer_report_take(report, count_meshes(request, number) * sizeof(*topics));
    bool is_whole = topics != NULL;
    for (size_t i = 0; is_whole && i < NODE_LANES_MAX; i++) {
        size_t count;
        const struct mesh_fact *facts = find_meshes(&request->meshes[i], number, &count);
        is_whole = add_names(report, topics, &peer->mesh_topic_count, facts, count);
    }
    peer->mesh_topics = topics;
    return is_whole;
}

static bool put_together(struct peers_request *request)
{
    struct peer_report *list = request->report;
    for (size_t i = 0; i < NODE_IO_MAX; i++) {
        if (request->links[i].count > 0) {
            qsort(request->links[i].facts, request->links[i].count, sizeof(struct link_fact),
                    compare_links);
        }
    }
    for (size_t i = 0; i < NODE_LANES_MAX; i++) {
        if (request->meshes[i].count > 0) {
            qsort(request->meshes[i].facts, request->meshes[i].count, sizeof(struct mesh_fact),
                    compare_meshes);
        }
    }
    for (size_t i = 0; i < list->list.count; i++) {
        struct node_peer *peer = &list->list.peers[i];
        const struct link_fact *link = find_link(request, list->connections[i]);
        if (link == NULL) {
            continue;
        }
        peer->latency_ns = link->round_trip_ns == UINT64_MAX ? 0 : link->round_trip_ns;
        peer->has_score = link->peer != 0;
        peer->score = link->score;
        if (link->peer != 0 && !set_meshes(request, peer, link->peer)) {
            return false;
        }
    }
    return true;
}

static struct peers_request *create_request(struct node *node)
{
    struct peers_request *request = memory_allocate_zeroed(sizeof(*request));
    if (request == NULL) {
        return NULL;
    }
    size_t parts = 1 + switch_loop_count(network_switch(node->network)) + lanes_with_relay(node);
    request->node = node;
    atomic_init(&request->pending, (unsigned)parts);
    atomic_init(&request->references, (unsigned)parts + 1);
    atomic_init(&request->has_failed, false);
    request->report = peer_report_create();
    if (request->report == NULL) {
        memory_free(request);
        return NULL;
    }
    return request;
}

enum status node_peers_list(struct node *node, struct node_peer_list **out, uint64_t timeout_ms)
{
    if (node->network == NULL) {
        return STATUS_NOT_FOUND;
    }
    struct peers_request *request = create_request(node);
    if (request == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = STATUS_OK;
    ask(request);
    if (!wait_for_parts(request, timeout_ms)) {
        status = STATUS_TIMED_OUT;
    } else if (atomic_load_explicit(&request->has_failed, memory_order_relaxed) /* PART */ ||
               !put_together(request)) {
        status = STATUS_NO_MEMORY;
    } else {
        *out = &request->report->list;
        request->report = NULL;
    }
    unref_request(request);
    return status;
}

/* A dial that somebody wants to hear of: it keeps the io threads until it is over. */
struct dial_call {
    atomic_size_t *dials; /* the network's */
    void (*done)(void *context, enum status status);
    void *context;
};

static void end_dial(void *context, enum status status)
{
    struct dial_call *call = context;
    atomic_size_t *dials = call->dials;
    call->done(call->context, status);
    memory_free(call);
    /* release: whoever sees none may free what done used */
    atomic_fetch_sub_explicit(dials, 1, memory_order_release);
}

enum status node_dial(struct node *node, const struct multiaddr *address,
        void (*done)(void *context, enum status status), void *context)
{
    if (node->network == NULL) {
        return STATUS_NOT_FOUND;
    }
    struct dial_call *call = memory_allocate(sizeof(*call));
    if (call == NULL) {
        return STATUS_NO_MEMORY;
    }
    *call = (struct dial_call){
            .dials = network_dials(node->network), .done = done, .context = context};
    /* relaxed: it orders nothing */
    atomic_fetch_add_explicit(call->dials, 1, memory_order_relaxed);
    enum status status =
            peer_manager_dial(network_peer_manager(node->network), address, end_dial, call);
    if (status != STATUS_OK) {
        atomic_fetch_sub_explicit(call->dials, 1, memory_order_relaxed);
        memory_free(call);
    }
    return status;
}

struct waiting_dial {
    struct parking *parking; /* the node's: the waiter may be gone before the wake */
    enum status status;      /* written before DIALLED */
    atomic_bool is_done;     /* DIALLED: release store -> acquire load */
};

static void on_dialled(void *context, enum status status)
{
    struct waiting_dial *waiting = context;
    struct parking *parking = waiting->parking;
    waiting->status = status;
    atomic_store_explicit(&waiting->is_done, true, memory_order_release); /* DIALLED */
    parking_wake(parking);
}

enum status node_dial_and_wait(struct node *node, const struct multiaddr *address)
{
    struct waiting_dial waiting = {.parking = &node->reply_parking};
    atomic_init(&waiting.is_done, false);
    enum status status = node_dial(node, address, on_dialled, &waiting);
    if (status != STATUS_OK) {
        return status;
    }
    for (;;) {
        uint32_t ticket = parking_prepare(&node->reply_parking);
        if (atomic_load_explicit(&waiting.is_done, memory_order_acquire)) { /* DIALLED */
            parking_cancel(&node->reply_parking, ticket);
            return waiting.status;
        }
        parking_wait(&node->reply_parking, ticket, UINT64_MAX);
    }
}
