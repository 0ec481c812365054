/* SPDX-License-Identifier: MIT */
#include "tests/support/sync_stranger.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net/protocols/store_sync.h"
#include "net/protocols/transfer_message.h"
#include "tests/support/cmocka.h"

enum {
    WAIT_S = 60
};

static void change_begin(struct sync_stranger *stranger)
{
    pthread_mutex_lock(&stranger->mutex);
}

static void change_end(struct sync_stranger *stranger)
{
    pthread_cond_broadcast(&stranger->changed);
    pthread_mutex_unlock(&stranger->mutex);
}

static enum status on_opened(struct stream *stream)
{
    struct stranger_stream *own = stream_context(stream);
    change_begin(own->stranger);
    own->is_closed = false;
    own->address = stream_address(stream);
    change_end(own->stranger);
    return STATUS_OK;
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct stranger_stream *own = stream_context(stream);
    *to = own->arriving;
    change_begin(own->stranger);
    bool is_stuck = own->is_stuck;
    change_end(own->stranger);
    if (is_stuck) {
        return 0;
    }
    return wanted < sizeof(own->arriving) ? wanted : sizeof(own->arriving);
}

static void on_commit(struct stream *stream, size_t n)
{
    struct stranger_stream *own = stream_context(stream);
    stream_consumed(stream, n);
    change_begin(own->stranger);
    size_t room = SYNC_STRANGER_BYTES - own->length;
    size_t kept = n < room ? n : room;
    memcpy(own->bytes + own->length, own->arriving, kept);
    own->length += kept;
    change_end(own->stranger);
}

static void on_remote_closed(struct stream *stream)
{
    stream_close_write(stream);
}

static void on_closed(struct stream *stream, enum status reason)
{
    struct stranger_stream *own = stream_context(stream);
    (void)reason;
    change_begin(own->stranger);
    own->is_closed = true;
    change_end(own->stranger);
}

static const struct stream_events events = {
        .opened = on_opened,
        .reserve = on_reserve,
        .commit = on_commit,
        .remote_closed = on_remote_closed,
        .closed = on_closed,
};

static void on_identified(
        void *context, struct connection *connection, const struct identify_info *info)
{
    struct sync_stranger *stranger = context;
    (void)info;
    change_begin(stranger);
    stranger->connection = connection_id(connection);
    change_end(stranger);
}

static void wait_change(struct sync_stranger *stranger)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += WAIT_S;
    assert_int_equal(pthread_cond_timedwait(&stranger->changed, &stranger->mutex, &end), 0);
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    (void)context;
    (void)status;
    (void)connection;
}

static void init_stream(struct stranger_stream *stream, struct sync_stranger *stranger)
{
    stream->stranger = stranger;
    stream->bytes = malloc(SYNC_STRANGER_BYTES);
    assert_non_null(stream->bytes);
}

void sync_stranger_start(struct sync_stranger *stranger, const char *address)
{
    struct net_host_options options = {.identified = on_identified, .context = stranger};
    struct switch_dial dial = {.done = on_dialled};
    struct protocol transfer = {
            .id = TRANSFER_PROTOCOL_ID, .events = &events, .context = &stranger->receiving};
    memset(stranger, 0, sizeof(*stranger));
    pthread_mutex_init(&stranger->mutex, NULL);
    pthread_cond_init(&stranger->changed, NULL);
    init_stream(&stranger->session, stranger);
    init_stream(&stranger->sending, stranger);
    init_stream(&stranger->receiving, stranger);
    assert_int_equal(identity_create(&stranger->identity, KEY_TYPE_ED25519), STATUS_OK);
    options.identity = stranger->identity;
    assert_int_equal(net_host_create(&stranger->host, &options), STATUS_OK);
    struct net_switch *net_switch = net_host_switch(stranger->host);
    assert_int_equal(switch_add_protocol(net_switch, &transfer), STATUS_OK);
    assert_int_equal(net_host_start(stranger->host), STATUS_OK);
    assert_int_equal(multiaddr_parse(&dial.address, span_of_text(address)), STATUS_OK);
    assert_int_equal(switch_dial(net_switch, &dial), STATUS_OK);
    change_begin(stranger);
    while (stranger->connection == 0) {
        wait_change(stranger);
    }
    change_end(stranger);
}

