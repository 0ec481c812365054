/* SPDX-License-Identifier: MIT */
#include <sluice.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/api_fixture.h"

/* include/sluice.h between nodes: what services do for a light client, store nodes, peers. */

#define CONTENT "/library/1/test/plain"

enum {
    WAIT_S = 60,
    TEXT_SIZE = 300,
    HASHES_MAX = 512,
    PAUSE_NS = 10 * 1000 * 1000
};

/* What the callbacks of one node leave behind, under the mutex. */
struct box {
    pthread_mutex_t mutex;
    size_t answers;
    enum sluice_result result; /* of the last answer, as the next three */
    uint32_t code;
    uint32_t peer_count;
    char text[TEXT_SIZE];
    size_t messages;
    uint8_t hashes[HASHES_MAX][SLUICE_HASH_BYTES]; /* of messages */
    size_t pages;
    size_t page_count; /* of the last page, as the next two */
    uint8_t page_hashes[SLUICE_PAGE_MAX][SLUICE_HASH_BYTES];
    uint8_t cursor[SLUICE_HASH_BYTES];
    bool has_cursor;
    size_t connected;
    size_t disconnected;
    char peer_id[64];
    char reason[TEXT_SIZE];
    struct sluice_node *node;
    size_t listed;
};

static void init(struct box *box)
{
    memset(box, 0, sizeof(*box));
    assert_int_equal(pthread_mutex_init(&box->mutex, NULL), 0);
}

static void pause_shortly(void)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    nanosleep(&pause, NULL);
}

/* Fails the test when the count does not become that in a minute. */
static void wait_for(struct box *box, const size_t *count, size_t at_least)
{
    struct timespec end;
    struct timespec now;
    bool is_there = false;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += WAIT_S;
    while (!is_there) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        assert_true(now.tv_sec < end.tv_sec);
        pthread_mutex_lock(&box->mutex);
        is_there = *count >= at_least;
        pthread_mutex_unlock(&box->mutex);
        if (!is_there) {
            pause_shortly();
        }
    }
}

static void take_answer(void *context, const struct sluice_answer *answer)
{
    struct box *box = context;
    pthread_mutex_lock(&box->mutex);
    box->answers++;
    box->result = answer->result;
    box->code = answer->code;
    box->peer_count = answer->peer_count;
    snprintf(box->text, sizeof(box->text), "%s", answer->text);
    pthread_mutex_unlock(&box->mutex);
}

static void take_message(void *context, struct sluice_envelope *envelope)
{
    struct box *box = context;
    struct sluice_envelope *kept = sluice_envelope_ref(envelope);
    assert_non_null(kept);
    pthread_mutex_lock(&box->mutex);
    memcpy(box->hashes[box->messages++ % HASHES_MAX], sluice_envelope_hash(kept).data,
            SLUICE_HASH_BYTES);
    pthread_mutex_unlock(&box->mutex);
    sluice_envelope_unref(kept);
}

static void take_page(void *context, const struct sluice_page *page)
{
    struct box *box = context;
    pthread_mutex_lock(&box->mutex);
    box->result = page->result;
    snprintf(box->text, sizeof(box->text), "%s", page->text);
    box->page_count = page->count;
    memcpy(box->page_hashes, page->hashes, page->count * SLUICE_HASH_BYTES);
    box->has_cursor = page->cursor != NULL;
    if (page->cursor != NULL) {
        memcpy(box->cursor, page->cursor, SLUICE_HASH_BYTES);
    }
    for (size_t i = 0; page->envelopes != NULL && i < page->count; i++) {
        assert_memory_equal(sluice_envelope_hash(page->envelopes[i]).data, box->page_hashes[i],
                SLUICE_HASH_BYTES);
    }
    box->pages++;
    pthread_mutex_unlock(&box->mutex);
}

static void count_peer(void *context, const struct sluice_peer *peer)
{
    struct box *box = context;
    assert_non_null(peer->id);
    box->listed++;
}

static void take_peer(void *context, const char *peer_id, bool is_connected, const char *reason)
{
    struct box *box = context;
    pthread_mutex_lock(&box->mutex);
    snprintf(box->peer_id, sizeof(box->peer_id), "%s", peer_id);
    snprintf(box->reason, sizeof(box->reason), "%s", reason);
    box->connected += is_connected;
    box->disconnected += !is_connected;
    struct sluice_node *node = box->node;
    pthread_mutex_unlock(&box->mutex);
    if (node != NULL) { /* a callback may wait for the node's other threads */
        enum sluice_result result = sluice_node_peers(node, count_peer, box);
        assert_true(result == SLUICE_OK || result == SLUICE_NOT_RUNNING);
    }
}

