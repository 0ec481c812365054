/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * TLS for /wss, without sockets: bytes go in and come out through memory.
 *
 * Whom we talk to is proven by Noise inside; certificates are there for browsers. So a dialled
 * peer's certificate is not checked.
 *
 * Thread: a context is shared by all (OpenSSL locks inside); a session belongs to one. reload on any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

struct tls_context;
struct tls_session;

/* PEM files. STATUS_BAD_KEY when they cannot be read or do not belong together. */
MUST_USE enum status tls_context_create_server(
        struct tls_context **out, const char *certificate_file, const char *key_file);

/*
 * The same with other files, for sessions that are created from now on; those that stand go on. On
 * failure all stays as it was.
 */
MUST_USE enum status tls_context_reload(
        struct tls_context *context, const char *certificate_file, const char *key_file);
MUST_USE enum status tls_context_create_client(struct tls_context **out);
void tls_context_destroy(struct tls_context **context);

/* server_name: for a client, the name to ask for; NULL or a number: none. */
MUST_USE enum status tls_session_create(
        struct tls_session **out, struct tls_context *context, const char *server_name);
void tls_session_destroy(struct tls_session **session);

/* Ciphertext from the socket. */
MUST_USE enum status tls_session_feed(struct tls_session *session, struct span ciphertext);

/* Goes on with the handshake as far as it can; *is_done once bytes can flow. */
MUST_USE enum status tls_session_handshake(struct tls_session *session, bool *is_done);

/* Plaintext: *length is 0 when there is none now. STATUS_CLOSED after the peer's last byte. */
MUST_USE enum status tls_session_read(
        struct tls_session *session, uint8_t *to, size_t capacity, size_t *length);
MUST_USE enum status tls_session_write(struct tls_session *session, struct span plaintext);

/* Ciphertext for the socket, as much as fits; call until it returns 0. */
size_t tls_session_take_output(struct tls_session *session, uint8_t *to, size_t capacity);
