/* SPDX-License-Identifier: MIT */
#include "tools/sluice/replay_tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "codec/waku_message.h"
#include "hash/sha256.h"

enum {
    HEX_BYTES = MESSAGE_HASH_BYTES * 2,
    NAMED_AT_EACH_END = 3
};

/* The query that expected.json names. */
static const char wallet_pubsub[] = "/waku/2/rs/16/1";
static const char wallet_content[] = "/wallet/2/broadcast/json";

struct replay_tally {
    uint8_t (*hashes)[MESSAGE_HASH_BYTES]; /* of the valid messages, in order of receipt */
    size_t count;
    size_t capacity;
    uint64_t payload_bytes;
    uint64_t message_bytes;
    uint64_t ephemeral;
    json_t *by_pubsub_topic;
    json_t *by_content_topic;
    uint64_t start[METRIC_COUNT];
};

enum status replay_tally_create(struct replay_tally **out)
{
    struct replay_tally *tally = calloc(1, sizeof(*tally));
    if (tally == NULL) {
        return STATUS_NO_MEMORY;
    }
    *out = tally;
    return STATUS_OK;
}

static void forget(struct replay_tally *tally)
{
    json_decref(tally->by_pubsub_topic);
    json_decref(tally->by_content_topic);
    tally->by_pubsub_topic = NULL;
    tally->by_content_topic = NULL;
    tally->count = 0;
    tally->payload_bytes = 0;
    tally->message_bytes = 0;
    tally->ephemeral = 0;
}

void replay_tally_destroy(struct replay_tally **tally)
{
    if (*tally == NULL) {
        return;
    }
    forget(*tally);
    free((*tally)->hashes);
    free(*tally);
    *tally = NULL;
}

void replay_tally_begin(struct replay_tally *tally, const struct node *node)
{
    forget(tally);
    tally->by_pubsub_topic = json_object();
    tally->by_content_topic = json_object();
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        tally->start[i] = metrics_sum(node_metrics(node), (enum metric)i);
    }
}

static void count_name(json_t *counts, struct span name)
{
    char text[1024];
    size_t length = name.length < sizeof(text) ? name.length : sizeof(text) - 1;
    memcpy(text, name.bytes, length);
    text[length] = '\0';
    json_int_t now = json_integer_value(json_object_get(counts, text));
    json_object_set_new(counts, text, json_integer(now + 1));
}

void replay_tally_add(struct replay_tally *tally, const struct envelope *envelope)
{
    if (!envelope->is_timestamp_in_range) {
        return; /* the archive's refusal, counted there */
    }
    if (tally->count == tally->capacity) {
        size_t capacity = tally->capacity == 0 ? 1024 : tally->capacity * 2;
        void *grown = realloc(tally->hashes, capacity * sizeof(*tally->hashes));
        if (grown == NULL) {
            return;
        }
        tally->hashes = grown;
        tally->capacity = capacity;
    }
    memcpy(tally->hashes[tally->count++], envelope->hash, MESSAGE_HASH_BYTES);
    tally->payload_bytes += envelope->payload.length;
    tally->message_bytes += envelope->message.length;
    tally->ephemeral += envelope->is_ephemeral;
    count_name(tally->by_pubsub_topic, envelope->topic->name);
    count_name(tally->by_content_topic, envelope->content_topic);
}

static int compare_hashes(const void *a, const void *b)
{
    return memcmp(a, b, MESSAGE_HASH_BYTES);
}

/* SHA-256 over the hashes as hexadecimal text, one behind the other. */
static json_t *digest_of(uint8_t (*hashes)[MESSAGE_HASH_BYTES], size_t count)
{
    char *text = malloc(count * HEX_BYTES + 1);
    if (text == NULL) {
        return json_null();
    }
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        hex_encode(text + i * HEX_BYTES, span_of(hashes[i], MESSAGE_HASH_BYTES));
    }
    uint8_t digest[SHA256_BYTES];
    char digest_text[SHA256_BYTES * 2 + 1];
    struct span bytes = span_of(text, count * HEX_BYTES);
    sha256(digest, (struct sha256_pieces){.spans = &bytes, .count = 1});
    hex_encode(digest_text, span_of(digest, sizeof(digest)));
    free(text);
    return json_string(digest_text);
}

