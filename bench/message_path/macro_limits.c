/* SPDX-License-Identifier: MIT */

/* What must be done for a message between two nodes, each step alone on the same bytes. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/clock.h"
#include "base/cpu_set.h"
#include "bench/message_path/material.h"
#include "bench/message_path/scenario.h"
#include "codec/gossip_writer.h"
#include "net/security/noise_session.h"

enum {
    HEADER_BYTES_MAX = 256,
    READ_BYTES = 256 * 1024,
    THREADS_MAX = 6 /* that touch a message: caller, lane and io of A; io, lane and archive of B */
};

/* Nanoseconds of CPU a message; storing on disk: of time. */
struct steps {
    double encode;
    double hash;
    double seal;
    double send;
    double receive;
    double open;
    double store;
};

struct bytes {
    uint8_t *message; /* room for the largest */
    uint8_t *frame;   /* of Noise */
    size_t message_max;
};

static double each(const struct material *material, uint64_t total_ns)
{
    return (double)total_ns / (double)material->count;
}

static double encode_alone(const struct material *material, const struct bytes *bytes)
{
    uint64_t began = clock_thread_cpu_ns();
    for (size_t i = 0; i < material->count; i++) {
        const struct envelope *envelope = material->envelopes[i];
        struct waku_message_view fields = {.payload = envelope->payload,
                .content_topic = envelope->content_topic,
                .timestamp_ns = envelope->timestamp_ns,
                .has_payload = true,
                .has_content_topic = true,
                .has_timestamp = true};
        (void)waku_message_encode(bytes->message, bytes->message_max, &fields);
    }
    return each(material, clock_thread_cpu_ns() - began);
}

static double hash_alone(const struct material *material)
{
    uint8_t hash[SHA256_BYTES];
    uint8_t id[SHA256_BYTES];
    uint64_t began = clock_thread_cpu_ns();
    for (size_t i = 0; i < material->count; i++) {
        struct message_hash_input input = material_hash_input(material->envelopes[i]);
        message_hash_and_id(hash, id, &input, material->envelopes[i]->message);
    }
    return each(material, clock_thread_cpu_ns() - began);
}

/* Header and message in secure frames; each is opened again, into the place of the message. */
static enum status secure_message(struct noise_session *sessions[2], struct span message,
        const struct bytes *bytes, uint64_t spent_ns[2])
{
    size_t done = 0;
    while (done < message.length) {
        size_t part = message.length - done;
        part = part < NOISE_MAX_PLAINTEXT ? part : NOISE_MAX_PLAINTEXT;
        struct span piece = span_of(message.bytes + done, part);
        uint64_t began = clock_thread_cpu_ns();
        size_t written = noise_session_seal(sessions[0], &piece, 1, bytes->frame);
        uint64_t sealed = clock_thread_cpu_ns();
        enum status status = noise_session_open(
                sessions[1], bytes->frame + NOISE_LENGTH_BYTES, written - NOISE_LENGTH_BYTES);
        if (status != STATUS_OK) {
            return status;
        }
        noise_session_read(sessions[1], bytes->message, part);
        spent_ns[0] += sealed - began;
        spent_ns[1] += clock_thread_cpu_ns() - sealed;
        done += part;
    }
    return STATUS_OK;
}

static enum status secure_alone(
        struct steps *steps, const struct material *material, const struct bytes *bytes)
{
    static const uint8_t key_a[NOISE_CIPHER_KEY_BYTES] = {1};
    static const uint8_t key_b[NOISE_CIPHER_KEY_BYTES] = {2};
    struct noise_session *sessions[2] = {NULL, NULL};
    uint64_t spent_ns[2] = {0, 0};
    enum status status = noise_session_create(&sessions[0], key_a, key_b);
    if (status == STATUS_OK) {
        status = noise_session_create(&sessions[1], key_b, key_a);
    }
    for (size_t i = 0; status == STATUS_OK && i < material->count; i++) {
        status = secure_message(sessions, material->envelopes[i]->message, bytes, spent_ns);
    }
    noise_session_destroy(&sessions[0]);
    noise_session_destroy(&sessions[1]);
    steps->seal = each(material, spent_ns[0]);
    steps->open = each(material, spent_ns[1]);
    return status;
}

struct tcp_end {
    const struct material *material;
    int socket;
    uint64_t cpu_ns;
};

