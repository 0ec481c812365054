/* SPDX-License-Identifier: MIT */
#include "tools/sluice/service_client.h"

#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "net/protocols/exchange.h"
#include "tools/sluice/net_host.h"

struct service_client {
    struct net_host *host;
    struct identity *identity;
    sem_t over; /* of each step */
    bool is_open;
    enum status status;
    uint64_t connection;
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
        client->connection = connection_id(connection);
        finish_step(client, STATUS_OK);
    }
}

static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    struct service_client *client = context;
    (void)connection;
    (void)reason;
    if (!client->is_open) {
        client->is_open = true;
        finish_step(client, STATUS_CLOSED);
    }
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    (void)connection;
    if (status != STATUS_OK) {
        finish_step(context, status);
    }
}

static enum status wait_step(struct service_client *client)
{
    while (sem_wait(&client->over) != 0) {
    }
    return client->status;
}

static enum status connect_to(struct service_client *client, const char *address)
{
    static const struct switch_observer observer = {.disconnected = on_disconnected};
    struct net_switch *net_switch = net_host_switch(client->host);
    struct switch_dial dial = {
            .timeout_ms = client->timeout_ms, .done = on_dialled, .context = client};
    enum status status = multiaddr_parse(&dial.address, span_of_text(address));
    if (status == STATUS_OK) {
        status = switch_add_observer(net_switch, &observer, client);
    }
    if (status == STATUS_OK) {
        status = net_host_start(client->host);
    }
    if (status == STATUS_OK) {
        status = switch_dial(net_switch, &dial);
    }
    return status == STATUS_OK ? wait_step(client) : status;
}

enum status service_client_open(struct service_client **out, const struct options *options,
        const char *command, const char *address)
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
    if (status == STATUS_OK) {
        step = "connect";
        status = connect_to(client, address);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "sluice %s: %s: %s\n", command, step, status_text(status));
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
            net_host_switch(client->host), client->connection, ask, client);
    if (status != STATUS_OK) {
        return (struct service_answer){.status = status};
    }
    (void)wait_step(client);
    return client->answer;
}
