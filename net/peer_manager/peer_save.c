/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "net/peer_manager/peer_manager_private.h"

/* What is to be written, apart from the store, which goes on changing. */
struct save {
    uv_work_t work;
    struct peer_manager *manager;
    enum status status;
    size_t length;
    char text[];
};

static void on_work(uv_work_t *work)
{
    struct save *save = work->data;
    save->status = peer_file_write(save->manager->file, save->text, save->length);
}

static void on_done(uv_work_t *work, int result)
{
    (void)result;
    struct save *save = work->data;
    save->manager->is_saving = false;
    if (save->status != STATUS_OK) {
        log_write(LOG_WARN, "peers", "%s cannot be written: %s", save->manager->file,
                status_text(save->status));
    }
    struct peer_manager *manager = save->manager;
    memory_free(save);
    if (manager->is_save_wanted) {
        manager->is_save_wanted = false;
        peer_manager_save(manager);
    }
}

static size_t count_addresses(const struct peer_manager *manager)
{
    const struct peer_record *peer;
    size_t count = 0;
    for (size_t i = 0; (peer = peer_store_at(manager->store, i)) != NULL; i++) {
        count += peer->address_count;
    }
    return count;
}

static void append(struct save *save, const struct multiaddr *address)
{
    char line[MULTIADDR_TEXT_SIZE];
    size_t length = strlen(multiaddr_print(line, address));
    memcpy(save->text + save->length, line, length);
    save->text[save->length + length] = '\n';
    save->length += length + 1;
}

void peer_manager_save(struct peer_manager *manager)
{
    const struct peer_record *peer;
    if (manager->file == NULL) {
        return;
    }
    if (manager->is_saving) {
        manager->is_save_wanted = true;
        return;
    }
    struct save *save =
            memory_allocate_zeroed(sizeof(*save) + count_addresses(manager) * MULTIADDR_TEXT_SIZE);
    if (save == NULL) {
        return;
    }
    save->manager = manager;
    save->work.data = save;
    for (size_t i = 0; (peer = peer_store_at(manager->store, i)) != NULL; i++) {
        for (size_t j = 0; j < peer->address_count; j++) {
            append(save, &peer->addresses[j]);
        }
    }
    if (uv_queue_work(io_loop_uv(manager->loop), &save->work, on_work, on_done) != 0) {
        memory_free(save);
        return;
    }
    manager->is_saving = true;
}
