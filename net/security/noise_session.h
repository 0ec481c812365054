/* SPDX-License-Identifier: MIT */
#pragma once

/* How the handshake makes the session that noise.h describes. */

#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/security/noise.h"
#include "net/security/noise_cipher.h"

MUST_USE enum status noise_session_create(struct noise_session **out,
        const uint8_t send_key[NOISE_CIPHER_KEY_BYTES],
        const uint8_t receive_key[NOISE_CIPHER_KEY_BYTES]);

/* For tests of what happens at the end of the nonces. */
void noise_session_set_nonces(struct noise_session *session, uint64_t send, uint64_t receive);
