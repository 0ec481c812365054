/* SPDX-License-Identifier: MIT */

/* What other threads ask of the switch: each request is a task for the loop that it concerns. */

#include "base/memory.h"
#include "base/metrics.h"
#include "net/switch/connection_private.h"
#include "net/switch/switch_private.h"

struct command {
    struct io_task task;
    struct net_switch *net_switch;
    struct switch_shard *shard;
    uint64_t connection;
    uint64_t admission;
    enum close_reason reason;
    void (*work)(void *context, struct connection *connection);
    void *context;
    bool ends_with_null;
    struct registry_entry *entry;
    struct switch_dial dial;
};

static struct command *command_create(
        struct net_switch *net_switch, void (*run)(struct io_task *task))
{
    struct command *command = memory_allocate_zeroed(sizeof(*command));
    if (command != NULL) {
        command->task.run = run;
        command->net_switch = net_switch;
    }
    return command;
}

static struct command take(struct io_task *task)
{
    struct command command = *(struct command *)task;
    memory_free(task);
    return command;
}

static void run_close(struct io_task *task)
{
    struct command command = take(task);
    struct connection *connection = switch_find_connection(command.net_switch, command.connection);
    if (connection != NULL) {
        connection_close(connection, command.reason);
    }
}

void switch_close_connection(
        struct net_switch *net_switch, uint64_t connection, enum close_reason reason)
{
    struct switch_shard *shard = switch_shard_of(net_switch, connection);
    struct command *command = shard == NULL ? NULL : command_create(net_switch, run_close);
    if (command != NULL) {
        command->connection = connection;
        command->reason = reason;
        io_loop_post(shard->loop, &command->task);
    }
}

static void run_admitted(struct io_task *task)
{
    struct command command = take(task);
    struct connection *connection = switch_find_connection(command.net_switch, command.connection);
    if (connection != NULL) {
        connection_admitted(connection, command.admission);
    }
}

/* Without memory for the verdict the connection ends at the deadline of its upgrade. */
void switch_tell_admitted(struct net_switch *net_switch, uint64_t id, uint64_t admission)
{
    struct switch_shard *shard = switch_shard_of(net_switch, id);
    if (shard_is_control(shard)) {
        struct connection *connection = switch_find_connection(net_switch, id);
        if (connection != NULL) {
            connection_admitted(connection, admission);
        }
        return;
    }
    struct command *command = command_create(net_switch, run_admitted);
    if (command != NULL) {
        command->connection = id;
        command->admission = admission;
        io_loop_post(shard->loop, &command->task);
    }
}

static void run_work(struct io_task *task)
{
    struct command command = take(task);
    command.work(command.context, switch_find_connection(command.net_switch, command.connection));
}

enum status switch_run_on_connection(struct net_switch *net_switch, uint64_t connection,
        void (*work)(void *context, struct connection *connection), void *context)
{
    struct switch_shard *shard = switch_shard_of(net_switch, connection);
    if (shard == NULL) {
        return STATUS_NOT_FOUND;
    }
    struct command *command = command_create(net_switch, run_work);
    if (command == NULL) {
        return STATUS_NO_MEMORY;
    }
    command->connection = connection;
    command->work = work;
    command->context = context;
    io_loop_post(shard->loop, &command->task);
    return STATUS_OK;
}

static void run_visit(struct io_task *task)
{
    struct command command = take(task);
    struct slot_table *connections = &command.shard->connections;
    for (uint32_t i = 0; i < connections->capacity; i++) {
        struct connection *connection = slot_table_at(connections, i);
        if (connection != NULL && connection->state == CONNECTION_OPEN) {
            command.work(command.context, connection);
        }
    }
    if (command.ends_with_null) {
        command.work(command.context, NULL);
    }
}

void switch_visit_connections(struct net_switch *net_switch,
        void (*work)(void *context, struct connection *connection), void *context)
{
    for (size_t i = 0; i < net_switch->shard_count; i++) {
        struct command *command = command_create(net_switch, run_visit);
        if (command == NULL) {
            return;
        }
        command->shard = &net_switch->shards[i];
        command->work = work;
        command->context = context;
        io_loop_post(command->shard->loop, &command->task);
    }
}

enum status switch_visit_loops(struct net_switch *net_switch,
        void (*work)(void *context, struct connection *connection), void *context)
{
    struct command *commands[UINT8_MAX];
    size_t made = 0;
    while (made < net_switch->shard_count &&
            (commands[made] = command_create(net_switch, run_visit)) != NULL) {
        made++;
    }
    bool is_complete = made == net_switch->shard_count;
    for (size_t i = 0; i < made; i++) {
        commands[i]->shard = &net_switch->shards[i];
        commands[i]->work = work;
        commands[i]->context = context;
        commands[i]->ends_with_null = true;
        if (is_complete) {
            io_loop_post(net_switch->shards[i].loop, &commands[i]->task);
        } else {
            memory_free(commands[i]);
        }
    }
    return is_complete ? STATUS_OK : STATUS_NO_MEMORY;
}

