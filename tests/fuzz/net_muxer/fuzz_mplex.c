/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/net_muxer/fuzz_muxer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_muxer(MUXER_MPLEX, data, size);
    return 0;
}
