/* SPDX-License-Identifier: MIT */

/*
 * Shards that only the owner of a key publishes on (--protected-shard). Signatures are made here with
 * OpenSSL, from the reference's description, and not by the product's code.
 */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>

#include "base/clock.h"
#include "codec/waku_message.h"
#include "hash/sha256.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"
#include "tests/support/stranger.h"

enum {
    POINT_BYTES = 65,
    SIGNATURE_BYTES = 64,
    NUMBER_BYTES = 32,
    DER_MAX = 80,
    MESSAGE_MAX = 512,
    REFUSALS = 12 /* enough of them for the graylist: 100 times the square is above 10,000 */
};

#define CONTENT_TOPIC "/test/1/protected/proto"

static EVP_PKEY *make_key(void)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "secp256k1");
    assert_non_null(key);
    return key;
}

/* What the option takes for shard 0. */
static void name_shard(char out[160], EVP_PKEY *key)
{
    uint8_t point[POINT_BYTES];
    size_t length = 0;
    assert_int_equal(EVP_PKEY_get_octet_string_param(
                             key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point), &length),
            1);
    assert_int_equal(length, POINT_BYTES);
    char *end = out + sprintf(out, "0:");
    for (size_t i = 0; i < length; i++) {
        end += sprintf(end, "%02x", point[i]);
    }
}

/* Of s and the order less s the smaller one. */
static BIGNUM *smaller(const BIGNUM *s)
{
    BIGNUM *order = NULL;
    BIGNUM *other = BN_new();
    BN_hex2bn(&order, "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
    BN_sub(other, order, s);
    if (BN_cmp(other, s) > 0) {
        BN_copy(other, s);
    }
    BN_free(order);
    return other;
}

static void sign_digest(uint8_t out[SIGNATURE_BYTES], EVP_PKEY *key, const uint8_t digest[32])
{
    uint8_t der[DER_MAX];
    const uint8_t *start = der;
    size_t length = sizeof(der);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key, NULL);
    assert_int_equal(EVP_PKEY_sign_init(context), 1);
    assert_int_equal(EVP_PKEY_sign(context, der, &length, digest, 32), 1);
    EVP_PKEY_CTX_free(context);
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &start, (long)length);
    assert_non_null(signature);
    BIGNUM *s = smaller(ECDSA_SIG_get0_s(signature));
    BN_bn2binpad(ECDSA_SIG_get0_r(signature), out, NUMBER_BYTES);
    BN_bn2binpad(s, out + NUMBER_BYTES, NUMBER_BYTES);
    BN_free(s);
    ECDSA_SIG_free(signature);
}

/* Pubsub topic, payload, content topic, time as 8 bytes from the lowest on, and ephemeral. */
static void sign(
        uint8_t out[SIGNATURE_BYTES], EVP_PKEY *key, const struct waku_message_view *message)
{
    uint8_t digest[32];
    uint8_t timestamp[8];
    uint8_t is_ephemeral = message->ephemeral;
    for (size_t i = 0; i < sizeof(timestamp); i++) {
        timestamp[i] = (uint8_t)((uint64_t)message->timestamp_ns >> (8 * i));
    }
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    EVP_DigestInit(hash, EVP_sha256());
    EVP_DigestUpdate(hash, LIVE_NODE_TOPIC, strlen(LIVE_NODE_TOPIC));
    EVP_DigestUpdate(hash, message->payload.bytes, message->payload.length);
    EVP_DigestUpdate(hash, message->content_topic.bytes, message->content_topic.length);
    EVP_DigestUpdate(hash, timestamp, sizeof(timestamp));
    EVP_DigestUpdate(hash, &is_ephemeral, 1);
    EVP_DigestFinal(hash, digest, NULL);
    EVP_MD_CTX_free(hash);
    sign_digest(out, key, digest);
}

/* A message with that number, signed with key unless that is NULL. Returns its length. */
static size_t make_message(uint8_t out[MESSAGE_MAX], unsigned number, EVP_PKEY *key)
{
    uint8_t signature[SIGNATURE_BYTES];
    char payload[32];
    struct waku_message_view encoded;
    struct waku_message_view fields = {
            .payload = span_of((const uint8_t *)payload,
                    (size_t)snprintf(payload, sizeof(payload), "message %u", number)),
            .content_topic = span_of_text(CONTENT_TOPIC),
            .timestamp_ns = clock_wall_ns(),
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true,
            .ephemeral = number % 2 == 1};
    if (key != NULL) {
        sign(signature, key, &fields);
        fields.meta = span_of(signature, sizeof(signature));
    }
    return waku_message_encode_view(out, MESSAGE_MAX, &fields, &encoded);
}

struct digest {
    uint8_t bytes[SHA256_BYTES];
};

static struct digest publish(struct live_node *from, unsigned number, EVP_PKEY *key)
{
    uint8_t message[MESSAGE_MAX];
    struct digest digest;
    struct span bytes = span_of(message, make_message(message, number, key));
    sha256(digest.bytes, (struct sha256_pieces){&bytes, 1});
    live_node_publish(from, bytes);
    return digest;
}

static bool has_received(struct live_node *live, const struct digest *digest)
{
    bool has = false;
    pthread_mutex_lock(&live->mutex);
    for (size_t i = 0; i < live->count; i++) {
        has = has || memcmp(live->digests[i], digest->bytes, sizeof(digest->bytes)) == 0;
    }
    pthread_mutex_unlock(&live->mutex);
    return has;
}

static uint64_t refused(const struct live_node *live)
{
    return live_node_metric(live, (enum metric)LEDGER_INTAKE_NOT_SIGNED);
}

