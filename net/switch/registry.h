/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The table of all connections of a switch: it decides who may begin, and who may stay once the
 * peer's identity is proven.
 *
 * An entry is made when a connection begins and goes when its io thread has reported it closed; in
 * between, that io thread carries it along and reports with it. What the control thread has to say
 * to a connection goes by its id, since it may be gone by then.
 *
 * Thread: the control thread; registry_report_* on the io thread of the connection.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/switch/switch.h"

struct registry;
struct registry_entry;
struct switch_shard;
struct sockaddr_storage;

MUST_USE enum status registry_create(struct registry **out, struct net_switch *net_switch);

/* Empty. */
void registry_destroy(struct registry **registry);

/* NULL when a limit or memory refuses it; counted and logged then. */
MUST_USE struct registry_entry *registry_begin_inbound(
        struct registry *registry, const struct sockaddr_storage *remote);
MUST_USE struct registry_entry *registry_begin_outbound(
        struct registry *registry, const struct switch_dial *dial);

/* Before the entry is given to the shard that will report on it. */
void registry_entry_set_shard(struct registry_entry *entry, struct switch_shard *BORROWED shard);

/* Monotonic milliseconds: the deadline of the upgrade counts from here. */
uint64_t registry_entry_started_ms(const struct registry_entry *entry);

/* An admitted connection to peer, 0: none. */
uint64_t registry_find_peer(const struct registry *registry, const struct peer_id *peer);

/* The connection has its id. */
void registry_report_started(struct registry_entry *entry, uint64_t connection);

/* The peer is proven and a muxer agreed; the verdict comes by switch_tell_admitted or _close. */
void registry_report_upgraded(
        struct registry_entry *entry, const struct peer_id *peer, const struct multiaddr *remote);

/* The last report: the entry belongs to the registry again. */
void registry_report_closed(
        struct registry_entry *CONSUMED entry, enum close_reason reason, enum status status);

void registry_set_gatekeeper(
        struct registry *registry, const struct switch_gatekeeper *gatekeeper, void *context);
bool registry_is_empty(const struct registry *registry);
