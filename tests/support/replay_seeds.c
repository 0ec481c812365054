/* SPDX-License-Identifier: MIT */

/* Runs every file of the given folders through a fuzz target's entry, as a plain test. */

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    size_t capacity = 4U << 20;
    uint8_t *bytes = malloc(capacity);
    size_t length = bytes == NULL ? 0 : fread(bytes, 1, capacity, file);
    fclose(file);
    /* An exact-size copy, so that a read past the end is seen by the sanitizers. */
    uint8_t *exact = malloc(length + 1);
    if (bytes == NULL || exact == NULL) {
        free(bytes);
        free(exact);
        return -1;
    }
    memcpy(exact, bytes, length);
    free(bytes);
    uint8_t *fitted = realloc(exact, length > 0 ? length : 1);
    LLVMFuzzerTestOneInput(fitted, length);
    free(fitted);
    return 0;
}

static long replay_folder(const char *folder)
{
    DIR *listing = opendir(folder);
    if (listing == NULL) {
        fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        return -1;
    }
    long count = 0;
    struct dirent *entry;
    while ((entry = readdir(listing)) != NULL) {
        char path[4096];
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (replay_file(path) != 0) {
            count = -1;
            break;
        }
        count++;
    }
    closedir(listing);
    return count;
}

int main(int argc, char **argv)
{
    long total = 0;
    for (int i = 1; i < argc; i++) {
        long count = replay_folder(argv[i]);
        if (count <= 0) {
            fprintf(stderr, "%s: no seeds\n", argv[i]);
            return 1;
        }
        total += count;
    }
    printf("%ld seeds replayed\n", total);
    return total > 0 ? 0 : 1;
}