size_t switch_loop_count(const struct net_switch *net_switch)
{
    return net_switch->shard_count;
}

static void run_write(struct io_task *task)
{
    struct stream_write *write = (struct stream_write *)task;
    struct stream *stream = switch_find_stream(write->net_switch, write->to);
    enum status status = STATUS_NOT_FOUND;
    if (stream != NULL) {
        status = stream_write(stream, write->pieces, write->piece_count);
        if (status == STATUS_OK && write->closes_write) {
            stream_close_write(stream);
        }
    }
    write->done(write, status);
}

void switch_post_write(struct net_switch *net_switch, struct stream_write *write)
{
    struct switch_shard *shard = switch_shard_of(net_switch, write->to.stream);
    if (shard == NULL) {
        write->done(write, STATUS_NOT_FOUND);
        return;
    }
    write->net_switch = net_switch;
    write->task.run = run_write;
    io_loop_post(shard->loop, &write->task);
}

static void run_outbound(struct io_task *task)
{
    struct command command = take(task);
    shard_begin_outbound(command.shard, command.entry, &command.dial);
}

/* STATUS_OK with *standing not 0: there is nothing to do. */
static enum status prepare_dial(
        struct net_switch *net_switch, const struct multiaddr *address, uint64_t *standing)
{
    struct multiaddr_endpoint endpoint;
    enum status status = multiaddr_endpoint(&endpoint, address);
    if (status != STATUS_OK || net_switch->is_stopping) {
        return status != STATUS_OK ? status : STATUS_CLOSED;
    }
    *standing = endpoint.has_peer ? registry_find_peer(net_switch->registry, &endpoint.peer) : 0;
    bool needs_tls = *standing == 0 && endpoint.is_secure && net_switch->tls_client == NULL;
    return needs_tls ? tls_context_create_client(&net_switch->tls_client) : STATUS_OK;
}

/* Uses the command of the request again for its second hop. */
static void begin_dial(struct command *command)
{
    struct net_switch *net_switch = command->net_switch;
    struct switch_dial *dial = &command->dial;
    uint64_t standing = 0;
    enum status status = prepare_dial(net_switch, &dial->address, &standing);
    if (status == STATUS_OK && standing == 0) {
        command->entry = registry_begin_outbound(net_switch->registry, dial);
        status = command->entry == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    }
    if (status != STATUS_OK || standing != 0) {
        dial->done(dial->context, status, standing);
        memory_free(command);
        return;
    }
    command->shard = switch_choose_shard(net_switch);
    registry_entry_set_shard(command->entry, command->shard);
    metrics_add(METRIC_NET_DIALS, 1);
    command->task.run = run_outbound;
    io_loop_post(command->shard->loop, &command->task);
}

static void run_dial(struct io_task *task)
{
    begin_dial((struct command *)task);
}

enum status switch_dial(struct net_switch *net_switch, const struct switch_dial *dial)
{
    struct multiaddr_endpoint endpoint;
    enum status status = multiaddr_endpoint(&endpoint, &dial->address);
    if (status != STATUS_OK) {
        return status;
    }
    struct command *command = command_create(net_switch, run_dial);
    if (command == NULL) {
        return STATUS_NO_MEMORY;
    }
    command->dial = *dial;
    io_loop_post(net_switch->shards[0].loop, &command->task);
    return STATUS_OK;
}

static void run_stop_shard(struct io_task *task)
{
    shard_stop((struct switch_shard *)((char *)task - offsetof(struct switch_shard, stop)));
}

static void run_stop(struct io_task *task)
{
    struct net_switch *net_switch =
            (struct net_switch *)((char *)task - offsetof(struct net_switch, stop));
    net_switch->is_stopping = true;
    for (size_t i = 0; i < SWITCH_LISTENERS_MAX; i++) {
        listener_destroy(&net_switch->listeners[i].listener);
    }
    for (size_t i = 0; i < net_switch->shard_count; i++) {
        struct switch_shard *shard = &net_switch->shards[i];
        shard->stop.run = run_stop_shard;
        io_loop_post(shard->loop, &shard->stop);
    }
}

void switch_stop(struct net_switch *net_switch)
{
    /* relaxed: only the first caller posts, and the post itself orders */
    if (!atomic_exchange_explicit(&net_switch->stop_posted, true, memory_order_relaxed)) {
        net_switch->stop.run = run_stop;
        io_loop_post(net_switch->shards[0].loop, &net_switch->stop);
    }
}