static struct sluice_node *started(const char *const values[], struct box *box)
{
    struct sluice_node *node = api_made_on_network(values);
    struct sluice_subscription *subscription = NULL;
    assert_int_equal(
            sluice_node_subscribe(node, API_TOPIC, take_message, box, &subscription), SLUICE_OK);
    api_start(node);
    return node;
}

static bool has_hash(struct box *box, const uint8_t *hash)
{
    bool has = false;
    pthread_mutex_lock(&box->mutex);
    for (size_t i = 0; i < box->messages && i < HASHES_MAX; i++) {
        has = has || memcmp(box->hashes[i], hash, SLUICE_HASH_BYTES) == 0;
    }
    pthread_mutex_unlock(&box->mutex);
    return has;
}

static void wait_hash(struct box *box, const uint8_t *hash)
{
    for (int i = 0; i < WAIT_S * 100 && !has_hash(box, hash); i++) {
        pause_shortly();
    }
    assert_true(has_hash(box, hash));
}

static int64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static struct sluice_message fresh_message(void)
{
    return (struct sluice_message){.pubsub_topic = API_TOPIC,
            .content_topic = CONTENT,
            .payload = api_bytes("from a light client"),
            .timestamp_ns = wall_ns()};
}

/* Has the outcome of one push or filter request in the box. */
static void push(struct sluice_node *node, struct box *box, const struct sluice_message *message,
        const struct sluice_service *service)
{
    size_t before = box->answers;
    assert_int_equal(sluice_node_push(node, message, service, take_answer, box), SLUICE_OK);
    wait_for(box, &box->answers, before + 1);
}

static void ask_filter(struct sluice_node *node, struct box *box, enum sluice_filter_verb verb)
{
    static const char *const topics[] = {CONTENT, "/library/1/other/plain"};
    struct sluice_filter_request request = {.verb = verb,
            .pubsub_topic = API_TOPIC,
            .content_topics = topics,
            .content_topic_count = 2};
    size_t before = box->answers;
    assert_int_equal(sluice_node_filter(node, &request, NULL, take_answer, box), SLUICE_OK);
    wait_for(box, &box->answers, before + 1);
}

/* Until the service has somebody to relay to. */
static void push_until_relayed(struct sluice_node *client, struct box *box, uint8_t *hash)
{
    struct sluice_message message;
    for (int i = 0; i < WAIT_S * 100; i++) {
        message = fresh_message();
        push(client, box, &message, NULL);
        if (box->code == 200) {
            break;
        }
        assert_int_equal(box->result, SLUICE_FAILED);
        pause_shortly();
    }
    assert_int_equal(box->result, SLUICE_OK);
    assert_int_equal(box->peer_count, 1);
    assert_int_equal(sluice_message_hash(client, &message, hash), SLUICE_OK);
}

