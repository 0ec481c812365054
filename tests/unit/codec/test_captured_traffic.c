/* SPDX-License-Identifier: MIT */

/*
 * What tests/captures/expected.json says about the captured traffic, as far as decoding decides it.
 * A plain model of a router stands in for the rest: a list of the accepted messages.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/clock.h"
#include "codec/capture.h"
#include "codec/gossip_rpc.h"
#include "codec/waku_message.h"

enum {
    MESSAGES_MAX = 4096,
    TIMESTAMP_MAX_SECONDS = 20
};

struct tally {
    struct span data[MESSAGES_MAX]; /* of accepted messages, with their topics beside them */
    struct span topics[MESSAGES_MAX];
    struct span content_topics[MESSAGES_MAX];
    size_t unique;
    size_t frames, bad_frames, gossip_messages, duplicates, ephemeral;
    size_t messages_with_unknown_fields, payload_bytes, message_bytes;
    size_t signed_fields_present, not_decodable, payload_missing, meta_too_long, out_of_range;
    size_t entries[GOSSIP_ENTRY_KINDS];
    void *blocks[MESSAGES_MAX]; /* the frames that data points into */
    size_t block_count;
};

static size_t *refusal(struct tally *tally, enum status status)
{
    switch ((int)status) {
    case STATUS_PAYLOAD_MISSING:
        return &tally->payload_missing;
    case STATUS_META_TOO_LONG:
        return &tally->meta_too_long;
    default:
        return &tally->not_decodable;
    }
}

static bool is_duplicate(const struct tally *tally, const struct gossip_entry *entry)
{
    for (size_t i = 0; i < tally->unique; i++) {
        if (span_equal(tally->data[i], entry->data) && span_equal(tally->topics[i], entry->topic)) {
            return true;
        }
    }
    return false;
}

static bool is_in_range(int64_t timestamp_ns, int64_t now_ns)
{
    return llabs(timestamp_ns - now_ns) <=
           (long long)TIMESTAMP_MAX_SECONDS * NANOSECONDS_PER_SECOND;
}

static void accept(
        struct tally *tally, const struct gossip_entry *entry, const struct waku_message_view *view)
{
    assert_true(tally->unique < MESSAGES_MAX);
    tally->data[tally->unique] = entry->data;
    tally->topics[tally->unique] = entry->topic;
    tally->content_topics[tally->unique] = view->content_topic;
    tally->unique++;
    tally->ephemeral += view->ephemeral ? 1U : 0U;
    tally->messages_with_unknown_fields += view->unknown_field_count > 0 ? 1U : 0U;
    tally->payload_bytes += view->payload.length;
    tally->message_bytes += entry->data.length;
}

static void judge(struct tally *tally, const struct gossip_entry *entry, int64_t received_ns)
{
    struct waku_message_view view;
    if (entry->has_signed_fields) {
        tally->signed_fields_present++;
        return;
    }
    if (is_duplicate(tally, entry)) {
        tally->duplicates++;
        return;
    }
    enum status status = waku_message_decode(&view, entry->data);
    if (status == STATUS_OK) {
        status = waku_message_check(&view, &waku_message_limits_default);
    }
    if (status != STATUS_OK) {
        (*refusal(tally, status))++;
    } else if (!is_in_range(view.timestamp_ns, received_ns)) {
        tally->out_of_range++;
    } else {
        accept(tally, entry, &view);
    }
}

static void walk_frame(struct tally *tally, struct span frame, int64_t received_ns)
{
    struct gossip_reader reader;
    struct gossip_entry entry;
    tally->frames++;
    if (gossip_reader_init(&reader, frame, &gossip_limits_default) != STATUS_OK) {
        tally->bad_frames++;
        return;
    }
    while (gossip_reader_next(&reader, &entry)) {
        tally->entries[entry.kind]++;
        if (entry.kind == GOSSIP_PUBLISH) {
            assert_true(entry.has_topic && entry.has_data);
            judge(tally, &entry, received_ns);
        }
    }
    assert_int_equal(reader.over_limit, 0);
    tally->gossip_messages = tally->entries[GOSSIP_PUBLISH];
}

static struct tally *walk(const char *path)
{
    struct capture_record record;
    struct capture *capture = NULL;
    bool has_record = true;
    struct tally *tally = calloc(1, sizeof(*tally));
    assert_non_null(tally);
    assert_int_equal(capture_open(&capture, path, CAPTURE_FRAME_MAX_DEFAULT), STATUS_OK);
    for (;;) {
        assert_int_equal(capture_next(capture, &record, &has_record), STATUS_OK);
        if (!has_record) {
            break;
        }
        uint8_t *frame = malloc(record.frame_length);
        assert_non_null(frame);
        assert_true(tally->block_count < MESSAGES_MAX);
        tally->blocks[tally->block_count++] = frame;
        assert_int_equal(capture_read_frame(capture, frame), STATUS_OK);
        walk_frame(tally, span_of(frame, record.frame_length), record.received_ns);
    }
    capture_close(&capture);
    return tally;
}

