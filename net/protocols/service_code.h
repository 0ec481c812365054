/* SPDX-License-Identifier: MIT */
#pragma once

/* What services answer: the status codes of store, lightpush and filter. */

enum service_code {
    SERVICE_OK = 200,
    SERVICE_BAD_REQUEST = 400,
    SERVICE_NOT_FOUND = 404,
    SERVICE_TOO_LARGE = 413,
    SERVICE_INVALID_MESSAGE = 420,
    SERVICE_UNSUPPORTED_TOPIC = 421,
    SERVICE_TOO_MANY_REQUESTS = 429,
    SERVICE_INTERNAL_ERROR = 500,
    SERVICE_UNAVAILABLE = 503,
    SERVICE_NO_RELAY_PEERS = 505
};
