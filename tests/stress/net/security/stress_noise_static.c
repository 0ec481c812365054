/* SPDX-License-Identifier: MIT */

/* Several threads shake hands with one static key of Noise and sign with one identity. */

#include "tests/support/noise_pair.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    THREADS = 4,
    HANDSHAKES = 20 /* a thread */
};

struct shared {
    struct identity *identity;
    struct noise_static *own_static;
    atomic_int proven;
};

/* cmocka's assertions are for the main thread: this one only counts. */
static bool pass(struct noise_handshake *from, struct noise_handshake *to)
{
    size_t consumed;
    struct span output = noise_handshake_output(from);
    bool ok = noise_handshake_receive(to, output, &consumed) == STATUS_OK;
    noise_handshake_output_taken(from, output.length);
    return ok;
}

static bool shake_hands(const struct shared *shared)
{
    struct noise_handshake *sides[2] = {NULL, NULL};
    const struct noise_handshake_options dialler = {
            .own_static = shared->own_static, .is_initiator = true};
    const struct noise_handshake_options listener = {.identity = shared->identity};
    bool ok = noise_handshake_create(&sides[0], &dialler) == STATUS_OK &&
              noise_handshake_create(&sides[1], &listener) == STATUS_OK;
    ok = ok && pass(sides[0], sides[1]) && pass(sides[1], sides[0]) && pass(sides[0], sides[1]) &&
         noise_handshake_is_done(sides[1]) &&
         peer_id_equal(noise_handshake_peer(sides[1]), identity_peer_id(shared->identity));
    noise_handshake_destroy(&sides[0]);
    noise_handshake_destroy(&sides[1]);
    return ok;
}

static void *run(void *argument)
{
    struct shared *shared = argument;
    for (int i = 0; i < HANDSHAKES; i++) {
        atomic_fetch_add(&shared->proven, shake_hands(shared) ? 1 : 0);
    }
    return NULL;
}

static void run_threads(enum key_type type)
{
    pthread_t threads[THREADS];
    struct shared shared = {.identity = noise_pair_identity(type)};
    assert_int_equal(noise_static_create(&shared.own_static, shared.identity), STATUS_OK);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run, &shared), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&shared.proven), THREADS * HANDSHAKES);
    noise_static_destroy(&shared.own_static);
    identity_destroy(&shared.identity);
}

static void every_handshake_of_every_thread_is_proven(void **state)
{
    (void)state;
    run_threads(KEY_TYPE_ED25519);
    run_threads(KEY_TYPE_SECP256K1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_handshake_of_every_thread_is_proven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
