/* SPDX-License-Identifier: MIT */

/* Requests and answers of both versions of lightpush; what is read is written and read to the same. */

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "codec/lightpush.pb-c.h"
#include "net/protocols/lightpush_message.h"
#include "tests/support/protobuf_oracle.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct lightpush_request *request, enum lightpush_version version)
{
    struct lightpush_request again;
    size_t room = lightpush_request_head_max(request) + request->message.length;
    uint8_t *bytes = memory_allocate(room);
    REQUIRE(bytes != NULL);
    size_t length = lightpush_request_write_head(bytes, request, version);
    REQUIRE(length + request->message.length <= room);
    if (request->message.length > 0) {
        memcpy(bytes + length, request->message.bytes, request->message.length);
    }
    length += request->message.length;
    REQUIRE(lightpush_request_read(&again, span_of(bytes, length), version) == STATUS_OK);
    REQUIRE(span_equal(again.request_id, request->request_id));
    REQUIRE(again.has_pubsub_topic == request->has_pubsub_topic);
    REQUIRE(span_equal(again.pubsub_topic, request->pubsub_topic));
    REQUIRE(again.has_message && span_equal(again.message, request->message));
    memory_free(bytes);
}

static void check_request(struct span bytes, enum lightpush_version version)
{
    struct lightpush_request request;
    uint8_t *clean;
    size_t length;
    size_t dropped;
    enum status status = lightpush_request_read(&request, bytes, version);
    if (status == STATUS_OK) {
        check_again(&request, version);
    }
    if (version == LIGHTPUSH_LEGACY) {
        return;
    }
    enum oracle_verdict verdict =
            oracle_clean(&wire__lightpush_request__descriptor, bytes, &clean, &length, &dropped);
    REQUIRE((verdict == ORACLE_GOOD) == (status == STATUS_OK));
    if (verdict != ORACLE_GOOD) {
        return;
    }
    Wire__LightpushRequest *oracle = wire__lightpush_request__unpack(NULL, length, clean);
    REQUIRE(oracle != NULL);
    REQUIRE(request.has_message == (oracle->has_message != 0));
    REQUIRE(!request.has_message ||
            span_equal(request.message, span_of(oracle->message.data, oracle->message.len)));
    REQUIRE(request.has_pubsub_topic == (oracle->pubsub_topic != NULL));
    wire__lightpush_request__free_unpacked(oracle, NULL);
    free(clean);
}

static void check_answer(struct span bytes, enum lightpush_version version)
{
    struct lightpush_answer answer;
    struct lightpush_answer again;
    uint8_t written[LIGHTPUSH_ANSWER_MAX];
    if (lightpush_answer_read(&answer, bytes, version) != STATUS_OK ||
            answer.description.length > LIGHTPUSH_DESCRIPTION_MAX ||
            answer.request_id.length > LIGHTPUSH_REQUEST_ID_MAX) {
        return;
    }
    size_t length = lightpush_answer_write(written, &answer, version);
    REQUIRE(length <= sizeof(written));
    REQUIRE(lightpush_answer_read(&again, span_of(written, length), version) == STATUS_OK);
    REQUIRE(again.code == answer.code);
    REQUIRE(span_equal(again.description, answer.description));
    REQUIRE(again.has_relay_peer_count == answer.has_relay_peer_count);
    REQUIRE(again.relay_peer_count == answer.relay_peer_count);
}

/* A declined request is read as far as it has come; what was read lies in it. */
static void read_beginning(struct span bytes, enum lightpush_version version)
{
    struct lightpush_request request;
    struct span half = span_of(bytes.bytes, bytes.length / 2);
    enum status status = lightpush_request_read(&request, half, version);
    (void)status;
    REQUIRE(request.request_id.length <= half.length);
    REQUIRE(lightpush_content_topic(half).length <= half.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = span_of(data, size);
    read_beginning(bytes, LIGHTPUSH_V3);
    read_beginning(bytes, LIGHTPUSH_LEGACY);
    check_request(bytes, LIGHTPUSH_V3);
    check_request(bytes, LIGHTPUSH_LEGACY);
    check_answer(bytes, LIGHTPUSH_V3);
    check_answer(bytes, LIGHTPUSH_LEGACY);
    return 0;
}