static bool send_span(int socket, struct span rest)
{
    while (rest.length > 0) {
        ssize_t sent = send(socket, rest.bytes, rest.length, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        rest = span_of(rest.bytes + sent, rest.length - (size_t)sent);
    }
    return true;
}

static void *send_all(void *context)
{
    struct tcp_end *end = context;
    uint64_t began = clock_thread_cpu_ns();
    size_t i = 0;
    while (i < end->material->count &&
            send_span(end->socket, end->material->envelopes[i]->message)) {
        i++;
    }
    shutdown(end->socket, SHUT_WR);
    end->cpu_ns = clock_thread_cpu_ns() - began;
    return NULL;
}

static void receive_all(struct tcp_end *end)
{
    static uint8_t buffer[READ_BYTES];
    uint64_t began = clock_thread_cpu_ns();
    while (recv(end->socket, buffer, sizeof(buffer), 0) > 0) {
    }
    end->cpu_ns = clock_thread_cpu_ns() - began;
}

/* Two connected TCP sockets of this machine. */
static bool connect_pair(int pair[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    pair[1] = -1;
    if (bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0 &&
            getsockname(listener, (struct sockaddr *)&address, &length) == 0 &&
            connect(pair[0], (struct sockaddr *)&address, length) == 0) {
        pair[1] = accept(listener, NULL, NULL);
    }
    close(listener);
    return pair[1] >= 0;
}

static enum status tcp_alone(struct steps *steps, const struct material *material)
{
    int pair[2];
    pthread_t thread;
    enum status status = STATUS_SYSTEM;
    if (connect_pair(pair)) {
        struct tcp_end sender = {.material = material, .socket = pair[0]};
        struct tcp_end receiver = {.material = material, .socket = pair[1]};
        if (pthread_create(&thread, NULL, send_all, &sender) == 0) {
            receive_all(&receiver);
            pthread_join(thread, NULL);
            steps->send = each(material, sender.cpu_ns);
            steps->receive = each(material, receiver.cpu_ns);
            status = STATUS_OK;
        }
        close(pair[1]);
    }
    close(pair[0]);
    return status;
}

static enum status store_alone(
        struct steps *steps, const struct material *material, const struct scenario *scenario)
{
    struct archive *archive = NULL;
    struct archive_error error;
    struct archive_options options = {.memory_limit_bytes = UINT64_MAX};
    bool is_on_disk = strcmp(scenario->archive, "memory") != 0 &&
                      strstr(scenario->archive, ":memory:") == NULL;
    enum status status = archive_open(&archive, scenario->archive, &options, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "message_path: %s\n", error.text);
        return status;
    }
    uint64_t began_cpu = clock_thread_cpu_ns();
    uint64_t began = clock_monotonic_ns();
    for (size_t i = 0; status == STATUS_OK && i < material->count; i += scenario->window) {
        struct archive_put_result result;
        size_t left = material->count - i;
        status = archive_put(archive, material->envelopes + i,
                left < scenario->window ? left : scenario->window, &result);
    }
    steps->store = each(material,
            is_on_disk ? clock_monotonic_ns() - began : clock_thread_cpu_ns() - began_cpu);
    archive_close(&archive);
    return status;
}

static double longest_of(const struct steps *steps)
{
    const double threads[] = {steps->encode, steps->hash, steps->seal + steps->send,
            steps->receive + steps->open, steps->store};
    double longest = 0;
    for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
        longest = threads[i] > longest ? threads[i] : longest;
    }
    return longest;
}

static double limit_of(const struct steps *steps)
{
    struct cpu_set allowed;
    int cores = cpu_set_allowed(&allowed) == STATUS_OK ? cpu_set_count(&allowed) : 1;
    double sum = steps->encode + 2 * steps->hash + steps->seal + steps->send + steps->receive +
                 steps->open + steps->store;
    double shared = sum / (cores < THREADS_MAX ? cores : THREADS_MAX);
    double longest = longest_of(steps);
    return 1e9 / (shared > longest ? shared : longest);
}

static void print_steps(const struct steps *steps)
{
    fprintf(stderr,
            "limit: us a message: encode %.1f, hash and id %.1f (twice), seal %.1f, send %.1f, "
            "receive %.1f, open %.1f, store %.1f\n",
            steps->encode / 1e3, steps->hash / 1e3, steps->seal / 1e3, steps->send / 1e3,
            steps->receive / 1e3, steps->open / 1e3, steps->store / 1e3);
}

static enum status measure_steps(struct steps *steps, const struct material *material,
        const struct scenario *scenario, const struct bytes *bytes)
{
    steps->encode = encode_alone(material, bytes);
    steps->hash = hash_alone(material);
    enum status status = secure_alone(steps, material, bytes);
    if (status == STATUS_OK) {
        status = tcp_alone(steps, material);
    }
    return status == STATUS_OK ? store_alone(steps, material, scenario) : status;
}

enum status measure_macro_limit(
        double *msg_per_s, const struct workload *workload, const struct scenario *scenario)
{
    struct material material = {0};
    struct steps steps = {0};
    struct bytes bytes = {.message_max = (size_t)1 << 20};
    bytes.message = malloc(bytes.message_max);
    bytes.frame = malloc(NOISE_LENGTH_BYTES + NOISE_MAX_CIPHERTEXT);
    enum status status = bytes.message == NULL || bytes.frame == NULL
                                 ? STATUS_NO_MEMORY
                                 : material_init(&material, workload, scenario->nonce);
    if (status == STATUS_OK) {
        status = measure_steps(&steps, &material, scenario, &bytes);
    }
    if (status == STATUS_OK) {
        *msg_per_s = limit_of(&steps);
        print_steps(&steps);
    }
    material_fini(&material);
    free(bytes.message);
    free(bytes.frame);
    return status;
}
