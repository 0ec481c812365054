/* SPDX-License-Identifier: MIT */

/*
 * Threads make every call of the library that another node or thread takes part in, callbacks call
 * back, and the nodes stop in the middle of it: each call that was taken is told of once, and nothing
 * comes after the stop. Then many nodes, one after the other and several at a time.
 */

#include <sluice.h>

#include <pthread.h>
#include <stdio.h>

#include "tests/support/api_fixture.h"

enum {
    CALLERS = 3,
    ROUNDS = 4,
    TOLD_BEFORE_STOP = 60,
    NODES = 200,
    NODES_AT_A_TIME = 4
};

#define CONTENT "/test/1/api/plain"

struct life {
    struct sluice_node *node;
    char service[1024]; /* address of the node that serves */
    atomic_size_t taken;
    atomic_size_t told;
    atomic_size_t messages;
    atomic_bool is_stopped;
};

static void tell(struct life *life)
{
    assert_false(atomic_load(&life->is_stopped));
    atomic_fetch_add(&life->told, 1);
}

static void take_answer(void *context, const struct sluice_answer *answer)
{
    assert_non_null(answer->text);
    tell(context);
}

static bool count_taken(struct life *life, enum sluice_result result)
{
    assert_true(
            result == SLUICE_OK || result == SLUICE_LIMIT_REACHED || result == SLUICE_NOT_RUNNING);
    if (result == SLUICE_OK) {
        atomic_fetch_add(&life->taken, 1);
    }
    return result != SLUICE_NOT_RUNNING;
}

static void visit(void *context, const struct sluice_peer *peer)
{
    assert_non_null(context);
    assert_non_null(peer->address);
}

static void take_page(void *context, const struct sluice_page *page);

static bool ask_page(struct life *life, const uint8_t *cursor, const char *peer)
{
    struct sluice_service service = {.peer = peer};
    struct sluice_query query = {.limit = 3, .cursor = cursor};
    return count_taken(life,
            sluice_node_query(life->node, &query, peer == NULL ? NULL : &service, take_page, life));
}

/* Asks for the next page, and for something that the other threads answer. */
static void take_page(void *context, const struct sluice_page *page)
{
    struct life *life = context;
    for (size_t i = 0; i < page->count; i++) {
        struct sluice_envelope *kept = sluice_envelope_ref(page->envelopes[i]);
        assert_int_equal(sluice_envelope_hash(kept).size, SLUICE_HASH_BYTES);
        sluice_envelope_unref(kept);
    }
    if (page->cursor != NULL) {
        (void)ask_page(life, page->cursor, NULL);
    }
    enum sluice_result result = sluice_node_peers(life->node, visit, life);
    assert_true(result == SLUICE_OK || result == SLUICE_NOT_RUNNING);
    tell(life);
}

static void take_message(void *context, struct sluice_envelope *envelope)
{
    struct life *life = context;
    assert_false(atomic_load(&life->is_stopped));
    assert_int_equal(sluice_envelope_hash(envelope).size, SLUICE_HASH_BYTES);
    atomic_fetch_add(&life->messages, 1);
}

static void take_peer(void *context, const char *peer_id, bool is_connected, const char *reason)
{
    struct life *life = context;
    (void)is_connected;
    assert_false(atomic_load(&life->is_stopped));
    assert_non_null(peer_id);
    assert_non_null(reason);
}

static bool push(struct life *life)
{
    struct sluice_message message = api_message("pushed");
    struct sluice_service service = {.peer = life->service};
    return count_taken(life, sluice_node_push(life->node, &message, &service, take_answer, life));
}

static bool filter(struct life *life, enum sluice_filter_verb verb)
{
    static const char *const topics[] = {CONTENT};
    struct sluice_service service = {.peer = life->service};
    struct sluice_filter_request request = {.verb = verb,
            .pubsub_topic = API_TOPIC,
            .content_topics = topics,
            .content_topic_count = 1};
    return count_taken(life, sluice_node_filter(life->node, &request, &service, take_answer, life));
}

