/* SPDX-License-Identifier: MIT */

/* The file of peers, as an editor or a crash may leave it: what is found is an address with a peer id. */

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net/peer_manager/peer_file.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(void *context, const struct multiaddr *address)
{
    char text[MULTIADDR_TEXT_SIZE];
    struct multiaddr again;
    struct peer_id peer;
    size_t *count = context;
    (*count)++;
    REQUIRE(multiaddr_peer(&peer, address));
    REQUIRE(multiaddr_parse(&again, span_of_text(multiaddr_print(text, address))) == STATUS_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    size_t count = 0;
    int file = memfd_create("peers", MFD_CLOEXEC);
    REQUIRE(file >= 0);
    REQUIRE(write(file, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    REQUIRE(peer_file_read(path, take, &count) == STATUS_OK);
    REQUIRE(count <= size);
    close(file);
    return 0;
}
