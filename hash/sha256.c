/* SPDX-License-Identifier: MIT */
#include "hash/sha256.h"

#include <assert.h>
#include <openssl/evp.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static EVP_MD *algorithm;
static pthread_key_t context_key; /* only to free the context of a thread that ends */
static _Thread_local EVP_MD_CTX *context_of_thread;

static void free_context(void *context)
{
    context_of_thread = NULL;
    EVP_MD_CTX_free(context);
}

static void prepare_process(void)
{
    algorithm = EVP_MD_fetch(NULL, "SHA2-256", NULL);
    /* A process without SHA-256 or without the first few bytes of memory cannot go on at all. */
    assert(algorithm != NULL);
    int failed = pthread_key_create(&context_key, free_context);
    assert(failed == 0);
    (void)failed;
}

static EVP_MD_CTX *prepare_thread(void)
{
    pthread_once(&once, prepare_process);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert(context != NULL); /* as above: it is the first thing that the thread asks for */
    int failed = pthread_setspecific(context_key, context);
    assert(failed == 0);
    (void)failed;
    context_of_thread = context;
    return context;
}

void sha256(uint8_t digest[SHA256_BYTES], struct sha256_pieces pieces)
{
    EVP_MD_CTX *context = context_of_thread;
    if (context == NULL) {
        context = prepare_thread();
    }
    int is_ok = EVP_DigestInit_ex2(context, algorithm, NULL);
    for (size_t i = 0; i < pieces.count; i++) {
        struct span span = pieces.spans[i];
        if (span.length > 0) {
            is_ok &= EVP_DigestUpdate(context, span.bytes, span.length);
        }
    }
    is_ok &= EVP_DigestFinal_ex(context, digest, NULL);
    assert(is_ok == 1); /* the software digest fails only for a context that is misused */
    (void)is_ok;
}

size_t sha256_pieces_length(struct sha256_pieces pieces)
{
    size_t length = 0;
    for (size_t i = 0; i < pieces.count; i++) {
        length += pieces.spans[i].length;
    }
    return length;
}
