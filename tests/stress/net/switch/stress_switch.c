/* SPDX-License-Identifier: MIT */

/*
 * A switch on several io threads: threads that write to streams of one connection while others
 * connect and leave.
 */

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tools/sluice/net_host.h"

enum {
    WRITERS = 4,
    STREAMS_A_WRITER = 4,
    STREAMS = WRITERS * STREAMS_A_WRITER,
    WRITES = 300,
    WRITE_MAX = 3000,
    SERVER_THREADS = 3,
    CLIENT_THREADS = 2,
    COMERS = 4,
    VISITS = 25
};

#define CHECK_PROTOCOL_ID "/test/check"

/* The byte at an offset of the stream of that number. */
static uint8_t byte_at(size_t stream, size_t offset)
{
    return (uint8_t)(offset * 31 + (offset >> 8) + stream * 7);
}

static atomic_size_t wrong_bytes;
static atomic_size_t received_bytes;
static atomic_size_t whole_streams;

/* The first byte on a stream is its number. */
struct checker {
    bool has_number;
    size_t number;
    size_t offset;
    uint8_t place[1000];
};

static enum status on_opened(struct stream *stream)
{
    struct checker *checker = memory_allocate_zeroed(sizeof(*checker));
    stream_set_context(stream, checker);
    return checker == NULL ? STATUS_NO_MEMORY : STATUS_OK;
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct checker *checker = stream_context(stream);
    *to = checker->place;
    return wanted < sizeof(checker->place) ? wanted : sizeof(checker->place);
}

static void on_commit(struct stream *stream, size_t n)
{
    struct checker *checker = stream_context(stream);
    size_t i = 0;
    stream_consumed(stream, n);
    if (!checker->has_number) {
        checker->has_number = true;
        checker->number = checker->place[0];
        i = 1;
    }
    for (; i < n; i++) {
        if (checker->place[i] != byte_at(checker->number, checker->offset++)) {
            atomic_fetch_add(&wrong_bytes, 1);
        }
    }
}

static void on_remote_closed(struct stream *stream)
{
    struct checker *checker = stream_context(stream);
    atomic_fetch_add(&received_bytes, checker->offset);
    atomic_fetch_add(&whole_streams, 1);
    stream_close_write(stream);
}

static void on_closed(struct stream *stream, enum status reason)
{
    (void)reason;
    memory_free(stream_context(stream));
}

static const struct stream_events check_events = {
        .opened = on_opened,
        .reserve = on_reserve,
        .commit = on_commit,
        .remote_closed = on_remote_closed,
        .closed = on_closed,
};

/* The client's side: where the streams are, for the writing threads. */
static struct stream_address addresses[STREAMS];
static atomic_size_t opened_streams;
static atomic_size_t closed_streams;
static sem_t all_open;

static enum status on_source_opened(struct stream *stream)
{
    size_t number = (size_t)(uintptr_t)stream_context(stream);
    uint8_t first = (uint8_t)number;
    addresses[number] = stream_address(stream);
    enum status status = stream_write_copy(stream, span_of(&first, 1));
    if (atomic_fetch_add(&opened_streams, 1) + 1 == STREAMS) {
        sem_post(&all_open);
    }
    return status;
}

static void on_source_closed(struct stream *stream, enum status reason)
{
    (void)stream;
    (void)reason;
    atomic_fetch_add(&closed_streams, 1);
}

static const struct stream_events source_events = {
        .opened = on_source_opened, .closed = on_source_closed};

static void open_streams(void *context, struct connection *connection)
{
    static const char *const ids[] = {CHECK_PROTOCOL_ID};
    (void)context;
    for (size_t i = 0; i < STREAMS; i++) {
        struct stream_request request = {.protocols = ids,
                .protocol_count = 1,
                .events = &source_events,
                .context = (void *)(uintptr_t)i};
        if (connection_open_stream(connection, &request, NULL) != STATUS_OK) {
            abort();
        }
    }
}

struct posted {
    struct stream_write write;
    uint8_t bytes[WRITE_MAX];
};

static atomic_size_t failed_writes;
static atomic_size_t done_writes;

/* The pieces are borrowed from the write: it goes only when the last of them has left. */
static void release_posted(void *owner)
{
    free(owner);
}

static void on_write_done(struct stream_write *write, enum status status)
{
    atomic_fetch_add(&done_writes, 1);
    if (status != STATUS_OK) {
        atomic_fetch_add(&failed_writes, 1);
        free(write);
    } else if (write->piece_count == 0) {
        free(write);
    }
}

struct writer {
    pthread_t thread;
    struct net_switch *net_switch;
    size_t first_stream;
    size_t sent_bytes;
};

static void post(struct writer *writer, size_t stream, size_t *offset, size_t length, bool closes)
{
    struct posted *posted = calloc(1, sizeof(*posted));
    for (size_t i = 0; i < length; i++) {
        posted->bytes[i] = byte_at(stream, *offset + i);
    }
    *offset += length;
    posted->write.to = addresses[stream];
    posted->write.closes_write = closes;
    posted->write.done = on_write_done;
    if (length > 0) {
        posted->write.piece_count = 1;
        posted->write.pieces[0] = (struct muxer_piece){.bytes = span_of(posted->bytes, length),
                .release = release_posted,
                .owner = posted};
    }
    writer->sent_bytes += length;
    switch_post_write(writer->net_switch, &posted->write);
}

