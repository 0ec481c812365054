/* SPDX-License-Identifier: MIT */
#include "base/hex.h"

int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    if (digit >= 'A' && digit <= 'F') {
        return digit - 'A' + 10;
    }
    return -1;
}

void hex_encode(char *out, struct span bytes)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.length; i++) {
        *out++ = digits[bytes.bytes[i] >> 4];
        *out++ = digits[bytes.bytes[i] & 15];
    }
    *out = '\0';
}

enum status hex_decode(uint8_t *out, size_t length, const char *text)
{
    if (text[0] == '0' && text[1] == 'x') {
        text += 2;
    }
    for (size_t i = 0; i < length; i++) {
        int high = hex_digit(text[0]);
        int low = high < 0 ? -1 : hex_digit(text[1]);
        if (low < 0) {
            return STATUS_BAD_ARGUMENT;
        }
        out[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    return *text == '\0' ? STATUS_OK : STATUS_BAD_ARGUMENT;
}
