/* SPDX-License-Identifier: MIT */
#include "bench/address.h"

#include <unistd.h>

enum status bench_read_address(int descriptor, struct multiaddr *out)
{
    char text[MULTIADDR_TEXT_SIZE];
    size_t length = 0;
    ssize_t n;
    while (length < sizeof(text) &&
            (n = read(descriptor, text + length, sizeof(text) - length)) > 0) {
        length += (size_t)n;
    }
    return multiaddr_parse(out, span_of(text, length));
}
