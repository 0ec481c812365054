/* SPDX-License-Identifier: MIT */

/* Calls whose outcome the application is told later, on the event thread, and how many may be so. */

#include <stdio.h>
#include <stdlib.h>

#include "node/api_private.h"

bool api_try_count_call(struct sluice_node *node)
{
    /* relaxed, here and below: a count of what is under way orders nothing */
    if (atomic_fetch_add_explicit(&node->calls, 1, memory_order_relaxed) < node->calls_max) {
        return true;
    }
    api_uncount_call(node);
    return false;
}

void api_uncount_call(struct sluice_node *node)
{
    atomic_fetch_sub_explicit(&node->calls, 1, memory_order_relaxed);
}

static void tell(struct event_task *task)
{
    struct api_call *call = (struct api_call *)task;
    struct sluice_node *node = call->node;
    if (call->done != NULL) {
        api_calling_node = node;
        call->done(call->context, &call->answer);
        api_calling_node = NULL;
    }
    free(call);
    api_uncount_call(node);
}

void api_answer(struct api_call *call, struct sluice_answer answer)
{
    snprintf(call->text, sizeof(call->text), "%s", answer.text);
    call->answer = answer;
    call->answer.text = call->text;
    node_post_event_task(call->node->node, &call->task);
}

static enum sluice_result begin_call(
        struct sluice_node *node, struct api_call made, api_begin *begin, const void *what)
{
    struct api_call *call = malloc(sizeof(*call));
    if (call == NULL) {
        return SLUICE_NO_MEMORY;
    }
    *call = made;
    enum status status = begin(node, what, call);
    if (status != STATUS_OK) {
        free(call);
    }
    return api_result(status);
}

enum sluice_result api_ask(struct sluice_node *node, sluice_answer_callback *done, void *context,
        api_begin *begin, const void *what)
{
    struct api_call call = {
            .task = {.carry_out = tell}, .node = node, .done = done, .context = context};
    enum sluice_result result = SLUICE_LIMIT_REACHED;
    if (!api_enter(node)) {
        return SLUICE_NOT_RUNNING;
    }
    if (api_try_count_call(node)) {
        result = begin_call(node, call, begin, what);
        if (result != SLUICE_OK) {
            api_uncount_call(node);
        }
    }
    api_leave(node);
    return result;
}
