/* SPDX-License-Identifier: MIT */

/*
 * Two nodes on loopback while the wall clock steps: the linker puts the clock of this file in place of
 * clock_wall_ns.
 */

#include <sluice.h>

#include <stdio.h>

#include "tests/support/api_fixture.h"

int64_t __real_clock_wall_ns(void);
int64_t __wrap_clock_wall_ns(void);

#define HOUR_NS 3600000000000

static _Atomic int64_t offset_ns;

int64_t __wrap_clock_wall_ns(void)
{
    return __real_clock_wall_ns() + atomic_load(&offset_ns);
}

struct pair {
    struct sluice_node *sender;
    struct sluice_node *receiver;
    atomic_size_t received;
    atomic_size_t outcomes;
    atomic_size_t peers;
    size_t published; /* numbers the payloads */
};

static void take_message(void *context, struct sluice_envelope *envelope)
{
    struct pair *pair = context;
    (void)envelope;
    atomic_fetch_add(&pair->received, 1);
}

static void take_outcome(
        void *context, enum sluice_outcome outcome, size_t peer_count, const char *reason)
{
    struct pair *pair = context;
    (void)reason;
    assert_int_equal(outcome, SLUICE_SENT);
    atomic_store(&pair->peers, peer_count);
    atomic_fetch_add(&pair->outcomes, 1);
}

/* Returns to how many peers the message goes. */
static size_t publish(struct pair *pair, int64_t timestamp_ns)
{
    char payload[32];
    snprintf(payload, sizeof(payload), "message %zu", ++pair->published);
    struct sluice_message message = api_message(payload);
    size_t before = atomic_load(&pair->outcomes);
    message.timestamp_ns = timestamp_ns;
    assert_int_equal(sluice_node_publish(pair->sender, &message, take_outcome, pair), SLUICE_OK);
    api_wait_count(&pair->outcomes, before + 1);
    return atomic_load(&pair->peers);
}

static void meet(struct pair *pair)
{
    char address[512];
    struct sluice_subscription *subscription;
    const char *const receiving[] = {"network", "true", "listen-address", "127.0.0.1", "tcp-port",
            "0", "archive", "memory", NULL};
    const char *const sending[] = {"network", "true", "listen-address", "127.0.0.1", "tcp-port",
            "0", "staticnode", address, "pubsub-topic", API_TOPIC, NULL};
    pair->receiver = api_made(receiving);
    assert_int_equal(sluice_node_address(pair->receiver, 0, address, sizeof(address)), SLUICE_OK);
    pair->sender = api_made(sending);
    assert_int_equal(
            sluice_node_subscribe(pair->receiver, API_TOPIC, take_message, pair, &subscription),
            SLUICE_OK);
    api_start(pair->receiver);
    api_start(pair->sender);
    while (publish(pair, 0) == 0) {
        sched_yield();
    }
    api_wait_count(&pair->received, 1);
}

static void part(struct pair *pair)
{
    api_destroy(&pair->sender);
    api_destroy(&pair->receiver);
}

/* After each step a message gets through, is archived, and no connection has ended. */
static void steps_of_the_wall_clock_end_nothing_and_lose_nothing(void **state)
{
    static const int64_t steps[] = {
            HOUR_NS, -HOUR_NS, HOUR_NS * 24 * 365 * 10, 0, HOUR_NS * 24, -HOUR_NS * 24, 0};
    static struct pair pair;
    static const char archived[] = API_STAGE("archive", "delivered", "delivered");
    (void)state;
    meet(&pair);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        size_t before = atomic_load(&pair.received);
        atomic_store(&offset_ns, steps[i]);
        assert_int_equal(publish(&pair, 0), 1);
        api_wait_count(&pair.received, before + 1);
        assert_int_equal(atomic_load(&pair.received), before + 1);
    }
    api_wait_counter(pair.receiver, archived, atomic_load(&pair.received));
    assert_int_equal(api_counter(pair.receiver, archived), atomic_load(&pair.received));
    assert_int_equal(api_counter(pair.receiver, "sluice_net_closed_total"), 0);
    assert_int_equal(api_counter(pair.sender, "sluice_net_closed_total"), 0);
    part(&pair);
}

/* In 1970 a message of the present is relayed and delivered, and not archived for its age alone. */
static void a_clock_at_its_beginning_changes_only_the_verdict_of_age(void **state)
{
    static struct pair pair;
    static const char too_far[] = API_STAGE("archive", "refused", "timestamp_out_of_range");
    int64_t now = __real_clock_wall_ns();
    (void)state;
    meet(&pair);
    size_t before = atomic_load(&pair.received);
    atomic_store(&offset_ns, -now);
    assert_int_equal(publish(&pair, now), 1);
    api_wait_count(&pair.received, before + 1);
    api_wait_counter(pair.receiver, too_far, 1);
    assert_int_equal(api_counter(pair.receiver, "sluice_net_closed_total"), 0);
    atomic_store(&offset_ns, 0);
    part(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(steps_of_the_wall_clock_end_nothing_and_lose_nothing),
            cmocka_unit_test(a_clock_at_its_beginning_changes_only_the_verdict_of_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
