/* SPDX-License-Identifier: MIT */
#pragma once

/* Nodes made through include/sluice.h, for tests of it, with the helpers that they share. */

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <sluice.h>

#include "tests/support/cmocka.h"

#define API_TOPIC "/waku/2/rs/0/1"

static inline void api_set(struct sluice_options *options, const char *const values[])
{
    struct sluice_error error = {""};
    for (size_t i = 0; values != NULL && values[i] != NULL; i += 2) {
        if (sluice_options_set(options, values[i], values[i + 1], &error) != SLUICE_OK) {
            fail_msg("%s", error.text);
        }
    }
}

/* Options as pairs, first and then more: name, value, ..., NULL; NULL: none. */
static inline struct sluice_node *api_made_of(const char *const first[], const char *const more[])
{
    struct sluice_options *options = NULL;
    struct sluice_node *node = NULL;
    struct sluice_error error = {""};
    assert_int_equal(sluice_options_create(&options), SLUICE_OK);
    api_set(options, first);
    api_set(options, more);
    if (sluice_node_create(&node, options, &error) != SLUICE_OK) {
        fail_msg("%s", error.text);
    }
    return node;
}

/* The node is on no network. */
static inline struct sluice_node *api_made(const char *const values[])
{
    static const char *const alone[] = {"network", "false", NULL};
    return api_made_of(alone, values);
}

/* On a free port of 127.0.0.1, in API_TOPIC. */
static inline struct sluice_node *api_made_on_network(const char *const values[])
{
    static const char *const on_loopback[] = {"listen-address", "127.0.0.1", "tcp-port", "0",
            "ip-colocation-limit", "0", "pubsub-topic", API_TOPIC, NULL};
    return api_made_of(on_loopback, values);
}

/* Its first address; valid until the next call. */
static inline const char *api_address(const struct sluice_node *node)
{
    static char text[1024];
    assert_int_equal(sluice_node_address(node, 0, text, sizeof(text)), SLUICE_OK);
    return text;
}

static inline void api_start(struct sluice_node *node)
{
    struct sluice_error error = {""};
    assert_int_equal(sluice_node_start(node, &error), SLUICE_OK);
}

static inline void api_destroy(struct sluice_node **node)
{
    assert_int_equal(sluice_node_destroy(node), SLUICE_OK);
    assert_null(*node);
}

static inline struct sluice_bytes api_bytes(const char *text)
{
    return (struct sluice_bytes){.data = (const uint8_t *)text, .size = strlen(text)};
}

static inline struct sluice_message api_message(const char *payload)
{
    return (struct sluice_message){.pubsub_topic = API_TOPIC,
            .content_topic = "/test/1/api/plain",
            .payload = api_bytes(payload)};
}

static inline void api_publish(struct sluice_node *node, const char *payload)
{
    struct sluice_message message = api_message(payload);
    assert_int_equal(sluice_node_publish(node, &message, NULL, NULL), SLUICE_OK);
}

static inline uint64_t api_counter(const struct sluice_node *node, const char *name)
{
    uint64_t value = 0;
    assert_int_equal(sluice_node_counter(node, name, &value), SLUICE_OK);
    return value;
}

#define API_STAGE(stage, outcome, reason)                                                          \
    "sluice_stage_messages_total{stage=\"" stage "\",outcome=\"" outcome "\",reason=\"" reason "\"}"

static inline void api_wait_counter(
        const struct sluice_node *node, const char *name, uint64_t at_least)
{
    while (api_counter(node, name) < at_least) {
        sched_yield();
    }
}

static inline void api_wait_count(const atomic_size_t *count, size_t at_least)
{
    while (atomic_load(count) < at_least) {
        sched_yield();
    }
}
