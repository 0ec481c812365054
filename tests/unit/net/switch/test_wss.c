/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "net/transport/tls.h"
#include "tests/unit/net/switch/test_node.h"

static char certificate_path[] = "/tmp/sluice-certificate-XXXXXX";
static char key_path[] = "/tmp/sluice-key-XXXXXX";
static char other_key_path[] = "/tmp/sluice-key-XXXXXX";

static FILE *create_file(char *path)
{
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    return file;
}

static X509 *make_certificate(EVP_PKEY *key)
{
    X509 *certificate = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(
            name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    return certificate;
}

static void write_key(EVP_PKEY *key, char *path)
{
    FILE *file = create_file(path);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
}

static int create_files(void **state)
{
    (void)state;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    EVP_PKEY *other = EVP_EC_gen("P-256");
    X509 *certificate = make_certificate(key);
    FILE *file = create_file(certificate_path);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
    write_key(key, key_path);
    write_key(other, other_key_path);
    X509_free(certificate);
    EVP_PKEY_free(other);
    EVP_PKEY_free(key);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(certificate_path);
    unlink(key_path);
    unlink(other_key_path);
    return 0;
}

static void nodes_connect_over_tls_and_websocket(void **state)
{
    (void)state;
    struct tls_context *tls;
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[] = {&a, &b};
    assert_int_equal(tls_context_create_server(&tls, certificate_path, key_path), STATUS_OK);
    struct switch_options options = {.tls_server = tls};
    test_node_init(&a, NULL, NULL);
    test_node_init(&b, &options, "/ip4/127.0.0.1/tcp/0/wss");
    test_nodes_connect(&a, &b);
    assert_string_equal(connection_muxer(a.last_connection), "/yamux/1.0.0");
    test_nodes_fini(nodes, 2);
    tls_context_destroy(&tls);
}

static void a_secure_listener_needs_a_certificate(void **state)
{
    (void)state;
    struct test_node node;
    struct test_node *nodes[] = {&node};
    struct multiaddr address;
    test_node_init(&node, NULL, NULL);
    assert_int_equal(
            multiaddr_parse(&address, span_of_text("/ip4/127.0.0.1/tcp/0/wss")), STATUS_OK);
    assert_int_equal(switch_listen(node.net_switch, &address), STATUS_UNSUPPORTED);
    test_nodes_fini(nodes, 1);
}

static void files_that_do_not_belong_together_are_refused(void **state)
{
    (void)state;
    struct tls_context *tls;
    assert_int_equal(
            tls_context_create_server(&tls, certificate_path, other_key_path), STATUS_BAD_KEY);
    assert_int_equal(
            tls_context_create_server(&tls, "/nowhere/certificate", key_path), STATUS_BAD_KEY);
    assert_int_equal(tls_context_create_server(&tls, key_path, key_path), STATUS_BAD_KEY);
}

static bool has_failed(void *context)
{
    const struct test_node *node = context;
    return node->dials_done > 0 && switch_upgrade_count(node->net_switch) == 0;
}

static void a_peer_that_speaks_no_tls_is_closed(void **state)
{
    (void)state;
    struct tls_context *tls;
    struct test_node server;
    struct test_node plain;
    struct test_node *nodes[] = {&server, &plain};
    struct multiaddr_endpoint endpoint;
    assert_int_equal(tls_context_create_server(&tls, certificate_path, key_path), STATUS_OK);
    struct switch_options options = {.tls_server = tls};
    test_node_init(&server, &options, "/ip4/127.0.0.1/tcp/0/wss");
    test_node_init(&plain, NULL, NULL);
    assert_int_equal(multiaddr_endpoint(&endpoint, &server.address), STATUS_OK);
    endpoint.is_secure = false;
    assert_int_equal(multiaddr_from_endpoint(&server.address, &endpoint), STATUS_OK);
    uint64_t before = count_of(METRIC_NET_CLOSED_BAD_TRANSPORT);
    test_node_dial(&plain, &server.address);
    test_nodes_run(nodes, 2, has_failed, &plain);
    assert_int_not_equal(plain.dial_status, STATUS_OK);
    assert_true(count_of(METRIC_NET_CLOSED_BAD_TRANSPORT) > before);
    test_nodes_fini(nodes, 2);
    tls_context_destroy(&tls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(nodes_connect_over_tls_and_websocket),
            cmocka_unit_test(a_secure_listener_needs_a_certificate),
            cmocka_unit_test(files_that_do_not_belong_together_are_refused),
            cmocka_unit_test(a_peer_that_speaks_no_tls_is_closed),
    };
    return cmocka_run_group_tests(tests, create_files, remove_files);
}
