/* SPDX-License-Identifier: MIT */
#include "node/live.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/live_feed.h"
#include "admin/live_page.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "node/live_figures.h"
#include "node/node_private.h"

enum {
    PEERS_MAX = 32 * 1024, /* that are told apart */
    PEER_PLACES = 2 * PEERS_MAX,
    LOG_PERIOD_S = 600 /* as in the reference */
};

struct live {
    struct node *node;
    bool has_logging;
    uint64_t next_log_ns; /* monotonic */
    struct live_subscribers subscribers;
    pthread_mutex_t peers_lock;
    uint64_t peers[PEER_PLACES]; /* keys of peers that were connected, by hash; 0: free */
    size_t peer_count;
    struct live_feed *feed;
    pthread_mutex_t lock; /* of figures */
    char *figures;        /* JSON; NULL: the watch has not looked yet */
};

static void tell_health(struct live *live, const struct watch_tick *tick)
{
    for (size_t i = 0; i < HEALTH_PARTS; i++) {
        const struct health_part_state *state = &tick->health->parts[i];
        if (!tick->has_changed[i]) {
            continue;
        }
        char *json = live_figures_of_part((enum health_part)i, state);
        if (json != NULL) {
            live_feed_event(live->feed, LIVE_HEALTH, json);
        }
        free(json);
    }
}

/* A filter subscriber that was dropped: expired, or its stream was stuck. */
static void tell_subscribers(struct live *live, const struct watch_tick *tick)
{
    static const struct {
        enum metric metric;
        const char *reason;
    } kinds[] = {{METRIC_FILTER_EXPIRED, "expired"}, {METRIC_FILTER_STUCK, "stuck"}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        uint64_t now = tick->reading->metrics[kinds[i].metric];
        uint64_t before = tick->before->metrics[kinds[i].metric];
        if (now > before) {
            char json[96];
            snprintf(json, sizeof(json), "{\"event\":\"dropped\",\"count\":%llu,\"reason\":\"%s\"}",
                    (unsigned long long)(now - before), kinds[i].reason);
            live_feed_event(live->feed, LIVE_SUBSCRIBER, json);
        }
    }
}

static void log_figures(struct live *live, const struct node_reading *reading)
{
    if (!live->has_logging || reading->monotonic_ns < live->next_log_ns) {
        return;
    }
    if (live->next_log_ns != 0) {
        log_write(LOG_INFO, "metrics",
                "%" PRIu64 " messages, %" PRIu64 " copies, %" PRIu64 " connections, %" PRIu64
                " relay peers, %" PRIu64 " filter subscribers, %" PRIu64
                " messages wait to be archived",
                reading->metrics[LEDGER_INTAKE_DELIVERED],
                reading->metrics[LEDGER_INTAKE_DUPLICATE], reading->connections,
                reading->relay.peers, reading->filter_subscribers, reading->archive.held);
    }
    live->next_log_ns = reading->monotonic_ns + LOG_PERIOD_S * (uint64_t)NANOSECONDS_PER_SECOND;
}

/* On the watch's thread, once a second. */
static void take_tick(void *context, const struct watch_tick *tick)
{
    struct live *live = context;
    (void)live_feed_tidy(live->feed);
    log_figures(live, tick->reading);
    if (live_feed_wants(live->feed, LIVE_FIGURES)) {
        live_subscribers_ask(&live->subscribers, &live->node->filter_link);
    }
    char *figures = live_figures(live->node, tick, &live->subscribers);
    if (figures == NULL) {
        return;
    }
    live_feed_event(live->feed, LIVE_FIGURES, figures);
    tell_health(live, tick);
    tell_subscribers(live, tick);
    pthread_mutex_lock(&live->lock);
    free(live->figures);
    live->figures = figures;
    pthread_mutex_unlock(&live->lock);
}

/* On io threads. */
static void tell_peer(struct live *live, const struct connection *connection, const char *what,
        const char *reason)
{
    char peer[PEER_ID_TEXT_SIZE];
    char json[PEER_ID_TEXT_SIZE + 128];
    if (!live_feed_wants(live->feed, LIVE_PEER)) {
        return;
    }
    peer_id_print(peer, connection_peer(connection));
    snprintf(json, sizeof(json),
            "{\"event\":\"%s\",\"peer\":\"%s\",\"outbound\":%s,\"reason\":\"%s\"}", what, peer,
            connection_is_outbound(connection) ? "true" : "false", reason);
    live_feed_event(live->feed, LIVE_PEER, json);
}

