/* SPDX-License-Identifier: MIT */
#include "net/transport/tls.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/memory.h"

struct tls_context {
    SSL_CTX *ssl;
    bool is_server;
};

struct tls_session {
    SSL *ssl;
    BIO *input; /* both belong to ssl */
    BIO *output;
};

static enum status create_context(
        struct tls_context **out, const SSL_METHOD *method, bool is_server)
{
    struct tls_context *context = memory_allocate_zeroed(sizeof(*context));
    if (context == NULL) {
        return STATUS_NO_MEMORY;
    }
    context->ssl = SSL_CTX_new(method);
    if (context->ssl == NULL) {
        memory_free(context);
        return STATUS_NO_MEMORY;
    }
    context->is_server = is_server;
    SSL_CTX_set_min_proto_version(context->ssl, TLS1_2_VERSION);
    SSL_CTX_set_options(context->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    /* An idle session then holds no record buffers. */
    SSL_CTX_set_mode(context->ssl, SSL_MODE_RELEASE_BUFFERS);
    *out = context;
    return STATUS_OK;
}

enum status tls_context_create_server(
        struct tls_context **out, const char *certificate_file, const char *key_file)
{
    struct tls_context *context;
    enum status status = create_context(&context, TLS_server_method(), true);
    if (status != STATUS_OK) {
        return status;
    }
    SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_OFF);
    if (SSL_CTX_use_certificate_chain_file(context->ssl, certificate_file) != 1 ||
            SSL_CTX_use_PrivateKey_file(context->ssl, key_file, SSL_FILETYPE_PEM) != 1 ||
            SSL_CTX_check_private_key(context->ssl) != 1) {
        ERR_clear_error();
        tls_context_destroy(&context);
        return STATUS_BAD_KEY;
    }
    *out = context;
    return STATUS_OK;
}

enum status tls_context_create_client(struct tls_context **out)
{
    struct tls_context *context;
    enum status status = create_context(&context, TLS_client_method(), false);
    if (status != STATUS_OK) {
        return status;
    }
    SSL_CTX_set_verify(context->ssl, SSL_VERIFY_NONE, NULL);
    *out = context;
    return STATUS_OK;
}

void tls_context_destroy(struct tls_context **context)
{
    if (*context == NULL) {
        return;
    }
    SSL_CTX_free((*context)->ssl);
    memory_free(*context);
    *context = NULL;
}

static bool is_number(const char *host)
{
    uint8_t ip[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1;
}

enum status tls_session_create(
        struct tls_session **out, struct tls_context *context, const char *server_name)
{
    struct tls_session *session = memory_allocate_zeroed(sizeof(*session));
    if (session == NULL) {
        return STATUS_NO_MEMORY;
    }
    session->ssl = SSL_new(context->ssl);
    session->input = BIO_new(BIO_s_mem());
    session->output = BIO_new(BIO_s_mem());
    if (session->ssl == NULL || session->input == NULL || session->output == NULL) {
        BIO_free(session->input);
        BIO_free(session->output);
        SSL_free(session->ssl);
        memory_free(session);
        return STATUS_NO_MEMORY;
    }
    SSL_set_bio(session->ssl, session->input, session->output);
    if (context->is_server) {
        SSL_set_accept_state(session->ssl);
    } else {
        SSL_set_connect_state(session->ssl);
        if (server_name != NULL && server_name[0] != '\0' && !is_number(server_name)) {
            SSL_set_tlsext_host_name(session->ssl, server_name);
        }
    }
    *out = session;
    return STATUS_OK;
}

void tls_session_destroy(struct tls_session **session)
{
    if (*session == NULL) {
        return;
    }
    SSL_free((*session)->ssl);
    memory_free(*session);
    *session = NULL;
}

static int clamp_length(size_t length)
{
    return length > INT_MAX ? INT_MAX : (int)length;
}

enum status tls_session_feed(struct tls_session *session, struct span ciphertext)
{
    while (ciphertext.length > 0) {
        int n = BIO_write(session->input, ciphertext.bytes, clamp_length(ciphertext.length));
        if (n <= 0) {
            return STATUS_NO_MEMORY;
        }
        ciphertext.bytes += n;
        ciphertext.length -= (size_t)n;
    }
    return STATUS_OK;
}

/* What OpenSSL's refusal means: OK is "not now, more bytes are needed". */
static enum status classify(struct tls_session *session, int result)
{
    int error = SSL_get_error(session->ssl, result);
    ERR_clear_error();
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        return STATUS_OK;
    }
    return error == SSL_ERROR_ZERO_RETURN ? STATUS_CLOSED : STATUS_BAD_FRAME;
}

enum status tls_session_handshake(struct tls_session *session, bool *is_done)
{
    int result = SSL_do_handshake(session->ssl);
    *is_done = result == 1;
    if (*is_done) {
        return STATUS_OK;
    }
    enum status status = classify(session, result);
    return status == STATUS_OK ? STATUS_OK : STATUS_BAD_HANDSHAKE;
}

enum status tls_session_read(
        struct tls_session *session, uint8_t *to, size_t capacity, size_t *length)
{
    int result = SSL_read(session->ssl, to, clamp_length(capacity));
    if (result > 0) {
        *length = (size_t)result;
        return STATUS_OK;
    }
    *length = 0;
    return classify(session, result);
}

enum status tls_session_write(struct tls_session *session, struct span plaintext)
{
    size_t written = 0;
    if (plaintext.length == 0) {
        return STATUS_OK;
    }
    /* A memory BIO takes everything, so a short write is out of memory or a dead session. */
    int result = SSL_write_ex(session->ssl, plaintext.bytes, plaintext.length, &written);
    if (result != 1 || written != plaintext.length) {
        ERR_clear_error();
        return STATUS_CLOSED;
    }
    return STATUS_OK;
}

size_t tls_session_take_output(struct tls_session *session, uint8_t *to, size_t capacity)
{
    int n = BIO_read(session->output, to, clamp_length(capacity));
    return n > 0 ? (size_t)n : 0;
}
