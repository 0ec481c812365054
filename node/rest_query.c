/* SPDX-License-Identifier: MIT */

/* Store queries of REST clients: the own archive is asked on the query threads. */

#include <stdlib.h>

#include "base/clock.h"
#include "node/rest_private.h"

struct own_query {
    struct archive_job job;
    struct rest_store_call *call;
};

static void run(struct archive_job *job, struct archive_reader *reader)
{
    struct own_query *query = (struct own_query *)((char *)job - offsetof(struct own_query, job));
    struct rest_store_call *call = query->call;
    struct archive_page page;
    free(query);
    enum status status = archive_query(reader, &call->query, call->row, call->context, &page);
    call->end(call, status, &page, "");
}

static enum status ask_own(struct rest *rest, struct rest_store_call *call)
{
    struct own_query *query = malloc(sizeof(*query));
    if (query == NULL) {
        return STATUS_NO_MEMORY;
    }
    query->job.run = run;
    query->job.origin = ARCHIVE_JOB_OWN;
    query->call = call;
    call->query.deadline_ns =
            clock_monotonic_ns() + rest->query_timeout_ms * NANOSECONDS_PER_MILLISECOND;
    archive_jobs_post(rest->node->query_jobs, &query->job);
    return STATUS_OK;
}

enum status rest_query(void *context, struct rest_store_call *call)
{
    struct rest *rest = context;
    if (call->peer == NULL && rest->node->archive != NULL) {
        return ask_own(rest, call);
    }
    return rest_query_peer(rest, call);
}
