/* SPDX-License-Identifier: MIT */

/* Base64: what is decoded and written again decodes to the same bytes. */

#include "codec/base64.h"

#include <stdlib.h>

#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size / 4 * 3 + 3);
    char *text = malloc(size + 8);
    uint8_t *again = malloc(size / 4 * 3 + 6);
    size_t length;
    size_t length_again;
    REQUIRE(bytes != NULL && text != NULL && again != NULL);
    if (base64_decode(bytes, &length, span_of(data, size)) == STATUS_OK) {
        size_t written = base64_encode(text, span_of(bytes, length));
        REQUIRE(written == base64_size(length));
        REQUIRE(base64_decode(again, &length_again, span_of(text, written)) == STATUS_OK);
        REQUIRE(span_equal(span_of(bytes, length), span_of(again, length_again)));
        written = base64_encode_url(text, span_of(bytes, length));
        REQUIRE(base64_decode(again, &length_again, span_of(text, written)) == STATUS_OK);
        REQUIRE(span_equal(span_of(bytes, length), span_of(again, length_again)));
    }
    free(bytes);
    free(text);
    free(again);
    return 0;
}
