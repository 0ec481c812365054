/* SPDX-License-Identifier: MIT */

/* The node's record as it is now: addresses, services and the shards that it takes part in. */

#include <stdio.h>
#include <string.h>

#include "codec/topics.h"
#include "net/identity/enr.h"
#include "node/network.h"
#include "node/rest_private.h"

enum {
    ADDRESSES_MAX = 16
};

static size_t list_shards(const struct rest *rest, uint16_t out[ENR_SHARDS_MAX])
{
    const struct topic_registry *topics = rest->node->topics;
    size_t count = 0;
    for (uint32_t i = 0; i < topic_registry_count(topics) && count < ENR_SHARDS_MAX; i++) {
        const struct topic *topic = topic_registry_at(topics, i);
        struct shard shard;
        if (topic_registry_is_subscribed(topics, topic) &&
                shard_parse(&shard, topic->name) == STATUS_OK && shard.cluster == rest->cluster) {
            out[count++] = shard.index;
        }
    }
    return count;
}

static uint64_t topic_changes(const struct node *node)
{
    /* relaxed: a change that is not seen yet is seen the next time */
    return atomic_load_explicit(&node->topics_joined, memory_order_relaxed) +
           atomic_load_explicit(&node->topics_left, memory_order_relaxed);
}

static enum status write_record(struct rest *rest, uint64_t changes)
{
    struct multiaddr addresses[ADDRESSES_MAX];
    uint16_t shards[ENR_SHARDS_MAX];
    struct enr_options options = {.sequence = rest->enr_sequence + changes,
            .addresses = addresses,
            .cluster_id = rest->cluster,
            .shards = shards,
            .shard_count = list_shards(rest, shards),
            .capabilities = rest->capabilities};
    while (options.address_count < ADDRESSES_MAX &&
            network_address_at(rest->node->network, options.address_count,
                    &addresses[options.address_count])) {
        options.address_count++;
    }
    return enr_write(rest->enr, network_identity(rest->node->network), &options);
}

bool rest_enr(void *context, char *out, size_t size)
{
    struct rest *rest = context;
    if (rest->node->network == NULL) {
        return false;
    }
    uint64_t changes = topic_changes(rest->node);
    if (rest->enr[0] == '\0' || rest->enr_changes != changes) {
        if (write_record(rest, changes) != STATUS_OK) {
            rest->enr[0] = '\0';
            return false;
        }
        rest->enr_changes = changes;
    }
    snprintf(out, size, "%s", rest->enr);
    return true;
}

uint8_t rest_capabilities(const struct options *options)
{
    static const struct {
        const char *option;
        enum enr_capability bit;
    } services[] = {{"relay", ENR_RELAY}, {"store", ENR_STORE}, {"filter", ENR_FILTER},
            {"lightpush", ENR_LIGHTPUSH}, {"store-sync", ENR_SYNC}};
    uint8_t bits = 0;
    for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
        const struct option_spec *spec = options_find_spec(options, services[i].option);
        if (spec != NULL && options_flag(options, services[i].option)) {
            bits |= (uint8_t)services[i].bit;
        }
    }
    return bits;
}
