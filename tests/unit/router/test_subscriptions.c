/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rcu.h"
#include "router/subscriptions.h"

#define PUBSUB "/waku/2/rs/1/0"

enum {
    NAME_BYTES = 48
};

static atomic_uint released;

static void count_release(void *context)
{
    (void)context;
    atomic_fetch_add(&released, 1);
}

static struct subscriptions *create(const struct subscriptions_options *options)
{
    struct subscriptions *subscriptions = NULL;
    assert_int_equal(subscriptions_create(&subscriptions, options), STATUS_OK);
    return subscriptions;
}

/* Content topics /app/1/first .. /app/1/(first + count - 1) on PUBSUB. */
struct names {
    struct span spans[256];
    char text[256][NAME_BYTES];
    struct subscription_request request;
};

static const struct subscription_request *request_of(struct names *names, int first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(names->text[i], NAME_BYTES, "/app/1/%d/proto", first + (int)i);
        names->spans[i] = span_of_text(names->text[i]);
    }
    names->request = (struct subscription_request){
            .pubsub_topic = span_of_text(PUBSUB),
            .content_topics = names->spans,
            .content_topic_count = count,
    };
    return &names->request;
}

static enum subscription_result subscribe(
        struct subscriptions *subscriptions, uint64_t id, int first, size_t count, uint64_t now_ns)
{
    struct names names;
    bool is_new = false;
    struct subscriber_entry entry = {.id = id, .context = (void *)(uintptr_t)(id * 10)};
    return subscriptions_subscribe(
            subscriptions, entry, request_of(&names, first, count), now_ns, &is_new);
}

static enum subscription_result unsubscribe(
        struct subscriptions *subscriptions, uint64_t id, int first, size_t count, uint64_t now_ns)
{
    struct names names;
    return subscriptions_unsubscribe(subscriptions, id, request_of(&names, first, count), now_ns);
}

static const struct subscriber_list *find(const struct subscriptions *subscriptions, int topic)
{
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof(name), "/app/1/%d/proto", topic);
    return subscriptions_find_list(subscriptions, span_of_text(PUBSUB), span_of_text(name));
}

static bool is_listed(const struct subscriber_list *list, uint64_t id)
{
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        if (list->entries[i].id == id) {
            assert_ptr_equal(list->entries[i].context, (void *)(uintptr_t)(id * 10));
            return true;
        }
    }
    return false;
}

static void lists_exactly_the_subscribers_of_a_criterion(void **state)
{
    (void)state;
    struct subscriptions *subscriptions = create(&subscriptions_defaults);
    assert_int_equal(subscribe(subscriptions, 1, 0, 2, 0), SUBSCRIPTION_OK);
    assert_int_equal(subscribe(subscriptions, 2, 1, 2, 0), SUBSCRIPTION_OK);
    assert_int_equal(find(subscriptions, 0)->count, 1);
    assert_int_equal(find(subscriptions, 1)->count, 2);
    assert_true(is_listed(find(subscriptions, 1), 1));
    assert_true(is_listed(find(subscriptions, 1), 2));
    assert_null(find(subscriptions, 3));
    assert_null(subscriptions_find_list(
            subscriptions, span_of_text("/waku/2/rs/1/1"), span_of_text("/app/1/0/proto")));
    assert_int_equal(subscriptions_criteria_count(subscriptions), 3);
    assert_int_equal(unsubscribe(subscriptions, 1, 1, 1, 0), SUBSCRIPTION_OK);
    assert_false(is_listed(find(subscriptions, 1), 1));
    assert_true(is_listed(find(subscriptions, 1), 2));
    assert_true(is_listed(find(subscriptions, 0), 1));
    subscriptions_destroy(&subscriptions);
}

