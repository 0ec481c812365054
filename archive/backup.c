/* SPDX-License-Identifier: MIT */
#include "archive/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/sqlite_engine.h"
#include "base/memory.h"

#define PARTIAL ".partial"

enum {
    COPY_BYTES = 1 << 20
};

struct segment_extent {
    int64_t id;
    uint64_t bytes;
};

struct backup {
    const char *from; /* paths */
    const char *to;
    const struct file_ops *files;
    const char *vfs;
    struct sqlite_connection source;
    struct segment_extent *segments;
    size_t segment_count;
    size_t segment_capacity;
    uint8_t *buffer;
    struct archive_backup_result *result;
};

static void name_of(char out[PATH_MAX], const char *path, const char *suffix)
{
    snprintf(out, PATH_MAX, "%s%s", path, suffix);
}

static enum status add_segment(struct backup *backup, int64_t id, uint64_t bytes)
{
    if (backup->segment_count == backup->segment_capacity) {
        size_t capacity = backup->segment_capacity == 0 ? 64 : 2 * backup->segment_capacity;
        struct segment_extent *grown =
                memory_resize(backup->segments, capacity * sizeof(*backup->segments));
        if (grown == NULL) {
            return STATUS_NO_MEMORY;
        }
        backup->segments = grown;
        backup->segment_capacity = capacity;
    }
    backup->segments[backup->segment_count++] = (struct segment_extent){id, bytes};
    return STATUS_OK;
}

/* Inside the read transaction: which files there are, and how far each is indexed. */
static enum status read_segments(struct backup *backup)
{
    sqlite3_stmt *list = NULL;
    enum status status = sqlite_statement(&backup->source, SQLITE_STATEMENT_LIST_EXTENTS, &list);
    bool has_row = status == STATUS_OK;
    while (has_row) {
        status = sqlite_step(&backup->source, list, &has_row);
        if (!has_row) {
            break;
        }
        status = add_segment(
                backup, sqlite3_column_int64(list, 0), (uint64_t)sqlite3_column_int64(list, 1));
        if (status != STATUS_OK) {
            sqlite3_reset(list);
            return status;
        }
        backup->result->messages += (uint64_t)sqlite3_column_int64(list, 2);
    }
    return status;
}

static enum status copy_pages(struct backup *backup, struct sqlite_connection *target)
{
    sqlite3_backup *copy = sqlite3_backup_init(target->db, "main", backup->source.db, "main");
    if (copy == NULL) {
        return sqlite_status_of(target, sqlite3_errcode(target->db));
    }
    int stepped = sqlite3_backup_step(copy, -1);
    int finished = sqlite3_backup_finish(copy);
    if (stepped != SQLITE_DONE) {
        return sqlite_status_of(target, stepped);
    }
    return sqlite_status_of(target, finished);
}

static enum status copy_index(struct backup *backup)
{
    char path[PATH_MAX];
    struct sqlite_connection target;
    name_of(path, backup->to, PARTIAL);
    struct sqlite_target place = {.name = path, .vfs = backup->vfs};
    enum status status = sqlite_connection_init(&target, &place);
    if (status == STATUS_OK) {
        status = sqlite_execute(&target, "PRAGMA synchronous = FULL");
    }
    if (status == STATUS_OK) {
        status = copy_pages(backup, &target);
    }
    sqlite_connection_fini(&target);
    return status;
}

/* One moment of the index; the transaction ends with it, so that the writer's journal may shrink. */
static enum status take_index(struct backup *backup)
{
    enum status status = sqlite_run_plain(&backup->source, SQLITE_STATEMENT_BEGIN_READ);
    if (status == STATUS_OK) {
        status = read_segments(backup);
    }
    if (status == STATUS_OK) {
        status = copy_index(backup);
    }
    sqlite_roll_back(&backup->source);
    return status;
}

static enum status copy_bytes(struct backup *backup, int from, int to, uint64_t bytes)
{
    uint64_t at = 0;
    while (at < bytes) {
        size_t want = bytes - at < COPY_BYTES ? (size_t)(bytes - at) : COPY_BYTES;
        size_t count = 0;
        struct iovec part = {backup->buffer, want};
        enum status status = file_read_at(&file_ops_of_system, from, part, at, &count);
        if (status == STATUS_OK && count < want) {
            status = STATUS_DAMAGED;
        }
        part = (struct iovec){backup->buffer, want};
        if (status == STATUS_OK) {
            status = file_write_all(backup->files, to, &part, 1, at);
        }
        if (status != STATUS_OK) {
            return status;
        }
        at += want;
    }
    int error = backup->files->sync(to);
    return error < 0 ? file_status_of(-error) : STATUS_OK;
}

static enum status copy_segment(struct backup *backup, const struct segment_extent *segment)
{
    char from_path[PATH_MAX];
    char to_path[PATH_MAX];
    char name[64];
    segment_file_name(name, sizeof(name), segment->id);
    snprintf(from_path, sizeof(from_path), "%s" SQLITE_SEGMENTS_SUFFIX "/%s", backup->from, name);
    snprintf(to_path, sizeof(to_path), "%s" SQLITE_SEGMENTS_SUFFIX PARTIAL "/%s", backup->to, name);
    int from = file_ops_of_system.open(from_path, O_RDONLY);
    if (from < 0) {
        return from == -ENOENT ? STATUS_DAMAGED : file_status_of(-from);
    }
    int to = backup->files->open(to_path, O_RDWR | O_CREAT | O_EXCL);
    enum status status =
            to < 0 ? file_status_of(-to) : copy_bytes(backup, from, to, segment->bytes);
    file_ops_of_system.close(from);
    if (to >= 0) {
        backup->files->close(to);
    }
    backup->result->bytes += segment->bytes;
    backup->result->segments++;
    return status;
}

