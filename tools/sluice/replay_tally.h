/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a replay saw of one file: the messages that came out at the application's end, and the
 * difference of the node's counters, in the terms of the captures' expected.json.
 *
 * Thread: replay_tally_add on the event thread while the replay runs; the rest when it has drained.
 */

#include <jansson.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "node/node.h"

struct replay_tally;

/* What the feeding side counted. */
struct replay_counts {
    uint64_t frames;
    uint64_t bad_frames;
};

MUST_USE enum status replay_tally_create(struct replay_tally **out);
void replay_tally_destroy(struct replay_tally **tally);

/* Takes the node's counters as the start of a file and forgets the last file's messages. */
void replay_tally_begin(struct replay_tally *tally, const struct node *node);

void replay_tally_add(struct replay_tally *tally, const struct envelope *envelope);

/* The object of one file; needs an archive for the parts that speak of stored messages. */
json_t *replay_tally_json(
        struct replay_tally *tally, struct node *node, const struct replay_counts *counts);
