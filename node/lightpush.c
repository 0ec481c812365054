/* SPDX-License-Identifier: MIT */
#include "node/lightpush.h"

#include <semaphore.h>

#include "node/network.h"
#include "node/push_client.h"

enum status node_push(
        struct node *node, const struct node_push *push, node_pushed *done, void *context)
{
    struct network *network = node_network(node);
    return network == NULL ? STATUS_NOT_FOUND
                           : push_client_push(network_push_client(network), push, done, context);
}

struct waiting {
    sem_t over;
    struct node_push_outcome *outcome;
};

static void on_pushed(void *context, const struct node_push_outcome *outcome)
{
    struct waiting *waiting = context;
    *waiting->outcome = *outcome;
    sem_post(&waiting->over);
}

enum status node_push_and_wait(
        struct node *node, const struct node_push *push, struct node_push_outcome *outcome)
{
    struct waiting waiting = {.outcome = outcome};
    sem_init(&waiting.over, 0, 0);
    enum status status = node_push(node, push, on_pushed, &waiting);
    if (status == STATUS_OK) {
        while (sem_wait(&waiting.over) != 0) {
        }
    }
    sem_destroy(&waiting.over);
    return status;
}
