/* SPDX-License-Identifier: MIT */
#include "tests/support/archive_fixture.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec/waku_message.h"
#include "hash/message_hash.h"
#include "queues/topic.h"
#include "tests/support/require.h"

static const char pubsub_0[] = "/waku/2/rs/1/0";
static const char pubsub_1[] = "/waku/2/rs/1/1";
static const char pubsub_2[] = "/waku/2/rs/1/2";

static const struct topic pubsub_topics[FIXTURE_PUBSUB_TOPICS] = {
        {.index = 0, .name = {(const uint8_t *)pubsub_0, sizeof(pubsub_0) - 1}},
        {.index = 1, .name = {(const uint8_t *)pubsub_1, sizeof(pubsub_1) - 1}},
        {.index = 2, .name = {(const uint8_t *)pubsub_2, sizeof(pubsub_2) - 1}},
};

static const char *const content_topics[FIXTURE_CONTENT_TOPICS] = {
        "/chat/1/room/proto", "/wallet/2/transfers/proto", "/news/1/headlines/json", "/a/1/b/c"};

struct span fixture_pubsub_topic(unsigned i)
{
    return pubsub_topics[i].name;
}

struct span fixture_content_topic(unsigned i)
{
    return span_of_text(content_topics[i]);
}

static void fill_payload(uint8_t *payload, const struct fixture_message *message)
{
    for (size_t i = 0; i < message->payload_bytes; i++) {
        payload[i] = (uint8_t)(message->number >> (8 * (i % sizeof(message->number))));
    }
}

struct envelope *fixture_envelope(const struct fixture_message *message)
{
    uint8_t *payload = malloc(message->payload_bytes);
    REQUIRE(payload != NULL);
    fill_payload(payload, message);
    struct waku_message_view fields = {
            .payload = span_of(payload, message->payload_bytes),
            .content_topic = fixture_content_topic(message->content),
            .timestamp_ns = message->timestamp_ns,
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true,
    };
    size_t size = waku_message_size(&fields);
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, size);
    REQUIRE(frame != NULL);
    REQUIRE(waku_message_encode(frame_bytes(frame), size, &fields) == size);
    free(payload);
    struct envelope *envelope = envelope_create(frame);
    REQUIRE(envelope != NULL);
    envelope->message = span_of(frame_bytes(frame), size);
    envelope->topic = &pubsub_topics[message->pubsub];
    struct waku_message_view view;
    REQUIRE(waku_message_decode(&view, envelope->message) == STATUS_OK);
    envelope->payload = view.payload;
    envelope->content_topic = view.content_topic;
    envelope->timestamp_ns = message->timestamp_ns;
    envelope->received_ns = message->timestamp_ns;
    envelope->is_timestamp_in_range = true;
    struct message_hash_input input = {
            .pubsub_topic = envelope->topic->name,
            .payload = view.payload,
            .content_topic = view.content_topic,
            .timestamp_ns = message->timestamp_ns,
    };
    message_hash(envelope->hash, &input);
    return envelope;
}

void fixture_put(struct archive *archive, const struct fixture_message *message, uint8_t *hash)
{
    struct envelope *envelope = fixture_envelope(message);
    struct archive_put_result result;
    REQUIRE(archive_put(archive, &envelope, 1, &result) == STATUS_OK);
    REQUIRE(result.stored == 1 && result.duplicates == 0);
    if (hash != NULL) {
        memcpy(hash, envelope->hash, MESSAGE_HASH_BYTES);
    }
    envelope_unref(envelope);
}

size_t fixture_prune(
        struct archive *archive, const struct archive_prune_limits *limits, size_t max_rows)
{
    struct archive_prune_result result = {.has_more = true};
    size_t removed = 0;
    for (unsigned step = 0; result.has_more; step++) {
        REQUIRE(step < 100000);
        REQUIRE(archive_prune(archive, limits, max_rows, &result) == STATUS_OK);
        removed += result.removed;
    }
    return removed;
}

void fixture_fail_on_problem(void *context, bool is_problem, const char *text)
{
    (void)context;
    fprintf(stderr, "%s\n", text);
    REQUIRE(!is_problem);
}

void fixture_make_folder(char out[256])
{
    /* In memory where there is such a place: thousands of syncs prove nothing more on a disk. */
    const char *base = getenv("TMPDIR");
    if (base == NULL) {
        base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    }
    snprintf(out, 256, "%s/sluice-test-XXXXXX", base);
    REQUIRE(mkdtemp(out) != NULL);
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

void fixture_remove_folder(const char *folder)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void open_both(struct fixture_archive *fixture, const struct archive_options *options)
{
    struct archive_error error = {{0}};
    enum status status = archive_open(&fixture->archive, fixture->address, options, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "%s\n", error.text);
    }
    REQUIRE(status == STATUS_OK);
    REQUIRE(archive_reader_open(&fixture->reader, fixture->archive) == STATUS_OK);
}

void fixture_open(
        struct fixture_archive *fixture, const char *kind, const struct archive_options *options)
{
    *fixture = (struct fixture_archive){0};
    if (strcmp(kind, "memory") == 0) {
        snprintf(fixture->address, sizeof(fixture->address), "memory");
    } else if (strcmp(kind, "sqlite-memory") == 0) {
        snprintf(fixture->address, sizeof(fixture->address), "sqlite://:memory:");
    } else {
        fixture_make_folder(fixture->folder);
        snprintf(fixture->address, sizeof(fixture->address), "sqlite://%s/archive.db",
                fixture->folder);
    }
    open_both(fixture, options);
}

void fixture_reopen(struct fixture_archive *fixture, const struct archive_options *options)
{
    archive_reader_close(&fixture->reader);
    archive_close(&fixture->archive);
    open_both(fixture, options);
}