static void note_peer(struct live *live, const struct peer_id *peer)
{
    uint64_t key = peer_id_hash(peer, 0) | 1;
    size_t place = (key >> 1) % PEER_PLACES;
    pthread_mutex_lock(&live->peers_lock);
    while (live->peers[place] != 0 && live->peers[place] != key) {
        place = (place + 1) % PEER_PLACES;
    }
    if (live->peers[place] == 0 && live->peer_count < PEERS_MAX) {
        live->peers[place] = key;
        live->peer_count++;
        /* relaxed: a reading */
        atomic_store_explicit(&live->node->unique_peers, live->peer_count, memory_order_relaxed);
    }
    pthread_mutex_unlock(&live->peers_lock);
}

static void on_connected(void *context, struct connection *connection)
{
    note_peer(context, connection_peer(connection));
    tell_peer(context, connection, "joined", "");
}

static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    tell_peer(context, connection, "left", close_reason_text(reason));
}

static enum status assemble(struct live *live, const struct options *options)
{
    static const struct switch_observer observer = {
            .connected = on_connected, .disconnected = on_disconnected};
    struct live_feed_options feed = {.clients_max = (size_t)options_number(options, "live-clients"),
            .queue_bytes_max = (size_t)options_number(options, "live-queue-limit")};
    enum status status = live_feed_create(&live->feed, &feed);
    if (status != STATUS_OK) {
        return status;
    }
    live->has_logging =
            options_flag(options, "metrics-server") && options_flag(options, "metrics-logging");
    live->node->watch.listener = take_tick;
    live->node->watch.listener_context = live;
    struct network *network = live->node->network;
    return network == NULL ? STATUS_OK
                           : switch_add_observer(network_switch(network), &observer, live);
}

enum status live_create(struct live **out, struct node *node, const struct options *options)
{
    struct live *live = memory_allocate_zeroed(sizeof(*live));
    if (live == NULL) {
        return STATUS_NO_MEMORY;
    }
    live->node = node;
    (void)pthread_mutex_init(&live->lock, NULL); /* they do not fail (glibc) */
    (void)pthread_mutex_init(&live->peers_lock, NULL);
    live_subscribers_init(&live->subscribers);
    enum status status = assemble(live, options);
    if (status != STATUS_OK) {
        live_destroy(&live);
        return status;
    }
    *out = live;
    return STATUS_OK;
}

void live_destroy(struct live **live)
{
    if (*live == NULL) {
        return;
    }
    live_feed_destroy(&(*live)->feed);
    pthread_mutex_destroy(&(*live)->lock);
    pthread_mutex_destroy(&(*live)->peers_lock);
    live_subscribers_fini(&(*live)->subscribers);
    free((*live)->figures);
    memory_free(*live);
    *live = NULL;
}

void live_take(struct live *live, const struct envelope *envelope)
{
    live_feed_message(live->feed, envelope);
}

static void show_page(void *context, struct http_request *request)
{
    (void)context;
    http_respond_static(request, HTTP_OK, "text/html; charset=utf-8", live_page, live_page_length);
}

static void show_figures(void *context, struct http_request *request)
{
    struct live *live = context;
    pthread_mutex_lock(&live->lock);
    if (live->figures == NULL) {
        http_respond_text(request, HTTP_UNAVAILABLE, "the node is starting");
    } else {
        http_respond(request, HTTP_OK, "application/json", live->figures, strlen(live->figures));
    }
    pthread_mutex_unlock(&live->lock);
}

/* A client that wants figures has them at once, not only after a second. */
static void open_feed(void *context, struct http_request *request)
{
    struct live *live = context;
    char *first = NULL;
    pthread_mutex_lock(&live->lock);
    const char *kinds = http_request_parameter(request, "kinds");
    if (live->figures != NULL && (kinds == NULL || strstr(kinds, "figures") != NULL) &&
            asprintf(&first, "event: figures\ndata: %s\n\n", live->figures) < 0) {
        first = NULL;
    }
    pthread_mutex_unlock(&live->lock);
    live_feed_open(live->feed, request, first != NULL ? first : "");
    free(first);
}

void live_add_routes(struct live *live, struct http_server *server)
{
    static const struct http_route routes[] = {{HTTP_GET, "/", show_page},
            {HTTP_GET, "/live", show_page}, {HTTP_GET, "/live/v1/figures", show_figures},
            {HTTP_GET, "/live/v1/events", open_feed}};
    http_server_add_routes(server, routes, sizeof(routes) / sizeof(routes[0]), live);
}
