/* SPDX-License-Identifier: MIT */

/* Requests, answers and pushes of filter; what is read is written and read to the same. */

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "codec/filter.pb-c.h"
#include "net/protocols/filter_message.h"
#include "tests/support/protobuf_oracle.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_topics(const struct filter_request_view *view, struct span topics[])
{
    struct span rest = view->bytes;
    for (size_t i = 0; i < view->content_topic_count; i++) {
        REQUIRE(filter_request_next_topic(&rest, &topics[i]));
        REQUIRE(topics[i].length == 0 || (topics[i].bytes >= view->bytes.bytes &&
                                                 topics[i].bytes + topics[i].length <=
                                                         view->bytes.bytes + view->bytes.length));
    }
    struct span none;
    REQUIRE(!filter_request_next_topic(&rest, &none));
}

static void check_again(const struct filter_request_view *view, const struct span topics[])
{
    struct filter_request_view again;
    if (view->verb > FILTER_UNSUBSCRIBE_ALL) {
        return;
    }
    struct filter_request_fields fields = {.request_id = view->request_id,
            .verb = (enum filter_verb)view->verb,
            .pubsub_topic = view->pubsub_topic,
            .content_topics = topics,
            .content_topic_count = view->content_topic_count};
    size_t length = filter_request_size(&fields);
    uint8_t *bytes = memory_allocate(length);
    REQUIRE(bytes != NULL);
    filter_request_write(bytes, &fields);
    REQUIRE(filter_request_read(&again, span_of(bytes, length)) == STATUS_OK);
    REQUIRE(again.verb == view->verb && again.content_topic_count == view->content_topic_count);
    REQUIRE(span_equal(again.request_id, view->request_id));
    REQUIRE(span_equal(again.pubsub_topic, view->pubsub_topic));
    memory_free(bytes);
}

static void check_request(struct span bytes)
{
    struct filter_request_view view;
    uint8_t *clean;
    size_t length;
    size_t dropped;
    enum status status = filter_request_read(&view, bytes);
    enum oracle_verdict verdict = oracle_clean(
            &wire__filter_subscribe_request__descriptor, bytes, &clean, &length, &dropped);
    REQUIRE((verdict == ORACLE_GOOD) == (status == STATUS_OK));
    if (verdict != ORACLE_GOOD) {
        return;
    }
    Wire__FilterSubscribeRequest *oracle =
            wire__filter_subscribe_request__unpack(NULL, length, clean);
    REQUIRE(oracle != NULL);
    REQUIRE(oracle->n_content_topics == view.content_topic_count);
    REQUIRE(oracle->request_id == NULL ||
            strncmp(oracle->request_id, (const char *)view.request_id.bytes,
                    view.request_id.length) == 0);
    struct span *topics = memory_allocate((view.content_topic_count + 1) * sizeof(*topics));
    REQUIRE(topics != NULL);
    check_topics(&view, topics);
    check_again(&view, topics);
    memory_free(topics);
    wire__filter_subscribe_request__free_unpacked(oracle, NULL);
    free(clean);
}

static void check_answer(struct span bytes)
{
    struct filter_answer answer;
    struct filter_answer again;
    uint8_t written[FILTER_ANSWER_MAX];
    if (filter_answer_read(&answer, bytes) != STATUS_OK ||
            answer.description.length > FILTER_DESCRIPTION_MAX ||
            answer.request_id.length > FILTER_REQUEST_ID_MAX) {
        return;
    }
    size_t length = filter_answer_write(written, &answer);
    REQUIRE(length <= sizeof(written));
    REQUIRE(filter_answer_read(&again, span_of(written, length)) == STATUS_OK);
    REQUIRE(again.code == answer.code);
    REQUIRE(span_equal(again.request_id, answer.request_id));
    REQUIRE(span_equal(again.description, answer.description));
}

static void check_push(struct span bytes)
{
    struct filter_push_view push;
    struct filter_push_view again;
    if (filter_push_read(&push, bytes) != STATUS_OK) {
        return;
    }
    size_t head = filter_push_head_size(push.pubsub_topic, push.message.length);
    uint8_t *written = memory_allocate(head + push.message.length);
    REQUIRE(written != NULL);
    filter_push_head_write(written, push.pubsub_topic, push.message.length);
    if (push.message.length > 0) {
        memcpy(written + head, push.message.bytes, push.message.length);
    }
    size_t prefix = 1;
    while ((written[prefix - 1] & 0x80) != 0) {
        prefix++;
    }
    REQUIRE(filter_push_read(&again,
                    span_of(written + prefix, head - prefix + push.message.length)) == STATUS_OK);
    REQUIRE(span_equal(again.message, push.message));
    REQUIRE(span_equal(again.pubsub_topic, push.pubsub_topic));
    memory_free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = span_of(data, size);
    check_request(bytes);
    check_answer(bytes);
    check_push(bytes);
    return 0;
}
