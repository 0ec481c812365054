/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Shards on which only who has a key may publish (--protected-shard). Its owner signs each message: a
 * secp256k1 signature, r and s with the smaller s, stands in meta and covers the SHA-256 of pubsub
 * topic, payload, content topic, timestamp (8 bytes, little endian) and one byte for ephemeral. The
 * timestamp is within five minutes of ours, so that nothing is played again. As the reference has it;
 * but what comes by store-sync and resume is looked at here as well, apart from its age.
 *
 * Thread: create and destroy on one; accepts on any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/options.h"
#include "base/status.h"
#include "codec/waku_message.h"
#include "queues/frame.h"

struct node_error;
struct protected_shards;

/* *out is NULL when the options name none. */
MUST_USE enum status protected_shards_create(
        struct protected_shards **out, const struct options *options, struct node_error *error);
void protected_shards_destroy(struct protected_shards **shards);

/* True as well for topics that are not protected. Of type lane_accepts, with the shards as context. */
bool protected_shards_accept(
        void *context, const struct frame_part *part, const struct waku_message_view *view);
