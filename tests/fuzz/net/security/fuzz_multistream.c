/* SPDX-License-Identifier: MIT */

/*
 * The first byte chooses the side and the cut, the rest is what the peer sends. Nothing is taken
 * beyond the agreement, and what waits to be sent stays within its limit.
 */

#include <assert.h>

#include "net/security/multistream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const protocols[] = {"/noise", "/yamux/1.0.0", NULL};

static const char *find(void *context, struct span name)
{
    (void)context;
    for (size_t i = 0; protocols[i] != NULL; i++) {
        if (span_equal(span_of_text(protocols[i]), name)) {
            return protocols[i];
        }
    }
    return NULL;
}

static const char *at(void *context, size_t i)
{
    (void)context;
    return protocols[i];
}

static struct multistream *create(bool is_initiator)
{
    struct multistream *negotiation = NULL;
    const struct multistream_offer offer = {.find = find, .at = at};
    enum status status = is_initiator ? multistream_create_initiator(&negotiation, protocols, 2)
                                      : multistream_create_responder(&negotiation, &offer);
    return status == STATUS_OK ? negotiation : NULL;
}

static void feed(struct multistream *negotiation, struct span input, size_t cut, bool is_reader)
{
    enum status status = STATUS_OK;
    while (input.length > 0 && status == STATUS_OK) {
        size_t consumed = 0;
        size_t n = input.length < cut ? input.length : cut;
        status = multistream_receive(negotiation, span_of(input.bytes, n), &consumed);
        struct span output = multistream_output(negotiation);
        assert(consumed <= n && output.length <= MULTISTREAM_MAX_OUTPUT);
        if (is_reader) {
            multistream_output_taken(negotiation, output.length);
        }
        if (multistream_protocol(negotiation) != NULL) {
            assert(status == STATUS_OK);
            return;
        }
        assert(consumed == n || status != STATUS_OK);
        input = span_of(input.bytes + n, input.length - n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct multistream *negotiation = create((data[0] & 1) != 0);
    if (negotiation != NULL) {
        size_t cut = (data[0] & 4) != 0 ? SIZE_MAX : 1 + (size_t)(data[0] >> 3);
        feed(negotiation, span_of(data + 1, size - 1), cut, (data[0] & 2) != 0);
    }
    multistream_destroy(&negotiation);
    return 0;
}