static void keeps_the_border_between_the_two_topics(void **state)
{
    (void)state;
    struct subscriptions *subscriptions = create(&subscriptions_defaults);
    struct span content = span_of_text("bc");
    struct subscription_request request = {.pubsub_topic = span_of_text("a"),
            .content_topics = &content,
            .content_topic_count = 1};
    bool is_new = false;
    assert_int_equal(subscriptions_subscribe(subscriptions, (struct subscriber_entry){.id = 1},
                             &request, 0, &is_new),
            SUBSCRIPTION_OK);
    assert_true(is_new);
    assert_non_null(subscriptions_find_list(subscriptions, span_of_text("a"), span_of_text("bc")));
    assert_null(subscriptions_find_list(subscriptions, span_of_text("ab"), span_of_text("c")));
    /* also where the lengths differ in their second byte only */
    uint8_t text[400];
    memset(text, 'a', sizeof(text));
    request.pubsub_topic = span_of(text, 300);
    content = span_of(text, 44);
    assert_int_equal(subscriptions_subscribe(subscriptions, (struct subscriber_entry){.id = 1},
                             &request, 0, &is_new),
            SUBSCRIPTION_OK);
    assert_non_null(subscriptions_find_list(subscriptions, span_of(text, 300), span_of(text, 44)));
    assert_null(subscriptions_find_list(subscriptions, span_of(text, 44), span_of(text, 300)));
    subscriptions_destroy(&subscriptions);
}

static void a_list_does_not_change_under_its_reader(void **state)
{
    (void)state;
    struct subscriptions *subscriptions = create(&subscriptions_defaults);
    for (uint64_t id = 1; id <= 5; id++) {
        assert_int_equal(subscribe(subscriptions, id, 0, 1, 0), SUBSCRIPTION_OK);
    }
    const struct subscriber_list *seen = find(subscriptions, 0);
    assert_int_equal(subscribe(subscriptions, 6, 0, 1, 0), SUBSCRIPTION_OK);
    assert_int_equal(unsubscribe(subscriptions, 2, 0, 1, 0), SUBSCRIPTION_OK);
    assert_true(subscriptions_drop(subscriptions, 1));
    assert_int_equal(seen->count, 5);
    for (uint64_t id = 1; id <= 5; id++) {
        assert_true(is_listed(seen, id));
    }
    rcu_turn_over();
    assert_int_equal(find(subscriptions, 0)->count, 4);
    assert_false(is_listed(find(subscriptions, 0), 1));
    assert_false(is_listed(find(subscriptions, 0), 2));
    assert_true(is_listed(find(subscriptions, 0), 6));
    subscriptions_destroy(&subscriptions);
}

static void takes_a_hundred_topics_in_a_request_and_no_more(void **state)
{
    (void)state;
    struct subscriptions *subscriptions = create(&subscriptions_defaults);
    assert_int_equal(subscribe(subscriptions, 1, 0, 101, 0), SUBSCRIPTION_BAD_REQUEST);
    assert_int_equal(subscribe(subscriptions, 1, 0, 0, 0), SUBSCRIPTION_BAD_REQUEST);
    assert_int_equal(subscriptions_peer_count(subscriptions), 0);
    assert_int_equal(subscribe(subscriptions, 1, 0, 100, 0), SUBSCRIPTION_OK);
    assert_int_equal(unsubscribe(subscriptions, 1, 0, 101, 0), SUBSCRIPTION_BAD_REQUEST);
    assert_int_equal(subscriptions_criteria_count(subscriptions), 100);
    subscriptions_destroy(&subscriptions);
}

static void takes_a_thousand_criteria_of_a_peer_all_of_a_request_or_nothing(void **state)
{
    (void)state;
    struct subscriptions *subscriptions = create(&subscriptions_defaults);
    for (int first = 0; first < 900; first += 100) {
        assert_int_equal(subscribe(subscriptions, 1, first, 100, 0), SUBSCRIPTION_OK);
    }
    assert_int_equal(subscribe(subscriptions, 1, 900, 99, 0), SUBSCRIPTION_OK);
    /* one more is left: two new ones do not fit, two of which one is there already do */
    assert_int_equal(subscribe(subscriptions, 1, 999, 2, 0), SUBSCRIPTION_TOO_MANY_CRITERIA);
    assert_int_equal(subscriptions_criteria_count(subscriptions), 999);
    assert_null(find(subscriptions, 999));
    assert_int_equal(subscribe(subscriptions, 1, 998, 2, 0), SUBSCRIPTION_OK);
    assert_int_equal(subscribe(subscriptions, 1, 0, 100, 0), SUBSCRIPTION_OK);
    assert_int_equal(subscribe(subscriptions, 1, 1000, 1, 0), SUBSCRIPTION_TOO_MANY_CRITERIA);
    assert_int_equal(subscribe(subscriptions, 2, 1000, 1, 0), SUBSCRIPTION_OK);
    assert_int_equal(find(subscriptions, 0)->count, 1);
    subscriptions_destroy(&subscriptions);
}