void sync_stranger_stop(struct sync_stranger *stranger)
{
    net_host_destroy(&stranger->host);
    identity_destroy(&stranger->identity);
    free(stranger->session.bytes);
    free(stranger->sending.bytes);
    free(stranger->receiving.bytes);
    pthread_cond_destroy(&stranger->changed);
    pthread_mutex_destroy(&stranger->mutex);
}

struct opening {
    struct stranger_stream *stream;
    const char *const *protocols;
};

static void open_on_connection(void *context, struct connection *connection)
{
    struct opening *opening = context;
    struct stream_request request = {.protocols = opening->protocols,
            .protocol_count = 1,
            .events = &events,
            .context = opening->stream};
    if (connection == NULL || connection_open_stream(connection, &request, NULL) != STATUS_OK) {
        change_begin(opening->stream->stranger);
        opening->stream->is_closed = true;
        change_end(opening->stream->stranger);
    }
}

static void open_stream(struct stranger_stream *stream, const char *const *protocols)
{
    struct sync_stranger *stranger = stream->stranger;
    struct opening opening = {.stream = stream, .protocols = protocols};
    stream->address.stream = 0;
    stream->is_closed = false;
    stream->length = 0;
    assert_int_equal(switch_run_on_connection(net_host_switch(stranger->host), stranger->connection,
                             open_on_connection, &opening),
            STATUS_OK);
    change_begin(stranger);
    while (stream->address.stream == 0 && !stream->is_closed) {
        wait_change(stranger);
    }
    change_end(stranger);
}

void sync_stranger_open_session(struct sync_stranger *stranger)
{
    static const char *const ids[] = {RECONCILIATION_PROTOCOL_ID};
    open_stream(&stranger->session, ids);
}

void sync_stranger_open_transfer(struct sync_stranger *stranger)
{
    static const char *const ids[] = {TRANSFER_PROTOCOL_ID};
    open_stream(&stranger->sending, ids);
}

static void on_written(struct stream_write *write, enum status status)
{
    if (status != STATUS_OK && write->piece_count > 0) {
        free(write->pieces[0].owner);
    }
    free(write);
}

static void write_to(struct stranger_stream *stream, struct span bytes, bool closes)
{
    struct stream_write *write = calloc(1, sizeof(*write));
    assert_non_null(write);
    write->to = stream->address;
    write->closes_write = closes;
    write->done = on_written;
    if (bytes.length > 0) {
        uint8_t *copy = malloc(bytes.length);
        assert_non_null(copy);
        memcpy(copy, bytes.bytes, bytes.length);
        write->pieces[0] = (struct muxer_piece){
                .bytes = span_of(copy, bytes.length), .release = free, .owner = copy};
        write->piece_count = 1;
    }
    switch_post_write(net_host_switch(stream->stranger->host), write);
}

void sync_stranger_say_raw(struct stranger_stream *stream, struct span bytes)
{
    write_to(stream, bytes, false);
}

void sync_stranger_say(struct stranger_stream *stream, struct span message)
{
    uint8_t *whole = malloc(message.length + 10);
    assert_non_null(whole);
    uint8_t *end = sync_wire_number(whole, message.length);
    if (message.length > 0) {
        memcpy(end, message.bytes, message.length);
    }
    write_to(stream, span_of(whole, (size_t)(end - whole) + message.length), false);
    free(whole);
}

void sync_stranger_end(struct stranger_stream *stream)
{
    write_to(stream, span_of(NULL, 0), true);
}

