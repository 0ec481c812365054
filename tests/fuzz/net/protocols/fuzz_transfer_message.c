/* SPDX-License-Identifier: MIT */

/* A transferred message: taken if and only if protobuf-c takes it with both fields, and to the same. */

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "codec/transfer.pb-c.h"
#include "codec/varint.h"
#include "net/protocols/transfer_message.h"
#include "tests/support/protobuf_oracle.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is written around the message is read to the same. */
static void check_again(const struct transfer_message *transfer)
{
    struct transfer_message again;
    struct span rest;
    size_t length = 0;
    size_t room = TRANSFER_HEAD_MAX + transfer->pubsub_topic.length + transfer->message.length;
    uint8_t *bytes = memory_allocate(room);
    REQUIRE(bytes != NULL);
    uint8_t *end = transfer_write_head(bytes, transfer->pubsub_topic, transfer->message.length);
    if (transfer->message.length > 0) {
        memcpy(end, transfer->message.bytes, transfer->message.length);
    }
    rest = span_of(bytes, (size_t)(end - bytes) + transfer->message.length);
    REQUIRE(rest.length <= room);
    REQUIRE(varint_read_length(&length, &rest, room) == STATUS_OK);
    REQUIRE(length == rest.length);
    REQUIRE(length == transfer_message_size(transfer->pubsub_topic, transfer->message.length));
    REQUIRE(transfer_message_read(&again, rest) == STATUS_OK);
    REQUIRE(span_equal(again.pubsub_topic, transfer->pubsub_topic));
    REQUIRE(span_equal(again.message, transfer->message));
    memory_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct transfer_message transfer;
    struct span bytes = span_of(data, size);
    uint8_t *clean;
    size_t length;
    size_t dropped;
    enum status status = transfer_message_read(&transfer, bytes);
    enum oracle_verdict verdict =
            oracle_clean(&wire__transfer__descriptor, bytes, &clean, &length, &dropped);
    if (verdict != ORACLE_GOOD) {
        REQUIRE(status != STATUS_OK);
        return 0;
    }
    Wire__Transfer *oracle = wire__transfer__unpack(NULL, length, clean);
    REQUIRE(oracle != NULL);
    bool is_whole = oracle->pubsub_topic != NULL && oracle->has_message;
    REQUIRE(is_whole == (status == STATUS_OK));
    if (is_whole) {
        REQUIRE(span_equal(transfer.message, span_of(oracle->message.data, oracle->message.len)));
        /* protobuf-c's text ends at the first zero byte. */
        size_t shown = strlen(oracle->pubsub_topic);
        REQUIRE(transfer.pubsub_topic.length >= shown &&
                (shown == 0 ||
                        memcmp(transfer.pubsub_topic.bytes, oracle->pubsub_topic, shown) == 0));
        check_again(&transfer);
    }
    wire__transfer__free_unpacked(oracle, NULL);
    free(clean);
    return 0;
}
