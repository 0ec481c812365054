/* SPDX-License-Identifier: MIT */
#include "net/protocols/identify_message.h"

#include "base/memory.h"
#include "codec/wire.h"
#include "net/identity/public_key.h"

#define FIELD_PUBLIC_KEY       WIRE_TAG(1, WIRE_LENGTH)
#define FIELD_ADDRESS          WIRE_TAG(2, WIRE_LENGTH)
#define FIELD_PROTOCOL         WIRE_TAG(3, WIRE_LENGTH)
#define FIELD_OBSERVED         WIRE_TAG(4, WIRE_LENGTH)
#define FIELD_PROTOCOL_VERSION WIRE_TAG(5, WIRE_LENGTH)
#define FIELD_AGENT            WIRE_TAG(6, WIRE_LENGTH)

static void add_protocol(struct identify_info *info, struct span protocol)
{
    info->has_protocols = true;
    if (info->protocol_count < IDENTIFY_PROTOCOLS_MAX) {
        info->protocols[info->protocol_count++] = protocol;
    }
}

static void add_address(struct identify_info *info, struct span address)
{
    if (info->address_count < IDENTIFY_ADDRESSES_MAX) {
        info->addresses[info->address_count++] = address;
    }
}

static void take_field(struct identify_info *info, const struct wire_field *field)
{
    switch (field->tag) {
    case FIELD_PUBLIC_KEY:
        info->public_key = field->bytes;
        break;
    case FIELD_ADDRESS:
        add_address(info, field->bytes);
        break;
    case FIELD_PROTOCOL:
        add_protocol(info, field->bytes);
        break;
    case FIELD_OBSERVED:
        info->observed_address = field->bytes;
        break;
    case FIELD_PROTOCOL_VERSION:
        info->protocol_version = field->bytes;
        break;
    case FIELD_AGENT:
        info->agent = field->bytes;
        break;
    default: /* the signed peer record, and what later versions add */
        break;
    }
}

static enum status check_key(struct span encoded, const struct peer_id *peer)
{
    struct public_key key;
    struct peer_id named;
    enum status status = public_key_parse(&key, encoded);
    if (status != STATUS_OK) {
        return status;
    }
    peer_id_from_public_key(&named, &key);
    return peer_id_equal(&named, peer) ? STATUS_OK : STATUS_WRONG_PEER;
}

enum status identify_message_read(
        struct identify_info *out, struct span message, const struct peer_id *peer)
{
    out->agent = span_of(NULL, 0);
    out->protocol_version = span_of(NULL, 0);
    out->public_key = span_of(NULL, 0);
    out->observed_address = span_of(NULL, 0);
    out->has_protocols = false;
    out->protocol_count = 0;
    out->address_count = 0;
    while (message.length > 0) {
        struct wire_field field;
        enum status status = wire_next(&field, &message);
        if (status != STATUS_OK) {
            return status;
        }
        take_field(out, &field);
    }
    return out->public_key.length == 0 ? STATUS_OK : check_key(out->public_key, peer);
}

bool identify_info_has_protocol(const struct identify_info *info, const char *id)
{
    for (size_t i = 0; i < info->protocol_count; i++) {
        if (span_equal(info->protocols[i], span_of_text(id))) {
            return true;
        }
    }
    return false;
}

static size_t size_of(const struct identify_info *info)
{
    size_t size = wire_bytes_size(FIELD_PUBLIC_KEY, info->public_key.length) +
                  wire_bytes_size(FIELD_OBSERVED, info->observed_address.length) +
                  wire_bytes_size(FIELD_PROTOCOL_VERSION, info->protocol_version.length) +
                  wire_bytes_size(FIELD_AGENT, info->agent.length);
    for (size_t i = 0; i < info->address_count; i++) {
        size += wire_bytes_size(FIELD_ADDRESS, info->addresses[i].length);
    }
    for (size_t i = 0; i < info->protocol_count; i++) {
        size += wire_bytes_size(FIELD_PROTOCOL, info->protocols[i].length);
    }
    return size;
}

static uint8_t *write_present(uint8_t *to, uint64_t tag, struct span bytes)
{
    return bytes.length == 0 ? to : wire_write_bytes(to, tag, bytes);
}

enum status identify_message_write(uint8_t **out, size_t *length, const struct identify_info *info)
{
    uint8_t *message = memory_allocate(size_of(info));
    if (message == NULL) {
        return STATUS_NO_MEMORY;
    }
    uint8_t *to = write_present(message, FIELD_PUBLIC_KEY, info->public_key);
    for (size_t i = 0; i < info->address_count; i++) {
        to = wire_write_bytes(to, FIELD_ADDRESS, info->addresses[i]);
    }
    for (size_t i = 0; i < info->protocol_count; i++) {
        to = wire_write_bytes(to, FIELD_PROTOCOL, info->protocols[i]);
    }
    to = write_present(to, FIELD_OBSERVED, info->observed_address);
    to = write_present(to, FIELD_PROTOCOL_VERSION, info->protocol_version);
    to = write_present(to, FIELD_AGENT, info->agent);
    *out = message;
    *length = (size_t)(to - message);
    return STATUS_OK;
}