/* Publishes signed messages until the other one gets some. Returns the next number. */
static unsigned wait_for_way(
        struct live_node *from, struct live_node *to, unsigned number, EVP_PKEY *key)
{
    struct timespec slice = {.tv_nsec = 20 * NANOSECONDS_PER_MILLISECOND};
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    size_t before = live_node_received(to);
    while (live_node_received(to) == before) {
        assert_true(clock_monotonic_ns() < end_ns);
        (void)publish(from, number++, key);
        nanosleep(&slice, NULL);
    }
    return number;
}

/* Published at one end, where nothing is protected; the other end is behind the node in the middle. */
static void only_what_the_owner_signed_crosses_a_node(void **state)
{
    (void)state;
    char shard[160];
    EVP_PKEY *owner = make_key();
    EVP_PKEY *other = make_key();
    struct live_node free_node;
    struct live_node middle;
    struct live_node end;
    name_shard(shard, owner);
    const char *protecting[] = {"protected-shard", shard, NULL};
    live_node_start(&middle, protecting);
    const char *to_middle[] = {"staticnode", middle.address, NULL};
    live_node_start(&free_node, to_middle);
    live_node_start(&end, to_middle);
    unsigned number = wait_for_way(&free_node, &end, 0, owner);
    struct digest unsigned_one = publish(&free_node, number++, NULL);
    struct digest signed_by_other = publish(&free_node, number++, other);
    struct digest good = publish(&free_node, number, owner);
    /* The end protects nothing: it would have taken them, and before the last one. */
    live_node_wait_for(&end, good.bytes);
    assert_false(has_received(&end, &unsigned_one) || has_received(&end, &signed_by_other));
    assert_true(
            has_received(&free_node, &unsigned_one) && has_received(&free_node, &signed_by_other));
    assert_int_equal(refused(&middle), 2);
    live_node_stop(&free_node);
    live_node_stop(&end);
    live_node_stop(&middle);
    EVP_PKEY_free(owner);
    EVP_PKEY_free(other);
}

static void a_node_refuses_its_own_applications_unsigned_messages(void **state)
{
    (void)state;
    char shard[160];
    EVP_PKEY *owner = make_key();
    struct live_node node;
    name_shard(shard, owner);
    const char *protecting[] = {"protected-shard", shard, NULL};
    live_node_start(&node, protecting);
    (void)publish(&node, 1, NULL);
    live_node_wait_metric(&node, (enum metric)LEDGER_INTAKE_NOT_SIGNED, 1);
    (void)publish(&node, 2, owner);
    live_node_wait(&node, 1);
    /* The very same bytes once more are a copy, and with another payload behind them unsigned. */
    uint8_t message[MESSAGE_MAX];
    size_t length = make_message(message, 3, owner);
    live_node_publish(&node, span_of(message, length));
    live_node_wait(&node, 2);
    message[3] ^= 1; /* within the payload */
    live_node_publish(&node, span_of(message, length));
    live_node_wait_metric(&node, (enum metric)LEDGER_INTAKE_NOT_SIGNED, 2);
    assert_int_equal(live_node_received(&node), 2);
    live_node_stop(&node);
    EVP_PKEY_free(owner);
}

static void talk_until_disconnected(struct stranger *stranger)
{
    uint8_t message[MESSAGE_MAX];
    struct timespec slice = {.tv_nsec = NANOSECONDS_PER_MILLISECOND};
    while (stranger_is_connected(stranger)) {
        stranger_publish(
                stranger, LIVE_NODE_TOPIC, span_of(message, make_message(message, 1, NULL)));
        nanosleep(&slice, NULL);
    }
}

/* As an invalid message counts against its sender; the score outlives the connection. */
static void who_floods_a_protected_shard_is_left_and_not_heard_again(void **state)
{
    (void)state;
    static const struct stranger_options plain = {0};
    uint8_t message[MESSAGE_MAX];
    char shard[160];
    EVP_PKEY *owner = make_key();
    struct identity *identity;
    struct live_node node;
    struct stranger honest;
    struct stranger hostile;
    name_shard(shard, owner);
    const char *protecting[] = {"protected-shard", shard, NULL};
    assert_int_equal(identity_create(&identity, KEY_TYPE_ED25519), STATUS_OK);
    struct stranger_options named = {.identity = identity};
    live_node_start(&node, protecting);
    stranger_start(&honest, &plain, node.address);
    stranger_start(&hostile, &named, node.address);
    for (unsigned i = 0; i < REFUSALS; i++) {
        stranger_publish(
                &hostile, LIVE_NODE_TOPIC, span_of(message, make_message(message, i, NULL)));
    }
    stranger_wait_disconnected(&hostile);
    stranger_stop(&hostile);
    /* It comes again: what it says is thrown away, unless a heartbeat ends it before it says anything. */
    uint64_t before = live_node_metric(&node, METRIC_RELAY_FRAMES_GRAYLISTED);
    while (live_node_metric(&node, METRIC_RELAY_FRAMES_GRAYLISTED) == before) {
        stranger_start(&hostile, &named, node.address);
        talk_until_disconnected(&hostile);
        stranger_stop(&hostile);
    }
    stranger_publish(&honest, LIVE_NODE_TOPIC, span_of(message, make_message(message, 2, owner)));
    live_node_wait(&node, 1);
    assert_true(stranger_is_connected(&honest));
    stranger_stop(&honest);
    live_node_stop(&node);
    identity_destroy(&identity);
    EVP_PKEY_free(owner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(only_what_the_owner_signed_crosses_a_node),
            cmocka_unit_test(a_node_refuses_its_own_applications_unsigned_messages),
            cmocka_unit_test(who_floods_a_protected_shard_is_left_and_not_heard_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
