/* SPDX-License-Identifier: MIT */
#include "node/live_figures.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/version.h"
#include "node/node_private.h"

/* A period, as the difference of two readings. */
struct period {
    const struct node_reading *now;
    const struct node_reading *before;
    double seconds; /* 0: there is none yet */
};

static double per_second(const struct period *period, uint64_t now, uint64_t before)
{
    return period->seconds > 0 && now >= before ? (double)(now - before) / period->seconds : 0;
}

static double rate(const struct period *period, enum metric metric)
{
    return per_second(period, period->now->metrics[metric], period->before->metrics[metric]);
}

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *count(const struct period *period, enum metric metric)
{
    return integer(period->now->metrics[metric]);
}

static json_t *milliseconds(int64_t ns)
{
    return json_integer(ns / NANOSECONDS_PER_MILLISECOND);
}

static json_t *json_of_part(enum health_part part, const struct health_part_state *state)
{
    return json_pack("{s:s, s:b, s:o, s:s, s:s}", "part", health_part_name(part), "degraded",
            (int)state->is_degraded, "since", milliseconds(state->since_ns), "why", state->why,
            "meaning", health_part_meaning(part));
}

char *live_figures_of_part(enum health_part part, const struct health_part_state *state)
{
    json_t *object = json_of_part(part, state);
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return text;
}

static json_t *json_of_health(const struct node_health *health)
{
    json_t *list = json_array();
    for (size_t i = 0; i < HEALTH_PARTS; i++) {
        json_array_append_new(list, json_of_part((enum health_part)i, &health->parts[i]));
    }
    return list;
}

static json_t *json_of_messages(const struct period *period)
{
    const struct node_reading *now = period->now;
    return json_pack("{s:o, s:o, s:o, s:f, s:f, s:f, s:o, s:o, s:f, s:f}", "received",
            count(period, LEDGER_INTAKE_RECEIVED), "accepted",
            count(period, LEDGER_INTAKE_DELIVERED), "copies",
            count(period, LEDGER_INTAKE_DUPLICATE), "receivedRate",
            rate(period, LEDGER_INTAKE_RECEIVED), "acceptedRate",
            rate(period, LEDGER_INTAKE_DELIVERED), "copyRate",
            rate(period, LEDGER_INTAKE_DUPLICATE), "bytesIn",
            integer(now->metrics[METRIC_NET_BYTES_IN]), "bytesOut",
            integer(now->metrics[METRIC_NET_BYTES_OUT]), "bytesInRate",
            rate(period, METRIC_NET_BYTES_IN), "bytesOutRate", rate(period, METRIC_NET_BYTES_OUT));
}

static json_t *json_of_work(const struct period *period)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:f}", "decodes",
            count(period, METRIC_DECODES), "messageHashes", count(period, METRIC_MESSAGE_HASHES),
            "idHashes", count(period, METRIC_ID_HASHES), "payloadCopies",
            count(period, METRIC_COPIES), "copiedBytes", count(period, METRIC_COPIED_BYTES),
            "decodeRate", rate(period, METRIC_DECODES), "messageHashRate",
            rate(period, METRIC_MESSAGE_HASHES), "idHashRate", rate(period, METRIC_ID_HASHES),
            "payloadCopyRate", rate(period, METRIC_COPIES));
}

static double busy_share(const struct period *period, size_t i)
{
    const struct thread_reading *now = &period->now->threads[i];
    const struct thread_reading *before = &period->before->threads[i];
    uint64_t total = now->total_ns - before->total_ns;
    uint64_t busy = now->busy_ns - before->busy_ns;
    double share = total > 0 && now->total_ns > before->total_ns ? (double)busy / (double)total : 0;
    return share > 1 ? 1 : share; /* a turn may have begun before the period */
}

static json_t *json_of_threads(const struct period *period)
{
    json_t *list = json_array();
    for (size_t i = 0; i < period->now->thread_count; i++) {
        const struct thread_reading *thread = &period->now->threads[i];
        json_array_append_new(
                list, json_pack("{s:s, s:s, s:s, s:b, s:f, s:f}", "name", thread->name, "role",
                              node_role_name(thread->role), "cpus", thread->cpus, "pinned",
                              (int)thread->is_pinned, "busy", busy_share(period, i), "busySeconds",
                              (double)thread->busy_ns / NANOSECONDS_PER_SECOND));
    }
    return list;
}

static json_t *json_of_queues(const struct node_reading *reading)
{
    json_t *list = json_array();
    for (size_t i = 0; i < reading->queue_count; i++) {
        const struct queue_reading *queue = &reading->queues[i];
        json_array_append_new(list,
                json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o}", "from", queue->from, "to",
                        queue->to, "kind", queue->kind, "lane", (json_int_t)queue->lane, "taker",
                        (json_int_t)queue->index, "depth", integer(queue->depth), "capacity",
                        integer(queue->capacity), "highWater", integer(queue->high_water)));
    }
    return list;
}

static json_t *json_of_topics(const struct period *period)
{
    json_t *list = json_array();
    for (size_t i = 0; i < period->now->topic_count; i++) {
        const struct topic_reading *topic = &period->now->topics[i];
        const struct topic_reading *before = &period->before->topics[i];
        if (!topic->is_subscribed && topic->messages == 0) {
            continue;
        }
        json_array_append_new(
                list, json_pack("{s:s, s:b, s:o, s:o, s:f, s:o, s:o}", "name", topic->name,
                              "subscribed", (int)topic->is_subscribed, "messages",
                              integer(topic->messages), "bytes", integer(topic->payload_bytes),
                              "rate", per_second(period, topic->messages, before->messages),
                              "peers", integer(topic->peers), "mesh", integer(topic->mesh_peers)));
    }
    return list;
}

