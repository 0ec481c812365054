/* SPDX-License-Identifier: MIT */
#include "tests/support/shadow_file.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/require.h"

static void shadow_resize(struct shadow *shadow, size_t size)
{
    if (size > shadow->size) {
        shadow->image = realloc(shadow->image, size);
        REQUIRE(shadow->image != NULL);
        memset(shadow->image + shadow->size, 0, size - shadow->size);
    }
    shadow->size = size;
}

static void shadow_note(struct shadow *shadow, const void *bytes, size_t length, size_t offset)
{
    struct change *change = calloc(1, sizeof(*change));
    REQUIRE(change != NULL);
    change->length = length;
    change->offset = offset;
    if (bytes != NULL) {
        change->bytes = malloc(length + 1);
        REQUIRE(change->bytes != NULL);
        memcpy(change->bytes, bytes, length);
    }
    *shadow->last = change;
    shadow->last = &change->next;
}

void shadow_write(struct shadow *shadow, const void *bytes, size_t length, size_t offset)
{
    if (offset + length > shadow->size) {
        shadow_resize(shadow, offset + length);
    }
    memcpy(shadow->image + offset, bytes, length);
    shadow_note(shadow, bytes, length, offset);
}

void shadow_truncate(struct shadow *shadow, size_t size)
{
    shadow_resize(shadow, size);
    shadow_note(shadow, NULL, 0, size);
}

size_t shadow_read(const struct shadow *shadow, void *to, size_t length, size_t offset)
{
    if (offset >= shadow->size) {
        return 0;
    }
    size_t count = shadow->size - offset < length ? shadow->size - offset : length;
    memcpy(to, shadow->image + offset, count);
    return count;
}

void shadow_flush(struct shadow *shadow, shadow_apply *apply, void *context)
{
    while (shadow->first != NULL) {
        struct change *change = shadow->first;
        shadow->first = change->next;
        if (apply != NULL) {
            apply(context, change);
        }
        free(change->bytes);
        free(change);
    }
    shadow->last = &shadow->first;
}

void shadow_init(struct shadow *shadow, size_t size)
{
    *shadow = (struct shadow){0};
    shadow->last = &shadow->first;
    shadow_resize(shadow, size);
}

void shadow_fini(struct shadow *shadow)
{
    shadow_flush(shadow, NULL, NULL);
    free(shadow->image);
    shadow->image = NULL;
}
