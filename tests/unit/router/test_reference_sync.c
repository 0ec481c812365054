/* SPDX-License-Identifier: MIT */

/*
 * Sessions of reconciliation that were held with the reference: tests/vectors/reference_sync.json has
 * both sides' ids and the payloads. Ours must be the same again, and what we find the plain difference.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "router/reconciliation.h"
#include "router/sync_payload.h"
#include "tests/support/sync_ids.h"
#include "tests/support/vectors.h"

/* One session, read from the file. */
struct session {
    json_t *json;
    struct topic topic;
    struct sync_scope scope;
    struct sync_set *set;
    struct reconciliation_answer answer;
    struct sync_ids ours;
    struct sync_ids theirs;
    size_t they_lack;
    size_t we_lack;
};

static void read_ids(struct sync_ids *out, const json_t *list)
{
    out->count = json_array_size(list);
    out->ids = calloc(out->count + 1, sizeof(out->ids[0]));
    assert_non_null(out->ids);
    for (size_t i = 0; i < out->count; i++) {
        const json_t *id = json_array_get(list, i);
        struct span hash = vectors_bytes(id, "hash");
        assert_int_equal(hash.length, ID_HASH_BYTES);
        out->ids[i].timestamp_ns = strtoll(vectors_text(id, "timestamp"), NULL, 10);
        memcpy(out->ids[i].hash, hash.bytes, ID_HASH_BYTES);
        hex_free(hash);
    }
    qsort(out->ids, out->count, sizeof(out->ids[0]), compare_plainly);
}

static void open_session(struct session *session, json_t *json)
{
    *session = (struct session){.json = json};
    session->topic.name = span_of_text(vectors_text(json, "pubsub_topic"));
    session->scope =
            (struct sync_scope){.pubsub_topics = &session->topic.name, .pubsub_topic_count = 1};
    read_ids(&session->ours, json_object_get(json, "ours"));
    read_ids(&session->theirs, json_object_get(json, "theirs"));
    assert_int_equal(sync_set_create(&session->set, 100000), STATUS_OK);
    for (size_t i = 0; i < session->ours.count; i++) {
        struct id_record record = {.timestamp_ns = session->ours.ids[i].timestamp_ns,
                .topic = &session->topic,
                .content_topic_key = fast_key_of_bytes(span_of_text("/a/1/x/proto"))};
        memcpy(record.hash, session->ours.ids[i].hash, ID_HASH_BYTES);
        assert_int_equal(sync_set_insert(session->set, &record), SYNC_INSERTED);
    }
}

static void close_session(struct session *session)
{
    reconciliation_answer_fini(&session->answer);
    free(session->ours.ids);
    free(session->theirs.ids);
    sync_set_destroy(&session->set);
}

static bool has_id(const struct sync_ids *ids, const struct id_key *key)
{
    return bsearch(key, ids->ids, ids->count, sizeof(ids->ids[0]), compare_plainly) != NULL;
}

/* Every id that an answer names is one that one side has and the other has not. */
static void count_differences(struct session *session)
{
    const struct sync_ids *they_lack = &session->answer.they_lack;
    const struct sync_ids *we_lack = &session->answer.we_lack;
    for (size_t i = 0; i < they_lack->count; i++) {
        assert_true(has_id(&session->ours, &they_lack->ids[i]));
        assert_false(has_id(&session->theirs, &they_lack->ids[i]));
    }
    for (size_t i = 0; i < we_lack->count; i++) {
        assert_true(has_id(&session->theirs, &we_lack->ids[i]));
        assert_false(has_id(&session->ours, &we_lack->ids[i]));
    }
    session->they_lack += they_lack->count;
    session->we_lack += we_lack->count;
    assert_false(session->answer.is_incomplete);
}

static size_t missing_in(const struct sync_ids *ids, const struct sync_ids *others)
{
    size_t count = 0;
    for (size_t i = 0; i < ids->count; i++) {
        count += has_id(others, &ids->ids[i]) ? 0U : 1U;
    }
    return count;
}

/* The window is the node's clock's: taken from the payload that it wrote. */
static void start(struct session *session, struct span recorded)
{
    struct sync_payload_reader reader = {.bytes = recorded};
    struct sync_payload_range range;
    struct span topics[4];
    size_t count;
    assert_int_equal(sync_payload_read_topics(&reader, topics, 4, &count, 100), STATUS_OK);
    assert_int_equal(sync_payload_read_topics(&reader, topics, 4, &count, 100), STATUS_OK);
    assert_int_equal(sync_payload_read_start(&reader), STATUS_OK);
    assert_int_equal(sync_payload_read_range(&reader, &range), STATUS_OK);
    struct sync_gap window = {
            .from_ns = range.bounds.from.timestamp_ns, .to_ns = range.bounds.to.timestamp_ns};
    assert_int_equal(reconciliation_start(&session->answer, session->set, &session->scope, window),
            STATUS_OK);
}

static void hear(struct session *session, struct span bytes)
{
    assert_int_equal(reconciliation_answer(&session->answer, session->set, &session->scope, bytes,
                             &reconciliation_defaults),
            STATUS_OK);
    count_differences(session);
}

static void compare(const struct session *session, struct span bytes)
{
    assert_int_equal(session->answer.payload.length, bytes.length);
    assert_memory_equal(session->answer.payload.bytes, bytes.bytes, bytes.length);
}

/* One payload of either side, in turn. */
static void step(struct session *session, const json_t *payload, bool is_first)
{
    struct span bytes = vectors_bytes(payload, "bytes");
    bool is_ours = strcmp(vectors_text(payload, "from"), "sluice") == 0;
    if (!is_ours) {
        hear(session, bytes);
    } else if (is_first) {
        start(session, bytes);
    }
    if (is_ours) {
        compare(session, bytes);
    }
    hex_free(bytes);
}

static void hold_session(struct session *session)
{
    const json_t *payloads = json_object_get(session->json, "payloads");
    size_t count = json_array_size(payloads);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        step(session, json_array_get(payloads, i), i == 0);
    }
    assert_true(session->answer.is_end);
}

static void held_sessions_go_the_same_way_again(void **state)
{
    (void)state;
    json_t *root = vectors_load("reference_sync.json");
    json_t *sessions = json_object_get(root, "sessions");
    size_t count = json_array_size(sessions);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        struct session session;
        open_session(&session, json_array_get(sessions, i));
        hold_session(&session);
        assert_int_equal(session.they_lack, missing_in(&session.ours, &session.theirs));
        /* what they have where we have nothing they send without naming it */
        assert_in_range(session.we_lack, 1, missing_in(&session.theirs, &session.ours));
        close_session(&session);
    }
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(held_sessions_go_the_same_way_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
