/* SPDX-License-Identifier: MIT */

#include "scratch.h"

#include <string.h>

#include "io/utf16.h"

static void assert_decodes(bool big, const char *in, size_t size, const char *expected)
{
    unsigned char out[64];
    size_t taken;
    size_t n = dt_utf16_decode(big, (const unsigned char *)in, size, true, out, sizeof out, &taken);
    assert_int_equal(taken, size & ~(size_t)1);
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(out, expected, n);
}

static void both_orders_give_utf8(void **state)
{
    (void)state;
    assert_decodes(false, "a\0\xe9\0\xac\x20\x3d\xd8\x00\xde", 10, "a\u00e9\u20ac\U0001F600");
    assert_decodes(true, "\0a\0\xe9\x20\xac\xd8\x3d\xde\x00", 10, "a\u00e9\u20ac\U0001F600");
    assert_decodes(true, "\xd8\x00\xdc\x00\xdb\xff\xdf\xff", 8, "\U00010000\U0010FFFF");
    assert_decodes(true, "\xff\xff\x07\xff\x08\x00\x00\x7f\x00\x80", 10,
                   "\uffff\u07ff\u0800\x7f\xc2\x80");
}

static void a_single_surrogate_is_not_utf8(void **state)
{
    (void)state;
    assert_decodes(true, "\xd8\x00\0a", 4,
                   "\xed\xa0\x80"
                   "a");
    assert_decodes(true, "\xdc\x00\xd8\x00", 4, "\xed\xb0\x80\xed\xa0\x80");
    assert_decodes(true, "\xd8\x00\xd8\x00\xdc\x00x", 7, "\xed\xa0\x80\U00010000");
}

/* Any cut into two pieces, and any room, gives the same bytes. */
static void pieces_give_the_same_bytes(void **state)
{
    static const unsigned char in[] = "a\0\x3d\xd8\x00\xde\xac\x20\x3d\xd8z\0";
    unsigned char whole[64], out[64];
    size_t taken, size = sizeof in - 1,
                  n = dt_utf16_decode(false, in, size, true, whole, 64, &taken);
    (void)state;
    for (size_t cut = 0; cut <= size; cut++)
        for (size_t room = DT_UTF16_MOST; room < 12; room++) {
            size_t at = 0, written = 0;
            while (at < size) {
                size_t end = at < cut ? cut : size;
                written += dt_utf16_decode(false, in + at, end - at, end == size, out + written,
                                           room, &taken);
                if (taken == 0) /* the rest follows */
                    cut = size;
                at += taken;
            }
            assert_int_equal(written, n);
            assert_memory_equal(out, whole, n);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_orders_give_utf8),
        cmocka_unit_test(a_single_surrogate_is_not_utf8),
        cmocka_unit_test(pieces_give_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
