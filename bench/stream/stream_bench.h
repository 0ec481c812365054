/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The parts of the stream benchmark: ways to move bytes from one process to another over loopback,
 * each with a side that takes and a side that sends.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one side measured; seconds and CPU seconds. */
struct transfer {
    double bytes;
    double seconds;
    double send_cpu;
    double receive_cpu;
};

struct workload {
    size_t bytes;         /* in all */
    size_t streams;       /* that share them */
    size_t message_bytes; /* written at a time */
};

enum {
    BLOCK_BYTES = 256 * 1024, /* one read or write of plain TCP, as the io loop does */
    SINK_REPLY_BYTES = 16     /* bytes received and CPU nanoseconds, big endian */
};

#define SINK_PROTOCOL_ID "/sluice/sink/1.0.0"

/* Serve until standard input ends; print "LISTEN address" first. Return the exit status. */
int serve_tcp(void);
int serve_sluice(void);

/* Print "RESULT bytes seconds send_cpu receive_cpu". */
int send_tcp(const char *address, const struct workload *workload);
int send_sluice(const char *address, const struct workload *workload);

/* Bytes a second of ChaCha20-Poly1305 over frames of the size Noise has, sealing or opening. */
double measure_cipher(bool is_sealing, double seconds);

uint64_t process_cpu_ns(void);
