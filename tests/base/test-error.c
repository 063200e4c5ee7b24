/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

static void a_failure_has_a_code_and_a_text(void **state)
{
    (void)state;
    struct dt_error err;
    assert_int_equal(dt_fail(&err, DT_EFORMAT, "'%s': line %d", "x", 3), DT_EFORMAT);
    assert_int_equal(err.code, DT_EFORMAT);
    assert_string_equal(err.text, "'x': line 3");
}

static void errno_is_spelled_out(void **state)
{
    (void)state;
    struct dt_error err;
    errno = ENOENT;
    assert_int_equal(dt_fail_errno(&err, "cannot open '%s'", "x"), DT_EIO);
    assert_string_equal(err.text, "cannot open 'x': No such file or directory");
    errno = ENOMEM;
    assert_int_equal(dt_fail_errno(&err, "cannot open '%s'", "x"), DT_ENOMEM);
    assert_int_equal(err.code, DT_ENOMEM);
}

static void context_goes_before_the_text(void **state)
{
    (void)state;
    struct dt_error err;
    dt_fail(&err, DT_EMISSING, "no such thing");
    assert_int_equal(dt_fail_context(&err, "shard %d", 7), DT_EMISSING);
    assert_string_equal(err.text, "shard 7: no such thing");
}

static void a_message_stays_one_line_and_in_bounds(void **state)
{
    (void)state;
    struct dt_error err;
    char name[2 * DT_ERROR_TEXT];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memcpy(name, "a\nb\r\033[1m\177", 9);
    for (int i = 0; i < 3; i++) {
        if (i == 0)
            dt_fail(&err, DT_EIO, "%s", name);
        else if (i == 1)
            dt_fail_errno(&err, "%s", name);
        else
            dt_fail_context(&err, "%s", name);
        assert_int_equal(strlen(err.text), DT_ERROR_TEXT - 1);
        assert_memory_equal(err.text, "a\\x0ab\\x0d\\x1b[1m\\x7fxx", 23);
    }
}

static void passwords_in_urls_are_not_shown(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"cannot open 'https://me:secret@host:1/a@b'", "cannot open 'https://***@host:1/a@b'"},
        {"a://x:y@h b://z:p@ss@h/?q c://h", "a://***@h b://***@h/?q c://h"},
        {"http://u@h http://@h http://h me@there", "http://*@h http://@h http://h me@there"},
        {"http://h?a@b http://h#a@b http://h/a@b", "http://h?a@b http://h#a@b http://h/a@b"},
        {"'s://h/a?X-Amz-Signature=b&c' and s://h?page=1", "'s://h/a?***' and s://h?page=1"},
        {"[\"s://u:p@h/a?TOKEN=b\"] s://h/a?sig=", "[\"s://***@h/a?***\"] s://h/a?***"},
        {"://", "://"},
    };
    struct dt_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dt_fail(&err, DT_EIO, "%s", cases[i].text);
        assert_string_equal(err.text, cases[i].shown);
        errno = ENOENT;
        dt_fail_errno(&err, "%s", cases[i].text);
        assert_memory_equal(err.text, cases[i].shown, strlen(cases[i].shown));
        dt_fail(&err, DT_EIO, "why");
        dt_fail_context(&err, "%s", cases[i].text);
        assert_memory_equal(err.text, cases[i].shown, strlen(cases[i].shown));
    }
}

static void a_password_that_a_cut_text_ends_with_is_not_shown(void **state)
{
    (void)state;
    struct dt_error err;
    char text[3 * DT_ERROR_TEXT];
    for (size_t begin = 0; begin < DT_ERROR_TEXT; begin++) {
        memset(text, '-', begin);
        strcpy(text + begin, "://user:secret");
        memset(text + begin + 14, 'e', DT_ERROR_TEXT);
        strcpy(text + begin + 14 + DT_ERROR_TEXT - 50, "@host");
        dt_fail(&err, DT_EIO, "%s", text);
        if (strstr(err.text, "secret"))
            fail_msg("%zu: %s", begin, err.text + begin);
    }
}

static int three(int fails, struct dt_error *err)
{
    DT_TRY(fails ? dt_fail(err, DT_ESTOP, "stop") : 0);
    return 3;
}

static void try_forwards_failures_only(void **state)
{
    (void)state;
    struct dt_error err;
    assert_int_equal(three(0, &err), 3);
    assert_int_equal(three(1, &err), DT_ESTOP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_has_a_code_and_a_text),
        cmocka_unit_test(errno_is_spelled_out),
        cmocka_unit_test(context_goes_before_the_text),
        cmocka_unit_test(a_message_stays_one_line_and_in_bounds),
        cmocka_unit_test(passwords_in_urls_are_not_shown),
        cmocka_unit_test(a_password_that_a_cut_text_ends_with_is_not_shown),
        cmocka_unit_test(try_forwards_failures_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
