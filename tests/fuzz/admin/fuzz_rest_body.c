/* SPDX-License-Identifier: MIT */

/* Bodies of REST requests, each as everything that a body may be: a refusal has a reason. */

#include "admin/rest_body.h"

#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_message(struct span body, bool is_strict)
{
    struct rest_error error = {.text = ""};
    struct rest_message message;
    struct rest_push push;
    if (rest_message_parse(&message, body, 1, is_strict, &error) == STATUS_OK) {
        REQUIRE(message.fields.content_topic.length > 0);
        REQUIRE(message.fields.payload.length + message.fields.meta.length <= body.length);
        REQUIRE(waku_message_size(&message.fields) > 0);
    } else {
        REQUIRE(error.text[0] != '\0' && message.bytes == NULL);
    }
    rest_message_fini(&message);
    error.text[0] = '\0';
    if (rest_push_parse(&push, body, 1, is_strict, &error) != STATUS_OK) {
        REQUIRE(error.text[0] != '\0');
    }
    rest_push_fini(&push);
}

static void try_lists(struct span body, bool is_strict)
{
    struct rest_error error = {.text = ""};
    struct rest_list list;
    struct rest_filter filter;
    if (rest_list_parse(&list, body, &error) == STATUS_OK) {
        REQUIRE(list.count <= REST_LIST_MAX);
    } else {
        REQUIRE(error.text[0] != '\0');
    }
    rest_list_fini(&list);
    for (int is_all = 0; is_all < 2; is_all++) {
        error.text[0] = '\0';
        if (rest_filter_parse(&filter, body, is_all, is_strict, &error) == STATUS_OK) {
            REQUIRE(filter.request_id != NULL);
            REQUIRE(is_all || filter.content_topics.count > 0);
        } else {
            REQUIRE(error.text[0] != '\0');
        }
        rest_filter_fini(&filter);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int is_strict = 0; is_strict < 2; is_strict++) {
        try_message(span_of(data, size), is_strict);
        try_lists(span_of(data, size), is_strict);
    }
    return 0;
}
