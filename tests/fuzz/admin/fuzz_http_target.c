/* SPDX-License-Identifier: MIT */

/* Targets of HTTP requests: what is parsed stands in its own text, and routes may be asked of it. */

#include "admin/http_target.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct http_target *target, const char *text, size_t size)
{
    REQUIRE(text[0] == '\0' || (text >= target->text && text <= target->text + size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_target target;
    char *raw = malloc(size + 1);
    REQUIRE(raw != NULL);
    memcpy(raw, data, size);
    raw[size] = '\0';
    if (http_target_parse(&target, raw) == STATUS_OK) {
        REQUIRE(target.segment_count <= HTTP_SEGMENTS_MAX);
        REQUIRE(target.parameter_count <= HTTP_PARAMETERS_MAX);
        for (size_t i = 0; i < target.segment_count; i++) {
            check_text(&target, target.segments[i], size);
        }
        for (size_t i = 0; i < target.parameter_count; i++) {
            check_text(&target, target.parameters[i].name, size);
            check_text(&target, target.parameters[i].value, size);
        }
        REQUIRE(http_target_matches(&target, "/*"));
        (void)http_target_matches(&target, "/relay/v1/messages/{topic}");
        (void)http_target_find(&target, "pageSize");
        http_target_fini(&target);
    } else {
        REQUIRE(target.text == NULL);
    }
    free(raw);
    return 0;
}
