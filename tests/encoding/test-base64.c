/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "encoding/base64.h"

static void bytes_come_back(void **state)
{
    static const char *const cases[][2] = {
        {"a", "YQ=="}, {"ab", "YWI="}, {"abc", "YWJj"}, {"\xfb\xff\xbf>?", "+/+/Pj8="}};
    struct dt_buffer b = DT_BUFFER_EMPTY;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dt_buffer_clear(&b);
        dt_base64_encode(cases[i][0], strlen(cases[i][0]), &b);
        assert_int_equal(b.size, strlen(cases[i][1]));
        assert_memory_equal(b.data, cases[i][1], b.size);
        assert_true(dt_base64_decode(cases[i][1], strlen(cases[i][1]), &b));
        assert_int_equal(b.size, strlen(cases[i][0]));
        assert_memory_equal(b.data, cases[i][0], b.size);
    }
    dt_buffer_release(&b);
}

static void other_texts_are_refused(void **state)
{
    static const char *const cases[] = {
        "", "YQ", "YQ=", "YQ=a", "=YQ=", "====", "Y Q=", "YQ@=", "YQ[=", "Y{{="};
    struct dt_buffer b = DT_BUFFER_EMPTY;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (dt_base64_decode(cases[i], strlen(cases[i]), &b))
            fail_msg("'%s' is taken", cases[i]);
    dt_buffer_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_back),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
