/* SPDX-License-Identifier: MIT */
#include "node/static_nodes.h"

#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

enum {
    TICK_MS = 500,
    CHECK_MS = 2000, /* for a connection that stands: asking costs a look into a table */
    RETRY_MS = 1000, /* doubles with every failure */
    DOUBLINGS_MAX = 8,
    SHORT_MS = 60 * 1000 /* a connection that did not last so long was a failure, too */
};

struct static_node {
    struct static_nodes *owner;
    struct multiaddr address;
    uint64_t connection; /* the last one */
    uint64_t since_ms;   /* when that was first seen */
    uint64_t next_ms;
    unsigned failures;
    bool is_dialling;
};

struct static_nodes {
    struct net_switch *net_switch;
    uv_timer_t timer;
    struct io_task start;
    bool is_closed;
    size_t count;
    struct static_node nodes[];
};

static uint64_t now_ms(void)
{
    return clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
}

static uint64_t retry_ms(const struct static_node *node)
{
    unsigned doublings = node->failures < DOUBLINGS_MAX ? node->failures : DOUBLINGS_MAX;
    return (uint64_t)RETRY_MS << doublings;
}

static void note_failure(struct static_node *node, enum status status)
{
    static struct log_limit limit;
    char text[MULTIADDR_TEXT_SIZE];
    uint64_t delay_ms = retry_ms(node);
    node->next_ms = now_ms() + delay_ms;
    node->failures++;
    log_write_limited(&limit, LOG_NOTICE, "network", "static node %s: %s; again in %llu ms",
            multiaddr_print(text, &node->address), status_text(status),
            (unsigned long long)delay_ms);
}

static void note_connection(struct static_node *node, uint64_t connection)
{
    uint64_t now = now_ms();
    if (connection == node->connection) {
        if (now - node->since_ms >= SHORT_MS) {
            node->failures = 0;
        }
        node->next_ms = now + CHECK_MS;
        return;
    }
    bool was_short = node->connection != 0 && now - node->since_ms < SHORT_MS;
    node->failures = was_short ? node->failures + 1 : 0;
    node->connection = connection;
    node->since_ms = now;
    node->next_ms = now + (was_short ? retry_ms(node) : CHECK_MS);
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    struct static_node *node = context;
    node->is_dialling = false;
    if (status == STATUS_OK) {
        note_connection(node, connection);
    } else {
        note_failure(node, status);
    }
}

static void dial(struct static_node *node)
{
    struct switch_dial dial = {.address = node->address, .done = on_dialled, .context = node};
    node->is_dialling = true;
    enum status status = switch_dial(node->owner->net_switch, &dial);
    if (status != STATUS_OK) {
        node->is_dialling = false;
        note_failure(node, status);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct static_nodes *nodes = timer->data;
    uint64_t now = now_ms();
    for (size_t i = 0; i < nodes->count; i++) {
        if (!nodes->nodes[i].is_dialling && now >= nodes->nodes[i].next_ms) {
            dial(&nodes->nodes[i]);
        }
    }
}

enum status static_nodes_create(struct static_nodes **out, struct net_switch *net_switch,
        const struct multiaddr addresses[], size_t count)
{
    struct static_nodes *nodes =
            memory_allocate_zeroed(sizeof(*nodes) + count * sizeof(struct static_node));
    if (nodes == NULL) {
        return STATUS_NO_MEMORY;
    }
    nodes->net_switch = net_switch;
    nodes->count = count;
    for (size_t i = 0; i < count; i++) {
        nodes->nodes[i].owner = nodes;
        nodes->nodes[i].address = addresses[i];
    }
    /* libuv's documentation: it always succeeds. */
    uv_timer_init(io_loop_uv(switch_control_loop(net_switch)), &nodes->timer);
    nodes->timer.data = nodes;
    *out = nodes;
    return STATUS_OK;
}

static void run_start(struct io_task *task)
{
    struct static_nodes *nodes =
            (struct static_nodes *)((char *)task - offsetof(struct static_nodes, start));
    uv_timer_start(&nodes->timer, on_tick, 0, TICK_MS);
}

void static_nodes_start(struct static_nodes *nodes)
{
    if (nodes->count > 0) {
        nodes->start.run = run_start;
        io_loop_post(switch_control_loop(nodes->net_switch), &nodes->start);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct static_nodes *nodes = handle->data;
    nodes->is_closed = true;
}

void static_nodes_destroy(struct static_nodes **nodes_pointer)
{
    struct static_nodes *nodes = *nodes_pointer;
    if (nodes == NULL) {
        return;
    }
    uv_close((uv_handle_t *)&nodes->timer, on_closed);
    while (!nodes->is_closed) {
        io_loop_turn(switch_control_loop(nodes->net_switch));
    }
    memory_free(nodes);
    *nodes_pointer = NULL;
}
