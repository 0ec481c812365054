/* SPDX-License-Identifier: MIT */
#include "net/transport/tls.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>

#include "base/memory.h"

struct tls_context {
    pthread_mutex_t mutex; /* held for the pointer only */
    SSL_CTX *ssl;          /* one reference; each session has its own */
    bool is_server;
};

struct tls_session {
    SSL *ssl;
    BIO *input; /* both belong to ssl */
    BIO *output;
};

static SSL_CTX *create_ssl(const SSL_METHOD *method)
{
    SSL_CTX *ssl = SSL_CTX_new(method);
    if (ssl != NULL) {
        SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
        SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
        /* An idle session then holds no record buffers. */
        SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    }
    return ssl;
}

static enum status create_server_ssl(
        SSL_CTX **out, const char *certificate_file, const char *key_file)
{
    SSL_CTX *ssl = create_ssl(TLS_server_method());
    if (ssl == NULL) {
        return STATUS_NO_MEMORY;
    }
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    if (SSL_CTX_use_certificate_chain_file(ssl, certificate_file) != 1 ||
            SSL_CTX_use_PrivateKey_file(ssl, key_file, SSL_FILETYPE_PEM) != 1 ||
            SSL_CTX_check_private_key(ssl) != 1) {
        ERR_clear_error();
        SSL_CTX_free(ssl);
        return STATUS_BAD_KEY;
    }
    *out = ssl;
    return STATUS_OK;
}

/* Takes ssl over. */
static enum status create_context(struct tls_context **out, SSL_CTX *ssl, bool is_server)
{
    struct tls_context *context = memory_allocate_zeroed(sizeof(*context));
    if (context == NULL) {
        SSL_CTX_free(ssl);
        return STATUS_NO_MEMORY;
    }
    pthread_mutex_init(&context->mutex, NULL);
    context->ssl = ssl;
    context->is_server = is_server;
    *out = context;
    return STATUS_OK;
}

enum status tls_context_create_server(
        struct tls_context **out, const char *certificate_file, const char *key_file)
{
    SSL_CTX *ssl;
    enum status status = create_server_ssl(&ssl, certificate_file, key_file);
    return status == STATUS_OK ? create_context(out, ssl, true) : status;
}

enum status tls_context_reload(
        struct tls_context *context, const char *certificate_file, const char *key_file)
{
    SSL_CTX *ssl;
    enum status status = create_server_ssl(&ssl, certificate_file, key_file);
    if (status != STATUS_OK) {
        return status;
    }
    pthread_mutex_lock(&context->mutex);
    SSL_CTX *before = context->ssl;
    context->ssl = ssl;
    pthread_mutex_unlock(&context->mutex);
    SSL_CTX_free(before);
    return STATUS_OK;
}

enum status tls_context_create_client(struct tls_context **out)
{
    SSL_CTX *ssl = create_ssl(TLS_client_method());
    if (ssl == NULL) {
        return STATUS_NO_MEMORY;
    }
    SSL_CTX_set_verify(ssl, SSL_VERIFY_NONE, NULL);
    return create_context(out, ssl, false);
}

void tls_context_destroy(struct tls_context **context)
{
    if (*context == NULL) {
        return;
    }
    SSL_CTX_free((*context)->ssl);
    pthread_mutex_destroy(&(*context)->mutex);
    memory_free(*context);
    *context = NULL;
}

static bool is_number(const char *host)
{
    uint8_t ip[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1;
}

static SSL *create_session_ssl(struct tls_context *context)
{
    pthread_mutex_lock(&context->mutex);
    SSL *ssl = SSL_new(context->ssl);
    pthread_mutex_unlock(&context->mutex);
    return ssl;
}

enum status tls_session_create(
        struct tls_session **out, struct tls_context *context, const char *server_name)
{
    struct tls_session *session = memory_allocate_zeroed(sizeof(*session));
    if (session == NULL) {
        return STATUS_NO_MEMORY;
    }
    session->ssl = create_session_ssl(context);
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