static void a_light_client_publishes_and_is_pushed_to(void **state)
{
    static const char *const of_service[] = {"rate-limit", "0/1s", NULL};
    static struct box at_service;
    static struct box at_peer;
    static struct box at_client;
    struct sluice_subscription *pushed = NULL;
    struct sluice_interest interest = {.content_topic = CONTENT, .is_pushed = true};
    uint8_t hash[SLUICE_HASH_BYTES];
    (void)state;
    init(&at_service);
    init(&at_peer);
    init(&at_client);
    struct sluice_node *service = started(of_service, &at_service);
    char address[1024];
    snprintf(address, sizeof(address), "%s", api_address(service));
    const char *of_peer[] = {"staticnode", address, NULL};
    struct sluice_node *peer = started(of_peer, &at_peer);
    const char *of_client[] = {
            "relay", "false", "lightpushnode", address, "filternode", address, NULL};
    struct sluice_node *client = api_made_on_network(of_client);
    assert_int_equal(sluice_node_subscribe_to(client, &interest, take_message, &at_client, &pushed),
            SLUICE_OK);
    api_start(client);

    ask_filter(client, &at_client, SLUICE_FILTER_PING);
    assert_int_equal(at_client.code, 404);
    assert_int_equal(at_client.result, SLUICE_FAILED);
    ask_filter(client, &at_client, SLUICE_FILTER_SUBSCRIBE);
    assert_int_equal(at_client.result, SLUICE_OK);
    assert_int_equal(at_client.code, 200);
    ask_filter(client, &at_client, SLUICE_FILTER_PING);
    assert_int_equal(at_client.code, 200);

    push_until_relayed(client, &at_client, hash);
    wait_hash(&at_service, hash);
    wait_hash(&at_peer, hash);
    wait_hash(&at_client, hash);

    /* By name as well; the same message again is refused by the service. */
    struct sluice_service named = {.peer = address, .timeout_ms = WAIT_S * 1000};
    struct sluice_message message = fresh_message();
    push(client, &at_client, &message, &named);
    assert_int_equal(at_client.code, 200);
    push(client, &at_client, &message, &named);
    assert_int_equal(at_client.code, 420);
    assert_int_equal(at_client.result, SLUICE_FAILED);

    ask_filter(client, &at_client, SLUICE_FILTER_UNSUBSCRIBE);
    assert_int_equal(at_client.code, 200);
    ask_filter(client, &at_client, SLUICE_FILTER_PING);
    assert_int_equal(at_client.code, 404);
    ask_filter(client, &at_client, SLUICE_FILTER_UNSUBSCRIBE_ALL);
    api_destroy(&client);
    api_destroy(&peer);
    api_destroy(&service);
}

/* More than event-hold-limit may hold: what is pushed beyond it is counted, and the node goes on. */
static void what_is_pushed_is_bounded(void **state)
{
    static struct box at_service;
    static struct box at_client;
    struct sluice_subscription *pushed = NULL;
    struct sluice_interest interest = {.is_pushed = true};
    uint8_t hash[SLUICE_HASH_BYTES];
    (void)state;
    init(&at_service);
    init(&at_client);
    struct sluice_node *service = started(NULL, &at_service);
    const char *of_client[] = {
            "relay", "false", "filternode", api_address(service), "event-hold-limit", "1KiB", NULL};
    struct sluice_node *client = api_made_on_network(of_client);
    assert_int_equal(sluice_node_subscribe_to(client, &interest, take_message, &at_client, &pushed),
            SLUICE_OK);
    api_start(client);
    ask_filter(client, &at_client, SLUICE_FILTER_SUBSCRIBE);
    assert_int_equal(at_client.code, 200);
    char large[2000] = {0};
    struct sluice_message message = fresh_message();
    message.payload = (struct sluice_bytes){(const uint8_t *)large, sizeof(large)};
    assert_int_equal(sluice_node_publish(service, &message, NULL, NULL), SLUICE_OK);
    api_wait_counter(client, "sluice_event_hold_refused_total", 1);
    message = fresh_message();
    assert_int_equal(sluice_message_hash(service, &message, hash), SLUICE_OK);
    assert_int_equal(sluice_node_publish(service, &message, NULL, NULL), SLUICE_OK);
    wait_hash(&at_client, hash);
    assert_int_equal(at_client.messages, 1);
    sluice_subscription_end(&pushed);
    api_destroy(&client);
    api_destroy(&service);
}

static void query(struct sluice_node *node, struct box *box, const struct sluice_query *wanted,
        const char *peer)
{
    struct sluice_service service = {.peer = peer, .timeout_ms = WAIT_S * 1000};
    size_t before = box->pages;
    assert_int_equal(sluice_node_query(node, wanted, &service, take_page, box), SLUICE_OK);
    wait_for(box, &box->pages, before + 1);
}

static void fill(struct sluice_node *store, size_t count, uint8_t hashes[][SLUICE_HASH_BYTES])
{
    int64_t base_ns = wall_ns();
    for (size_t i = 0; i < count; i++) {
        struct sluice_message message = fresh_message();
        message.timestamp_ns = base_ns + (int64_t)i;
        assert_int_equal(sluice_message_hash(store, &message, hashes[i]), SLUICE_OK);
        assert_int_equal(sluice_node_publish(store, &message, NULL, NULL), SLUICE_OK);
    }
    api_wait_counter(store, API_STAGE("archive", "delivered", "delivered"), count);
}

