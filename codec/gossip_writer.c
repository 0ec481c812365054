/* SPDX-License-Identifier: MIT */
#include "codec/gossip_writer.h"

#include "codec/gossip_tags.h"

static size_t message_head_size(struct span topic, size_t message_length)
{
    return wire_bytes_size(MESSAGE_TOPIC, topic.length) + varint_size(MESSAGE_DATA) +
           varint_size(message_length);
}

size_t gossip_publish_header_size(struct span topic, size_t message_length)
{
    size_t head = message_head_size(topic, message_length);
    size_t entry = head + message_length;
    size_t rpc = wire_bytes_size(RPC_PUBLISH, entry);
    return varint_size(rpc) + (rpc - entry) + head;
}

size_t gossip_publish_header_write(
        uint8_t *out, size_t capacity, struct span topic, size_t message_length)
{
    size_t entry = message_head_size(topic, message_length) + message_length;
    if (capacity < gossip_publish_header_size(topic, message_length)) {
        return 0;
    }
    uint8_t *at = varint_write(out, wire_bytes_size(RPC_PUBLISH, entry));
    at = wire_write_head(at, RPC_PUBLISH, entry);
    at = wire_write_bytes(at, MESSAGE_TOPIC, topic);
    at = wire_write_head(at, MESSAGE_DATA, message_length);
    return (size_t)(at - out);
}

static size_t spans_size(uint64_t tag, const struct span *spans, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += wire_bytes_size(tag, spans[i].length);
    }
    return size;
}

static uint8_t *write_spans(uint8_t *at, uint64_t tag, const struct span *spans, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        at = wire_write_bytes(at, tag, spans[i]);
    }
    return at;
}

static size_t subscription_size(const struct gossip_subscription *subscription)
{
    return wire_number_size(SUBSCRIPTION_SUBSCRIBE, subscription->subscribe) +
           wire_bytes_size(SUBSCRIPTION_TOPIC, subscription->topic.length);
}

static uint8_t *write_subscription(uint8_t *at, const struct gossip_subscription *subscription)
{
    at = wire_write_head(at, RPC_SUBSCRIPTION, subscription_size(subscription));
    at = wire_write_number(at, SUBSCRIPTION_SUBSCRIBE, subscription->subscribe);
    return wire_write_bytes(at, SUBSCRIPTION_TOPIC, subscription->topic);
}

static size_t ihave_size(const struct gossip_id_list *ihave)
{
    return wire_bytes_size(IHAVE_TOPIC, ihave->topic.length) +
           spans_size(IHAVE_ID, ihave->ids, ihave->id_count);
}

static uint8_t *write_ihave(uint8_t *at, const struct gossip_id_list *ihave)
{
    at = wire_write_head(at, CONTROL_IHAVE, ihave_size(ihave));
    at = wire_write_bytes(at, IHAVE_TOPIC, ihave->topic);
    return write_spans(at, IHAVE_ID, ihave->ids, ihave->id_count);
}

static size_t peer_size(const struct gossip_peer *peer)
{
    size_t size = wire_bytes_size(PEER_ID, peer->peer_id.length);
    if (peer->signed_record.length > 0) {
        size += wire_bytes_size(PEER_SIGNED_RECORD, peer->signed_record.length);
    }
    return size;
}

static uint8_t *write_peer(uint8_t *at, const struct gossip_peer *peer)
{
    at = wire_write_head(at, PRUNE_PEER, peer_size(peer));
    at = wire_write_bytes(at, PEER_ID, peer->peer_id);
    if (peer->signed_record.length > 0) {
        at = wire_write_bytes(at, PEER_SIGNED_RECORD, peer->signed_record);
    }
    return at;
}

static size_t prune_size(const struct gossip_prune *prune)
{
    size_t size = wire_bytes_size(PRUNE_TOPIC, prune->topic.length);
    for (size_t i = 0; i < prune->peer_count; i++) {
        size += wire_bytes_size(PRUNE_PEER, peer_size(&prune->peers[i]));
    }
    return size + wire_number_size(PRUNE_BACKOFF, prune->backoff_s);
}

