/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "archive/sqlite_engine.h"
#include "base/log.h"
#include "base/memory.h"

static const char module[] = "archive";
static const char damage_mark[] = SQLITE_SEGMENTS_SUFFIX "/.index-is-damaged";

static bool is_there(const char *path, const char *suffix)
{
    char full[PATH_MAX];
    snprintf(full, sizeof(full), "%s%s", path, suffix);
    return access(full, F_OK) == 0;
}

static bool has_segments(const char *path)
{
    char folder[PATH_MAX];
    struct segments *segments = NULL;
    int64_t *ids = NULL;
    size_t count = 0;
    snprintf(folder, sizeof(folder), "%s%s", path, SQLITE_SEGMENTS_SUFFIX);
    struct segments_options options = {.folder = folder, .is_read_only = true};
    if (segments_open(&segments, &options) == STATUS_OK &&
            segments_list(segments, &ids, &count) == STATUS_OK) {
        memory_free(ids);
    }
    segments_close(&segments);
    return count > 0;
}

/*
 * With a journal beside it, a database is read as its owner would; without one it is opened so that
 * none is made.
 */
void sqlite_foreign_target(struct sqlite_target *target, const char *path, const char *vfs)
{
    *target = (struct sqlite_target){.name = path,
            .vfs = vfs,
            .is_read_only = true,
            .is_immutable = !is_there(path, "-wal") && !is_there(path, "-journal")};
}

bool sqlite_has_reference_table(struct sqlite_connection *connection)
{
    int64_t count = 0;
    enum status status = sqlite_read_number(connection,
            "SELECT count(*) FROM pragma_table_info('message') WHERE lower(name) IN"
            " ('pubsubtopic', 'contenttopic', 'payload', 'version', 'timestamp')",
            &count);
    return status == STATUS_OK && count == 5;
}

static enum status look_into(const char *path, const char *vfs)
{
    struct sqlite_target target;
    struct sqlite_connection connection;
    bool is_new = false;
    int64_t version = 0;
    sqlite_foreign_target(&target, path, vfs);
    enum status status = sqlite_connection_init(&connection, &target);
    if (status == STATUS_OK) {
        status = sqlite_read_number(&connection, "PRAGMA schema_version", &version);
    }
    /* No SQLite file: ours if its beginning was written over. */
    if (status == STATUS_NOT_A_DATABASE && has_segments(path)) {
        status = STATUS_DAMAGED;
    }
    if (status == STATUS_OK) {
        status = sqlite_check_schema(&connection, &is_new);
    }
    if (status == STATUS_NOT_A_DATABASE && sqlite_has_reference_table(&connection)) {
        status = STATUS_REFERENCE_DATABASE;
    }
    sqlite_connection_fini(&connection);
    return status;
}

enum status sqlite_recognise(const char *path, const char *vfs)
{
    if (!is_there(path, "")) {
        return STATUS_OK;
    }
    if (is_there(path, damage_mark)) {
        return STATUS_DAMAGED;
    }
    enum status status = look_into(path, vfs);
    bool is_verdict = status == STATUS_DAMAGED || status == STATUS_REFERENCE_DATABASE ||
                      status == STATUS_NOT_A_DATABASE || status == STATUS_NEWER_SCHEMA;
    /* Whatever else is the matter shows, and is said, when it is opened. */
    return is_verdict ? status : STATUS_OK;
}

void sqlite_note_damage(const struct sqlite_archive *archive)
{
    char path[PATH_MAX];
    if (archive->target.is_memory || archive->target.is_read_only) {
        return;
    }
    snprintf(path, sizeof(path), "%s%s", archive->name, damage_mark);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) {
        return;
    }
    close(fd);
    log_write(LOG_ERROR, module,
            "%s is damaged: messages wait in the spill file; start again, and the index is made "
            "anew",
            archive->name);
}

static void remove_mark(const char *path)
{
    char mark[PATH_MAX];
    snprintf(mark, sizeof(mark), "%s%s", path, damage_mark);
    unlink(mark);
}

/* False when it could not be renamed; a file that is not there needs no renaming. */
static bool rename_aside(const char *path, const char *suffix)
{
    char from[PATH_MAX];
    char to[PATH_MAX + sizeof(".damaged")];
    snprintf(from, sizeof(from), "%s%s", path, suffix);
    snprintf(to, sizeof(to), "%s.damaged%s", path, suffix);
    return rename(from, to) == 0 || errno == ENOENT;
}

static bool rename_index(const char *path)
{
    if (!rename_aside(path, "") || !rename_aside(path, "-wal") || !rename_aside(path, "-shm")) {
        return false;
    }
    log_write(LOG_ERROR, module,
            "%s is damaged: kept as %s.damaged, a new index is made from the segments", path, path);
    return true;
}

/* The index can be made again from the segments, so a damaged one does not stop the node. */
bool sqlite_set_index_aside(const char *path)
{
    struct segments *lock = NULL;
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s%s", path, SQLITE_SEGMENTS_SUFFIX);
    /* Only one that nobody writes. */
    if (segments_open(&lock, &(struct segments_options){.folder = folder}) != STATUS_OK) {
        return false;
    }
    bool is_aside = rename_index(path);
    remove_mark(path);
    segments_close(&lock);
    return is_aside;
}
