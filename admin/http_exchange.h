/* SPDX-License-Identifier: MIT */
#pragma once

/* A request from its first line to its handler: what libmicrohttpd calls. For admin/http_server.c. */

#include <microhttpd.h>

/* MHD_OPTION_URI_LOG_CALLBACK: the request, NULL when there is no memory. */
void *http_exchange_begin(void *server, const char *uri, struct MHD_Connection *connection);

/* MHD_AccessHandlerCallback */
enum MHD_Result http_exchange_access(void *server, struct MHD_Connection *connection,
        const char *url, const char *method, const char *version, const char *data, size_t *length,
        void **request);

/* MHD_OPTION_NOTIFY_COMPLETED */
void http_exchange_end(void *server, struct MHD_Connection *connection, void **request,
        enum MHD_RequestTerminationCode code);