static void reset_on_connection(void *context, struct connection *connection)
{
    struct stranger_stream *own = context;
    struct net_switch *net_switch = net_host_switch(own->stranger->host);
    struct stream *stream =
            connection == NULL ? NULL : switch_find_stream(net_switch, own->address);
    if (stream != NULL) {
        stream_reset(stream, STATUS_CLOSED);
    }
}

void sync_stranger_reset(struct stranger_stream *stream)
{
    struct sync_stranger *stranger = stream->stranger;
    assert_int_equal(switch_run_on_connection(net_host_switch(stranger->host), stranger->connection,
                             reset_on_connection, stream),
            STATUS_OK);
    sync_stranger_wait_closed(stream);
    change_begin(stranger);
    stream->is_closed = false;
    stream->is_stuck = false;
    stream->length = 0;
    change_end(stranger);
}

bool sync_stranger_is_closed(struct stranger_stream *stream)
{
    pthread_mutex_lock(&stream->stranger->mutex);
    bool is_closed = stream->is_closed;
    pthread_mutex_unlock(&stream->stranger->mutex);
    return is_closed;
}

void sync_stranger_wait_closed(struct stranger_stream *stream)
{
    change_begin(stream->stranger);
    while (!stream->is_closed) {
        wait_change(stream->stranger);
    }
    change_end(stream->stranger);
}

/* The bytes of the first message with its length, 0 while it is not all there. */
static size_t first_message(const struct stranger_stream *stream)
{
    size_t length = 0;
    for (size_t i = 0; i < stream->length && i < 10; i++) {
        length |= (size_t)(stream->bytes[i] & 0x7F) << (7 * i);
        if ((stream->bytes[i] & 0x80) == 0) {
            return i + 1 + length <= stream->length ? i + 1 + length : 0;
        }
    }
    return 0;
}

size_t sync_stranger_hear(struct stranger_stream *stream, size_t count)
{
    size_t heard = 0;
    change_begin(stream->stranger);
    while (heard < count) {
        size_t size = first_message(stream);
        if (size > 0) {
            memmove(stream->bytes, stream->bytes + size, stream->length - size);
            stream->length -= size;
            heard++;
        } else if (stream->is_closed) {
            break;
        } else {
            wait_change(stream->stranger);
        }
    }
    change_end(stream->stranger);
    return heard;
}

void sync_stranger_wait_bytes(struct stranger_stream *stream, size_t length)
{
    change_begin(stream->stranger);
    while (stream->length < length) {
        wait_change(stream->stranger);
    }
    change_end(stream->stranger);
}

uint8_t *sync_wire_number(uint8_t *to, uint64_t number)
{
    while (number >= 0x80) {
        *to++ = (uint8_t)(number | 0x80);
        number >>= 7;
    }
    *to++ = (uint8_t)number;
    return to;
}

/* Its length, then the bytes. */
static uint8_t *write_bytes(uint8_t *to, struct span bytes)
{
    to = sync_wire_number(to, bytes.length);
    memcpy(to, bytes.bytes, bytes.length);
    return to + bytes.length;
}

uint8_t *sync_wire_begin(uint8_t *to, const char *topic, int64_t from_ns)
{
    *to++ = 1;
    to = write_bytes(to, span_of_text(topic));
    *to++ = 0;
    return sync_wire_number(to, (uint64_t)from_ns);
}

uint8_t *sync_wire_fingerprint(uint8_t *to, uint64_t after_ns, uint8_t fill)
{
    to = sync_wire_number(to, after_ns);
    *to++ = 1;
    memset(to, fill, 32);
    return to + 32;
}

uint8_t *sync_wire_transfer(uint8_t *to, const char *topic, struct span message)
{
    *to++ = 1 << 3 | 2;
    to = write_bytes(to, span_of_text(topic));
    *to++ = 2 << 3 | 2;
    return write_bytes(to, message);
}
