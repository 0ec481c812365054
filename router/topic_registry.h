/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The pubsub topics that this node takes part in, each interned once as a struct topic.
 *
 * Progress:  lookups are wait-free and need no read-side section: an interned topic stays until the
 *            registry is destroyed, only its "subscribed" mark comes and goes.
 * Lifetime:  destroy after every envelope, frame part and thread that saw a topic is gone.
 *
 *                                  the writer   any thread
 *   subscribe, intern, unsubscribe     x
 *   find_*, at, count, is_subscribed   x            x
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "queues/topic.h"

enum {
    TOPIC_NAME_MAX_BYTES = 1024
};

/* How a new topic gets its lane. */
enum topic_lane_policy {
    TOPIC_LANE_ROUND_ROBIN, /* in order of interning: even, but depends on that order */
    TOPIC_LANE_BY_HASH      /* the same in every run */
};

struct topic_registry_options {
    uint32_t max_topics; /* 1024 (max-topics); interned ones, subscribed or not */
    uint32_t lane_count; /* 1 (decode-lanes) */
    enum topic_lane_policy lane_policy;
};

struct topic_registry;

MUST_USE enum status topic_registry_create(
        struct topic_registry **out, const struct topic_registry_options *options);
void topic_registry_destroy(struct topic_registry **registry);

/*
 * Interns name if it is new and marks it as subscribed; *out may be NULL. Subscribing twice is OK.
 * STATUS_BAD_TOPIC: empty, longer than TOPIC_NAME_MAX_BYTES or with a NUL byte.
 * STATUS_LIMIT_REACHED: max_topics are interned already.
 */
MUST_USE enum status topic_registry_subscribe(
        struct topic_registry *registry, const struct topic **out, struct span name);

/*
 * Interns name without taking part in it: what peers say of it is heard, and an own message can go to
 * them. Errors as of subscribe.
 */
MUST_USE enum status topic_registry_intern(struct topic_registry *registry, struct span name);

/* STATUS_NOT_FOUND when it is not subscribed. What holds the topic already keeps using it. */
MUST_USE enum status topic_registry_unsubscribe(struct topic_registry *registry, struct span name);

/* The topic of a new frame: NULL unless it is subscribed now. */
const struct topic *BORROWED topic_registry_find_subscribed(
        const struct topic_registry *registry, struct span name);

/* Subscribed or not. */
const struct topic *BORROWED topic_registry_find_interned(
        const struct topic_registry *registry, struct span name);

bool topic_registry_is_subscribed(const struct topic_registry *registry, const struct topic *topic);

/* Topics 0 to count - 1 can be had with at. */
uint32_t topic_registry_count(const struct topic_registry *registry);
const struct topic *BORROWED topic_registry_at(
        const struct topic_registry *registry, uint32_t index);
