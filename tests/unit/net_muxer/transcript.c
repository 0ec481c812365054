/* SPDX-License-Identifier: MIT */
#include "tests/unit/net_muxer/transcript.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_MAX_CHARS = 8192,
    BYTES_MAX = 1 << 20
};

static uint8_t hex_byte(const char *text)
{
    const char pair[3] = {text[0], text[1], '\0'};
    return (uint8_t)strtoul(pair, NULL, 16);
}

/* Decodes one line's bytes to out and returns their number. */
static size_t decode(const char *text, uint8_t *out)
{
    size_t length = 0;
    while (*text != '\0') {
        if (isspace((unsigned char)*text)) {
            text++;
            continue;
        }
        uint8_t byte = hex_byte(text);
        text += 2;
        size_t repeat = 1;
        if (*text == '*') {
            char *end;
            repeat = strtoul(text + 1, &end, 10);
            text = end;
        }
        assert(length + repeat <= BYTES_MAX);
        memset(out + length, byte, repeat);
        length += repeat;
    }
    return length;
}

/* Calls use for each line of side until it returns false; the number of lines used. */
static size_t each_line(
        const char *path, char side, bool (*use)(void *, const uint8_t *, size_t), void *context)
{
    char line[LINE_MAX_CHARS];
    size_t count = 0;
    uint8_t *bytes = malloc(BYTES_MAX);
    FILE *file = fopen(path, "r");
    assert(file != NULL && bytes != NULL);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (line[0] != side || line[1] != ' ') {
            continue;
        }
        if (!use(context, bytes, decode(line + 2, bytes))) {
            count = 0;
            break;
        }
        count++;
    }
    fclose(file);
    free(bytes);
    return count;
}

struct replay {
    struct end *end;
    size_t cut;
};

/* What end answers is dropped, but it has to be sent: a window counts only then. */
static bool replay_line(void *context, const uint8_t *bytes, size_t length)
{
    struct replay *replay = context;
    uint8_t dropped[256];
    if (end_receive(replay->end, bytes, length, replay->cut) != STATUS_OK) {
        return false;
    }
    while (end_output(replay->end, dropped, sizeof(dropped)) > 0) {
    }
    return true;
}

bool transcript_replay(const char *path, char side, struct end *end, size_t cut)
{
    struct replay replay = {.end = end, .cut = cut};
    return each_line(path, side, replay_line, &replay) > 0;
}

struct load {
    uint8_t *out;
    size_t length;
    size_t capacity;
};

static bool load_line(void *context, const uint8_t *bytes, size_t length)
{
    struct load *load = context;
    size_t room = load->capacity - load->length;
    size_t n = length < room ? length : room;
    memcpy(load->out + load->length, bytes, n);
    load->length += n;
    return true;
}

size_t transcript_load(const char *path, char side, uint8_t *out, size_t capacity)
{
    struct load load = {.out = out, .capacity = capacity};
    each_line(path, side, load_line, &load);
    return load.length;
}
