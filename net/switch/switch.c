/* SPDX-License-Identifier: MIT */
#include "net/switch/switch.h"

#include <assert.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/switch/switch_private.h"
#include "net/transport/address.h"

static void or_default(size_t *value, size_t fallback)
{
    if (*value == 0) {
        *value = fallback;
    }
}

static void fill_options(struct net_switch *net_switch, const struct switch_options *given)
{
    static const enum muxer_kind muxers[] = {MUXER_YAMUX, MUXER_MPLEX};
    struct switch_options *options = &net_switch->options;
    *options = *given;
    if (options->muxers == NULL) {
        options->muxers = muxers;
        options->muxer_count = SWITCH_MUXERS_MAX;
    }
    assert(options->muxer_count > 0 && options->muxer_count <= SWITCH_MUXERS_MAX);
    for (size_t i = 0; i < options->muxer_count; i++) {
        net_switch->muxers[i] = options->muxers[i];
        net_switch->muxer_ids[i] = muxer_protocol_id(options->muxers[i]);
    }
    options->muxers = net_switch->muxers;
    or_default(&options->connections_max, SWITCH_CONNECTIONS_MAX);
    or_default(&options->upgrades_max, SWITCH_UPGRADES_MAX);
    or_default(&options->streams_max, SWITCH_STREAMS_MAX);
    or_default(&options->negotiations_max, SWITCH_NEGOTIATIONS_MAX);
    or_default(&options->buffered_bytes_max, SWITCH_BUFFERED_BYTES_MAX);
    or_default(&options->upgrade_timeout_ms, SWITCH_UPGRADE_TIMEOUT_MS);
    or_default(&options->negotiation_timeout_ms, SWITCH_NEGOTIATION_TIMEOUT_MS);
    or_default(&options->write_timeout_ms, SWITCH_WRITE_TIMEOUT_MS);
}

/* Raises the limit of descriptors as far as it may, and lowers ours to what is left. */
static void fit_descriptors(struct switch_options *options)
{
    struct rlimit limit;
    size_t reserved = SWITCH_DESCRIPTORS_RESERVED + options->loop_count * IO_LOOP_LINGERING_MAX;
    size_t wanted = options->connections_max + options->upgrades_max + reserved;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return;
    }
    if (limit.rlim_cur < wanted && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0 && getrlimit(RLIMIT_NOFILE, &limit) != 0) {
            return;
        }
    }
    if (limit.rlim_cur >= wanted) {
        return;
    }
    size_t left = limit.rlim_cur > 2 * reserved ? limit.rlim_cur - reserved : limit.rlim_cur / 2;
    size_t upgrades = left / 4 < options->upgrades_max ? left / 4 : options->upgrades_max;
    size_t connections =
            left - upgrades < options->connections_max ? left - upgrades : options->connections_max;
    log_write(LOG_WARN, "switch",
            "%zu descriptors allow for %zu connections and %zu unfinished ones, not %zu and %zu",
            (size_t)limit.rlim_cur, connections, upgrades, options->connections_max,
            options->upgrades_max);
    options->upgrades_max = upgrades;
    options->connections_max = connections;
}

static enum status create_parts(struct net_switch *net_switch)
{
    enum status status = noise_static_create(&net_switch->own_static, net_switch->options.identity);
    if (status != STATUS_OK) {
        return status;
    }
    status = registry_create(&net_switch->registry, net_switch);
    if (status != STATUS_OK) {
        return status;
    }
    size_t count = net_switch->options.loop_count;
    net_switch->shards = memory_allocate_zeroed(count * sizeof(*net_switch->shards));
    return net_switch->shards == NULL ? STATUS_NO_MEMORY : STATUS_OK;
}

enum status switch_create(struct net_switch **out, const struct switch_options *options)
{
    assert(options->loop_count > 0 && options->loop_count <= UINT8_MAX);
    struct net_switch *net_switch = memory_allocate_zeroed(sizeof(*net_switch));
    if (net_switch == NULL) {
        return STATUS_NO_MEMORY;
    }
    fill_options(net_switch, options);
    fit_descriptors(&net_switch->options);
    enum status status = create_parts(net_switch);
    if (status != STATUS_OK) {
        registry_destroy(&net_switch->registry);
        noise_static_destroy(&net_switch->own_static);
        tls_context_destroy(&net_switch->tls_client);
        memory_free(net_switch);
        return status;
    }
    net_switch->shard_count = options->loop_count;
    net_switch->shards_left = options->loop_count;
    for (size_t i = 0; i < options->loop_count; i++) {
        shard_init(&net_switch->shards[i], net_switch, options->loops[i]);
    }
    net_switch->options.loops = NULL;
    *out = net_switch;
    return STATUS_OK;
}