/* Rows of a store query that belong to this file, in store order. */
struct stored_rows {
    const struct replay_tally *tally; /* its hashes are sorted */
    uint8_t (*hashes)[MESSAGE_HASH_BYTES];
    size_t count;
    size_t capacity;
    json_t *first;
    json_t *last;
};

static json_t *row_json(const struct archive_row *row)
{
    char hash[HEX_BYTES + 1];
    char timestamp[32];
    struct waku_message_view view;
    hex_encode(hash, row->hash);
    snprintf(timestamp, sizeof(timestamp), "%lld", (long long)row->timestamp_ns);
    json_t *object = json_object();
    json_object_set_new(object, "timestamp", json_string(timestamp));
    json_object_set_new(object, "hash", json_string(hash));
    if (waku_message_decode(&view, row->message) == STATUS_OK) {
        json_object_set_new(object, "content_topic",
                json_stringn((const char *)view.content_topic.bytes, view.content_topic.length));
    }
    json_object_set_new(object, "pubsub_topic",
            json_stringn((const char *)row->pubsub_topic.bytes, row->pubsub_topic.length));
    return object;
}

static enum status take_row(void *context, const struct archive_row *row)
{
    struct stored_rows *rows = context;
    if (bsearch(row->hash.bytes, rows->tally->hashes, rows->tally->count, MESSAGE_HASH_BYTES,
                compare_hashes) == NULL) {
        return STATUS_OK;
    }
    if (rows->count == rows->capacity) {
        return STATUS_NO_MEMORY;
    }
    memcpy(rows->hashes[rows->count++], row->hash.bytes, MESSAGE_HASH_BYTES);
    if (json_array_size(rows->first) < NAMED_AT_EACH_END) {
        json_array_append_new(rows->first, row_json(row));
    }
    json_array_append_new(rows->last, row_json(row));
    if (json_array_size(rows->last) > NAMED_AT_EACH_END) {
        json_array_remove(rows->last, 0);
    }
    return STATUS_OK;
}

/* Pages through everything that the query matches. */
static enum status read_all(
        struct node *node, struct archive_query *query, struct stored_rows *rows)
{
    struct archive_reader *reader = NULL;
    struct archive_page page = {.has_cursor = false};
    enum status status = archive_reader_open(&reader, node_archive(node));
    do {
        query->has_cursor = page.has_cursor;
        query->cursor = span_of(page.cursor, sizeof(page.cursor));
        if (status == STATUS_OK) {
            status = archive_query(reader, query, take_row, rows, &page);
        }
    } while (status == STATUS_OK && page.has_cursor);
    archive_reader_close(&reader);
    return status;
}

static bool rows_init(struct stored_rows *rows, const struct replay_tally *tally)
{
    *rows = (struct stored_rows){.tally = tally, .capacity = tally->count};
    rows->hashes = malloc((tally->count + 1) * sizeof(*rows->hashes));
    rows->first = json_array();
    rows->last = json_array();
    return rows->hashes != NULL;
}

static void rows_fini(struct stored_rows *rows)
{
    free(rows->hashes);
    json_decref(rows->first);
    json_decref(rows->last);
}

static void add_store_order(json_t *object, const struct replay_tally *tally, struct node *node)
{
    struct stored_rows rows;
    struct archive_query query = {.include_data = true};
    if (rows_init(&rows, tally) && read_all(node, &query, &rows) == STATUS_OK) {
        json_object_set_new(object, "store_order_sha256", digest_of(rows.hashes, rows.count));
        json_object_set(object, "first_stored", rows.first);
        json_object_set(object, "last_stored", rows.last);
    }
    rows_fini(&rows);
}

