/* SPDX-License-Identifier: MIT */

/* Plain TCP with the reads and writes that the io loop makes: what the machine allows. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/stream/stream_bench.h"

uint64_t process_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static void write_number(uint8_t out[8], uint64_t number)
{
    for (int i = 7; i >= 0; i--) {
        out[i] = (uint8_t)number;
        number >>= 8;
    }
}

static uint64_t read_number(const uint8_t in[8])
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) {
        number = number << 8 | in[i];
    }
    return number;
}

static void take_all(int descriptor)
{
    uint8_t *block = malloc(BLOCK_BYTES);
    uint8_t reply[SINK_REPLY_BYTES];
    uint64_t cpu = process_cpu_ns();
    uint64_t bytes = 0;
    ssize_t n;
    while ((n = read(descriptor, block, BLOCK_BYTES)) > 0) {
        bytes += (uint64_t)n;
    }
    write_number(reply, bytes);
    write_number(reply + 8, process_cpu_ns() - cpu);
    if (write(descriptor, reply, sizeof(reply)) != (ssize_t)sizeof(reply)) {
        perror("reply");
    }
    free(block);
    close(descriptor);
}

static void *accept_all(void *argument)
{
    int listener = *(int *)argument;
    int descriptor;
    while ((descriptor = accept(listener, NULL, NULL)) >= 0) {
        take_all(descriptor);
    }
    return NULL;
}

int serve_tcp(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    pthread_t thread;
    char byte;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 8) != 0 ||
            getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
            pthread_create(&thread, NULL, accept_all, &listener) != 0) {
        perror("serve_tcp");
        return 1;
    }
    printf("LISTEN %u\n", (unsigned)ntohs(address.sin_port));
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listener);
    return 0;
}

static int connect_to(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
            .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
    int on = 1;
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(descriptor, (struct sockaddr *)&address, sizeof(address)) != 0) {
        perror("connect");
        close(descriptor);
        return -1;
    }
    return descriptor;
}

int send_tcp(const char *address, const struct workload *workload)
{
    int descriptor = connect_to(address);
    uint8_t *block = calloc(1, BLOCK_BYTES);
    uint8_t reply[SINK_REPLY_BYTES];
    size_t left = workload->bytes;
    uint64_t start = clock_monotonic_ns();
    uint64_t cpu = process_cpu_ns();
    while (descriptor >= 0 && left > 0) {
        ssize_t n = write(descriptor, block, left < BLOCK_BYTES ? left : BLOCK_BYTES);
        if (n <= 0) {
            break;
        }
        left -= (size_t)n;
    }
    if (descriptor >= 0) {
        shutdown(descriptor, SHUT_WR);
    }
    bool is_done = left == 0 &&
                   recv(descriptor, reply, sizeof(reply), MSG_WAITALL) == (ssize_t)sizeof(reply);
    if (is_done) {
        printf("RESULT %zu %.6f %.6f %.6f\n", workload->bytes,
                (double)(clock_monotonic_ns() - start) / NANOSECONDS_PER_SECOND,
                (double)(process_cpu_ns() - cpu) / NANOSECONDS_PER_SECOND,
                (double)read_number(reply + 8) / NANOSECONDS_PER_SECOND);
    }
    free(block);
    if (descriptor >= 0) {
        close(descriptor);
    }
    return is_done ? 0 : 1;
}
