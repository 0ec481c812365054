/* SPDX-License-Identifier: MIT */
#include "router/mesh_actions.h"

#include "base/memory.h"

enum {
    FIRST_CAPACITY = 8
};

void mesh_actions_clear(struct mesh_actions *actions)
{
    for (size_t i = 0; i < actions->count; i++) {
        if (actions->list[i].envelope != NULL) {
            envelope_unref(actions->list[i].envelope);
        }
    }
    actions->count = 0;
    actions->id_count = 0;
    actions->lost = 0;
}

void mesh_actions_fini(struct mesh_actions *actions)
{
    mesh_actions_clear(actions);
    memory_free(actions->list);
    memory_free(actions->ids);
    *actions = (struct mesh_actions){.count = 0};
}

void mesh_actions_add(struct mesh_actions *actions, struct mesh_action action)
{
    if (actions->count == actions->capacity) {
        size_t capacity = actions->capacity == 0 ? FIRST_CAPACITY : actions->capacity * 2;
        struct mesh_action *grown = memory_resize(actions->list, capacity * sizeof(*grown));
        if (grown == NULL) {
            actions->lost++;
            return;
        }
        actions->list = grown;
        actions->capacity = capacity;
    }
    if (action.envelope != NULL) {
        envelope_ref(action.envelope);
    }
    actions->list[actions->count++] = action;
}

uint8_t (*mesh_actions_reserve_ids(struct mesh_actions *actions, size_t count))[MESSAGE_ID_BYTES]
{
    size_t needed = actions->id_count + count;
    if (needed > actions->id_capacity) {
        size_t capacity = actions->id_capacity * 2 > needed ? actions->id_capacity * 2 : needed;
        uint8_t(*grown)[MESSAGE_ID_BYTES] =
                memory_resize(actions->ids, capacity * sizeof(grown[0]));
        if (grown == NULL) {
            actions->lost++;
            return NULL;
        }
        actions->ids = grown;
        actions->id_capacity = capacity;
    }
    return actions->ids + actions->id_count;
}

void peer_list_fini(struct peer_list *list)
{
    memory_free(list->ids);
    *list = (struct peer_list){.count = 0};
}

bool peer_list_has(const struct peer_list *list, uint64_t peer)
{
    size_t i = 0;
    while (i < list->count && list->ids[i] != peer) {
        i++;
    }
    return i < list->count;
}

bool peer_list_add(struct peer_list *list, uint64_t peer)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? FIRST_CAPACITY : list->capacity * 2;
        uint64_t *grown = memory_resize(list->ids, capacity * sizeof(grown[0]));
        if (grown == NULL) {
            return false;
        }
        list->ids = grown;
        list->capacity = capacity;
    }
    list->ids[list->count++] = peer;
    return true;
}
