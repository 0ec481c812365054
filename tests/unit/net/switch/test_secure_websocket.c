/* SPDX-License-Identifier: MIT */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "net/protocols/echo.h"
#include "net/transport/tls.h"
#include "tests/unit/net/switch/test_node.h"

enum {
    LARGE_BYTES = 4 * 1024 * 1024,
    BLOCK_BYTES = 64 * 1024,
    /* What OpenSSL may keep for one connection more than for one that has carried nothing. */
    KEPT_MAX = 96 * 1024,
    PATH_BYTES = 64
};

static const char any_port[] = "/ip4/127.0.0.1/tcp/0/tls/ws";

/* Bytes that OpenSSL holds. Its size in front of each block keeps the block aligned. */
static size_t held_bytes;

enum {
    SIZE_BYTES = 16
};

static void *counted_allocate(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    char *block = malloc(size + SIZE_BYTES);
    if (block == NULL) {
        return NULL;
    }
    memcpy(block, &size, sizeof(size));
    held_bytes += size;
    return block + SIZE_BYTES;
}

static void counted_free(void *bytes, const char *file, int line)
{
    (void)file;
    (void)line;
    size_t size;
    if (bytes == NULL) {
        return;
    }
    char *block = (char *)bytes - SIZE_BYTES;
    memcpy(&size, block, sizeof(size));
    held_bytes -= size;
    free(block);
}

static void *counted_resize(void *bytes, size_t size, const char *file, int line)
{
    size_t before = 0;
    void *grown = size == 0 ? NULL : counted_allocate(size, file, line);
    if (bytes != NULL && grown != NULL) {
        memcpy(&before, (char *)bytes - SIZE_BYTES, sizeof(before));
        memcpy(grown, bytes, before < size ? before : size);
    }
    if (grown != NULL || size == 0) {
        counted_free(bytes, file, line);
    }
    return grown;
}

static FILE *open_temporary(char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "/tmp/sluice-test-XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    return file;
}

/* A certificate that only proves that its maker has the key. */
static struct tls_context *make_tls(void)
{
    char certificate_path[PATH_BYTES];
    char key_path[PATH_BYTES];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    assert_non_null(key);
    assert_non_null(certificate);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    FILE *file = open_temporary(certificate_path);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
    file = open_temporary(key_path);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
    struct tls_context *tls = NULL;
    assert_int_equal(tls_context_create_server(&tls, certificate_path, key_path), STATUS_OK);
    unlink(certificate_path);
    unlink(key_path);
    return tls;
}

struct transfer {
    size_t received;
    bool is_closed;
    enum status reason;
    uint8_t block[BLOCK_BYTES];
};

static uint8_t *payload;

static enum status on_opened(struct stream *stream)
{
    struct muxer_piece piece = {.bytes = span_of(payload, LARGE_BYTES)};
    enum status status = stream_write(stream, &piece, 1);
    stream_close_write(stream);
    return status;
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct transfer *transfer = stream_context(stream);
    *to = transfer->block;
    return wanted < BLOCK_BYTES ? wanted : BLOCK_BYTES;
}

static void on_commit(struct stream *stream, size_t n)
{
    struct transfer *transfer = stream_context(stream);
    assert_true(n <= LARGE_BYTES - transfer->received);
    assert_memory_equal(transfer->block, payload + transfer->received, n);
    transfer->received += n;
    stream_consumed(stream, n);
}

static void on_closed(struct stream *stream, enum status reason)
{
    struct transfer *transfer = stream_context(stream);
    transfer->is_closed = true;
    transfer->reason = reason;
}

static bool is_closed(void *context)
{
    const struct transfer *transfer = context;
    return transfer->is_closed;
}

static void echo_large(struct test_node *nodes[2])
{
    static const char *const ids[] = {ECHO_PROTOCOL_ID};
    static const struct stream_events events = {
            .opened = on_opened, .reserve = on_reserve, .commit = on_commit, .closed = on_closed};
    struct transfer *transfer = memory_allocate_zeroed(sizeof(*transfer));
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &events, .context = transfer};
    assert_int_equal(connection_open_stream(nodes[0]->last_connection, &request, NULL), STATUS_OK);
    io_loop_wake(nodes[0]->loop);
    test_nodes_run(nodes, 2, is_closed, transfer);
    assert_int_equal(transfer->reason, STATUS_OK);
    assert_int_equal(transfer->received, LARGE_BYTES);
    memory_free(transfer);
}

static void a_secure_connection_carries_much_and_keeps_little(void **state)
{
    (void)state;
    struct tls_context *tls = make_tls();
    struct switch_options limits = {.tls_server = tls};
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a, &b};
    payload = malloc(LARGE_BYTES);
    for (size_t i = 0; i < LARGE_BYTES; i++) {
        payload[i] = (uint8_t)(i * 31 + i / 251);
    }
    test_node_init(&a, NULL, NULL);
    test_node_init(&b, &limits, any_port);
    test_nodes_connect(&a, &b);
    size_t before = held_bytes;
    echo_large(nodes);
    size_t connections = 2;
    assert_true(held_bytes < before + connections * KEPT_MAX);
    free(payload);
    test_nodes_fini(nodes, 2);
    tls_context_destroy(&tls);
}

static void a_listener_without_a_certificate_is_refused(void **state)
{
    (void)state;
    struct test_node a;
    struct multiaddr address;
    test_node_init(&a, NULL, NULL);
    assert_int_equal(multiaddr_parse(&address, span_of_text(any_port)), STATUS_OK);
    assert_int_equal(switch_listen(a.net_switch, &address), STATUS_UNSUPPORTED);
    test_nodes_fini((struct test_node *[]){&a}, 1);
}

static bool is_it_closed(void *context)
{
    return raw_is_closed(*(int *)context);
}

static void garbage_instead_of_tls_closes_only_who_sent_it(void **state)
{
    (void)state;
    struct tls_context *tls = make_tls();
    struct switch_options limits = {.tls_server = tls};
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a, &b};
    static const uint8_t garbage[64] = "GET / HTTP/1.1\r\nHost: not TLS\r\n\r\n";
    test_node_init(&a, NULL, NULL);
    test_node_init(&b, &limits, any_port);
    test_nodes_connect(&a, &b);
    uint64_t before = count_of(METRIC_NET_CLOSED_BAD_TRANSPORT);
    int descriptor = raw_connect(&b);
    raw_send(descriptor, garbage, sizeof(garbage));
    test_nodes_run(nodes, 2, is_it_closed, &descriptor);
    close(descriptor);
    assert_int_equal(count_of(METRIC_NET_CLOSED_BAD_TRANSPORT), before + 1);
    assert_int_equal(b.disconnected, 0);
    test_nodes_fini(nodes, 2);
    tls_context_destroy(&tls);
}

int main(void)
{
    /* Before OpenSSL has allocated anything. */
    if (CRYPTO_set_mem_functions(counted_allocate, counted_resize, counted_free) != 1) {
        return 1;
    }
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_secure_connection_carries_much_and_keeps_little),
            cmocka_unit_test(a_listener_without_a_certificate_is_refused),
            cmocka_unit_test(garbage_instead_of_tls_closes_only_who_sent_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
