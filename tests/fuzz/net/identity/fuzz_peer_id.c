/* SPDX-License-Identifier: MIT */

/* What is taken prints as text that parses to the same id, in either form of the input. */

#include <assert.h>

#include "net/identity/peer_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct peer_id *id)
{
    char text[PEER_ID_TEXT_SIZE];
    struct peer_id again;
    peer_id_print(text, id);
    enum status status = peer_id_parse(&again, span_of_text(text));
    assert(status == STATUS_OK && peer_id_equal(id, &again));
    assert(peer_id_compare(id, &again) == 0);
    assert(peer_id_hash(id, 1) == peer_id_hash(&again, 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peer_id id;
    if (peer_id_parse(&id, span_of(data, size)) == STATUS_OK) {
        check(&id);
    }
    if (peer_id_from_bytes(&id, span_of(data, size)) == STATUS_OK) {
        check(&id);
    }
    return 0;
}