void switch_destroy(struct net_switch **net_switch_pointer)
{
    struct net_switch *net_switch = *net_switch_pointer;
    if (net_switch == NULL) {
        return;
    }
    assert(switch_is_stopped(net_switch));
    for (size_t i = 0; i < net_switch->shard_count; i++) {
        shard_fini(&net_switch->shards[i]);
    }
    registry_destroy(&net_switch->registry);
    noise_static_destroy(&net_switch->own_static);
    tls_context_destroy(&net_switch->tls_client);
    memory_free(net_switch->shards);
    memory_free(net_switch);
    *net_switch_pointer = NULL;
}

enum status switch_add_protocol(struct net_switch *net_switch, const struct protocol *protocol)
{
    if (switch_find_protocol(net_switch, span_of_text(protocol->id)) != NULL) {
        return STATUS_BUSY;
    }
    if (net_switch->protocol_count == SWITCH_PROTOCOLS_MAX) {
        return STATUS_LIMIT_REACHED;
    }
    struct protocol *added = &net_switch->protocols[net_switch->protocol_count++];
    *added = *protocol;
    if (added->inbound_max == 0) {
        added->inbound_max = SWITCH_STREAMS_OF_PROTOCOL_MAX;
    }
    if (added->outbound_max == 0) {
        added->outbound_max = SWITCH_STREAMS_OF_PROTOCOL_MAX;
    }
    return STATUS_OK;
}

const struct protocol *switch_find_protocol(const struct net_switch *net_switch, struct span id)
{
    for (size_t i = 0; i < net_switch->protocol_count; i++) {
        if (span_equal(span_of_text(net_switch->protocols[i].id), id)) {
            return &net_switch->protocols[i];
        }
    }
    return NULL;
}

const char *switch_protocol_at(const struct net_switch *net_switch, size_t i)
{
    return i < net_switch->protocol_count ? net_switch->protocols[i].id : NULL;
}

enum status switch_add_observer(
        struct net_switch *net_switch, const struct switch_observer *observer, void *context)
{
    if (net_switch->observer_count == SWITCH_OBSERVERS_MAX) {
        return STATUS_LIMIT_REACHED;
    }
    net_switch->observers[net_switch->observer_count++] =
            (struct registered_observer){.observer = *observer, .context = context};
    return STATUS_OK;
}

void switch_set_gatekeeper(
        struct net_switch *net_switch, const struct switch_gatekeeper *gatekeeper, void *context)
{
    registry_set_gatekeeper(net_switch->registry, gatekeeper, context);
}

const struct identity *switch_identity(const struct net_switch *net_switch)
{
    return net_switch->options.identity;
}

struct io_loop *switch_control_loop(const struct net_switch *net_switch)
{
    return net_switch->shards[0].loop;
}

struct switch_shard *switch_shard_of(const struct net_switch *net_switch, uint64_t number)
{
    for (size_t i = 0; i < net_switch->shard_count; i++) {
        if (net_switch->shards[i].connections.tag == slot_table_tag_of(number)) {
            return &net_switch->shards[i];
        }
    }
    return NULL;
}

struct switch_shard *switch_choose_shard(struct net_switch *net_switch)
{
    struct switch_shard *shard = &net_switch->shards[net_switch->next_shard];
    net_switch->next_shard = (net_switch->next_shard + 1) % net_switch->shard_count;
    return shard;
}

struct connection *switch_find_connection(const struct net_switch *net_switch, uint64_t connection)
{
    const struct switch_shard *shard = switch_shard_of(net_switch, connection);
    return shard == NULL ? NULL : slot_table_find(&shard->connections, connection);
}

struct stream *switch_find_stream(
        const struct net_switch *net_switch, struct stream_address address)
{
    const struct switch_shard *shard = switch_shard_of(net_switch, address.stream);
    struct stream *stream = shard == NULL ? NULL : slot_table_find(&shard->streams, address.stream);
    bool is_it = stream != NULL && stream_address(stream).connection == address.connection;
    return is_it ? stream : NULL;
}

size_t switch_connection_count(const struct net_switch *net_switch)
{
    /* relaxed: a number to look at */
    return atomic_load_explicit(&net_switch->connection_count, memory_order_relaxed);
}

size_t switch_upgrade_count(const struct net_switch *net_switch)
{
    /* relaxed: a number to look at */
    return atomic_load_explicit(&net_switch->upgrade_count, memory_order_relaxed);
}

bool switch_is_stopped(const struct net_switch *net_switch)
{
    return atomic_load_explicit(&net_switch->is_stopped, memory_order_acquire); /* STOPPED */
}

/* STOPPED: release store of is_stopped -> acquire load. All that the loops did is seen after. */
void switch_check_stopped(struct net_switch *net_switch)
{
    if (net_switch->shards_left == 0 && registry_is_empty(net_switch->registry)) {
        atomic_store_explicit(&net_switch->is_stopped, true, memory_order_release); /* STOPPED */
    }
}

void switch_shard_stopped(struct net_switch *net_switch)
{
    net_switch->shards_left--;
    switch_check_stopped(net_switch);
}