static uint8_t *write_prune(uint8_t *at, const struct gossip_prune *prune)
{
    at = wire_write_head(at, CONTROL_PRUNE, prune_size(prune));
    at = wire_write_bytes(at, PRUNE_TOPIC, prune->topic);
    for (size_t i = 0; i < prune->peer_count; i++) {
        at = write_peer(at, &prune->peers[i]);
    }
    return wire_write_number(at, PRUNE_BACKOFF, prune->backoff_s);
}

static size_t control_size(const struct gossip_outgoing *rpc)
{
    size_t size = 0;
    for (size_t i = 0; i < rpc->ihave_count; i++) {
        size += wire_bytes_size(CONTROL_IHAVE, ihave_size(&rpc->ihave[i]));
    }
    if (rpc->iwant_count > 0) {
        size += wire_bytes_size(CONTROL_IWANT, spans_size(IWANT_ID, rpc->iwant, rpc->iwant_count));
    }
    for (size_t i = 0; i < rpc->graft_count; i++) {
        size += wire_bytes_size(CONTROL_GRAFT, spans_size(GRAFT_TOPIC, &rpc->graft[i], 1));
    }
    for (size_t i = 0; i < rpc->prune_count; i++) {
        size += wire_bytes_size(CONTROL_PRUNE, prune_size(&rpc->prune[i]));
    }
    if (rpc->idontwant_count > 0) {
        size += wire_bytes_size(
                CONTROL_IDONTWANT, spans_size(IDONTWANT_ID, rpc->idontwant, rpc->idontwant_count));
    }
    return size;
}

static uint8_t *write_control(uint8_t *at, const struct gossip_outgoing *rpc)
{
    at = wire_write_head(at, RPC_CONTROL, control_size(rpc));
    for (size_t i = 0; i < rpc->ihave_count; i++) {
        at = write_ihave(at, &rpc->ihave[i]);
    }
    if (rpc->iwant_count > 0) {
        at = wire_write_head(at, CONTROL_IWANT, spans_size(IWANT_ID, rpc->iwant, rpc->iwant_count));
        at = write_spans(at, IWANT_ID, rpc->iwant, rpc->iwant_count);
    }
    for (size_t i = 0; i < rpc->graft_count; i++) {
        at = wire_write_head(at, CONTROL_GRAFT, spans_size(GRAFT_TOPIC, &rpc->graft[i], 1));
        at = wire_write_bytes(at, GRAFT_TOPIC, rpc->graft[i]);
    }
    for (size_t i = 0; i < rpc->prune_count; i++) {
        at = write_prune(at, &rpc->prune[i]);
    }
    if (rpc->idontwant_count > 0) {
        at = wire_write_head(at, CONTROL_IDONTWANT,
                spans_size(IDONTWANT_ID, rpc->idontwant, rpc->idontwant_count));
        at = write_spans(at, IDONTWANT_ID, rpc->idontwant, rpc->idontwant_count);
    }
    return at;
}

static size_t body_size(const struct gossip_outgoing *rpc)
{
    size_t size = 0;
    size_t control = control_size(rpc);
    for (size_t i = 0; i < rpc->subscription_count; i++) {
        size += wire_bytes_size(RPC_SUBSCRIPTION, subscription_size(&rpc->subscriptions[i]));
    }
    return control > 0 ? size + wire_bytes_size(RPC_CONTROL, control) : size;
}

size_t gossip_outgoing_size(const struct gossip_outgoing *rpc)
{
    size_t body = body_size(rpc);
    return body > 0 ? varint_size(body) + body : 0;
}

size_t gossip_outgoing_write(uint8_t *out, size_t capacity, const struct gossip_outgoing *rpc)
{
    size_t body = body_size(rpc);
    if (body == 0 || capacity < varint_size(body) + body) {
        return 0;
    }
    uint8_t *at = varint_write(out, body);
    for (size_t i = 0; i < rpc->subscription_count; i++) {
        at = write_subscription(at, &rpc->subscriptions[i]);
    }
    if (control_size(rpc) > 0) {
        at = write_control(at, rpc);
    }
    return (size_t)(at - out);
}