/* A subscription of a moment, of both kinds. */
static bool subscribe(struct life *life, bool is_pushed)
{
    struct sluice_interest interest = {.content_topic = CONTENT, .is_pushed = is_pushed};
    struct sluice_subscription *subscription = NULL;
    enum sluice_result result =
            sluice_node_subscribe_to(life->node, &interest, take_message, life, &subscription);
    sluice_subscription_end(&subscription);
    return result == SLUICE_OK;
}

static bool read_texts(const struct life *life)
{
    char *text = NULL;
    assert_int_equal(sluice_node_metrics(&text, life->node), SLUICE_OK);
    sluice_text_destroy(&text);
    assert_int_equal(sluice_node_health(&text, life->node), SLUICE_OK);
    sluice_text_destroy(&text);
    return true;
}

static void *call(void *context)
{
    struct life *life = context;
    struct sluice_message message = api_message("published");
    bool goes_on = true;
    while (goes_on) {
        (void)sluice_node_publish(life->node, &message, NULL, NULL);
        goes_on = ask_page(life, NULL, NULL) && ask_page(life, NULL, life->service) && push(life) &&
                  filter(life, SLUICE_FILTER_SUBSCRIBE) && filter(life, SLUICE_FILTER_PING) &&
                  subscribe(life, true) && subscribe(life, false) && read_texts(life) &&
                  count_taken(life, sluice_node_dial(life->node, life->service, take_answer, life));
    }
    return NULL;
}

static struct sluice_node *made_client(struct life *life)
{
    static const char *const values[] = {
            "archive", "memory", "store", "true", "call-limit", "32", NULL};
    struct sluice_subscription *subscription = NULL;
    struct sluice_interest pushed = {.is_pushed = true};
    struct sluice_node *node = api_made_on_network(values);
    life->node = node;
    assert_int_equal(sluice_node_set_peer_callback(node, take_peer, life), SLUICE_OK);
    assert_int_equal(
            sluice_node_subscribe(node, API_TOPIC, take_message, life, &subscription), SLUICE_OK);
    assert_int_equal(
            sluice_node_subscribe_to(node, &pushed, take_message, life, &subscription), SLUICE_OK);
    api_start(node);
    return node;
}

static void live(const char *service)
{
    struct life life = {.node = NULL};
    pthread_t threads[CALLERS];
    snprintf(life.service, sizeof(life.service), "%s", service);
    struct sluice_node *node = made_client(&life);
    for (size_t i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, call, &life), 0);
    }
    api_wait_count(&life.told, TOLD_BEFORE_STOP);
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    atomic_store(&life.is_stopped, true);
    for (size_t i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&life.taken), atomic_load(&life.told));
    api_destroy(&node);
}

static void every_call_is_told_of_once_and_nothing_comes_after_the_stop(void **state)
{
    static const char *const values[] = {
            "archive", "memory", "store", "true", "rate-limit", "0/1s", NULL};
    struct sluice_node *service = api_made_on_network(values);
    char address[1024];
    (void)state;
    snprintf(address, sizeof(address), "%s", api_address(service));
    api_start(service);
    for (int i = 0; i < ROUNDS; i++) {
        live(address);
    }
    api_destroy(&service);
}

static void open_and_close(size_t round)
{
    struct sluice_node *nodes[NODES_AT_A_TIME];
    struct sluice_message message = api_message("short");
    for (size_t i = 0; i < NODES_AT_A_TIME; i++) {
        nodes[i] = i % 2 == 0 ? api_made(NULL) : api_made_on_network(NULL);
        if (round % 3 != 0) { /* some never start */
            api_start(nodes[i]);
            (void)sluice_node_publish(nodes[i], &message, NULL, NULL);
        }
    }
    for (size_t i = 0; i < NODES_AT_A_TIME; i++) {
        if (round % 2 == 0) {
            assert_int_equal(sluice_node_stop(nodes[i]), SLUICE_OK);
        }
        api_destroy(&nodes[i]);
    }
}

static void nodes_open_and_close_by_the_hundred(void **state)
{
    (void)state;
    for (size_t i = 0; i < NODES / NODES_AT_A_TIME; i++) {
        open_and_close(i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_call_is_told_of_once_and_nothing_comes_after_the_stop),
            cmocka_unit_test(nodes_open_and_close_by_the_hundred),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