/* out has room for whatever stands in base/metrics.def. */
static void lower(char *out, const char *text)
{
    while (*text != '\0') {
        *out++ = (char)(*text == '_' ? '_' : *text | 0x20); /* capitals, digits and '_' */
        text++;
    }
    *out = '\0';
}

static bool is_loss(const struct ledger_cell *cell)
{
    return cell->outcome == LEDGER_OUTCOME_REFUSED || cell->outcome == LEDGER_OUTCOME_DROPPED;
}

/* What was refused or dropped, ever or now. */
static json_t *json_of_losses(const struct period *period)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ledger_cell_count; i++) {
        const struct ledger_cell *cell = &ledger_cells[i];
        uint64_t amount = period->now->metrics[cell->metric];
        char reason[128];
        if (!is_loss(cell) || amount == 0) {
            continue;
        }
        lower(reason, cell->reason);
        json_array_append_new(list,
                json_pack("{s:s, s:s, s:s, s:o, s:f}", "stage", ledger_stage_name(cell->stage),
                        "outcome", ledger_outcome_name(cell->outcome), "reason", reason, "count",
                        integer(amount), "rate", rate(period, cell->metric)));
    }
    return list;
}

static json_t *json_of_archive(const struct period *period)
{
    const struct archive_reading *archive = &period->now->archive;
    if (!archive->is_there) {
        return json_null();
    }
    return json_pack("{s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:f}", "engine",
            archive->engine, "state", status_text(archive->health), "failing",
            (int)(archive->health != STATUS_OK), "lag", integer(archive->held), "spilled",
            integer(archive->spilled), "messages", integer(archive->totals.count), "bytes",
            integer(archive->totals.size_bytes), "oldest", milliseconds(archive->totals.oldest_ns),
            "newest", milliseconds(archive->totals.newest_ns), "rate",
            rate(period, LEDGER_ARCHIVE_DELIVERED));
}

static json_t *json_of_memory(const struct node_reading *reading)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "budget",
            integer(reading->budget_used), "budgetLimit", integer(reading->budget_limit),
            "budgetPeak", integer(reading->budget_peak), "archiveRing",
            integer(reading->archive.ring_bytes), "filterRings", integer(reading->filter_bytes),
            "eventRing", integer(reading->event_bytes), "meshCache",
            integer(reading->relay.cached_bytes), "outbound",
            integer(reading->relay.outbound_bytes), "outboundLimit",
            integer(reading->relay.outbound_limit));
}

static json_t *json_of_peers(const struct node_reading *reading)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "connections", integer(reading->connections),
            "upgrading", integer(reading->upgrades), "relay", integer(reading->relay.peers), "mesh",
            integer(reading->relay.mesh_peers), "outboundMessages",
            integer(reading->relay.outbound_messages), "meshLow", integer(reading->relay.mesh_low));
}

static void set_identity(json_t *object, const struct node *node)
{
    char peer[PEER_ID_TEXT_SIZE] = "";
    if (node->network != NULL) {
        peer_id_print(peer, identity_peer_id(network_identity(node->network)));
    }
    json_object_set_new(object, "version", json_string(SLUICE_VERSION));
    json_object_set_new(object, "peer", json_string(peer));
}

static void set_state(json_t *object, const struct watch_tick *tick)
{
    json_object_set_new(object, "time", milliseconds(tick->reading->wall_ns));
    json_object_set_new(
            object, "uptime", integer(tick->reading->uptime_ns / NANOSECONDS_PER_MILLISECOND));
    json_object_set_new(object, "node", json_string(tick->health->node));
    json_object_set_new(object, "connection", json_string(tick->health->connection));
    json_object_set_new(object, "degraded", json_boolean(tick->health->is_degraded));
    json_object_set_new(object, "health", json_of_health(tick->health));
    json_object_set_new(object, "offset",
            json_pack("{s:o, s:I}", "median", milliseconds(tick->reading->offset_median_ns),
                    "samples", (json_int_t)tick->reading->offset_samples));
}

char *live_figures(
        struct node *node, const struct watch_tick *tick, struct live_subscribers *subscribers)
{
    struct period period = {.now = tick->reading, .before = tick->before};
    if (tick->before->monotonic_ns != 0) {
        period.seconds = (double)(tick->reading->monotonic_ns - tick->before->monotonic_ns) /
                         NANOSECONDS_PER_SECOND;
    }
    json_t *object = json_object();
    if (object == NULL) {
        return NULL;
    }
    set_identity(object, node);
    set_state(object, tick);
    json_object_set_new(object, "messages", json_of_messages(&period));
    json_object_set_new(object, "work", json_of_work(&period));
    json_object_set_new(object, "threads", json_of_threads(&period));
    json_object_set_new(object, "queues", json_of_queues(tick->reading));
    json_object_set_new(object, "peers", json_of_peers(tick->reading));
    json_object_set_new(object, "topics", json_of_topics(&period));
    json_object_set_new(object, "subscribers",
            json_pack("{s:o, s:o}", "count", integer(tick->reading->filter_subscribers), "list",
                    live_subscribers_json(subscribers)));
    json_object_set_new(object, "archive", json_of_archive(&period));
    json_object_set_new(object, "losses", json_of_losses(&period));
    json_object_set_new(object, "memory", json_of_memory(tick->reading));
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(object);
    return text;
}