static void *run_writer(void *argument)
{
    struct writer *writer = argument;
    size_t offsets[STREAMS_A_WRITER] = {0};
    uint32_t random = (uint32_t)writer->first_stream + 1;
    for (size_t i = 0; i < WRITES; i++) {
        for (size_t j = 0; j < STREAMS_A_WRITER; j++) {
            random = random * 1664525U + 1013904223U;
            post(writer, writer->first_stream + j, &offsets[j], (random >> 8) % WRITE_MAX + 1,
                    false);
        }
    }
    for (size_t j = 0; j < STREAMS_A_WRITER; j++) {
        post(writer, writer->first_stream + j, &offsets[j], 0, true);
    }
    return NULL;
}

/* A peer that comes and leaves again and again. */
struct comer {
    pthread_t thread;
    struct multiaddr address;
    struct net_host *host;
    struct identity *identity;
    sem_t answered;
    uint64_t connection;
    enum status status;
};

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    struct comer *comer = context;
    comer->status = status;
    comer->connection = connection;
    sem_post(&comer->answered);
}

static enum status dial_and_wait(struct comer *comer)
{
    struct switch_dial dial = {
            .address = comer->address, .done = on_dialled, .context = comer, .timeout_ms = 60000};
    enum status status = switch_dial(net_host_switch(comer->host), &dial);
    if (status == STATUS_OK) {
        sem_wait(&comer->answered);
        status = comer->status;
    }
    return status;
}

static void init_comer(struct comer *comer, const struct multiaddr *address, unsigned threads)
{
    comer->address = *address;
    sem_init(&comer->answered, 0, 0);
    assert_int_equal(identity_create(&comer->identity, KEY_TYPE_ED25519), STATUS_OK);
    struct net_host_options options = {.identity = comer->identity, .io_threads = threads};
    assert_int_equal(net_host_create(&comer->host, &options), STATUS_OK);
    assert_int_equal(net_host_start(comer->host), STATUS_OK);
}

static void fini_comer(struct comer *comer)
{
    net_host_destroy(&comer->host);
    identity_destroy(&comer->identity);
    sem_destroy(&comer->answered);
}

static atomic_size_t failed_visits;

static void *run_comer(void *argument)
{
    struct comer *comer = argument;
    for (int i = 0; i < VISITS; i++) {
        if (dial_and_wait(comer) != STATUS_OK) {
            atomic_fetch_add(&failed_visits, 1);
        }
        switch_close_connection(net_host_switch(comer->host), comer->connection, CLOSE_REQUESTED);
    }
    return NULL;
}

static struct net_host *create_server(struct identity **identity, struct multiaddr *address)
{
    struct net_host *server;
    assert_int_equal(identity_create(identity, KEY_TYPE_ED25519), STATUS_OK);
    struct net_host_options options = {.identity = *identity, .io_threads = SERVER_THREADS};
    assert_int_equal(net_host_create(&server, &options), STATUS_OK);
    struct protocol protocol = {.id = CHECK_PROTOCOL_ID, .events = &check_events};
    assert_int_equal(switch_add_protocol(net_host_switch(server), &protocol), STATUS_OK);
    assert_int_equal(net_host_listen(server, "/ip4/127.0.0.1/tcp/0"), STATUS_OK);
    assert_int_equal(net_host_start(server), STATUS_OK);
    *address = *switch_listen_address(net_host_switch(server), 0);
    assert_int_equal(multiaddr_set_peer(address, identity_peer_id(*identity)), STATUS_OK);
    return server;
}

static void wait_for(atomic_size_t *number, size_t value)
{
    while (atomic_load(number) < value) {
        sched_yield();
    }
}

static void writes_of_many_threads_arrive_in_order_while_others_come_and_go(void **state)
{
    (void)state;
    struct identity *identity;
    struct multiaddr address;
    struct comer client;
    struct comer comers[COMERS];
    struct writer writers[WRITERS];
    size_t sent_bytes = 0;
    sem_init(&all_open, 0, 0);
    struct net_host *server = create_server(&identity, &address);
    init_comer(&client, &address, CLIENT_THREADS);
    assert_int_equal(dial_and_wait(&client), STATUS_OK);
    assert_int_equal(switch_run_on_connection(
                             net_host_switch(client.host), client.connection, open_streams, NULL),
            STATUS_OK);
    sem_wait(&all_open);
    for (size_t i = 0; i < COMERS; i++) {
        init_comer(&comers[i], &address, 1);
        assert_int_equal(pthread_create(&comers[i].thread, NULL, run_comer, &comers[i]), 0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){
                .net_switch = net_host_switch(client.host), .first_stream = i * STREAMS_A_WRITER};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, run_writer, &writers[i]), 0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        pthread_join(writers[i].thread, NULL);
        sent_bytes += writers[i].sent_bytes;
    }
    wait_for(&whole_streams, STREAMS);
    wait_for(&closed_streams, STREAMS);
    for (size_t i = 0; i < COMERS; i++) {
        pthread_join(comers[i].thread, NULL);
        fini_comer(&comers[i]);
    }
    fini_comer(&client);
    net_host_destroy(&server);
    identity_destroy(&identity);
    assert_int_equal(atomic_load(&wrong_bytes), 0);
    assert_int_equal(atomic_load(&received_bytes), sent_bytes);
    assert_int_equal(atomic_load(&failed_writes), 0);
    assert_int_equal(atomic_load(&done_writes), WRITERS * STREAMS_A_WRITER * (WRITES + 1));
    assert_int_equal(atomic_load(&failed_visits), 0);
    sem_destroy(&all_open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(writes_of_many_threads_arrive_in_order_while_others_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