static enum status copy_segments(struct backup *backup)
{
    char folder[PATH_MAX];
    enum status status = STATUS_OK;
    name_of(folder, backup->to, SQLITE_SEGMENTS_SUFFIX PARTIAL);
    if (mkdir(folder, 0755) < 0) {
        return file_status_of(errno);
    }
    backup->buffer = memory_allocate(COPY_BYTES);
    if (backup->buffer == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < backup->segment_count && status == STATUS_OK; i++) {
        status = copy_segment(backup, &backup->segments[i]);
    }
    if (status == STATUS_OK) {
        int error = backup->files->sync_folder(folder);
        status = error < 0 ? file_status_of(-error) : STATUS_OK;
    }
    return status;
}

static void remove_partial_segments(const char *folder)
{
    DIR *entries = opendir(folder);
    if (entries == NULL) {
        return;
    }
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        unlinkat(dirfd(entries), entry->d_name, 0);
    }
    closedir(entries);
    rmdir(folder);
}

/* What an unfinished backup has left. */
static void remove_partial(const char *to)
{
    static const char *const suffixes[] = {
            PARTIAL, PARTIAL "-journal", PARTIAL "-wal", PARTIAL "-shm"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        name_of(path, to, suffixes[i]);
        unlink(path);
    }
    name_of(path, to, SQLITE_SEGMENTS_SUFFIX PARTIAL);
    remove_partial_segments(path);
}

static enum status move(const char *to, const char *suffix)
{
    char from_path[PATH_MAX];
    char to_path[PATH_MAX];
    name_of(to_path, to, suffix);
    snprintf(from_path, sizeof(from_path), "%s%s" PARTIAL, to, suffix);
    return rename(from_path, to_path) < 0 ? file_status_of(errno) : STATUS_OK;
}

/* The index last: without it nobody takes the folder for an archive. */
static enum status show(const struct backup *backup)
{
    char folder[PATH_MAX];
    name_of(folder, backup->to, "");
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
        snprintf(folder, sizeof(folder), ".");
    } else {
        slash[slash == folder ? 1 : 0] = '\0';
    }
    enum status status = move(backup->to, SQLITE_SEGMENTS_SUFFIX);
    if (status == STATUS_OK) {
        status = move(backup->to, "");
    }
    if (status == STATUS_OK) {
        int error = backup->files->sync_folder(folder);
        status = error < 0 ? file_status_of(-error) : STATUS_OK;
    }
    return status;
}

static enum status copy_all(struct backup *backup)
{
    bool is_new = false;
    struct sqlite_target place = {.name = backup->from, .is_read_only = true};
    enum status status = sqlite_connection_init(&backup->source, &place);
    if (status == STATUS_OK) {
        status = sqlite_check_schema(&backup->source, &is_new);
    }
    if (status == STATUS_OK && is_new) {
        status = STATUS_NOT_A_DATABASE;
    }
    if (status == STATUS_OK) {
        status = take_index(backup);
    }
    if (status == STATUS_OK) {
        status = copy_segments(backup);
    }
    sqlite_connection_fini(&backup->source);
    return status == STATUS_OK ? show(backup) : status;
}

static bool is_there(const char *path, const char *suffix)
{
    char full[PATH_MAX];
    struct stat facts;
    name_of(full, path, suffix);
    return lstat(full, &facts) == 0;
}

static enum status run(struct backup *backup, struct archive_error *error)
{
    char folder[PATH_MAX];
    int lock = -1;
    if (is_there(backup->to, "") || is_there(backup->to, SQLITE_SEGMENTS_SUFFIX)) {
        snprintf(
                error->text, sizeof(error->text), "%.900s: something is there already", backup->to);
        return STATUS_ALREADY_EXISTS;
    }
    name_of(folder, backup->from, SQLITE_SEGMENTS_SUFFIX);
    /* Where nobody may write, nobody removes files either. */
    enum status status = segments_hold(&lock, folder);
    if (status != STATUS_OK && status != STATUS_READ_ONLY) {
        snprintf(error->text, sizeof(error->text), "%.900s: %s", folder, status_text(status));
        return status;
    }
    remove_partial(backup->to);
    status = copy_all(backup);
    if (status != STATUS_OK) {
        remove_partial(backup->to);
        snprintf(error->text, sizeof(error->text), "backup of %.400s to %.400s: %s", backup->from,
                backup->to, status_text(status));
    }
    if (lock >= 0) {
        close(lock);
    }
    return status;
}

const char *archive_path_of(const char *address)
{
    static const char scheme[] = "sqlite://";
    size_t length = sizeof(scheme) - 1;
    bool is_file = strncmp(address, scheme, length) == 0 && address[length] != '\0' &&
                   strcmp(address + length, ":memory:") != 0;
    return is_file ? address + length : NULL;
}

enum status archive_backup(const char *from, const char *to, const struct archive_options *options,
        struct archive_backup_result *result, struct archive_error *error)
{
    struct backup backup = {.from = archive_path_of(from), .to = archive_path_of(to)};
    *result = (struct archive_backup_result){0};
    if (backup.from == NULL || backup.to == NULL || strlen(backup.from) > PATH_MAX / 2 ||
            strlen(backup.to) > PATH_MAX / 2) {
        snprintf(error->text, sizeof(error->text), "'%.400s': not sqlite://PATH",
                backup.from == NULL ? from : to);
        return STATUS_BAD_ARGUMENT;
    }
    backup.files = options != NULL && options->files != NULL ? options->files : &file_ops_of_system;
    backup.vfs = options != NULL ? options->vfs : NULL;
    backup.result = result;
    enum status status = run(&backup, error);
    memory_free(backup.segments);
    memory_free(backup.buffer);
    return status;
}
