/* SPDX-License-Identifier: MIT */
#include "archive/tender.h"

#include "archive/engine.h"

enum status archive_tender_open(struct archive_tender **out, struct archive *archive)
{
    *out = NULL;
    return archive->engine->tender_open != NULL ? archive->engine->tender_open(out, archive)
                                                : STATUS_OK;
}

void archive_tender_close(struct archive_tender **tender)
{
    if (*tender != NULL) {
        (*tender)->archive->engine->tender_close(*tender);
        *tender = NULL;
    }
}

bool archive_wants_tending(const struct archive *archive)
{
    return archive->engine->wants_tending != NULL && archive->engine->wants_tending(archive);
}

uint64_t archive_tender_due_ns(const struct archive_tender *tender)
{
    return tender != NULL ? tender->archive->engine->tender_due_ns(tender) : UINT64_MAX;
}

enum status archive_tend(struct archive_tender *tender)
{
    return tender != NULL ? tender->archive->engine->tend(tender) : STATUS_OK;
}
