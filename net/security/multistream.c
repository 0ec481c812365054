/* SPDX-License-Identifier: MIT */
#include "net/security/multistream.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "codec/varint.h"

static const char header[] = "/multistream/1.0.0";
static const char refusal[] = "na";
static const char list_request[] = "ls";

enum {
    MAX_LENGTH_BYTES = 2, /* of the varint before a line */
    FIRST_OUTPUT_CAPACITY = 128,
    REFUSED_NAME_SIZE = 64
};

struct multistream {
    /* the initiator's */
    const char *const *protocols;
    size_t protocol_count;
    size_t proposed; /* index of the one the other side is to answer */
    /* the responder's */
    struct multistream_offer offer;
    size_t request_count;
    char refused[REFUSED_NAME_SIZE];
    /* both sides' */
    const char *agreed;
    enum status failure; /* once set, nothing more is taken */
    bool is_initiator;
    bool has_header;
    size_t line_length;   /* of the line that is coming in, known once has_line_length */
    bool has_line_length; /* false: line holds bytes of the length */
    size_t filled;
    size_t output_length;
    size_t output_taken;
    size_t output_capacity;
    uint8_t *output;
    uint8_t line[MULTISTREAM_MAX_LINE];
};

static enum status make_room(struct multistream *negotiation, size_t n)
{
    size_t needed = negotiation->output_length + n;
    if (needed <= negotiation->output_capacity) {
        return STATUS_OK;
    }
    if (needed > MULTISTREAM_MAX_OUTPUT) {
        return STATUS_LIMIT_REACHED;
    }
    size_t capacity = FIRST_OUTPUT_CAPACITY;
    while (capacity < needed) {
        capacity *= 2;
    }
    uint8_t *output = memory_resize(negotiation->output, capacity);
    if (output == NULL) {
        return STATUS_NO_MEMORY;
    }
    negotiation->output = output;
    negotiation->output_capacity = capacity;
    return STATUS_OK;
}

static uint8_t *put_line(uint8_t *out, struct span text)
{
    out = varint_write(out, text.length + 1);
    memcpy(out, text.bytes, text.length);
    out[text.length] = '\n';
    return out + text.length + 1;
}

static enum status queue_line(struct multistream *negotiation, struct span text)
{
    enum status status = make_room(negotiation, VARINT_MAX_BYTES + text.length + 1);
    if (status == STATUS_OK) {
        uint8_t *end = put_line(negotiation->output + negotiation->output_length, text);
        negotiation->output_length = (size_t)(end - negotiation->output);
    }
    return status;
}

