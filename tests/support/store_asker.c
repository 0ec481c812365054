/* SPDX-License-Identifier: MIT */
#include "tests/support/store_asker.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "net/protocols/exchange.h"
#include "net/protocols/store_message.h"
#include "node/network.h"
#include "tests/support/require.h"

enum {
    ANSWER_MAX = 64 * 1024 * 1024
};

struct visit {
    sem_t seen;
    uint64_t connection;
};

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) {
    }
    sem_destroy(semaphore);
}

static void note_connection(void *context, struct connection *connection)
{
    struct visit *visit = context;
    visit->connection = connection_id(connection);
    sem_post(&visit->seen);
}

uint64_t store_asker_connection(struct live_node *live)
{
    struct visit visit = {.connection = 0};
    live_node_wait_metric(live, METRIC_NET_CONNECTIONS_OUT, 1);
    sem_init(&visit.seen, 0, 0);
    switch_visit_connections(network_switch(node_network(live->node)), note_connection, &visit);
    wait_for(&visit.seen);
    return visit.connection;
}

struct call {
    struct exchange_call exchange;
    sem_t over;
    struct store_asker_page *page;
};

static void keep(struct store_asker_page *page, struct span hash)
{
    REQUIRE(hash.length == MESSAGE_HASH_BYTES);
    page->hashes = realloc(page->hashes, (page->count + 1) * sizeof(*page->hashes));
    REQUIRE(page->hashes != NULL);
    memcpy(page->hashes[page->count++], hash.bytes, MESSAGE_HASH_BYTES);
}

static void on_answered(void *context, enum status status, const char *protocol, struct span answer)
{
    struct call *call = context;
    struct store_asker_page *page = call->page;
    struct store_answer_view view;
    struct store_entry entry;
    (void)protocol;
    if (status == STATUS_OK && store_answer_read(&view, answer) == STATUS_OK) {
        page->code = view.code;
        page->has_cursor = view.cursor.length == MESSAGE_HASH_BYTES;
        if (page->has_cursor) {
            memcpy(page->cursor, view.cursor.bytes, MESSAGE_HASH_BYTES);
        }
        while (store_answer_next(&view, &entry, &status)) {
            keep(page, entry.hash);
        }
        REQUIRE(status == STATUS_OK);
    }
    sem_post(&call->over);
}

static void ask(void *context, struct connection *connection)
{
    struct call *call = context;
    if (connection == NULL || exchange_call(connection, &call->exchange) != STATUS_OK) {
        sem_post(&call->over);
    }
}

void store_asker_ask(
        struct live_node *live, const struct archive_query *query, struct store_asker_page *page)
{
    static const char *const protocols[] = {STORE_PROTOCOL_ID};
    struct store_request request = {.request_id = span_of_text("live"), .query = *query};
    uint8_t *bytes = NULL;
    size_t length = 0;
    *page = (struct store_asker_page){0};
    REQUIRE(store_request_write(&bytes, &length, &request) == STATUS_OK);
    struct call call = {.exchange = {.protocols = protocols,
                                .protocol_count = 1,
                                .request = span_of(bytes, length),
                                .answer_max = ANSWER_MAX,
                                .timeout_ms = LIVE_NODE_WAIT_S * 1000,
                                .done = on_answered},
            .page = page};
    call.exchange.context = &call;
    sem_init(&call.over, 0, 0);
    REQUIRE(switch_run_on_connection(network_switch(node_network(live->node)),
                    store_asker_connection(live), ask, &call) == STATUS_OK);
    wait_for(&call.over);
    memory_free(bytes);
}
