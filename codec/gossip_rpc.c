/* SPDX-License-Identifier: MIT */
#include "codec/gossip_rpc.h"

#include "base/metrics.h"
#include "codec/gossip_tags.h"

/*
 * An honest peer sends one message an RPC, or as many as its queue holds; a subscription for each of
 * the topics of a node (at most 1,024 by default); IHAVE for each topic of its mesh with at most
 * 5,000 ids a heartbeat (what go, js and rust accept); a handful of peers with a PRUNE.
 */
const struct gossip_limits gossip_limits_default = {
        .entries =
                {
                        [GOSSIP_PUBLISH] = 1024,
                        [GOSSIP_SUBSCRIPTION] = 1024,
                        [GOSSIP_IHAVE] = 1024,
                        [GOSSIP_IWANT] = 1024,
                        [GOSSIP_GRAFT] = 1024,
                        [GOSSIP_PRUNE] = 1024,
                        [GOSSIP_IDONTWANT] = 1024,
                },
        .items =
                {
                        [GOSSIP_IHAVE] = 5000,
                        [GOSSIP_IWANT] = 5000,
                        [GOSSIP_PRUNE] = 256,
                        [GOSSIP_IDONTWANT] = 1024,
                },
};

/* What the entries of a kind look like inside; 0 stands for a field they do not have. */
struct layout {
    uint64_t topic;
    uint64_t item;
};

static const struct layout layouts[GOSSIP_ENTRY_KINDS] = {
        [GOSSIP_PUBLISH] = {MESSAGE_TOPIC, 0},
        [GOSSIP_SUBSCRIPTION] = {SUBSCRIPTION_TOPIC, 0},
        [GOSSIP_IHAVE] = {IHAVE_TOPIC, IHAVE_ID},
        [GOSSIP_IWANT] = {0, IWANT_ID},
        [GOSSIP_GRAFT] = {GRAFT_TOPIC, 0},
        [GOSSIP_PRUNE] = {PRUNE_TOPIC, PRUNE_PEER},
        [GOSSIP_IDONTWANT] = {0, IDONTWANT_ID},
};

static bool kind_of_rpc_field(enum gossip_entry_kind *out, uint64_t tag)
{
    switch (tag) {
    case RPC_PUBLISH:
        *out = GOSSIP_PUBLISH;
        return true;
    case RPC_SUBSCRIPTION:
        *out = GOSSIP_SUBSCRIPTION;
        return true;
    default:
        return false;
    }
}

static bool kind_of_control_field(enum gossip_entry_kind *out, uint64_t tag)
{
    switch (tag) {
    case CONTROL_IHAVE:
        *out = GOSSIP_IHAVE;
        return true;
    case CONTROL_IWANT:
        *out = GOSSIP_IWANT;
        return true;
    case CONTROL_GRAFT:
        *out = GOSSIP_GRAFT;
        return true;
    case CONTROL_PRUNE:
        *out = GOSSIP_PRUNE;
        return true;
    case CONTROL_IDONTWANT:
        *out = GOSSIP_IDONTWANT;
        return true;
    default:
        return false;
    }
}

static enum status check_prune(struct span bytes)
{
    struct wire_field field;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && bytes.length > 0) {
        status = wire_next(&field, &bytes);
        if (status == STATUS_OK && field.tag == PRUNE_PEER) {
            status = wire_check(field.bytes);
        }
    }
    return status;
}

static enum status check_control(struct span bytes)
{
    struct wire_field field;
    enum gossip_entry_kind kind;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && bytes.length > 0) {
        status = wire_next(&field, &bytes);
        if (status == STATUS_OK && kind_of_control_field(&kind, field.tag)) {
            status = kind == GOSSIP_PRUNE ? check_prune(field.bytes) : wire_check(field.bytes);
        }
    }
    return status;
}

static enum status check_rpc(struct span bytes)
{
    struct wire_field field;
    enum gossip_entry_kind kind;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && bytes.length > 0) {
        status = wire_next(&field, &bytes);
        if (status == STATUS_OK && field.tag == RPC_CONTROL) {
            status = check_control(field.bytes);
        } else if (status == STATUS_OK && kind_of_rpc_field(&kind, field.tag)) {
            status = wire_check(field.bytes);
        }
    }
    return status;
}

enum status gossip_reader_init(
        struct gossip_reader *reader, struct span rpc, const struct gossip_limits *limits)
{
    enum status status = check_rpc(rpc);
    metrics_add(METRIC_RPCS, 1);
    reader->rest = rpc;
    reader->control = span_of(NULL, 0);
    reader->left = *limits;
    reader->over_limit = 0;
    reader->over_limit_counted = 0;
    if (status != STATUS_OK) {
        metrics_add(METRIC_RPCS_MALFORMED, 1);
        reader->rest = span_of(NULL, 0);
    }
    return status;
}

/* A field of bytes that gossip_reader_init has checked; false at the end. */
static bool next_checked(struct wire_field *out, struct span *rest)
{
    return rest->length > 0 && wire_next(out, rest) == STATUS_OK;
}

