/* SPDX-License-Identifier: MIT */

/* Listeners of a switch, and what they accept on its way to an io thread. */

#include <unistd.h>

#include "base/memory.h"
#include "base/metrics.h"
#include "net/switch/switch_private.h"

struct accepted_socket {
    struct io_task task;
    struct switch_shard *shard;
    struct registry_entry *entry;
    const struct switch_listener *listener;
    int descriptor;
};

static void run_accepted(struct io_task *task)
{
    struct accepted_socket accepted = *(struct accepted_socket *)task;
    memory_free(task);
    shard_begin_inbound(accepted.shard, accepted.entry, accepted.descriptor, accepted.listener);
}

static void hand_over(struct switch_shard *shard, struct registry_entry *entry, int descriptor,
        const struct switch_listener *listener)
{
    if (shard_is_control(shard)) {
        shard_begin_inbound(shard, entry, descriptor, listener);
        return;
    }
    struct accepted_socket *accepted = memory_allocate_zeroed(sizeof(*accepted));
    if (accepted == NULL) {
        close(descriptor);
        registry_entry_set_shard(entry, shard->net_switch->shards);
        registry_report_closed(entry, CLOSE_NO_MEMORY, STATUS_NO_MEMORY);
        return;
    }
    *accepted = (struct accepted_socket){.task.run = run_accepted,
            .shard = shard,
            .entry = entry,
            .listener = listener,
            .descriptor = descriptor};
    io_loop_post(shard->loop, &accepted->task);
}

static const struct switch_listener *find_listener(
        const struct net_switch *net_switch, const struct listener *listener)
{
    const struct switch_listener *found = net_switch->listeners;
    while (found->listener != listener) {
        found++;
    }
    return found;
}

static void on_accepted(
        void *context, struct listener *listener, int descriptor, const struct sockaddr *remote)
{
    struct net_switch *net_switch = context;
    struct registry_entry *entry =
            registry_begin_inbound(net_switch->registry, (const struct sockaddr_storage *)remote);
    if (entry == NULL) {
        close(descriptor);
        return;
    }
    struct switch_shard *shard = switch_choose_shard(net_switch);
    registry_entry_set_shard(entry, shard);
    metrics_add(METRIC_NET_ACCEPTED, 1);
    hand_over(shard, entry, descriptor, find_listener(net_switch, listener));
}

/* LISTENING: release store of listener_count -> acquire load. Listeners below it are complete. */
enum status switch_listen(struct net_switch *net_switch, const struct multiaddr *address)
{
    struct multiaddr_endpoint endpoint;
    enum status status = multiaddr_endpoint(&endpoint, address);
    if (status != STATUS_OK) {
        return status;
    }
    if (endpoint.is_secure && net_switch->options.tls_server == NULL) {
        return STATUS_UNSUPPORTED;
    }
    /* relaxed: written by this thread only */
    size_t count = atomic_load_explicit(&net_switch->listener_count, memory_order_relaxed);
    if (count == SWITCH_LISTENERS_MAX) {
        return STATUS_LIMIT_REACHED;
    }
    struct switch_listener *added = &net_switch->listeners[count];
    struct listener_options options = {
            .loop = net_switch->shards[0].loop,
            .endpoint = &endpoint,
            .accepted = on_accepted,
            .context = net_switch,
    };
    status = listener_create(&added->listener, &options);
    if (status != STATUS_OK) {
        return status;
    }
    endpoint = *listener_endpoint(added->listener);
    endpoint.has_peer = false;
    status = multiaddr_from_endpoint(&added->address, &endpoint);
    if (status != STATUS_OK) {
        listener_destroy(&added->listener);
        return status;
    }
    added->is_websocket = endpoint.is_websocket;
    added->is_secure = endpoint.is_secure;
    atomic_store_explicit(
            &net_switch->listener_count, count + 1, memory_order_release); /* LISTENING */
    return STATUS_OK;
}

const struct multiaddr *switch_listen_address(const struct net_switch *net_switch, size_t i)
{
    size_t count =
            atomic_load_explicit(&net_switch->listener_count, memory_order_acquire); /* LISTENING */
    return i < count ? &net_switch->listeners[i].address : NULL;
}
