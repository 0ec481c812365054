/* SPDX-License-Identifier: MIT */

/*
 * One side of one way to move bytes; bench/stream/run starts the sides and compares.
 *
 *   bench_stream serve tcp|sluice
 *   bench_stream send tcp|sluice ADDRESS BYTES STREAMS MESSAGE_BYTES
 *   bench_stream cipher SECONDS
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/stream/stream_bench.h"

static int usage(void)
{
    fprintf(stderr, "usage: bench_stream serve tcp|sluice\n"
                    "       bench_stream send tcp|sluice ADDRESS BYTES STREAMS MESSAGE_BYTES\n"
                    "       bench_stream cipher SECONDS\n");
    return 2;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(argv[1], "serve") == 0) {
        return strcmp(argv[2], "tcp") == 0 ? serve_tcp() : serve_sluice();
    }
    if (argc == 3 && strcmp(argv[1], "cipher") == 0) {
        double seconds = strtod(argv[2], NULL);
        double sealed = measure_cipher(true, seconds);
        printf("RESULT %.0f %.0f\n", sealed, measure_cipher(false, seconds));
        return 0;
    }
    if (argc == 7 && strcmp(argv[1], "send") == 0) {
        struct workload workload = {
                .bytes = strtoull(argv[4], NULL, 10),
                .streams = strtoull(argv[5], NULL, 10),
                .message_bytes = strtoull(argv[6], NULL, 10),
        };
        if (workload.streams == 0 || workload.message_bytes == 0 ||
                workload.message_bytes > BLOCK_BYTES) {
            return usage();
        }
        return strcmp(argv[2], "tcp") == 0 ? send_tcp(argv[3], &workload)
                                           : send_sluice(argv[3], &workload);
    }
    return usage();
}
