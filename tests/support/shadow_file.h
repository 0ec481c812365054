/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A file as its writer sees it, and the changes that the disk has not seen: what a disk that keeps only
 * what was synced is made of.
 *
 * Thread: callers lock.
 */

#include <stddef.h>
#include <stdint.h>

/* A write, or with bytes NULL a change of the length to offset, that is not synced yet. */
struct change {
    struct change *next;
    uint8_t *bytes;
    size_t length;
    size_t offset;
};

/* A file as its writer sees it, and the changes that the disk has not seen. */
struct shadow {
    uint8_t *image;
    size_t size;
    struct change *first;
    struct change **last;
};

void shadow_init(struct shadow *shadow, size_t size);
void shadow_fini(struct shadow *shadow);
void shadow_write(struct shadow *shadow, const void *bytes, size_t length, size_t offset);
void shadow_truncate(struct shadow *shadow, size_t size);
size_t shadow_read(const struct shadow *shadow, void *to, size_t length, size_t offset);

typedef void shadow_apply(void *context, const struct change *change);

/* Hands every change to apply (may be NULL) and forgets it. */
void shadow_flush(struct shadow *shadow, shadow_apply *apply, void *context);
