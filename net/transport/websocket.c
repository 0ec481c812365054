/* SPDX-License-Identifier: MIT */
#include "net/transport/websocket.h"

#include <openssl/rand.h>
#include <wslay/wslay.h>

#include "base/memory.h"

enum {
    MESSAGE_BYTES_MAX = 16 * 1024 * 1024,
    CLOSE_NORMAL = WSLAY_CODE_NORMAL_CLOSURE
};

struct websocket {
    wslay_event_context_ptr frames;
    struct websocket_events events;
    void *context;
    struct span input; /* what wslay has not read yet; only inside websocket_receive */
    bool is_control;   /* of the frame that is being received */
    bool has_text;     /* the peer sends text messages, which libp2p does not have */
};

static ssize_t on_wslay_recv(
        wslay_event_context_ptr frames, uint8_t *to, size_t capacity, int flags, void *context)
{
    (void)flags;
    struct websocket *websocket = context;
    size_t n = websocket->input.length < capacity ? websocket->input.length : capacity;
    if (n == 0) {
        wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(to, websocket->input.bytes, n);
    websocket->input.bytes += n;
    websocket->input.length -= n;
    return (ssize_t)n;
}

static ssize_t on_wslay_send(wslay_event_context_ptr frames, const uint8_t *bytes, size_t length,
        int flags, void *context)
{
    (void)frames;
    (void)flags;
    struct websocket *websocket = context;
    websocket->events.send(websocket->context, span_of(bytes, length));
    return (ssize_t)length;
}

static int on_wslay_mask(wslay_event_context_ptr frames, uint8_t *to, size_t length, void *context)
{
    (void)frames;
    (void)context;
    return RAND_bytes(to, (int)length) == 1 ? 0 : -1;
}

static void on_wslay_frame(wslay_event_context_ptr frames,
        const struct wslay_event_on_frame_recv_start_arg *frame, void *context)
{
    (void)frames;
    struct websocket *websocket = context;
    websocket->is_control = wslay_is_ctrl_frame(frame->opcode);
    if (frame->opcode == WSLAY_TEXT_FRAME) {
        websocket->has_text = true;
    }
}

static void on_wslay_chunk(wslay_event_context_ptr frames,
        const struct wslay_event_on_frame_recv_chunk_arg *chunk, void *context)
{
    (void)frames;
    struct websocket *websocket = context;
    bool is_payload = !websocket->is_control && !websocket->has_text;
    if (is_payload && chunk->data_length > 0) {
        websocket->events.received(websocket->context, span_of(chunk->data, chunk->data_length));
    }
}

enum status websocket_create(struct websocket **out, bool is_server,
        const struct websocket_events *events, void *context)
{
    struct websocket *websocket = memory_allocate_zeroed(sizeof(*websocket));
    if (websocket == NULL) {
        return STATUS_NO_MEMORY;
    }
    websocket->events = *events;
    websocket->context = context;
    struct wslay_event_callbacks callbacks = {
            .recv_callback = on_wslay_recv,
            .send_callback = on_wslay_send,
            .genmask_callback = on_wslay_mask,
            .on_frame_recv_start_callback = on_wslay_frame,
            .on_frame_recv_chunk_callback = on_wslay_chunk,
    };
    int result =
            is_server ? wslay_event_context_server_init(&websocket->frames, &callbacks, websocket)
                      : wslay_event_context_client_init(&websocket->frames, &callbacks, websocket);
    if (result != 0) {
        memory_free(websocket);
        return STATUS_NO_MEMORY;
    }
    wslay_event_config_set_no_buffering(websocket->frames, 1);
    wslay_event_config_set_max_recv_msg_length(websocket->frames, MESSAGE_BYTES_MAX);
    *out = websocket;
    return STATUS_OK;
}

void websocket_destroy(struct websocket **websocket)
{
    if (*websocket == NULL) {
        return;
    }
    wslay_event_context_free((*websocket)->frames);
    memory_free(*websocket);
    *websocket = NULL;
}

enum status websocket_receive(struct websocket *websocket, struct span input)
{
    websocket->input = input;
    int result = wslay_event_recv(websocket->frames);
    websocket->input = span_of(NULL, 0);
    if (result == WSLAY_ERR_NOMEM) {
        return STATUS_NO_MEMORY;
    }
    if (result != 0 || websocket->has_text) {
        return STATUS_BAD_FRAME;
    }
    if (wslay_event_get_close_received(websocket->frames)) {
        return STATUS_CLOSED;
    }
    /* A breach makes wslay queue a close frame of its own and stop reading. */
    return wslay_event_get_read_enabled(websocket->frames) ? STATUS_OK : STATUS_BAD_FRAME;
}

enum status websocket_write(struct websocket *websocket, struct span payload)
{
    struct wslay_event_msg message = {
            .opcode = WSLAY_BINARY_FRAME, .msg = payload.bytes, .msg_length = payload.length};
    int result = wslay_event_queue_msg(websocket->frames, &message);
    if (result != 0) {
        return result == WSLAY_ERR_NOMEM ? STATUS_NO_MEMORY : STATUS_CLOSED;
    }
    return websocket_flush(websocket);
}

void websocket_finish(struct websocket *websocket)
{
    if (wslay_event_queue_close(websocket->frames, CLOSE_NORMAL, NULL, 0) == 0) {
        wslay_event_send(websocket->frames);
    }
}

enum status websocket_flush(struct websocket *websocket)
{
    int result = wslay_event_send(websocket->frames);
    if (result != 0) {
        return result == WSLAY_ERR_NOMEM ? STATUS_NO_MEMORY : STATUS_SYSTEM;
    }
    return STATUS_OK;
}

size_t websocket_queued(const struct websocket *websocket)
{
    return wslay_event_get_queued_msg_count(websocket->frames);
}
