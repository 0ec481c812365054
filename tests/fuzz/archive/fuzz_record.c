/* SPDX-License-Identifier: MIT */

/* Records come from a disk: whatever stands there is a record or damage, and never more than that. */

#include <endian.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "archive/record.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_inside(struct span part, struct span whole)
{
    REQUIRE(part.length <= whole.length);
    REQUIRE(part.bytes >= whole.bytes);
    REQUIRE(part.bytes + part.length <= whole.bytes + whole.length);
}

/* What was decoded is encoded to the same bytes. */
static void require_same(const struct archive_record *record, const uint8_t *data, size_t size)
{
    REQUIRE(record_check(record) == STATUS_OK);
    REQUIRE(record_size(record) == size);
    uint8_t header[RECORD_HEADER_BYTES];
    record_encode_header(header, record);
    struct archive_record again;
    uint8_t *copy = malloc(size);
    REQUIRE(copy != NULL);
    memcpy(copy, data, size);
    memcpy(copy, header, sizeof(header));
    REQUIRE(record_decode(&again, span_of(copy, size)) == STATUS_OK);
    REQUIRE(again.timestamp_ns == record->timestamp_ns);
    REQUIRE(span_equal(again.message, record->message));
    REQUIRE(span_equal(again.pubsub_topic, record->pubsub_topic));
    free(copy);
}

static void decode(const uint8_t *data, size_t size)
{
    struct archive_record record;
    if (record_decode(&record, span_of(data, size)) == STATUS_OK) {
        require_inside(record.pubsub_topic, span_of(data, size));
        require_inside(record.message, span_of(data, size));
        require_inside(record.content_topic, record.message);
        require_same(&record, data, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode(data, size);
    if (size < RECORD_HEADER_BYTES) {
        return 0;
    }
    /* The same with magic, length and checksum put right, which chance would never find. */
    uint8_t *copy = malloc(size);
    REQUIRE(copy != NULL);
    memcpy(copy, data, size);
    uint32_t body = htole32((uint32_t)(size - RECORD_HEADER_BYTES));
    uint64_t checksum = htole64(XXH3_64bits(data + 16, size - 16));
    static const uint8_t magic[] = {'S', 'L', 'R', '1'};
    memcpy(copy, magic, sizeof(magic));
    memcpy(copy + 4, &body, sizeof(body));
    memcpy(copy + 8, &checksum, sizeof(checksum));
    decode(copy, size);
    free(copy);
    return 0;
}