static enum status create(struct multistream **out)
{
    *out = memory_allocate_zeroed(sizeof(**out));
    return *out != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

enum status multistream_create_initiator(
        struct multistream **out, const char *const protocols[], size_t count)
{
    struct multistream *negotiation;
    for (size_t i = 0; i < count; i++) {
        if (strlen(protocols[i]) >= MULTISTREAM_MAX_LINE) {
            return STATUS_BAD_ARGUMENT;
        }
    }
    if (count == 0) {
        return STATUS_BAD_ARGUMENT;
    }
    enum status status = create(&negotiation);
    if (status != STATUS_OK) {
        return status;
    }
    negotiation->is_initiator = true;
    negotiation->protocols = protocols;
    negotiation->protocol_count = count;
    status = queue_line(negotiation, span_of_text(header));
    if (status == STATUS_OK) {
        status = queue_line(negotiation, span_of_text(protocols[0]));
    }
    if (status != STATUS_OK) {
        multistream_destroy(&negotiation);
        return status;
    }
    *out = negotiation;
    return STATUS_OK;
}

enum status multistream_create_responder(
        struct multistream **out, const struct multistream_offer *offer)
{
    enum status status = create(out);
    if (status == STATUS_OK) {
        (*out)->offer = *offer;
    }
    return status;
}

void multistream_destroy(struct multistream **negotiation)
{
    if (*negotiation == NULL) {
        return;
    }
    memory_free((*negotiation)->output);
    memory_free(*negotiation);
    *negotiation = NULL;
}

static enum status take_answer(struct multistream *negotiation, struct span line)
{
    const char *proposal = negotiation->protocols[negotiation->proposed];
    if (span_equal(line, span_of_text(proposal))) {
        negotiation->agreed = proposal;
        return STATUS_OK;
    }
    if (!span_equal(line, span_of_text(refusal))) {
        return STATUS_BAD_HANDSHAKE;
    }
    negotiation->proposed++;
    if (negotiation->proposed == negotiation->protocol_count) {
        return STATUS_NO_COMMON_PROTOCOL;
    }
    return queue_line(negotiation, span_of_text(negotiation->protocols[negotiation->proposed]));
}

/* One line that holds a line for each offered protocol, as far as they fit, and a newline. */
static enum status answer_list(struct multistream *negotiation)
{
    uint8_t list[MULTISTREAM_MAX_LIST];
    size_t length = 0;
    const struct multistream_offer *offer = &negotiation->offer;
    for (size_t i = 0; offer->at != NULL; i++) {
        const char *name = offer->at(offer->context, i);
        if (name == NULL || strlen(name) + VARINT_MAX_BYTES + 1 > sizeof(list) - length) {
            break;
        }
        length = (size_t)(put_line(list + length, span_of_text(name)) - list);
    }
    return queue_line(negotiation, span_of(list, length));
}

static void remember_refused(struct multistream *negotiation, struct span name)
{
    size_t length = 0;
    for (; length < name.length && length < REFUSED_NAME_SIZE - 1; length++) {
        uint8_t c = name.bytes[length];
        bool is_printable = c >= ' ' && c < 0x7f;
        negotiation->refused[length] = (char)(is_printable ? c : '?');
    }
    negotiation->refused[length] = '\0';
}

static enum status take_proposal(struct multistream *negotiation, struct span line)
{
    if (++negotiation->request_count > MULTISTREAM_MAX_REQUESTS) {
        return STATUS_LIMIT_REACHED;
    }
    if (span_equal(line, span_of_text(list_request))) {
        return answer_list(negotiation);
    }
    const char *found = negotiation->offer.find(negotiation->offer.context, line);
    if (found == NULL) {
        remember_refused(negotiation, line);
        return queue_line(negotiation, span_of_text(refusal));
    }
    enum status status = queue_line(negotiation, line);
    if (status == STATUS_OK) {
        negotiation->agreed = found;
    }
    return status;
}

static enum status take_line(struct multistream *negotiation, struct span line)
{
    if (line.bytes[line.length - 1] != '\n') {
        return STATUS_BAD_HANDSHAKE;
    }
    line.length--;
    if (!negotiation->has_header) {
        negotiation->has_header = true;
        if (!span_equal(line, span_of_text(header))) {
            return STATUS_BAD_HANDSHAKE;
        }
        return negotiation->is_initiator ? STATUS_OK : queue_line(negotiation, line);
    }
    return negotiation->is_initiator ? take_answer(negotiation, line)
                                     : take_proposal(negotiation, line);
}

/* Takes one byte of the length before a line. */
static enum status take_length_byte(struct multistream *negotiation, uint8_t byte)
{
    negotiation->line[negotiation->filled++] = byte;
    struct span bytes = span_of(negotiation->line, negotiation->filled);
    uint64_t length;
    if (varint_read(&length, &bytes) != STATUS_OK) {
        return negotiation->filled < MAX_LENGTH_BYTES ? STATUS_OK : STATUS_TOO_LARGE;
    }
    if (length > MULTISTREAM_MAX_LINE) {
        return STATUS_TOO_LARGE;
    }
    if (length == 0) {
        return STATUS_BAD_HANDSHAKE;
    }
    negotiation->line_length = (size_t)length;
    negotiation->has_line_length = true;
    negotiation->filled = 0;
    return STATUS_OK;
}

static enum status take_line_bytes(
        struct multistream *negotiation, struct span input, size_t *taken)
{
    size_t missing = negotiation->line_length - negotiation->filled;
    *taken = missing < input.length ? missing : input.length;
    memcpy(negotiation->line + negotiation->filled, input.bytes, *taken);
    negotiation->filled += *taken;
    if (negotiation->filled < negotiation->line_length) {
        return STATUS_OK;
    }
    negotiation->filled = 0;
    negotiation->has_line_length = false;
    return take_line(negotiation, span_of(negotiation->line, negotiation->line_length));
}

enum status multistream_receive(
        struct multistream *negotiation, struct span input, size_t *consumed)
{
    *consumed = 0;
    while (negotiation->failure == STATUS_OK && negotiation->agreed == NULL &&
            *consumed < input.length) {
        size_t taken = 1;
        struct span rest = span_of(input.bytes + *consumed, input.length - *consumed);
        negotiation->failure = negotiation->has_line_length
                                       ? take_line_bytes(negotiation, rest, &taken)
                                       : take_length_byte(negotiation, rest.bytes[0]);
        *consumed += taken;
    }
    return negotiation->failure;
}

struct span multistream_output(const struct multistream *negotiation)
{
    size_t waiting = negotiation->output_length - negotiation->output_taken;
    return waiting == 0 ? span_of(NULL, 0)
                        : span_of(negotiation->output + negotiation->output_taken, waiting);
}

void multistream_output_taken(struct multistream *negotiation, size_t n)
{
    assert(n <= negotiation->output_length - negotiation->output_taken);
    negotiation->output_taken += n;
    if (negotiation->output_taken == negotiation->output_length) {
        negotiation->output_taken = 0;
        negotiation->output_length = 0;
    }
}

const char *multistream_protocol(const struct multistream *negotiation)
{
    return negotiation->agreed;
}

const char *multistream_refused(const struct multistream *negotiation)
{
    return negotiation->refused;
}