static void a_store_node_is_asked_page_after_page(void **state)
{
    enum {
        COUNT = 25
    };
    static const char *const of_store[] = {
            "store", "true", "archive", "memory", "rate-limit", "0/1s", NULL};
    static const char *const of_others[] = {"relay", "false", NULL};
    static struct box at_store;
    static struct box box;
    static uint8_t hashes[COUNT][SLUICE_HASH_BYTES];
    struct sluice_query wanted = {0};
    (void)state;
    init(&at_store);
    init(&box);
    struct sluice_node *store = started(of_store, &at_store);
    struct sluice_node *client = api_made_on_network(of_others);
    char address[1024];
    snprintf(address, sizeof(address), "%s", api_address(store));
    api_start(client);
    fill(store, COUNT, hashes);
    query(client, &box, &wanted, address);
    assert_int_equal(box.result, SLUICE_OK);
    assert_int_equal(box.page_count, 20);
    assert_memory_equal(box.page_hashes, hashes, 20 * SLUICE_HASH_BYTES);
    assert_true(box.has_cursor);
    wanted.cursor = box.cursor;
    query(client, &box, &wanted, address);
    assert_int_equal(box.page_count, 5);
    assert_memory_equal(box.page_hashes, hashes[20], 5 * SLUICE_HASH_BYTES);
    assert_false(box.has_cursor);

    wanted = (struct sluice_query){
            .hashes = hashes[3], .hash_count = 2, .is_without_messages = true};
    query(client, &box, &wanted, address);
    assert_int_equal(box.page_count, 2);
    assert_memory_equal(box.page_hashes, hashes[3], 2 * SLUICE_HASH_BYTES);

    /* What goes wrong is told. */
    uint8_t unknown[SLUICE_HASH_BYTES] = {1};
    wanted = (struct sluice_query){.cursor = unknown};
    query(client, &box, &wanted, address);
    assert_int_equal(box.result, SLUICE_FAILED);
    assert_non_null(strstr(box.text, "BAD_REQUEST"));
    wanted = (struct sluice_query){0};
    struct sluice_node *other = api_made_on_network(of_others);
    char nothing[1024];
    snprintf(nothing, sizeof(nothing), "%s", api_address(other));
    api_start(other);
    query(client, &box, &wanted, nothing);
    assert_int_equal(box.result, SLUICE_FAILED);
    assert_string_equal(box.text, "no protocol in common");
    api_destroy(&other);
    query(client, &box, &wanted, nothing);
    assert_int_equal(box.result, SLUICE_FAILED);
    struct sluice_service malformed = {.peer = "/ip4/127.0.0.1/tcp/60000"};
    assert_int_equal(
            sluice_node_query(client, &wanted, &malformed, take_page, &box), SLUICE_BAD_ARGUMENT);
    api_destroy(&client);
    api_destroy(&store);
}

static void has_neighbour(void *context, const struct sluice_peer *peer)
{
    size_t *count = context;
    *count += peer->mesh_topic_count;
}

static void count_decided(
        void *context, enum sluice_outcome outcome, size_t peer_count, const char *reason)
{
    (void)reason;
    assert_int_equal(outcome, SLUICE_SENT);
    assert_int_equal(peer_count, 1);
    atomic_fetch_add((atomic_size_t *)context, 1);
}

/* A program that says one thing and ends: what it was told is on its way does arrive. */
static void what_is_published_last_before_a_stop_arrives(void **state)
{
    enum {
        ROUNDS = 40
    };
    static struct box at_receiver;
    static struct box at_sender;
    static atomic_size_t decided;
    uint8_t hash[SLUICE_HASH_BYTES];
    (void)state;
    init(&at_receiver);
    struct sluice_node *receiver = started(NULL, &at_receiver);
    const char *values[] = {"staticnode", api_address(receiver), NULL};
    for (int i = 0; i < ROUNDS; i++) {
        init(&at_sender);
        struct sluice_node *sender = started(values, &at_sender);
        for (size_t neighbours = 0; neighbours == 0;) {
            pause_shortly();
            assert_int_equal(sluice_node_peers(sender, has_neighbour, &neighbours), SLUICE_OK);
        }
        pause_shortly(); /* the node's threads sleep again */
        struct sluice_message message = fresh_message();
        assert_int_equal(sluice_message_hash(sender, &message, hash), SLUICE_OK);
        assert_int_equal(sluice_node_publish(sender, &message, count_decided, &decided), SLUICE_OK);
        if (i % 2 == 0) { /* else even before it is decided */
            api_wait_count(&decided, (size_t)i + 1);
        }
        api_destroy(&sender);
        wait_hash(&at_receiver, hash);
    }
    api_destroy(&receiver);
}

