/* SPDX-License-Identifier: MIT */
#include "tools/flood/checker.h"

#include <stdlib.h>

#include "codec/waku_message.h"
#include "tests/support/cmocka.h"
#include "tools/flood/generator.h"

static struct checker *checker;
static struct generator *generator;
static uint8_t *bytes;
static size_t length;

static int set_up(void **state)
{
    struct generator_options options = {
            .seed = 1, .sizes = "100:1", .pubsub_topics = 1, .content_topics = 1, .cluster = 66};
    struct generator_message message = {.number = 3, .timestamp_ns = 1};
    (void)state;
    assert_int_equal(generator_create(&generator, &options), STATUS_OK);
    length = generator_message_size(generator, message);
    bytes = malloc(length);
    assert_non_null(bytes);
    generator_fill_message(generator, message, bytes);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    checker_destroy(&checker);
    generator_destroy(&generator);
    free(bytes);
    return 0;
}

static struct span payload(void)
{
    struct waku_message_view view;
    assert_int_equal(waku_message_decode(&view, span_of(bytes, length)), STATUS_OK);
    assert_true(generator_is_ours(view.content_topic));
    return view.payload;
}

static void a_message_counts_once_and_its_copies_as_doubled(void **state)
{
    (void)state;
    assert_int_equal(checker_create(&checker, 10), STATUS_OK);
    checker_take(checker, payload());
    checker_take(checker, payload());
    struct checker_result result = checker_result(checker);
    assert_int_equal(result.seen, 1);
    assert_int_equal(result.doubled, 1);
    assert_int_equal(result.torn + result.strange, 0);
}

static void a_changed_byte_is_torn(void **state)
{
    (void)state;
    assert_int_equal(checker_create(&checker, 10), STATUS_OK);
    bytes[length - 60] ^= 1;
    checker_take(checker, payload());
    assert_int_equal(checker_result(checker).torn, 1);
    assert_int_equal(checker_result(checker).seen, 0);
}

static void a_number_that_was_never_sent_is_strange_until_it_is_expected(void **state)
{
    (void)state;
    assert_int_equal(checker_create(&checker, 3), STATUS_OK);
    checker_take(checker, payload());
    assert_int_equal(checker_result(checker).strange, 1);
    assert_int_equal(checker_expect(checker, 1000), STATUS_OK);
    checker_take(checker, payload());
    assert_int_equal(checker_result(checker).seen, 1);
}

static void growing_forgets_nothing(void **state)
{
    (void)state;
    assert_int_equal(checker_create(&checker, 0), STATUS_OK);
    for (uint64_t count = 1; count <= 300; count++) {
        assert_int_equal(checker_expect(checker, count), STATUS_OK);
        assert_true(checker_take_number(checker, count - 1));
    }
    for (uint64_t number = 0; number < 300; number++) {
        assert_false(checker_take_number(checker, number));
    }
    assert_int_equal(checker_result(checker).seen, 300);
    assert_int_equal(checker_result(checker).doubled, 300);
}

static void other_content_topics_are_none_of_ours(void **state)
{
    (void)state;
    assert_false(generator_is_ours(span_of_text("/flood/2/topic-0/proto")));
    assert_false(generator_is_ours(span_of_text("/flood/1/")));
    assert_false(generator_is_ours(span_of_text("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                    a_message_counts_once_and_its_copies_as_doubled, set_up, tear_down),
            cmocka_unit_test_setup_teardown(a_changed_byte_is_torn, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    a_number_that_was_never_sent_is_strange_until_it_is_expected, set_up,
                    tear_down),
            cmocka_unit_test_setup_teardown(growing_forgets_nothing, set_up, tear_down),
            cmocka_unit_test(other_content_topics_are_none_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