static void counts_a_topic_named_twice_in_a_request_once(void **state)
{
    (void)state;
    struct subscriptions_options options = subscriptions_defaults;
    options.criteria_per_peer_max = 1;
    struct subscriptions *subscriptions = create(&options);
    struct span twice[] = {span_of_text("/a/1/b/c"), span_of_text("/a/1/b/c")};
    struct subscription_request request = {span_of_text(PUBSUB), twice, 2, NULL};
    bool is_new = false;
    assert_int_equal(subscriptions_subscribe(subscriptions, (struct subscriber_entry){.id = 7},
                             &request, 0, &is_new),
            SUBSCRIPTION_OK);
    assert_int_equal(
            subscriptions_find_list(subscriptions, span_of_text(PUBSUB), twice[0])->count, 1);
    assert_int_equal(subscriptions_unsubscribe(subscriptions, 7, &request, 0), SUBSCRIPTION_OK);
    assert_int_equal(subscriptions_peer_count(subscriptions), 0);
    subscriptions_destroy(&subscriptions);
}

static void serves_a_thousand_peers_and_refuses_the_next(void **state)
{
    (void)state;
    struct subscriptions *subscriptions = create(&subscriptions_defaults);
    for (uint64_t id = 1000; id >= 1; id--) {
        assert_int_equal(subscribe(subscriptions, id, 0, 1, 0), SUBSCRIPTION_OK);
    }
    assert_int_equal(subscribe(subscriptions, 1001, 0, 1, 0), SUBSCRIPTION_FULL);
    assert_int_equal(subscribe(subscriptions, 500, 1, 1, 0), SUBSCRIPTION_OK);
    assert_int_equal(find(subscriptions, 0)->count, 1000);
    assert_int_equal(subscriptions_unsubscribe_all(subscriptions, 500, 0), SUBSCRIPTION_OK);
    assert_null(find(subscriptions, 1));
    assert_int_equal(subscribe(subscriptions, 1001, 0, 1, 0), SUBSCRIPTION_OK);
    assert_false(is_listed(find(subscriptions, 0), 500));
    assert_true(is_listed(find(subscriptions, 0), 1001));
    subscriptions_destroy(&subscriptions);
}

static void refuses_empty_and_overlong_topics(void **state)
{
    (void)state;
    struct subscriptions *subscriptions = create(&subscriptions_defaults);
    static uint8_t longest[1025];
    memset(longest, 'l', sizeof(longest));
    struct span content[] = {span_of_text("/a/1/b/c"), span_of(NULL, 0)};
    struct subscription_request request = {span_of_text(PUBSUB), content, 2, NULL};
    struct subscriber_entry entry = {.id = 1};
    bool is_new = true;
    assert_int_equal(subscriptions_subscribe(subscriptions, entry, &request, 0, &is_new),
            SUBSCRIPTION_BAD_REQUEST);
    assert_false(is_new);
    content[1] = span_of(longest, sizeof(longest));
    assert_int_equal(subscriptions_subscribe(subscriptions, entry, &request, 0, &is_new),
            SUBSCRIPTION_BAD_REQUEST);
    content[1].length = 1024;
    request.pubsub_topic = span_of(NULL, 0);
    assert_int_equal(subscriptions_subscribe(subscriptions, entry, &request, 0, &is_new),
            SUBSCRIPTION_BAD_REQUEST);
    request.pubsub_topic = span_of(longest, 1024);
    assert_int_equal(
            subscriptions_subscribe(subscriptions, entry, &request, 0, &is_new), SUBSCRIPTION_OK);
    assert_non_null(subscriptions_find_list(subscriptions, request.pubsub_topic, content[1]));
    assert_null(subscriptions_find_list(
            subscriptions, request.pubsub_topic, span_of(longest, sizeof(longest))));
    subscriptions_destroy(&subscriptions);
}