static void what_no_service_can_take_is_refused(void **state)
{
    static const char *const values[] = {"relay", "false", "lightpush-limit", "1", NULL};
    static struct box box;
    struct sluice_service malformed = {.peer = "somewhere"};
    struct sluice_filter_request request = {.verb = SLUICE_FILTER_SUBSCRIBE};
    (void)state;
    init(&box);
    struct sluice_node *node = api_made_on_network(values);
    api_start(node);
    struct sluice_message message = fresh_message();
    assert_int_equal(
            sluice_node_push(node, &message, &malformed, take_answer, &box), SLUICE_BAD_ARGUMENT);
    push(node, &box, &message, NULL);
    assert_int_equal(box.code, 503);
    message.content_topic = NULL;
    assert_int_equal(
            sluice_node_push(node, &message, NULL, take_answer, &box), SLUICE_BAD_ARGUMENT);
    assert_int_equal(
            sluice_node_filter(node, &request, NULL, take_answer, &box), SLUICE_BAD_ARGUMENT);
    request.verb = (enum sluice_filter_verb)7;
    assert_int_equal(
            sluice_node_filter(node, &request, NULL, take_answer, &box), SLUICE_BAD_ARGUMENT);
    ask_filter(node, &box, SLUICE_FILTER_SUBSCRIBE);
    assert_int_equal(box.code, 503);
    assert_int_equal(sluice_node_dial(node, "/ip4/127.0.0.1/tcp/60000", take_answer, &box),
            SLUICE_BAD_ARGUMENT);
    assert_int_equal(sluice_node_disconnect(node, "nobody"), SLUICE_BAD_ARGUMENT);
    assert_int_equal(box.answers, 2);
    api_destroy(&node);
}

/* Peers. */

struct wanted_peer {
    const char *id;
    const char *address;
    size_t found;
};

static void look_for(void *context, const struct sluice_peer *peer)
{
    struct wanted_peer *wanted = context;
    if (strcmp(peer->id, wanted->id) != 0 || !peer->is_connected) {
        return;
    }
    wanted->found++;
    assert_true(peer->is_outbound);
    assert_string_equal(peer->address, wanted->address);
}

static size_t count_connected(struct sluice_node *node, const char *id, const char *address)
{
    struct wanted_peer wanted = {.id = id, .address = address};
    assert_int_equal(sluice_node_peers(node, look_for, &wanted), SLUICE_OK);
    return wanted.found;
}

static void peers_are_dialled_listed_and_let_go(void **state)
{
    static struct box at_node;
    static struct box at_peer;
    char id[64];
    char address[1024];
    (void)state;
    init(&at_node);
    init(&at_peer);
    struct sluice_node *peer = started(NULL, &at_peer);
    struct sluice_node *node = api_made_on_network(NULL);
    at_node.node = node;
    assert_int_equal(sluice_node_set_peer_callback(node, NULL, &at_node), SLUICE_BAD_ARGUMENT);
    assert_int_equal(sluice_node_set_peer_callback(node, take_peer, &at_node), SLUICE_OK);
    assert_int_equal(sluice_node_set_peer_callback(node, take_peer, &at_node), SLUICE_BAD_ARGUMENT);
    assert_int_equal(sluice_node_set_peer_callback(peer, take_peer, &at_peer), SLUICE_BAD_ARGUMENT);
    api_start(node);
    assert_int_equal(sluice_node_peer_id(peer, id, 10), SLUICE_LIMIT_REACHED);
    assert_int_equal(sluice_node_peer_id(peer, id, sizeof(id)), SLUICE_OK);
    snprintf(address, sizeof(address), "%s", api_address(peer));
    assert_non_null(strstr(address, id));

    assert_int_equal(sluice_node_dial(node, address, take_answer, &at_node), SLUICE_OK);
    wait_for(&at_node, &at_node.answers, 1);
    assert_int_equal(at_node.result, SLUICE_OK);
    assert_string_equal(at_node.text, "");
    wait_for(&at_node, &at_node.connected, 1);
    assert_string_equal(at_node.peer_id, id);
    assert_int_equal(count_connected(node, id, address), 1);
    /* Again: it stands already. */
    assert_int_equal(sluice_node_dial(node, address, take_answer, &at_node), SLUICE_OK);
    wait_for(&at_node, &at_node.answers, 2);
    assert_int_equal(at_node.result, SLUICE_OK);

    assert_int_equal(sluice_node_disconnect(node, id), SLUICE_OK);
    wait_for(&at_node, &at_node.disconnected, 1);
    assert_string_not_equal(at_node.reason, "");
    assert_int_equal(count_connected(node, id, address), 0);
    api_destroy(&peer);
    assert_int_equal(sluice_node_dial(node, address, take_answer, &at_node), SLUICE_OK);
    wait_for(&at_node, &at_node.answers, 3);
    assert_int_not_equal(at_node.result, SLUICE_OK);
    assert_string_not_equal(at_node.text, "");
    assert_int_equal(at_node.connected, 1);
    api_destroy(&node);
}