static void free_tally(struct tally *tally)
{
    for (size_t i = 0; i < tally->block_count; i++) {
        free(tally->blocks[i]);
    }
    free(tally);
}

static size_t count_equal(const struct span *spans, size_t count, const char *text)
{
    size_t equal = 0;
    for (size_t i = 0; i < count; i++) {
        equal += span_equal(spans[i], span_of_text(text)) ? 1U : 0U;
    }
    return equal;
}

static void assert_counts(const struct span *spans, size_t count, const json_t *expected)
{
    const char *name;
    json_t *number;
    size_t total = 0;
    assert_true(json_object_size(expected) > 0);
    json_object_foreach((json_t *)(uintptr_t)expected, name, number)
    {
        assert_int_equal(count_equal(spans, count, name), json_integer_value(number));
        total += (size_t)json_integer_value(number);
    }
    assert_int_equal(total, count);
}

static void assert_number(const json_t *object, const char *key, size_t actual)
{
    const json_t *number = json_object_get(object, key);
    assert_true(json_is_integer(number));
    assert_int_equal(json_integer_value(number), actual);
}

static json_t *load_expected(const char *file)
{
    json_error_t error;
    json_t *all = json_load_file("tests/captures/expected.json", 0, &error);
    assert_non_null(all);
    json_t *expected = json_deep_copy(json_object_get(all, file));
    assert_non_null(expected);
    json_decref(all);
    return expected;
}

static void small_traffic_decodes_as_its_description_says(void **state)
{
    (void)state;
    struct tally *tally = walk("tests/captures/relay-small.cap");
    json_t *expected = load_expected("relay-small.cap");
    const json_t *refused = json_object_get(expected, "refused");
    assert_number(expected, "frames", tally->frames);
    assert_number(expected, "bad_frames", tally->bad_frames);
    assert_number(expected, "gossip_messages", tally->gossip_messages);
    assert_number(expected, "unique_valid", tally->unique);
    assert_number(expected, "duplicates", tally->duplicates);
    assert_number(expected, "ephemeral", tally->ephemeral);
    assert_number(expected, "unknown_fields", tally->messages_with_unknown_fields);
    assert_number(expected, "payload_bytes", tally->payload_bytes);
    assert_number(refused, "signed_fields_present", tally->signed_fields_present);
    assert_number(refused, "not_decodable", tally->not_decodable);
    assert_number(refused, "meta_too_long", tally->meta_too_long);
    assert_number(refused, "timestamp_out_of_range", tally->out_of_range);
    assert_number(refused, "payload_missing", tally->payload_missing);
    assert_counts(tally->topics, tally->unique, json_object_get(expected, "by_pubsub_topic"));
    assert_counts(
            tally->content_topics, tally->unique, json_object_get(expected, "by_content_topic"));
    json_decref(expected);
    free_tally(tally);
}

static void small_traffic_has_subscriptions_and_every_older_control_entry(void **state)
{
    (void)state;
    struct tally *tally = walk("tests/captures/relay-small.cap");
    assert_true(tally->entries[GOSSIP_SUBSCRIPTION] > 0);
    assert_true(tally->entries[GOSSIP_IHAVE] > 0);
    assert_true(tally->entries[GOSSIP_IWANT] > 0);
    assert_true(tally->entries[GOSSIP_GRAFT] > 0);
    assert_true(tally->entries[GOSSIP_PRUNE] > 0);
    free_tally(tally);
}

static void mixed_traffic_decodes_as_its_description_says(void **state)
{
    (void)state;
    struct tally *tally = walk("tests/captures/relay-mixed.cap");
    json_t *expected = load_expected("relay-mixed.cap");
    assert_number(expected, "frames", tally->frames);
    assert_number(expected, "gossip_messages", tally->gossip_messages);
    assert_number(expected, "unique_valid", tally->unique);
    assert_number(expected, "duplicates", tally->duplicates);
    assert_number(expected, "ephemeral", tally->ephemeral);
    assert_number(expected, "message_bytes", tally->message_bytes);
    assert_int_equal(tally->bad_frames, 0);
    json_decref(expected);
    free_tally(tally);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(small_traffic_decodes_as_its_description_says),
            cmocka_unit_test(small_traffic_has_subscriptions_and_every_older_control_entry),
            cmocka_unit_test(mixed_traffic_decodes_as_its_description_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