static void tells_who_has_nothing_that_there_is_nothing(void **state)
{
    (void)state;
    struct subscriptions *subscriptions = create(&subscriptions_defaults);
    assert_int_equal(subscriptions_ping(subscriptions, 1, 0), SUBSCRIPTION_NOT_FOUND);
    assert_int_equal(unsubscribe(subscriptions, 1, 0, 1, 0), SUBSCRIPTION_NOT_FOUND);
    assert_int_equal(subscriptions_unsubscribe_all(subscriptions, 1, 0), SUBSCRIPTION_NOT_FOUND);
    assert_int_equal(subscribe(subscriptions, 1, 0, 1, 0), SUBSCRIPTION_OK);
    assert_int_equal(unsubscribe(subscriptions, 1, 5, 1, 0), SUBSCRIPTION_NOT_FOUND);
    assert_int_equal(subscriptions_ping(subscriptions, 1, 0), SUBSCRIPTION_OK);
    /* the last criterion takes the subscriber with it */
    assert_int_equal(unsubscribe(subscriptions, 1, 0, 1, 0), SUBSCRIPTION_OK);
    assert_int_equal(subscriptions_ping(subscriptions, 1, 0), SUBSCRIPTION_NOT_FOUND);
    assert_int_equal(subscriptions_criteria_count(subscriptions), 0);
    assert_false(subscriptions_drop(subscriptions, 1));
    subscriptions_destroy(&subscriptions);
}

static void answers_with_the_codes_of_the_protocol(void **state)
{
    (void)state;
    assert_int_equal(subscription_result_code(SUBSCRIPTION_OK), 200);
    assert_int_equal(subscription_result_code(SUBSCRIPTION_BAD_REQUEST), 400);
    assert_int_equal(subscription_result_code(SUBSCRIPTION_NOT_FOUND), 404);
    assert_int_equal(subscription_result_code(SUBSCRIPTION_FULL), 503);
    assert_int_equal(subscription_result_code(SUBSCRIPTION_TOO_MANY_CRITERIA), 503);
}

static void expires_who_was_silent_for_longer_than_five_minutes(void **state)
{
    (void)state;
    const uint64_t five_minutes = UINT64_C(300000000000);
    struct subscriptions *subscriptions = create(&subscriptions_defaults);
    assert_int_equal(subscribe(subscriptions, 1, 0, 1, 1000), SUBSCRIPTION_OK);
    assert_int_equal(subscribe(subscriptions, 2, 0, 1, 1000), SUBSCRIPTION_OK);
    assert_int_equal(subscribe(subscriptions, 3, 0, 1, 1001), SUBSCRIPTION_OK);
    assert_int_equal(subscriptions_expire(subscriptions, 1000 + five_minutes, 10), 0);
    assert_int_equal(subscriptions_ping(subscriptions, 1, 1000 + five_minutes), SUBSCRIPTION_OK);
    assert_int_equal(subscriptions_expire(subscriptions, 1001 + five_minutes, 10), 1);
    assert_true(is_listed(find(subscriptions, 0), 1));
    assert_false(is_listed(find(subscriptions, 0), 2));
    /* also before anybody has cleared it away */
    assert_int_equal(
            subscriptions_ping(subscriptions, 3, 1002 + five_minutes), SUBSCRIPTION_NOT_FOUND);
    assert_int_equal(subscriptions_peer_count(subscriptions), 1);
    assert_int_equal(subscribe(subscriptions, 4, 0, 1, 1002 + five_minutes), SUBSCRIPTION_OK);
    assert_int_equal(subscriptions_expire(subscriptions, 5 * five_minutes, 1), 1);
    assert_int_equal(subscriptions_expire(subscriptions, 5 * five_minutes, 1), 1);
    assert_int_equal(subscriptions_expire(subscriptions, 5 * five_minutes, 1), 0);
    assert_null(find(subscriptions, 0));
    subscriptions_destroy(&subscriptions);
}