static void add_wallet_query(json_t *object, const struct replay_tally *tally, struct node *node)
{
    struct stored_rows rows;
    struct span content_topic = span_of_text(wallet_content);
    struct archive_query query = {.pubsub_topic = span_of_text(wallet_pubsub),
            .content_topics = &content_topic,
            .content_topic_count = 1,
            .include_data = true};
    if (rows_init(&rows, tally) && read_all(node, &query, &rows) == STATUS_OK) {
        json_t *result = json_object();
        json_object_set_new(result, "count", json_integer((json_int_t)rows.count));
        json_object_set_new(result, "sha256", digest_of(rows.hashes, rows.count));
        json_object_set_new(object, "query_wallet_shard1", result);
    }
    rows_fini(&rows);
}

static json_t *difference(
        const struct replay_tally *tally, const struct node *node, enum metric metric)
{
    uint64_t now = metrics_sum(node_metrics(node), metric);
    return json_integer((json_int_t)(now - tally->start[metric]));
}

static json_t *refused_json(const struct replay_tally *tally, const struct node *node)
{
    static const struct {
        const char *name;
        enum metric metric;
    } reasons[] = {
            {"signed_fields_present", LEDGER_INTAKE_SIGNED_FIELDS_PRESENT},
            {"not_decodable", LEDGER_INTAKE_NOT_DECODABLE},
            {"meta_too_long", LEDGER_INTAKE_META_TOO_LONG},
            {"payload_missing", LEDGER_INTAKE_PAYLOAD_MISSING},
            {"content_topic_missing", LEDGER_INTAKE_CONTENT_TOPIC_MISSING},
            {"content_topic_not_utf8", LEDGER_INTAKE_CONTENT_TOPIC_NOT_UTF8},
            {"too_large", LEDGER_INTAKE_TOO_LARGE},
            {"topic_not_subscribed", LEDGER_INTAKE_TOPIC_NOT_SUBSCRIBED},
            {"timestamp_out_of_range", LEDGER_SYNC_TIMESTAMP_OUT_OF_RANGE},
    };
    json_t *refused = json_object();
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        json_t *count = difference(tally, node, reasons[i].metric);
        if (json_integer_value(count) > 0) {
            json_object_set_new(refused, reasons[i].name, count);
        } else {
            json_decref(count);
        }
    }
    return refused;
}

json_t *replay_tally_json(
        struct replay_tally *tally, struct node *node, const struct replay_counts *counts)
{
    json_t *object = json_object();
    qsort(tally->hashes, tally->count, sizeof(*tally->hashes), compare_hashes);
    json_object_set_new(object, "frames", json_integer((json_int_t)counts->frames));
    json_object_set_new(object, "bad_frames", json_integer((json_int_t)counts->bad_frames));
    json_object_set_new(object, "gossip_messages", difference(tally, node, LEDGER_INTAKE_RECEIVED));
    json_object_set_new(object, "unique_valid", json_integer((json_int_t)tally->count));
    json_object_set_new(object, "duplicates", difference(tally, node, LEDGER_INTAKE_DUPLICATE));
    json_object_set_new(object, "refused", refused_json(tally, node));
    json_object_set_new(object, "ephemeral", json_integer((json_int_t)tally->ephemeral));
    json_object_set_new(object, "archived", difference(tally, node, LEDGER_ARCHIVE_DELIVERED));
    json_object_set(object, "by_pubsub_topic", tally->by_pubsub_topic);
    json_object_set(object, "by_content_topic", tally->by_content_topic);
    json_object_set_new(object, "payload_bytes", json_integer((json_int_t)tally->payload_bytes));
    json_object_set_new(object, "message_bytes", json_integer((json_int_t)tally->message_bytes));
    json_object_set_new(object, "unknown_fields", difference(tally, node, METRIC_UNKNOWN_FIELDS));
    json_object_set_new(object, "message_hashes_sha256", digest_of(tally->hashes, tally->count));
    if (node_archive(node) != NULL) {
        add_store_order(object, tally, node);
        add_wallet_query(object, tally, node);
    }
    return object;
}
