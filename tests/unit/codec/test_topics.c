/* SPDX-License-Identifier: MIT */
#include "codec/topics.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <jansson.h>

#define VECTORS "tests/vectors/autosharding.json"

static enum status parse_text(struct shard *shard, const char *text)
{
    return shard_parse(shard, span_of_text(text));
}

static void formats_what_it_parses(void **state)
{
    (void)state;
    const char *const names[] = {
            "/waku/2/rs/0/0", "/waku/2/rs/16/1", "/waku/2/rs/1/7", "/waku/2/rs/65535/65535"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct shard shard;
        char text[SHARD_TOPIC_MAX_BYTES];
        assert_int_equal(parse_text(&shard, names[i]), STATUS_OK);
        assert_int_equal(shard_format(text, shard), strlen(names[i]));
        assert_string_equal(text, names[i]);
    }
}

static void a_shard_is_its_two_numbers(void **state)
{
    (void)state;
    struct shard shard;
    assert_int_equal(parse_text(&shard, "/waku/2/rs/16/3"), STATUS_OK);
    assert_int_equal(shard.cluster, 16);
    assert_int_equal(shard.index, 3);
}

static void refuses_every_other_pubsub_topic(void **state)
{
    (void)state;
    const char *const names[] = {"", "/", "/waku/2/rs/", "/waku/2/rs/16", "/waku/2/rs/16/",
            "/waku/2/rs//1", "/waku/2/rs/16/1/", "/waku/2/rs/16/1/2", "/waku/2/rs/65536/1",
            "/waku/2/rs/1/65536", "/waku/2/rs/1/4294967296", "/waku/2/rs/16/01", "/waku/2/rs/016/1",
            "/waku/2/rs/-1/1", "/waku/2/rs/+1/1", "/waku/2/rs/1/1 ", "/waku/2/rs/a/1",
            "waku/2/rs/16/1", "/waku/1/rs/16/1", "/waku/2/default-waku/proto"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct shard shard = {7, 7};
        assert_int_equal(parse_text(&shard, names[i]), STATUS_BAD_TOPIC);
        assert_int_equal(shard.cluster, 7);
    }
}

static void assert_shard_is(
        const struct content_topic *topic, uint16_t shard_count, const json_t *expected)
{
    uint16_t shard = UINT16_MAX;
    if (json_is_integer(expected)) {
        assert_int_equal(content_topic_shard(&shard, topic, shard_count), STATUS_OK);
        assert_int_equal(shard, json_integer_value(expected));
    }
}

static void agrees_with_the_foreign_implementation_on_validity_and_shard(void **state)
{
    (void)state;
    json_error_t error;
    json_t *vectors = json_load_file(VECTORS, 0, &error);
    assert_non_null(vectors);
    assert_int_equal(json_array_size(vectors), 14);
    size_t index;
    json_t *vector;
    json_array_foreach(vectors, index, vector)
    {
        struct content_topic topic;
        const char *name = json_string_value(json_object_get(vector, "contentTopic"));
        bool is_valid = json_object_get(vector, "error") == NULL;
        enum status status = content_topic_parse(&topic, span_of_text(name));
        assert_int_equal(status == STATUS_OK, is_valid);
        if (is_valid) {
            assert_shard_is(&topic, 8, json_object_get(vector, "shardOf8"));
            assert_shard_is(&topic, 16, json_object_get(vector, "shardOf16"));
        }
    }
    json_decref(vectors);
}

static void splits_a_content_topic_into_its_parts(void **state)
{
    (void)state;
    struct content_topic topic;
    assert_int_equal(
            content_topic_parse(&topic, span_of_text("/0/toychat/2/luzhou/proto")), STATUS_OK);
    assert_true(topic.has_generation);
    assert_true(span_equal(topic.application, span_of_text("toychat")));
    assert_true(span_equal(topic.version, span_of_text("2")));
    assert_true(span_equal(topic.name, span_of_text("luzhou")));
    assert_true(span_equal(topic.encoding, span_of_text("proto")));
}

static void tells_a_later_generation_from_a_malformed_topic(void **state)
{
    (void)state;
    struct content_topic topic;
    const char *const later[] = {"/1/a/1/b/proto", "/99999999999999999999999/a/1/b/proto"};
    const char *const bad[] = {"", "/", "a", "/a", "/a/1", "/a/1/b", "/a/1/b/", "//1/b/c",
            "/a//b/c", "/a/1//c", "/0/a/1/b/c/d", "//a/1/b/c", "/-1/a/1/b/c", "/0x/a/1/b/c",
            "/1/a//b/c"};
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        assert_int_equal(content_topic_parse(&topic, span_of_text(later[i])), STATUS_UNSUPPORTED);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(content_topic_parse(&topic, span_of_text(bad[i])), STATUS_BAD_TOPIC);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(formats_what_it_parses),
            cmocka_unit_test(a_shard_is_its_two_numbers),
            cmocka_unit_test(refuses_every_other_pubsub_topic),
            cmocka_unit_test(agrees_with_the_foreign_implementation_on_validity_and_shard),
            cmocka_unit_test(splits_a_content_topic_into_its_parts),
            cmocka_unit_test(tells_a_later_generation_from_a_malformed_topic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
