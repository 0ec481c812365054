/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "net/transport/channel_private.h"

enum {
    LINGER_MS = 1000,
    /* A peer that is gone without a word is noticed after the silence and the probes: two minutes. */
    KEEP_ALIVE_SECONDS = 60,
    KEEP_ALIVE_PROBE_SECONDS = 15,
    KEEP_ALIVE_PROBES = 4,
    OUTPUT_CAPACITY_MIN = 512
};

static struct channel *channel_of_timer(uv_timer_t *timer)
{
    return (struct channel *)((char *)timer - offsetof(struct channel, timer));
}

static void release_output(struct channel *channel, struct channel_output *output)
{
    io_loop_remove_in_flight(channel->loop, output->length);
    memory_free(output->bytes);
    *output = (struct channel_output){0};
}

void channel_drop_reference(struct channel *channel)
{
    assert(channel->references > 0);
    channel->references--;
    if (channel->references > 0) {
        return;
    }
    assert(channel->is_detached);
    release_output(channel, &channel->in_flight);
    release_output(channel, &channel->next);
    tls_session_destroy(&channel->tls);
    websocket_upgrade_destroy(&channel->upgrade);
    websocket_destroy(&channel->websocket);
    memory_free(channel);
}

enum status channel_socket_init(struct channel *channel)
{
    if (uv_tcp_init(io_loop_uv(channel->loop), &channel->tcp) != 0) {
        return STATUS_SYSTEM;
    }
    channel->tcp.data = channel;
    channel->references++;
    return STATUS_OK;
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct channel *channel = handle->data;
    bool is_plain = !channel->is_websocket && channel->state == CHANNEL_OPEN;
    if (is_plain && !channel->is_detached && channel->events->reserve != NULL) {
        uint8_t *to = NULL;
        size_t capacity = channel->events->reserve(channel->context, &to);
        if (capacity > 0) {
            *out = uv_buf_init((char *)to, (unsigned)capacity);
            return;
        }
    }
    *out = uv_buf_init((char *)io_loop_input_buffer(channel->loop), IO_LOOP_BUFFER_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct channel *channel = stream->data;
    if (channel->is_lingering) {
        if (n < 0) {
            channel_socket_close(channel);
        }
        return;
    }
    if (n > 0) {
        channel_socket_received(channel, span_of(buffer->base, (size_t)n));
    } else if (n < 0) {
        channel_end(channel, n == UV_EOF ? STATUS_CLOSED : STATUS_RESET);
    }
}

void channel_socket_start_reading(struct channel *channel)
{
    if (channel->is_reading || channel->is_closing) {
        return;
    }
    if (uv_read_start((uv_stream_t *)&channel->tcp, on_allocate, on_read) == 0) {
        channel->is_reading = true;
    }
}

void channel_socket_stop_reading(struct channel *channel)
{
    if (channel->is_reading) {
        uv_read_stop((uv_stream_t *)&channel->tcp);
        channel->is_reading = false;
    }
}

static bool grow_output(struct channel_output *output, size_t more)
{
    size_t wanted = output->length + more;
    if (wanted <= output->capacity) {
        return true;
    }
    size_t capacity = output->capacity * 2;
    if (capacity < wanted) {
        capacity = wanted < OUTPUT_CAPACITY_MIN ? OUTPUT_CAPACITY_MIN : wanted;
    }
    uint8_t *bytes = memory_resize(output->bytes, capacity);
    if (bytes == NULL) {
        return false;
    }
    output->bytes = bytes;
    output->capacity = capacity;
    return true;
}

enum status channel_socket_queue(struct channel *channel, struct span bytes)
{
    if (bytes.length == 0) {
        return STATUS_OK;
    }
    if (!grow_output(&channel->next, bytes.length)) {
        return STATUS_NO_MEMORY;
    }
    memcpy(channel->next.bytes + channel->next.length, bytes.bytes, bytes.length);
    channel->next.length += bytes.length;
    io_loop_add_in_flight(channel->loop, bytes.length);
    return STATUS_OK;
}

static void on_written(uv_write_t *request, int result)
{
    struct channel *channel = request->data;
    channel->is_writing = false;
    release_output(channel, &channel->in_flight);
    if (!channel->is_closing) {
        enum status status = result == 0 ? channel_socket_flush(channel) : STATUS_RESET;
        if (status != STATUS_OK) {
            channel_end(channel, status);
        } else if (!channel->is_writing) {
            channel_socket_drained(channel);
        }
    }
    channel_drop_reference(channel);
}

/* How many of bytes the kernel took at once; 0 also when it is full. */
static enum status try_kernel(struct channel *channel, struct span bytes, size_t *taken)
{
    uv_buf_t buffer = uv_buf_init((char *)(uintptr_t)bytes.bytes, (unsigned)bytes.length);
    int n = uv_try_write((uv_stream_t *)&channel->tcp, &buffer, 1);
    *taken = n > 0 ? (size_t)n : 0;
    return n >= 0 || n == UV_EAGAIN ? STATUS_OK : STATUS_RESET;
}

/* Gives next to libuv, from offset on. */
static enum status hand_over(struct channel *channel, size_t offset)
{
    channel->in_flight = channel->next;
    channel->next = (struct channel_output){0};
    uv_buf_t buffer = uv_buf_init((char *)channel->in_flight.bytes + offset,
            (unsigned)(channel->in_flight.length - offset));
    channel->write.data = channel;
    channel->progress_ms = io_loop_now_ms(channel->loop);
    channel->progress_bytes = channel->in_flight.length;
    if (uv_write(&channel->write, (uv_stream_t *)&channel->tcp, &buffer, 1, on_written) != 0) {
        return STATUS_RESET;
    }
    channel->references++;
    channel->is_writing = true;
    return STATUS_OK;
}

enum status channel_socket_flush(struct channel *channel)
{
    if (channel->is_writing || channel->next.length == 0) {
        return STATUS_OK;
    }
    size_t taken;
    enum status status =
            try_kernel(channel, span_of(channel->next.bytes, channel->next.length), &taken);
    if (status != STATUS_OK) {
        return status;
    }
    if (taken == channel->next.length) {
        release_output(channel, &channel->next);
        return STATUS_OK;
    }
    return hand_over(channel, taken);
}

enum status channel_socket_write(struct channel *channel, struct span bytes)
{
    if (!channel->is_corked && !channel->is_writing && channel->next.length == 0) {
        size_t taken;
        enum status status = try_kernel(channel, bytes, &taken);
        if (status != STATUS_OK || taken == bytes.length) {
            return status;
        }
        bytes.bytes += taken;
        bytes.length -= taken;
    }
    enum status status = channel_socket_queue(channel, bytes);
    if (status != STATUS_OK || channel->is_corked || channel->is_writing) {
        return status;
    }
    return hand_over(channel, 0);
}

static void on_closed(uv_handle_t *handle)
{
    channel_drop_reference(handle->data);
}

static void on_timer_closed(uv_handle_t *handle)
{
    channel_drop_reference(channel_of_timer((uv_timer_t *)handle));
}

void channel_socket_close(struct channel *channel)
{
    if (channel->is_closing) {
        return;
    }
    channel->is_closing = true;
    channel->is_reading = false;
    if (channel->is_lingering) {
        io_loop_end_linger(channel->loop);
    }
    channel_dial_cancel(channel);
    if (channel->is_timer_live) {
        uv_close((uv_handle_t *)&channel->timer, on_timer_closed);
    }
    if (!uv_is_closing((uv_handle_t *)&channel->tcp)) {
        uv_close((uv_handle_t *)&channel->tcp, on_closed);
    }
}

static void on_linger_over(uv_timer_t *timer)
{
    channel_socket_close(channel_of_timer(timer));
}

static void on_shut_down(uv_shutdown_t *request, int result)
{
    struct channel *channel = request->data;
    if (result != 0) {
        channel_socket_close(channel);
    }
    channel_drop_reference(channel);
}

/*
 * Closing a socket that still has unread input makes the kernel reset it, and what was sent last may
 * then be lost. So the write side is shut first, and input is read and thrown away until the peer
 * closes too or the time is up.
 */
void channel_socket_linger(struct channel *channel)
{
    if (channel->is_closing || channel->is_lingering) {
        return;
    }
    if (!io_loop_try_begin_linger(channel->loop)) {
        channel_socket_close(channel);
        return;
    }
    channel->is_lingering = true;
    if (!channel->is_timer_live) {
        if (uv_timer_init(io_loop_uv(channel->loop), &channel->timer) != 0) {
            channel_socket_close(channel);
            return;
        }
        channel->is_timer_live = true;
        channel->references++;
    }
    uv_timer_start(&channel->timer, on_linger_over, LINGER_MS, 0);
    channel->shutdown.data = channel;
    /* libuv shuts down after the writes it holds. */
    int result = uv_shutdown(&channel->shutdown, (uv_stream_t *)&channel->tcp, on_shut_down);
    if (result != 0) {
        channel_socket_close(channel);
        return;
    }
    channel->references++;
    channel_socket_start_reading(channel);
}

void channel_socket_configure(struct channel *channel)
{
    uv_tcp_nodelay(&channel->tcp, 1);
    uv_tcp_keepalive(&channel->tcp, 1, KEEP_ALIVE_SECONDS);
    /* libuv leaves these at the system's, with which it takes twelve minutes. */
    int descriptor;
    if (uv_fileno((uv_handle_t *)&channel->tcp, &descriptor) == 0) {
        int interval = KEEP_ALIVE_PROBE_SECONDS;
        int probes = KEEP_ALIVE_PROBES;
        setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
        setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    }
}

size_t channel_bytes_in_flight(const struct channel *channel)
{
    return channel->in_flight.length + channel->next.length;
}

uint64_t channel_stalled_ms(struct channel *channel)
{
    if (!channel->is_writing) {
        return 0;
    }
    size_t left = uv_stream_get_write_queue_size((const uv_stream_t *)&channel->tcp);
    uint64_t now_ms = io_loop_now_ms(channel->loop);
    if (left < channel->progress_bytes) {
        channel->progress_bytes = left;
        channel->progress_ms = now_ms;
    }
    return now_ms - channel->progress_ms;
}
