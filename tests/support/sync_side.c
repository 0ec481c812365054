/* SPDX-License-Identifier: MIT */
#include "tests/support/sync_side.h"

#include <stdlib.h>

#include "tests/support/cmocka.h"
#include "tests/support/sync_ids.h"

struct topic sync_side_topics[2];
const struct sync_scope sync_side_everything;

int sync_side_name_topics(void **state)
{
    (void)state;
    sync_side_topics[0] = (struct topic){.index = 0, .name = span_of_text("/waku/2/rs/1/0")};
    sync_side_topics[1] = (struct topic){.index = 1, .name = span_of_text("/waku/2/rs/1/1")};
    return 0;
}

void sync_side_init(struct sync_side *side)
{
    *side = (struct sync_side){.scope = sync_side_everything};
    assert_int_equal(sync_set_create(&side->set, 2000000), STATUS_OK);
}

void sync_side_fini(struct sync_side *side)
{
    reconciliation_answer_fini(&side->answer);
    free(side->they_lack.ids);
    free(side->we_lack.ids);
    sync_wanted_destroy(&side->wanted);
    sync_set_destroy(&side->set);
}

void sync_side_insert(struct sync_side *side, int64_t timestamp_ns, uint64_t number)
{
    struct id_record record =
            make_record(timestamp_ns, number, &sync_side_topics[number % 2], "/a/1/x/proto");
    assert_int_equal(sync_set_insert(side->set, &record), SYNC_INSERTED);
}

static void append(struct sync_ids *to, const struct sync_ids *from)
{
    size_t count = to->count + from->count;
    if (count == 0) {
        return;
    }
    to->ids = realloc(to->ids, count * sizeof(to->ids[0]));
    assert_non_null(to->ids);
    for (size_t i = 0; i < from->count; i++) {
        to->ids[to->count + i] = from->ids[i];
    }
    to->count = count;
}

/* Nine bytes at each place where the reference takes so many before it decodes a number. */
static void assert_nine_bytes(struct span payload, size_t position)
{
    assert_true(position + 9 <= payload.length);
}

static size_t skip_number(struct span payload, size_t position, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(position < payload.length);
        uint8_t byte = payload.bytes[position++];
        *out |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) {
            return position;
        }
    }
}

static void assert_the_reference_takes(struct span payload)
{
    size_t position = 0;
    if (payload.length <= 1) {
        return;
    }
    for (int list = 0; list < 2; list++) {
        uint64_t count;
        assert_nine_bytes(payload, position);
        position = skip_number(payload, position, &count);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t length;
            assert_nine_bytes(payload, position);
            position = skip_number(payload, position, &length);
            position += length;
        }
    }
    assert_nine_bytes(payload, position);
}

static void settle(struct sync_side *side, struct sync_talk_size *session)
{
    append(&side->they_lack, &side->answer.they_lack);
    append(&side->we_lack, &side->answer.we_lack);
    side->is_incomplete = side->is_incomplete || side->answer.is_incomplete;
    struct span payload = span_of(side->answer.payload.bytes, side->answer.payload.length);
    assert_the_reference_takes(payload);
    session->payloads += payload.length > 0;
    session->bytes += payload.length;
    session->largest = payload.length > session->largest ? payload.length : session->largest;
}

/* As store-sync does, with the peer that is the other side. */
static void note_wanted(struct sync_side *side, const struct sync_side *other)
{
    uint64_t peer = (uintptr_t)other;
    if (side->wanted == NULL) {
        return;
    }
    sync_wanted_expect(side->wanted, peer, side->answer.we_lack.ids, side->answer.we_lack.count, 0);
    sync_wanted_answered(side->wanted, peer);
    if (side->answer.has_asked) {
        sync_wanted_ask(
                side->wanted, peer, side->answer.asked_from_ns, side->answer.asked_to_ns, 0);
    }
}

struct sync_talk_size sync_talk(struct sync_side *starter, struct sync_side *other,
        struct sync_gap window, const struct reconciliation_limits *limits)
{
    struct sync_talk_size session = {.payloads = 0};
    struct sync_side *sides[] = {other, starter};
    assert_int_equal(reconciliation_start(&starter->answer, starter->set, &starter->scope, window),
            STATUS_OK);
    settle(starter, &session);
    for (unsigned turn = 0;; turn++) {
        struct sync_side *from = sides[(turn + 1) % 2];
        struct sync_side *to = sides[turn % 2];
        struct span payload = span_of(from->answer.payload.bytes, from->answer.payload.length);
        assert_true(turn < RECONCILIATION_ROUNDS_MAX);
        struct reconciliation_limits own = *limits;
        own.wanted = to->wanted;
        own.list_max = to->wanted != NULL || from->wanted != NULL ? SIZE_MAX : own.list_max;
        assert_int_equal(
                reconciliation_answer(&to->answer, to->set, &to->scope, payload, &own), STATUS_OK);
        note_wanted(to, from);
        settle(to, &session);
        if (to->answer.is_end) {
            return session;
        }
    }
}

void sync_talk_report(const char *what, const struct sync_talk_size *session)
{
    print_message("%s: %u payloads, %zu bytes, the largest %zu\n", what, session->payloads,
            session->bytes, session->largest);
}