/* Field by field, as in waku_message.c. */
static void clear(struct gossip_entry *entry, enum gossip_entry_kind kind)
{
    entry->kind = kind;
    entry->topic = span_of(NULL, 0);
    entry->data = span_of(NULL, 0);
    entry->items.rest = span_of(NULL, 0);
    entry->items.tag = 0;
    entry->items.count = 0;
    entry->backoff_s = 0;
    entry->has_topic = false;
    entry->has_data = false;
    entry->has_signed_fields = false;
    entry->has_backoff = false;
    entry->subscribe = false;
}

static void decode_publish(struct gossip_entry *entry, struct span bytes)
{
    struct wire_field field;
    while (next_checked(&field, &bytes)) {
        switch (field.tag) {
        case MESSAGE_DATA:
            entry->data = field.bytes;
            entry->has_data = true;
            break;
        case MESSAGE_TOPIC:
            entry->topic = field.bytes;
            entry->has_topic = true;
            break;
        case MESSAGE_FROM:
        case MESSAGE_SEQNO:
        case MESSAGE_SIGNATURE:
        case MESSAGE_KEY:
            entry->has_signed_fields = true;
            break;
        default:
            break;
        }
    }
}

static void decode_other(struct gossip_entry *entry, struct span bytes)
{
    struct wire_field field;
    const struct layout *layout = &layouts[entry->kind];
    entry->items = (struct gossip_items){.rest = bytes, .tag = layout->item};
    while (next_checked(&field, &bytes)) {
        if (field.tag == layout->topic) {
            entry->topic = field.bytes;
            entry->has_topic = true;
        } else if (field.tag == layout->item) {
            entry->items.count++;
        } else if (entry->kind == GOSSIP_PRUNE && field.tag == PRUNE_BACKOFF) {
            entry->backoff_s = field.number;
            entry->has_backoff = true;
        } else if (entry->kind == GOSSIP_SUBSCRIPTION && field.tag == SUBSCRIPTION_SUBSCRIBE) {
            entry->subscribe = field.number != 0;
        }
    }
}

/* False when the limit of the kind is reached: then bytes are not looked at. */
static bool decode_entry(struct gossip_reader *reader, struct gossip_entry *entry,
        enum gossip_entry_kind kind, struct span bytes)
{
    if (reader->left.entries[kind] == 0) {
        reader->over_limit++;
        return false;
    }
    reader->left.entries[kind]--;
    clear(entry, kind);
    if (kind == GOSSIP_PUBLISH) {
        decode_publish(entry, bytes);
        return true;
    }
    decode_other(entry, bytes);
    if (entry->items.count > reader->left.items[kind]) {
        reader->over_limit += entry->items.count - reader->left.items[kind];
        entry->items.count = reader->left.items[kind];
    }
    reader->left.items[kind] -= entry->items.count;
    return true;
}

static bool next_of_control(
        struct gossip_reader *reader, enum gossip_entry_kind *kind, struct span *bytes)
{
    struct wire_field field;
    while (next_checked(&field, &reader->control)) {
        if (kind_of_control_field(kind, field.tag)) {
            *bytes = field.bytes;
            return true;
        }
    }
    return false;
}

/* A control message is entered, not returned: its entries come next. */
static bool next_of_rpc(
        struct gossip_reader *reader, enum gossip_entry_kind *kind, struct span *bytes)
{
    struct wire_field field;
    while (next_checked(&field, &reader->rest)) {
        bool is_entry = kind_of_rpc_field(kind, field.tag);
        *bytes = field.bytes;
        if (field.tag == RPC_CONTROL) {
            reader->control = field.bytes;
            is_entry = next_of_control(reader, kind, bytes);
        }
        if (is_entry) {
            return true;
        }
    }
    return false;
}

bool gossip_reader_next(struct gossip_reader *reader, struct gossip_entry *out)
{
    enum gossip_entry_kind kind;
    struct span bytes;
    while (next_of_control(reader, &kind, &bytes) || next_of_rpc(reader, &kind, &bytes)) {
        if (decode_entry(reader, out, kind, bytes)) {
            return true;
        }
    }
    metrics_add(METRIC_RPC_ENTRIES_OVER_CAP, reader->over_limit - reader->over_limit_counted);
    reader->over_limit_counted = reader->over_limit;
    return false;
}

bool gossip_items_next(struct gossip_items *items, struct span *out)
{
    struct wire_field field;
    while (items->count > 0 && next_checked(&field, &items->rest)) {
        if (field.tag == items->tag) {
            items->count--;
            *out = field.bytes;
            return true;
        }
    }
    return false;
}

enum status gossip_peer_decode(struct gossip_peer *out, struct span item)
{
    struct wire_field field;
    *out = (struct gossip_peer){0};
    while (item.length > 0) {
        enum status status = wire_next(&field, &item);
        if (status != STATUS_OK) {
            return status;
        }
        if (field.tag == PEER_ID) {
            out->peer_id = field.bytes;
        } else if (field.tag == PEER_SIGNED_RECORD) {
            out->signed_record = field.bytes;
        }
    }
    return STATUS_OK;
}
