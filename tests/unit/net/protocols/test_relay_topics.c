/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "net/protocols/relay_topics.h"
#include "tests/support/cmocka.h"

static struct span name_of(char text[32], unsigned i)
{
    snprintf(text, 32, "/waku/2/rs/16/%u", i);
    return span_of_text(text);
}

static void remembers_what_was_announced_until_it_is_taken_back(void **state)
{
    (void)state;
    struct relay_topics topics = {0};
    char text[32];
    for (unsigned i = 0; i < 100; i++) {
        assert_true(relay_topics_add(&topics, name_of(text, i)));
        assert_true(relay_topics_add(&topics, name_of(text, i)));
    }
    assert_int_equal(topics.count, 100);
    for (unsigned i = 0; i < 100; i += 2) {
        relay_topics_remove(&topics, name_of(text, i));
        relay_topics_remove(&topics, name_of(text, i));
    }
    for (unsigned i = 0; i < 101; i++) {
        assert_int_equal(relay_topics_has(&topics, name_of(text, i)), i < 100 && i % 2 == 1);
    }
    relay_topics_fini(&topics);
    assert_int_equal(topics.count, 0);
}

static void takes_no_more_than_its_cap_and_again_after_one_went(void **state)
{
    (void)state;
    struct relay_topics topics = {0};
    char text[32];
    for (unsigned i = 0; i < 10000; i++) {
        assert_int_equal(relay_topics_add(&topics, name_of(text, i)), i < RELAY_TOPICS_MAX);
    }
    assert_int_equal(topics.count, RELAY_TOPICS_MAX);
    assert_true(topics.capacity * sizeof(*topics.keys) <= 8192);
    assert_true(relay_topics_add(&topics, name_of(text, 5)));
    relay_topics_remove(&topics, name_of(text, 5));
    assert_true(relay_topics_add(&topics, name_of(text, 9999)));
    assert_false(relay_topics_add(&topics, name_of(text, 5)));
    relay_topics_fini(&topics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(remembers_what_was_announced_until_it_is_taken_back),
            cmocka_unit_test(takes_no_more_than_its_cap_and_again_after_one_went),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
