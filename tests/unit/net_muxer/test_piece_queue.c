/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/muxer/piece_queue.h"

static void count(void *owner)
{
    (*(unsigned *)owner)++;
}

static void push(struct piece_queue *queue, const char *text, unsigned *released)
{
    const struct muxer_piece piece = {
            .bytes = span_of_text(text), .release = count, .owner = released};
    assert_int_equal(piece_queue_prepare(queue, 1), STATUS_OK);
    piece_queue_push(queue, &piece);
}

static void gives_out_bytes_in_order_without_copying(void **state)
{
    (void)state;
    static const char text[] = "abcdefgh";
    unsigned released = 0;
    struct piece_queue queue = {0};
    push(&queue, text, &released);
    push(&queue, "", &released);
    push(&queue, "xyz", &released);
    assert_int_equal(queue.unsent_bytes, 11);
    struct span first = piece_queue_take(&queue, 5);
    assert_ptr_equal(first.bytes, text);
    assert_int_equal(first.length, 5);
    struct span second = piece_queue_take(&queue, 100);
    assert_ptr_equal(second.bytes, text + 5);
    assert_int_equal(second.length, 3);
    assert_int_equal(piece_queue_take(&queue, 100).length, 3);
    assert_int_equal(piece_queue_take(&queue, 100).length, 0);
    assert_int_equal(released, 0);
    piece_queue_release_sent(&queue);
    assert_int_equal(released, 3);
    piece_queue_fini(&queue);
    assert_int_equal(released, 3);
}

static void keeps_order_while_its_ring_grows_and_wraps(void **state)
{
    (void)state;
    static const char digits[] = "0123456789";
    unsigned released = 0;
    unsigned taken = 0;
    struct piece_queue queue = {0};
    for (unsigned i = 0; i < 1000; i++) {
        const struct muxer_piece piece = {
                .bytes = span_of(digits + i % 10, 1), .release = count, .owner = &released};
        assert_int_equal(piece_queue_prepare(&queue, 1), STATUS_OK);
        piece_queue_push(&queue, &piece);
        if (i % 3 == 0) {
            struct span bytes = piece_queue_take(&queue, 1);
            assert_int_equal(bytes.bytes[0], '0' + (char)(taken % 10));
            taken++;
        }
        if (i % 7 == 0) {
            piece_queue_release_sent(&queue);
            assert_int_equal(released, taken);
        }
    }
    piece_queue_fini(&queue);
    assert_int_equal(released, 1000);
}

static void refuses_more_pieces_than_its_limit(void **state)
{
    (void)state;
    struct piece_queue queue = {0};
    assert_int_equal(piece_queue_prepare(&queue, 65537), STATUS_LIMIT_REACHED);
    assert_int_equal(piece_queue_prepare(&queue, 65536), STATUS_OK);
    piece_queue_fini(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(gives_out_bytes_in_order_without_copying),
            cmocka_unit_test(keeps_order_while_its_ring_grows_and_wraps),
            cmocka_unit_test(refuses_more_pieces_than_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
