/* SPDX-License-Identifier: MIT */

/* Configuration files: what is read stands in the limits, and an error says where it is. */

#include "admin/config_file.h"

#include <string.h>

#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    size_t size;
    size_t values;
    size_t keys;
};

static void check_position(const struct seen *seen, struct config_position at)
{
    REQUIRE(at.line >= 1 && at.line <= seen->size + 1);
    REQUIRE(at.column >= 1 && at.column <= seen->size + 1);
}

static void take_value(
        void *context, struct config_position at, const char *key, const char *text, bool is_item)
{
    struct seen *seen = context;
    check_position(seen, at);
    REQUIRE(key[0] != '\0' && strlen(key) <= CONFIG_KEY_MAX_BYTES);
    REQUIRE(strlen(text) <= CONFIG_VALUE_MAX_BYTES);
    seen->values++;
    seen->keys += !is_item;
}

static void take_array(void *context, struct config_position at, const char *key)
{
    struct seen *seen = context;
    check_position(seen, at);
    REQUIRE(key[0] != '\0');
    seen->keys++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen seen = {.size = size};
    struct config_file_visitor visitor = {
            .value = take_value, .array = take_array, .context = &seen};
    struct config_file_error error;
    enum status status = config_file_parse(span_of(data, size), &visitor, &error);
    if (status == STATUS_OK) {
        REQUIRE(error.position.line == 0);
    } else if (size <= CONFIG_FILE_MAX_BYTES) {
        check_position(&seen, error.position);
        REQUIRE(error.text[0] != '\0');
    }
    REQUIRE(seen.values <= size);
    REQUIRE(seen.keys <= CONFIG_FILE_MAX_KEYS);
    return 0;
}
