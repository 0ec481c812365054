/* SPDX-License-Identifier: MIT */
#include "tools/sluice/service_client.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "net/protocols/exchange.h"
#include "tools/sluice/net_host.h"

struct service_client {
    struct net_host *host;
    struct identity *identity;
    sem_t over;   /* of each step */
    bool is_open; /* the io thread's, while it is connected to */
    bool is_started;
    enum status status;
    _Atomic uint64_t connection;
    uint64_t timeout_ms;
    struct exchange_call call;
    struct service_answer answer;
};

static void finish_step(struct service_client *client, enum status status)
{
    client->status = status;
    sem_post(&client->over);
}

/* A connection can be used before, but then the other side may not know us yet. */
static void on_identified(
        void *context, struct connection *connection, const struct identify_info *info)
{
    struct service_client *client = context;
    (void)info;
    if (!client->is_open) {
        client->is_open = true;
        atomic_store(&client->connection, connection_id(connection));
        finish_step(client, STATUS_OK);
    }
}

static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    struct service_client *client = context;
    (void)reason;
    if (!client->is_open) {
        client->is_open = true;
        finish_step(client, STATUS_CLOSED);
    } else if (atomic_load(&client->connection) == connection_id(connection)) {
        atomic_store(&client->connection, 0);
    }
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    (void)connection;
    struct service_client *client = context;
    if (status != STATUS_OK && !client->is_open) {
        client->is_open = true;
        finish_step(client, status);
    }
}

static enum status wait_step(struct service_client *client)
{
    while (sem_wait(&client->over) != 0) {
    }
    return client->status;
}

static enum status start(struct service_client *client)
{
    static const struct switch_observer observer = {.disconnected = on_disconnected};
    enum status status = STATUS_OK;
    if (!client->is_started) {
        client->is_started = true;
        status = switch_add_observer(net_host_switch(client->host), &observer, client);
        return status == STATUS_OK ? net_host_start(client->host) : status;
    }
    return status;
}

enum status service_client_connect(struct service_client *client, const char *address)
{
    struct switch_dial dial = {
            .timeout_ms = client->timeout_ms, .done = on_dialled, .context = client};
    enum status status = multiaddr_parse(&dial.address, span_of_text(address));
    if (status == STATUS_OK) {
        status = start(client);
    }
    if (status == STATUS_OK) {
        /* There is no connection: the io thread looks at it again when the dial has been posted. */
        client->is_open = false;
        status = switch_dial(net_host_switch(client->host), &dial);
    }
    return status == STATUS_OK ? wait_step(client) : status;
}

struct net_switch *service_client_switch(const struct service_client *client)
{
    return net_host_switch(client->host);
}

uint64_t service_client_connection(const struct service_client *client)
{
    return atomic_load(&client->connection);
}

enum status service_client_create(
        struct service_client **out, const struct options *options, const char *command)
{
    struct service_client *client = memory_allocate_zeroed(sizeof(*client));
    if (client == NULL) {
        fprintf(stderr, "sluice %s: %s\n", command, status_text(STATUS_NO_MEMORY));
        return STATUS_NO_MEMORY;
    }
    sem_init(&client->over, 0, 0);
    client->timeout_ms = options_number(options, "timeout");
    const char *step = "key";
    enum status status = identity_from_options(&client->identity, options);
    if (status == STATUS_OK) {
        struct net_host_options host_options = {
                .identity = client->identity, .identified = on_identified, .context = client};
        step = "host";
        status = net_host_create(&client->host, &host_options);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "sluice %s: %s: %s\n", command, step, status_text(status));
        service_client_close(&client);
        return status;
    }
    *out = client;
    return STATUS_OK;
}

enum status service_client_open(struct service_client **out, const struct options *options,
        const char *command, const char *address)
{
    struct service_client *client = NULL;
    enum status status = service_client_create(&client, options, command);
    if (status != STATUS_OK) {
        return status;
    }
    status = service_client_connect(client, address);
    if (status != STATUS_OK) {
        fprintf(stderr, "sluice %s: connect: %s\n", command, status_text(status));
        service_client_close(&client);
        return status;
    }
    *out = client;
    return STATUS_OK;
}

void service_client_close(struct service_client **client_pointer)
{
    struct service_client *client = *client_pointer;
    if (client == NULL) {
        return;
    }
    net_host_destroy(&client->host);
    identity_destroy(&client->identity);
    sem_destroy(&client->over);
    memory_free(client);
    *client_pointer = NULL;
}

static void on_answered(void *context, enum status status, const char *protocol, struct span answer)
{
    struct service_client *client = context;
    client->answer = (struct service_answer){.status = status, .protocol = protocol};
    if (status == STATUS_OK) {
        client->answer.bytes = memory_allocate(answer.length + 1);
        client->answer.length = answer.length;
    }
    if (client->answer.bytes != NULL && answer.length > 0) {
        memcpy(client->answer.bytes, answer.bytes, answer.length);
    }
    if (status == STATUS_OK && client->answer.bytes == NULL) {
        client->answer.status = STATUS_NO_MEMORY;
    }
    finish_step(client, status);
}

static void ask(void *context, struct connection *connection)
{
    struct service_client *client = context;
    enum status status =
            connection == NULL ? STATUS_CLOSED : exchange_call(connection, &client->call);
    if (status != STATUS_OK) {
        on_answered(client, status, NULL, span_of(NULL, 0));
    }
}

struct service_answer service_client_ask(struct service_client *client,
        const char *const *protocols, size_t protocol_count, struct span request, size_t answer_max)
{
    client->call = (struct exchange_call){.protocols = protocols,
            .protocol_count = protocol_count,
            .request = request,
            .answer_max = answer_max,
            .timeout_ms = client->timeout_ms,
            .done = on_answered,
            .context = client};
    enum status status = switch_run_on_connection(
            net_host_switch(client->host), service_client_connection(client), ask, client);
    if (status != STATUS_OK) {
        return (struct service_answer){.status = status};
    }
    (void)wait_step(client);
    return client->answer;
}
