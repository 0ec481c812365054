/* SPDX-License-Identifier: MIT */
#include "net/transport/websocket_upgrade.h"

#include <http_parser.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <strings.h>

#include "base/memory.h"

enum {
    NONCE_BYTES = 16,
    KEY_TEXT_BYTES = 24,    /* base64 of the nonce */
    ACCEPT_TEXT_BYTES = 28, /* base64 of a SHA-1 */
    NAME_CAPACITY = 32,
    VALUE_CAPACITY = 64,
    OUTPUT_CAPACITY = 640
};

static const char accept_suffix[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455, 1.3 */

struct websocket_upgrade {
    http_parser parser;
    bool is_server;
    bool is_done;
    bool is_in_value;
    bool has_websocket_upgrade;
    bool has_version_13;
    size_t received_bytes;
    size_t name_length; /* may exceed the capacity: then it is none of ours */
    size_t value_length;
    char name[NAME_CAPACITY];
    char value[VALUE_CAPACITY];
    char key[VALUE_CAPACITY];    /* server: the client's Sec-WebSocket-Key */
    char accept[VALUE_CAPACITY]; /* client: the server's Sec-WebSocket-Accept */
    char own_key[KEY_TEXT_BYTES + 1];
    char output[OUTPUT_CAPACITY];
    size_t output_length;
};

static void append(char *to, size_t capacity, size_t *length, struct span piece)
{
    for (size_t i = 0; i < piece.length; i++) {
        if (*length + 1 < capacity) {
            to[*length] = (char)piece.bytes[i];
        }
        (*length)++;
    }
    to[*length < capacity ? *length : capacity - 1] = '\0';
}

static void take_header(struct websocket_upgrade *upgrade)
{
    bool is_whole = upgrade->name_length < NAME_CAPACITY && upgrade->value_length < VALUE_CAPACITY;
    if (upgrade->name_length == 0 || !is_whole) {
        return;
    }
    if (strcasecmp(upgrade->name, "Upgrade") == 0) {
        upgrade->has_websocket_upgrade = strcasecmp(upgrade->value, "websocket") == 0;
    } else if (strcasecmp(upgrade->name, "Sec-WebSocket-Version") == 0) {
        upgrade->has_version_13 = strcmp(upgrade->value, "13") == 0;
    } else if (strcasecmp(upgrade->name, "Sec-WebSocket-Key") == 0) {
        memcpy(upgrade->key, upgrade->value, VALUE_CAPACITY);
    } else if (strcasecmp(upgrade->name, "Sec-WebSocket-Accept") == 0) {
        memcpy(upgrade->accept, upgrade->value, VALUE_CAPACITY);
    }
}

/* Both texts may come in several pieces; a new name ends the header before it. */
static int on_header_field(http_parser *parser, const char *at, size_t length)
{
    struct websocket_upgrade *upgrade = parser->data;
    if (upgrade->is_in_value) {
        take_header(upgrade);
        upgrade->is_in_value = false;
        upgrade->name_length = 0;
        upgrade->value_length = 0;
    }
    append(upgrade->name, NAME_CAPACITY, &upgrade->name_length, span_of(at, length));
    return 0;
}

static int on_header_value(http_parser *parser, const char *at, size_t length)
{
    struct websocket_upgrade *upgrade = parser->data;
    upgrade->is_in_value = true;
    append(upgrade->value, VALUE_CAPACITY, &upgrade->value_length, span_of(at, length));
    return 0;
}

static int on_headers_complete(http_parser *parser)
{
    take_header(parser->data);
    return 1; /* no body, whatever the headers say */
}

static int on_message_complete(http_parser *parser)
{
    struct websocket_upgrade *upgrade = parser->data;
    upgrade->is_done = true;
    return 0;
}

static const http_parser_settings settings = {
        .on_header_field = on_header_field,
        .on_header_value = on_header_value,
        .on_headers_complete = on_headers_complete,
        .on_message_complete = on_message_complete,
};

static enum status create(struct websocket_upgrade **out, bool is_server)
{
    struct websocket_upgrade *upgrade = memory_allocate_zeroed(sizeof(*upgrade));
    if (upgrade == NULL) {
        return STATUS_NO_MEMORY;
    }
    upgrade->is_server = is_server;
    http_parser_init(&upgrade->parser, is_server ? HTTP_REQUEST : HTTP_RESPONSE);
    upgrade->parser.data = upgrade;
    *out = upgrade;
    return STATUS_OK;
}

enum status websocket_upgrade_create_server(struct websocket_upgrade **out)
{
    return create(out, true);
}

enum status websocket_upgrade_create_client(struct websocket_upgrade **out, const char *host)
{
    struct websocket_upgrade *upgrade;
    enum status status = create(&upgrade, false);
    if (status != STATUS_OK) {
        return status;
    }
    uint8_t nonce[NONCE_BYTES];
    if (RAND_bytes(nonce, sizeof(nonce)) != 1) {
        websocket_upgrade_destroy(&upgrade);
        return STATUS_SYSTEM;
    }
    EVP_EncodeBlock((unsigned char *)upgrade->own_key, nonce, sizeof(nonce));
    int length = snprintf(upgrade->output, sizeof(upgrade->output),
            "GET / HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n",
            host, upgrade->own_key);
    if (length < 0 || (size_t)length >= sizeof(upgrade->output)) {
        websocket_upgrade_destroy(&upgrade);
        return STATUS_BAD_ADDRESS;
    }
    upgrade->output_length = (size_t)length;
    *out = upgrade;
    return STATUS_OK;
}

void websocket_upgrade_destroy(struct websocket_upgrade **upgrade)
{
    memory_free(*upgrade);
    *upgrade = NULL;
}

static enum status make_accept(char out[ACCEPT_TEXT_BYTES + 1], const char *key)
{
    char text[VALUE_CAPACITY + sizeof(accept_suffix)];
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned digest_length = 0;
    int length = snprintf(text, sizeof(text), "%s%s", key, accept_suffix);
    if (EVP_Digest(text, (size_t)length, digest, &digest_length, EVP_sha1(), NULL) != 1) {
        return STATUS_SYSTEM;
    }
    EVP_EncodeBlock((unsigned char *)out, digest, (int)digest_length);
    return STATUS_OK;
}

static void set_output(struct websocket_upgrade *upgrade, const char *text)
{
    size_t length = strlen(text);
    memcpy(upgrade->output, text, length);
    upgrade->output_length = length;
}

static enum status answer_request(struct websocket_upgrade *upgrade)
{
    if (upgrade->parser.method != HTTP_GET || strlen(upgrade->key) != KEY_TEXT_BYTES ||
            upgrade->parser.upgrade == 0 || !upgrade->has_websocket_upgrade) {
        set_output(upgrade, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
                            "Content-Length: 0\r\n\r\n");
        return STATUS_BAD_HANDSHAKE;
    }
    if (!upgrade->has_version_13) {
        set_output(upgrade, "HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 13\r\n"
                            "Connection: close\r\nContent-Length: 0\r\n\r\n");
        return STATUS_BAD_HANDSHAKE;
    }
    char accept[ACCEPT_TEXT_BYTES + 1];
    enum status status = make_accept(accept, upgrade->key);
    if (status != STATUS_OK) {
        return status;
    }
    int length = snprintf(upgrade->output, sizeof(upgrade->output),
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: %s\r\n\r\n",
            accept);
    upgrade->output_length = (size_t)length;
    return STATUS_OK;
}

static enum status check_response(struct websocket_upgrade *upgrade)
{
    char expected[ACCEPT_TEXT_BYTES + 1];
    enum status status = make_accept(expected, upgrade->own_key);
    if (status != STATUS_OK) {
        return status;
    }
    if (upgrade->parser.status_code != HTTP_STATUS_SWITCHING_PROTOCOLS ||
            !upgrade->has_websocket_upgrade || strcmp(upgrade->accept, expected) != 0) {
        return STATUS_BAD_HANDSHAKE;
    }
    return STATUS_OK;
}

enum status websocket_upgrade_receive(
        struct websocket_upgrade *upgrade, struct span input, size_t *consumed)
{
    *consumed = 0;
    if (upgrade->is_done) {
        return STATUS_OK;
    }
    size_t room = WEBSOCKET_UPGRADE_BYTES_MAX - upgrade->received_bytes;
    size_t length = input.length < room ? input.length : room;
    size_t n = http_parser_execute(&upgrade->parser, &settings, (const char *)input.bytes, length);
    upgrade->received_bytes += n;
    *consumed = n;
    if (upgrade->is_done) {
        return upgrade->is_server ? answer_request(upgrade) : check_response(upgrade);
    }
    if (HTTP_PARSER_ERRNO(&upgrade->parser) != HPE_OK) {
        return STATUS_BAD_HANDSHAKE;
    }
    return upgrade->received_bytes == WEBSOCKET_UPGRADE_BYTES_MAX ? STATUS_TOO_LARGE : STATUS_OK;
}

bool websocket_upgrade_is_done(const struct websocket_upgrade *upgrade)
{
    return upgrade->is_done;
}

struct span websocket_upgrade_output(const struct websocket_upgrade *upgrade)
{
    return span_of(upgrade->output, upgrade->output_length);
}

void websocket_upgrade_output_taken(struct websocket_upgrade *upgrade)
{
    upgrade->output_length = 0;
}