void fixture_close(struct fixture_archive *fixture)
{
    archive_reader_close(&fixture->reader);
    archive_close(&fixture->archive);
    if (fixture->folder[0] != '\0') {
        fixture_remove_folder(fixture->folder);
    }
}

/* Room for one more; in doubling steps, since a sanitizer's realloc always copies. */
static void *grow(void *items, size_t count, size_t size)
{
    if ((count & (count - 1)) == 0) {
        items = realloc(items, (count == 0 ? 1 : 2 * count) * size);
        REQUIRE(items != NULL);
    }
    return items;
}

static void page_add(struct fixture_page *page, const uint8_t *hash)
{
    page->hashes = grow(page->hashes, page->count, sizeof(*page->hashes));
    memcpy(page->hashes[page->count++], hash, MESSAGE_HASH_BYTES);
}

static enum status collect(void *context, const struct archive_row *row)
{
    REQUIRE(row->hash.length == MESSAGE_HASH_BYTES);
    page_add(context, row->hash.bytes);
    return STATUS_OK;
}

enum status fixture_query(
        struct archive_reader *reader, const struct archive_query *query, struct fixture_page *page)
{
    struct archive_page result;
    *page = (struct fixture_page){0};
    enum status status = archive_query(reader, query, collect, page, &result);
    if (status == STATUS_OK) {
        REQUIRE(result.count == page->count);
        page->has_cursor = result.has_cursor;
        memcpy(page->cursor, result.cursor, MESSAGE_HASH_BYTES);
    }
    return status;
}

void fixture_page_free(struct fixture_page *page)
{
    free(page->hashes);
    *page = (struct fixture_page){0};
}

void model_add(struct model *model, const struct fixture_message *message, const uint8_t *hash)
{
    model->rows = grow(model->rows, model->count, sizeof(*model->rows));
    struct model_row *row = &model->rows[model->count++];
    row->message = *message;
    memcpy(row->hash, hash, MESSAGE_HASH_BYTES);
}

void model_prune(struct model *model, int64_t oldest_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < model->count; i++) {
        if (model->rows[i].message.timestamp_ns >= oldest_ns) {
            model->rows[kept++] = model->rows[i];
        }
    }
    model->count = kept;
}

void model_free(struct model *model)
{
    free(model->rows);
    *model = (struct model){0};
}

static int compare_rows(const void *a, const void *b)
{
    const struct model_row *x = a;
    const struct model_row *y = b;
    if (x->message.timestamp_ns != y->message.timestamp_ns) {
        return x->message.timestamp_ns < y->message.timestamp_ns ? -1 : 1;
    }
    return memcmp(x->hash, y->hash, MESSAGE_HASH_BYTES);
}

static bool is_listed(const struct span list[], size_t count, struct span item)
{
    for (size_t i = 0; i < count; i++) {
        if (span_equal(list[i], item)) {
            return true;
        }
    }
    return false;
}

static bool matches(const struct model_row *row, const struct archive_query *query)
{
    int64_t time = row->message.timestamp_ns;
    return (query->pubsub_topic.length == 0 ||
                   span_equal(query->pubsub_topic, fixture_pubsub_topic(row->message.pubsub))) &&
           (query->content_topic_count == 0 ||
                   is_listed(query->content_topics, query->content_topic_count,
                           fixture_content_topic(row->message.content))) &&
           (query->hash_count == 0 || is_listed(query->hashes, query->hash_count,
                                              span_of(row->hash, MESSAGE_HASH_BYTES))) &&
           (!query->has_time_start || time >= query->time_start_ns) &&
           (!query->has_time_end || time <= query->time_end_ns);
}

/* The place of the cursor in the sorted rows; count when it is not there. */
static size_t place_of(const struct model *model, struct span cursor)
{
    for (size_t i = 0; i < model->count; i++) {
        if (span_equal(span_of(model->rows[i].hash, MESSAGE_HASH_BYTES), cursor)) {
            return i;
        }
    }
    return model->count;
}

bool model_query(
        const struct model *model, const struct archive_query *query, struct fixture_page *page)
{
    *page = (struct fixture_page){0};
    struct model sorted = {malloc((model->count + 1) * sizeof(*model->rows)), model->count};
    REQUIRE(sorted.rows != NULL);
    if (model->count > 0) {
        memcpy(sorted.rows, model->rows, model->count * sizeof(*model->rows));
        qsort(sorted.rows, sorted.count, sizeof(*sorted.rows), compare_rows);
    }
    size_t from = 0;
    size_t to = sorted.count;
    if (query->has_cursor) {
        size_t place = place_of(&sorted, query->cursor);
        if (place == sorted.count) {
            model_free(&sorted);
            return false;
        }
        from = query->is_backward ? 0 : place + 1;
        to = query->is_backward ? place : sorted.count;
    }
    struct fixture_page all = {0};
    for (size_t i = from; i < to; i++) {
        if (matches(&sorted.rows[i], query)) {
            page_add(&all, sorted.rows[i].hash);
        }
    }
    size_t limit = query->limit == 0 ? 20 : query->limit;
    size_t max = query->max_limit == 0 ? 100 : query->max_limit;
    limit = limit < max ? limit : max;
    page->has_cursor = all.count > limit;
    size_t count = page->has_cursor ? limit : all.count;
    size_t first = query->is_backward ? all.count - count : 0;
    for (size_t i = first; i < first + count; i++) {
        page_add(page, all.hashes[i]);
    }
    if (page->has_cursor) {
        memcpy(page->cursor, page->hashes[query->is_backward ? 0 : count - 1], MESSAGE_HASH_BYTES);
    }
    fixture_page_free(&all);
    model_free(&sorted);
    return true;
}