static void releases_each_context_once_and_none_that_it_did_not_take(void **state)
{
    (void)state;
    struct subscriptions_options options = subscriptions_defaults;
    options.release_context = count_release;
    options.criteria_per_peer_max = 10;
    struct subscriptions *subscriptions = create(&options);
    atomic_store(&released, 0);
    assert_int_equal(subscribe(subscriptions, 1, 0, 11, 0), SUBSCRIPTION_TOO_MANY_CRITERIA);
    assert_int_equal(subscribe(subscriptions, 2, 0, 10, 0), SUBSCRIPTION_OK);
    assert_int_equal(subscribe(subscriptions, 2, 0, 10, 0), SUBSCRIPTION_OK);
    assert_int_equal(subscribe(subscriptions, 3, 0, 10, 0), SUBSCRIPTION_OK);
    assert_true(subscriptions_drop(subscriptions, 2));
    rcu_drain();
    assert_int_equal(atomic_load(&released), 1);
    subscriptions_destroy(&subscriptions);
    rcu_drain();
    assert_int_equal(atomic_load(&released), 2);
}

struct tally {
    size_t pairs;
    uint64_t ids;
    size_t stop_after;
};

static bool tally_pair(
        void *context, uint64_t id, struct span pubsub_topic, struct span content_topic)
{
    struct tally *tally = context;
    assert_true(span_equal(pubsub_topic, span_of_text(PUBSUB)));
    assert_memory_equal(content_topic.bytes, "/app/1/", 7);
    tally->pairs++;
    tally->ids += id;
    return tally->pairs != tally->stop_after;
}

static void shows_every_pair_to_the_administrator(void **state)
{
    (void)state;
    struct subscriptions *subscriptions = create(&subscriptions_defaults);
    assert_int_equal(subscribe(subscriptions, 1, 0, 3, 0), SUBSCRIPTION_OK);
    assert_int_equal(subscribe(subscriptions, 5, 2, 2, 0), SUBSCRIPTION_OK);
    struct tally tally = {.pairs = 0};
    subscriptions_each(subscriptions, tally_pair, &tally);
    assert_int_equal(tally.pairs, 5);
    assert_int_equal(tally.ids, 3 * 1 + 2 * 5);
    tally = (struct tally){.stop_after = 2};
    subscriptions_each(subscriptions, tally_pair, &tally);
    assert_int_equal(tally.pairs, 2);
    subscriptions_destroy(&subscriptions);
}

static int enter_rcu(void **state)
{
    (void)state;
    rcu_register();
    return 0;
}

static int leave_rcu(void **state)
{
    (void)state;
    rcu_drain();
    rcu_unregister();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(lists_exactly_the_subscribers_of_a_criterion),
            cmocka_unit_test(keeps_the_border_between_the_two_topics),
            cmocka_unit_test(a_list_does_not_change_under_its_reader),
            cmocka_unit_test(takes_a_hundred_topics_in_a_request_and_no_more),
            cmocka_unit_test(takes_a_thousand_criteria_of_a_peer_all_of_a_request_or_nothing),
            cmocka_unit_test(counts_a_topic_named_twice_in_a_request_once),
            cmocka_unit_test(serves_a_thousand_peers_and_refuses_the_next),
            cmocka_unit_test(refuses_empty_and_overlong_topics),
            cmocka_unit_test(tells_who_has_nothing_that_there_is_nothing),
            cmocka_unit_test(answers_with_the_codes_of_the_protocol),
            cmocka_unit_test(expires_who_was_silent_for_longer_than_five_minutes),
            cmocka_unit_test(releases_each_context_once_and_none_that_it_did_not_take),
            cmocka_unit_test(shows_every_pair_to_the_administrator),
    };
    return cmocka_run_group_tests(tests, enter_rcu, leave_rcu);
}
