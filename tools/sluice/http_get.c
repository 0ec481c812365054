/* SPDX-License-Identifier: MIT */
#include "tools/sluice/http_get.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "net/identity/multiaddr.h"

enum {
    FIRST_CAPACITY = 64 * 1024,
    BODY_MAX = 16 * 1024 * 1024
};

static bool parse_multiaddr(struct http_place *out, const char *text)
{
    struct multiaddr address;
    struct multiaddr_endpoint endpoint;
    if (multiaddr_parse(&address, span_of_text(text)) != STATUS_OK ||
            multiaddr_endpoint(&endpoint, &address) != STATUS_OK) {
        return false;
    }
    snprintf(out->host, sizeof(out->host), "%s", endpoint.host);
    snprintf(out->port, sizeof(out->port), "%u", endpoint.port);
    return true;
}

bool http_place_parse(struct http_place *out, const char *text, const char *default_port)
{
    static const char scheme[] = "http://";
    if (text[0] == '/') {
        return parse_multiaddr(out, text);
    }
    if (strncmp(text, scheme, sizeof(scheme) - 1) == 0) {
        text += sizeof(scheme) - 1;
    }
    bool is_bracketed = text[0] == '[';
    const char *end = is_bracketed ? strchr(text, ']') : text + strcspn(text, ":/");
    if (end == NULL || end == text || (size_t)(end - text) >= sizeof(out->host)) {
        return false;
    }
    const char *host = text + is_bracketed;
    snprintf(out->host, sizeof(out->host), "%.*s", (int)(end - host), host);
    end += is_bracketed;
    snprintf(out->port, sizeof(out->port), "%s", default_port);
    if (*end == ':') {
        size_t digits = strspn(end + 1, "0123456789");
        snprintf(out->port, sizeof(out->port), "%.*s", (int)(digits < 6 ? digits : 6), end + 1);
        end += 1 + digits;
    }
    return (*end == '\0' || *end == '/') && out->port[0] != '\0';
}

static int connect_to(const struct http_place *place, unsigned timeout_s)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    struct timeval limit = {.tv_sec = timeout_s};
    int fd = -1;
    if (getaddrinfo(place->host, place->port, &hints, &list) != 0) {
        return -1;
    }
    for (struct addrinfo *one = list; one != NULL && fd < 0; one = one->ai_next) {
        fd = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
        if (fd < 0) {
            continue;
        }
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        if (connect(fd, one->ai_addr, one->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    return fd;
}

static bool send_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

/* What was received so far. */
struct received {
    char *bytes;
    size_t length;
    size_t capacity;
};

static bool make_room(struct received *received)
{
    if (received->length + 1 < received->capacity) {
        return true;
    }
    size_t capacity = received->capacity == 0 ? FIRST_CAPACITY : 2 * received->capacity;
    char *grown = capacity <= BODY_MAX ? realloc(received->bytes, capacity) : NULL;
    if (grown == NULL) {
        return false;
    }
    received->bytes = grown;
    received->capacity = capacity;
    return true;
}

/* All until the server closes; NULL: too much, no memory, or it broke off. */
static char *receive_all(int fd, size_t *length)
{
    struct received received = {.bytes = NULL};
    ssize_t got = -1;
    while (make_room(&received) && (got = recv(fd, received.bytes + received.length,
                                            received.capacity - received.length - 1, 0)) > 0) {
        received.length += (size_t)got;
        got = -1;
    }
    if (got != 0) {
        free(received.bytes);
        return NULL;
    }
    received.bytes[received.length] = '\0';
    *length = received.length;
    return received.bytes;
}

/* HTTP/1.0: the body is what is left when the server closes, never in chunks. */
static const char *exchange(
        struct http_answer *out, int fd, const struct http_place *place, const char *path)
{
    char request[1024];
    size_t length;
    int size = snprintf(request, sizeof(request),
            "GET %s HTTP/1.0\r\nHost: %s:%s\r\nConnection: close\r\n\r\n", path, place->host,
            place->port);
    if (size < 0 || (size_t)size >= sizeof(request) || !send_all(fd, request, (size_t)size)) {
        return "the request could not be sent";
    }
    char *bytes = receive_all(fd, &length);
    char *body = bytes == NULL ? NULL : strstr(bytes, "\r\n\r\n");
    if (body == NULL || sscanf(bytes, "HTTP/1.%*u %u", &out->status) != 1) {
        free(bytes);
        return "no HTTP answer";
    }
    body += 4;
    out->length = length - (size_t)(body - bytes);
    memmove(bytes, body, out->length + 1);
    out->body = bytes;
    return NULL;
}

const char *http_get(struct http_answer *out, const struct http_place *place, const char *path,
        unsigned timeout_s)
{
    *out = (struct http_answer){.body = NULL};
    int fd = connect_to(place, timeout_s);
    if (fd < 0) {
        return errno != 0 ? strerror(errno) : "cannot connect";
    }
    const char *fault = exchange(out, fd, place, path);
    close(fd);
    return fault;
}
