/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A gossipsub RPC as received, read entry by entry as views.
 *
 *     status = gossip_reader_init(&reader, rpc, &gossip_limits_default);
 *     while (gossip_reader_next(&reader, &entry))
 *         ...
 *
 * init walks the whole RPC down to its innermost messages and refuses it whole when any of it is
 * malformed, as the other implementations do; so no entry is seen of an RPC that is cut short.
 * What is past a limit is skipped and counted before anybody can allocate for it. Unknown fields
 * are skipped, also inside entries; the last of a repeated scalar wins.
 *
 * Lifetime: reader and entries are good as long as the bytes of the RPC.
 * Thread:   any; a reader belongs to one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum gossip_entry_kind {
    GOSSIP_PUBLISH,
    GOSSIP_SUBSCRIPTION,
    GOSSIP_IHAVE,
    GOSSIP_IWANT,
    GOSSIP_GRAFT,
    GOSSIP_PRUNE,
    GOSSIP_IDONTWANT,
    GOSSIP_ENTRY_KINDS
};

/* What of one RPC is looked at. The defaults (gossip_limits_default) are in the table of the .c. */
struct gossip_limits {
    uint32_t entries[GOSSIP_ENTRY_KINDS]; /* of a kind in one RPC */
    uint32_t items[GOSSIP_ENTRY_KINDS]; /* message ids or peers in all entries of a kind together */
};

extern const struct gossip_limits gossip_limits_default;

/* The message ids of IHAVE, IWANT and IDONTWANT, the peers of PRUNE. */
struct gossip_items {
    struct span rest;
    uint64_t tag;
    uint32_t count; /* that are still to come */
};

/* The next id, or the next peer to be given to gossip_peer_decode. False when there is none left. */
MUST_USE bool gossip_items_next(struct gossip_items *items, struct span *out);

struct gossip_entry {
    enum gossip_entry_kind kind;
    struct span topic; /* all but IWANT and IDONTWANT; zero bytes when absent */
    bool has_topic;

    bool has_data;          /* PUBLISH */
    bool has_signed_fields; /* from, seqno, signature or key is present, even with zero bytes */
    struct span data;

    bool subscribe; /* SUBSCRIPTION; absent = false */

    struct gossip_items items; /* IHAVE, IWANT, IDONTWANT: ids; PRUNE: peers */
    bool has_backoff;          /* PRUNE */
    uint64_t backoff_s;
};

struct gossip_reader {
    struct span rest;    /* of the RPC */
    struct span control; /* of the control message that is being read */
    struct gossip_limits left;
    uint32_t over_limit; /* entries and items skipped so far */
    uint32_t over_limit_counted;
};

/*
 * rpc is without its length prefix. STATUS_TRUNCATED, STATUS_BAD_VARINT or STATUS_BAD_FIELD when it
 * is malformed: the reader then has no entries. Counts METRIC_RPCS and METRIC_RPCS_MALFORMED.
 */
MUST_USE enum status gossip_reader_init(
        struct gossip_reader *reader, struct span rpc, const struct gossip_limits *limits);

/* In the order of the wire. The call that returns false has counted METRIC_RPC_ENTRIES_OVER_CAP. */
MUST_USE bool gossip_reader_next(struct gossip_reader *reader, struct gossip_entry *out);

/* One peer of a PRUNE (peer exchange). */
struct gossip_peer {
    struct span peer_id;
    struct span signed_record; /* zero bytes when absent */
};

MUST_USE enum status gossip_peer_decode(struct gossip_peer *out, struct span item);