/* A port that takes connections and says nothing. */
static int open_silent_port(char *address, size_t size)
{
    struct sockaddr_in name = {
            .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = 0};
    socklen_t length = sizeof(name);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &length), 0);
    snprintf(address, size,
            "/ip4/127.0.0.1/tcp/%u/p2p/16Uiu2HAm4v86W3bmT1BiH6oSPzcsSr24iDQpSN5Qa992BCjjwgrD",
            ntohs(name.sin_port));
    return fd;
}

static void stop_ends_what_is_under_way(void **state)
{
    enum {
        ROUNDS = 5,
        CALLS = 4
    };
    char address[256];
    int fd = open_silent_port(address, sizeof(address));
    struct sluice_service silent = {.peer = address, .timeout_ms = 600 * 1000};
    struct sluice_filter_request ping = {.verb = SLUICE_FILTER_PING};
    struct sluice_query wanted = {0};
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        static struct box box;
        init(&box);
        struct sluice_node *node = api_made_on_network(NULL);
        struct sluice_message message = fresh_message();
        api_start(node);
        assert_int_equal(sluice_node_push(node, &message, &silent, take_answer, &box), SLUICE_OK);
        assert_int_equal(sluice_node_filter(node, &ping, &silent, take_answer, &box), SLUICE_OK);
        assert_int_equal(sluice_node_dial(node, address, take_answer, &box), SLUICE_OK);
        assert_int_equal(sluice_node_query(node, &wanted, &silent, take_page, &box), SLUICE_OK);
        for (int n = 0; n < i; n++) { /* from at once to after a moment */
            pause_shortly();
        }
        assert_int_equal(sluice_node_stop(node), SLUICE_OK);
        assert_int_equal(box.answers + box.pages, CALLS);
        assert_int_not_equal(box.result, SLUICE_OK);
        api_destroy(&node);
    }
    assert_int_equal(close(fd), 0);
}

static void a_silent_service_is_given_up(void **state)
{
    static struct box box;
    char address[256];
    int fd = open_silent_port(address, sizeof(address));
    struct sluice_service silent = {.peer = address, .timeout_ms = 50};
    struct sluice_query wanted = {0};
    (void)state;
    init(&box);
    struct sluice_node *node = api_made_on_network(NULL);
    struct sluice_message message = fresh_message();
    api_start(node);
    push(node, &box, &message, &silent);
    assert_int_equal(box.code, 503);
    assert_int_equal(sluice_node_query(node, &wanted, &silent, take_page, &box), SLUICE_OK);
    wait_for(&box, &box.pages, 1);
    assert_int_equal(box.result, SLUICE_TIMED_OUT);
    api_destroy(&node);
    assert_int_equal(close(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_light_client_publishes_and_is_pushed_to),
            cmocka_unit_test(what_is_pushed_is_bounded),
            cmocka_unit_test(a_store_node_is_asked_page_after_page),
            cmocka_unit_test(what_is_published_last_before_a_stop_arrives),
            cmocka_unit_test(what_no_service_can_take_is_refused),
            cmocka_unit_test(peers_are_dialled_listed_and_let_go),
            cmocka_unit_test(stop_ends_what_is_under_way),
            cmocka_unit_test(a_silent_service_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
