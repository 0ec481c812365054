/* SPDX-License-Identifier: MIT */

/*
 * How a program uses libsluice: this one knows nothing of it but include/sluice.h.
 *
 *   sluice_example [TEXT]         one node, which is not on any network, publishes TEXT and hears itself
 *   sluice_example --two [TEXT]   two nodes on loopback: one publishes, the other receives
 *
 * Build against an installed library: cc main.c -lsluice
 */

#include <sluice.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char pubsub_topic[] = "/waku/2/rs/0/0";
static const char content_topic[] = "/example/1/greetings/plain";

enum {
    TRIES = 200, /* of a publish that reaches nobody yet */
    PAUSE_NS = 50 * 1000 * 1000,
    PATIENCE_S = 30
};

/*
 * What the callbacks tell the main thread. A callback must be quick, so it takes what it needs and
 * returns; here the message is kept, which costs a reference and no copy.
 */
struct mailbox {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct sluice_envelope *received;
    bool has_outcome;
    enum sluice_outcome outcome;
    size_t peer_count;
};

static void take_message(void *context, struct sluice_envelope *envelope)
{
    struct mailbox *mailbox = context;
    struct sluice_envelope *kept = sluice_envelope_ref(envelope);
    pthread_mutex_lock(&mailbox->mutex);
    struct sluice_envelope *old = mailbox->received;
    mailbox->received = kept;
    pthread_cond_signal(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->mutex);
    sluice_envelope_unref(old);
}

static void take_outcome(
        void *context, enum sluice_outcome outcome, size_t peer_count, const char *reason)
{
    struct mailbox *mailbox = context;
    if (outcome == SLUICE_REFUSED) {
        fprintf(stderr, "refused: %s\n", reason);
    }
    pthread_mutex_lock(&mailbox->mutex);
    mailbox->has_outcome = true;
    mailbox->outcome = outcome;
    mailbox->peer_count = peer_count;
    pthread_cond_signal(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->mutex);
}

/* Says what went wrong, once; true when nothing did. */
static bool is_good(const char *what, enum sluice_result result, const struct sluice_error *error)
{
    if (result != SLUICE_OK) {
        fprintf(stderr, "%s: %s %s\n", what, sluice_result_text(result), error->text);
    }
    return result == SLUICE_OK;
}

/* Options are texts, named as the flags of `sluice run`. values: name, value, ..., NULL */
static struct sluice_node *make_node(const char *const values[])
{
    struct sluice_options *options = NULL;
    struct sluice_node *node = NULL;
    struct sluice_error error = {""};
    if (!is_good("options", sluice_options_create(&options), &error)) {
        return NULL;
    }
    bool good = true;
    for (size_t i = 0; good && values[i] != NULL; i += 2) {
        good = is_good(
                values[i], sluice_options_set(options, values[i], values[i + 1], &error), &error);
    }
    if (good && is_good("node", sluice_node_create(&node, options, &error), &error)) {
        return node; /* which has the options now */
    }
    sluice_options_destroy(&options);
    return NULL;
}

static bool start_node(struct sluice_node *node)
{
    struct sluice_error error = {""};
    return is_good("start", sluice_node_start(node, &error), &error);
}

/* Until it is there; false when that takes too long. The mutex is held. */
static bool wait_until(struct mailbox *mailbox, bool (*is_there)(const struct mailbox *mailbox))
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    while (!is_there(mailbox)) {
        if (pthread_cond_timedwait(&mailbox->changed, &mailbox->mutex, &end) != 0) {
            return is_there(mailbox);
        }
    }
    return true;
}

static bool has_outcome(const struct mailbox *mailbox)
{
    return mailbox->has_outcome;
}

static bool has_message(const struct mailbox *mailbox)
{
    return mailbox->received != NULL;
}

/*
 * Publishes and waits for the outcome. A node that has just connected has nobody yet to send to: then
 * the message is published once more, with another timestamp, which makes it another message.
 */
