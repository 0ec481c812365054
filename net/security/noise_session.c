/* SPDX-License-Identifier: MIT */
#include "net/security/noise_session.h"

#include <assert.h>

#include "base/memory.h"

struct noise_session {
    struct noise_cipher send;
    struct noise_cipher receive;
    const uint8_t *next; /* ciphertext of what is to be read next */
    size_t remaining;    /* verified and not yet read */
    bool is_dead;
};

enum status noise_session_create(struct noise_session **out,
        const uint8_t send_key[NOISE_CIPHER_KEY_BYTES],
        const uint8_t receive_key[NOISE_CIPHER_KEY_BYTES])
{
    struct noise_session *session = memory_allocate_zeroed(sizeof(*session));
    if (session == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (noise_cipher_init(&session->send) != STATUS_OK ||
            noise_cipher_init(&session->receive) != STATUS_OK) {
        noise_session_destroy(&session);
        return STATUS_NO_MEMORY;
    }
    noise_cipher_set_key(&session->send, send_key);
    noise_cipher_set_key(&session->receive, receive_key);
    *out = session;
    return STATUS_OK;
}

void noise_session_destroy(struct noise_session **session)
{
    if (*session == NULL) {
        return;
    }
    noise_cipher_fini(&(*session)->send);
    noise_cipher_fini(&(*session)->receive);
    memory_free(*session);
    *session = NULL;
}

void noise_session_set_nonces(struct noise_session *session, uint64_t send, uint64_t receive)
{
    session->send.nonce = send;
    session->receive.nonce = receive;
}

enum status noise_session_open(
        struct noise_session *session, const uint8_t *ciphertext, size_t length)
{
    assert(session->remaining == 0);
    if (session->is_dead || length > NOISE_MAX_CIPHERTEXT) {
        return STATUS_BAD_FRAME;
    }
    enum status status =
            noise_cipher_verify(&session->receive, span_of(NULL, 0), span_of(ciphertext, length));
    if (status != STATUS_OK) {
        session->is_dead = true;
        return status;
    }
    session->next = ciphertext;
    session->remaining = length - NOISE_TAG_BYTES;
    return STATUS_OK;
}

size_t noise_session_remaining(const struct noise_session *session)
{
    return session->remaining;
}

void noise_session_read(struct noise_session *session, uint8_t *to, size_t n)
{
    assert(n <= session->remaining);
    noise_cipher_decrypt(&session->receive, to, session->next, n);
    session->next += n;
    session->remaining -= n;
}

size_t noise_session_seal(
        struct noise_session *session, const struct span pieces[], size_t count, uint8_t *out)
{
    size_t length = NOISE_TAG_BYTES;
    for (size_t i = 0; i < count; i++) {
        length += pieces[i].length;
    }
    assert(length <= NOISE_MAX_CIPHERTEXT);
    if (!noise_cipher_seal(
                &session->send, span_of(NULL, 0), pieces, count, out + NOISE_LENGTH_BYTES)) {
        return 0;
    }
    out[0] = (uint8_t)(length >> 8);
    out[1] = (uint8_t)length;
    return NOISE_LENGTH_BYTES + length;
}
