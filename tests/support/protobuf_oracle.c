/* SPDX-License-Identifier: MIT */
#include "tests/support/protobuf_oracle.h"

#include <stdlib.h>
#include <string.h>

#include "codec/varint.h"
#include "tests/support/require.h"

/* A message without any field: protobuf-c lists all fields of its bytes as unknown ones. */
static const ProtobufCIntRange no_ranges[] = {{0, 0}};
static const ProtobufCMessageDescriptor anything = {
        .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
        .name = "Anything",
        .short_name = "Anything",
        .c_name = "Anything",
        .package_name = "",
        .sizeof_message = sizeof(ProtobufCMessage),
        .field_ranges = no_ranges,
};

static ProtobufCWireType wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return PROTOBUF_C_WIRE_TYPE_64BIT;
    default:
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    }
}

static bool is_refused_here(const ProtobufCMessageUnknownField *field)
{
    bool overflows = field->wire_type == PROTOBUF_C_WIRE_TYPE_VARINT &&
                     field->len == VARINT_MAX_BYTES && field->data[VARINT_MAX_BYTES - 1] > 1;
    return overflows || field->tag == 0;
}

/* The content of a field of type LENGTH, which protobuf-c hands out with its length in front. */
static struct span content_of(const ProtobufCMessageUnknownField *field)
{
    size_t prefix = 0;
    while ((field->data[prefix++] & 0x80) != 0) {
    }
    return span_of(field->data + prefix, field->len - prefix);
}

struct output {
    uint8_t *bytes;
    size_t length;
};

static void append_tag(struct output *out, const ProtobufCMessageUnknownField *field)
{
    uint64_t tag = (uint64_t)field->tag << 3 | (uint64_t)field->wire_type;
    out->length = (size_t)(varint_write(out->bytes + out->length, tag) - out->bytes);
}

static void append(struct output *out, const uint8_t *bytes, size_t length)
{
    if (length > 0) {
        memcpy(out->bytes + out->length, bytes, length);
    }
    out->length += length;
}

static enum oracle_verdict append_message(struct output *out,
        const ProtobufCMessageUnknownField *field, const ProtobufCMessageDescriptor *descriptor)
{
    uint8_t *inner = NULL;
    size_t length = 0;
    size_t dropped = 0;
    enum oracle_verdict verdict =
            oracle_clean(descriptor, content_of(field), &inner, &length, &dropped);
    if (verdict == ORACLE_GOOD) {
        append_tag(out, field);
        out->length = (size_t)(varint_write(out->bytes + out->length, length) - out->bytes);
        append(out, inner, length);
    }
    free(inner);
    return verdict;
}

static enum oracle_verdict clean_field(struct output *out,
        const ProtobufCMessageUnknownField *field, const ProtobufCMessageDescriptor *descriptor,
        size_t *dropped)
{
    const ProtobufCFieldDescriptor *known =
            protobuf_c_message_descriptor_get_field(descriptor, field->tag);
    if (is_refused_here(field)) {
        return ORACLE_REFUSED_HERE;
    }
    if (known != NULL && field->wire_type != wire_type_of(known->type)) {
        (*dropped)++;
        return ORACLE_GOOD;
    }
    if (known != NULL && known->type == PROTOBUF_C_TYPE_MESSAGE) {
        return append_message(out, field, known->descriptor);
    }
    append_tag(out, field);
    append(out, field->data, field->len);
    return ORACLE_GOOD;
}

enum oracle_verdict oracle_clean(const ProtobufCMessageDescriptor *descriptor, struct span bytes,
        uint8_t **out, size_t *out_length, size_t *dropped)
{
    enum oracle_verdict verdict = ORACLE_GOOD;
    *out = NULL;
    *dropped = 0;
    ProtobufCMessage *listed =
            protobuf_c_message_unpack(&anything, NULL, bytes.length, bytes.bytes);
    if (listed == NULL) {
        return ORACLE_MALFORMED;
    }
    /* Tags and lengths come out in their shortest forms, so that nothing grows. */
    struct output cleaned = {.bytes = malloc(bytes.length + 1)};
    REQUIRE(cleaned.bytes != NULL);
    for (unsigned i = 0; i < listed->n_unknown_fields && verdict == ORACLE_GOOD; i++) {
        verdict = clean_field(&cleaned, &listed->unknown_fields[i], descriptor, dropped);
    }
    protobuf_c_message_free_unpacked(listed, NULL);
    if (verdict != ORACLE_GOOD) {
        free(cleaned.bytes);
        return verdict;
    }
    *out = cleaned.bytes;
    *out_length = cleaned.length;
    return ORACLE_GOOD;
}
