/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads the JSON files of tests/vectors; tests run from the source root. */

#include <jansson.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/support/hex.h"

/* The root object of tests/vectors/NAME; json_decref it. */
static inline json_t *vectors_load(const char *name)
{
    char path[256];
    json_error_t error;
    snprintf(path, sizeof(path), "tests/vectors/%s", name);
    json_t *root = json_load_file(path, 0, &error);
    if (root == NULL) {
        print_error("%s: %s\n", path, error.text);
    }
    assert_non_null(root);
    return root;
}

/* A text member, which must be there. */
static inline const char *vectors_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    assert_non_null(text);
    return text;
}

/* A member in hexadecimal as bytes; hex_free them. */
static inline struct span vectors_bytes(const json_t *object, const char *key)
{
    return hex_decode(vectors_text(object, key));
}