static bool publish(struct sluice_node *node, const char *text, size_t peers_wanted)
{
    struct mailbox mailbox = {
            .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct sluice_message message = {.pubsub_topic = pubsub_topic,
            .content_topic = content_topic,
            .payload = {(const uint8_t *)text, strlen(text)}};
    struct sluice_error none = {""};
    for (int i = 0; i < TRIES; i++) {
        mailbox.has_outcome = false;
        if (!is_good("publish", sluice_node_publish(node, &message, take_outcome, &mailbox),
                    &none)) {
            return false;
        }
        pthread_mutex_lock(&mailbox.mutex);
        bool told = wait_until(&mailbox, has_outcome);
        pthread_mutex_unlock(&mailbox.mutex);
        if (!told || mailbox.outcome == SLUICE_REFUSED) {
            return false;
        }
        if (mailbox.peer_count >= peers_wanted) {
            printf("published, on its way to %zu peers\n", mailbox.peer_count);
            return true;
        }
        struct timespec pause = {.tv_nsec = PAUSE_NS};
        nanosleep(&pause, NULL);
    }
    fprintf(stderr, "no peer took the message\n");
    return false;
}

static void print_message(const struct sluice_envelope *envelope)
{
    struct sluice_bytes payload = sluice_envelope_payload(envelope);
    struct sluice_bytes topic = sluice_envelope_content_topic(envelope);
    printf("received on %.*s: %.*s\n", (int)topic.size, (const char *)topic.data, (int)payload.size,
            (const char *)payload.data);
}

static bool receive(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->mutex);
    bool came = wait_until(mailbox, has_message);
    pthread_mutex_unlock(&mailbox->mutex);
    if (!came) {
        fprintf(stderr, "nothing came\n");
        return false;
    }
    print_message(mailbox->received);
    return true;
}

/* The receiver subscribes before it starts, so that it misses nothing. */
static bool run(struct sluice_node *sender, struct sluice_node *receiver, const char *text)
{
    struct mailbox mailbox = {
            .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct sluice_subscription *subscription = NULL;
    struct sluice_error none = {""};
    bool good = is_good("subscribe",
            sluice_node_subscribe(receiver, pubsub_topic, take_message, &mailbox, &subscription),
            &none);
    good = good && start_node(receiver);
    good = good && (sender == receiver || start_node(sender));
    good = good && publish(sender, text, sender == receiver ? 0 : 1);
    good = good && receive(&mailbox);
    sluice_subscription_end(&subscription); /* from here on the mailbox is ours alone */
    sluice_envelope_unref(mailbox.received);
    uint64_t hashes = 0;
    if (good &&
            sluice_node_counter(receiver, "sluice_message_hashes_total", &hashes) == SLUICE_OK) {
        printf("messages hashed by the receiver: %llu\n", (unsigned long long)hashes);
    }
    return good;
}

static bool run_one(const char *text)
{
    static const char *const values[] = {"network", "false", NULL};
    struct sluice_node *node = make_node(values);
    bool good = node != NULL && run(node, node, text);
    (void)sluice_node_destroy(&node);
    return good;
}

static bool run_two(const char *text)
{
    char address[512];
    static const char *const listening[] = {"listen-address", "127.0.0.1", "tcp-port", "0", NULL};
    struct sluice_node *receiver = make_node(listening);
    if (receiver == NULL ||
            sluice_node_address(receiver, 0, address, sizeof(address)) != SLUICE_OK) {
        (void)sluice_node_destroy(&receiver);
        return false;
    }
    printf("the receiver listens on %s\n", address);
    const char *const dialling[] = {"listen-address", "127.0.0.1", "tcp-port", "0", "staticnode",
            address, "pubsub-topic", pubsub_topic, NULL};
    struct sluice_node *sender = make_node(dialling);
    bool good = sender != NULL && run(sender, receiver, text);
    (void)sluice_node_destroy(&sender);
    (void)sluice_node_destroy(&receiver);
    return good;
}

int main(int argc, char **argv)
{
    bool is_two = argc > 1 && strcmp(argv[1], "--two") == 0;
    const char *text = argc > 1 + is_two ? argv[1 + is_two] : "hello";
    return (is_two ? run_two(text) : run_one(text)) ? EXIT_SUCCESS : EXIT_FAILURE;
}
