/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <stdlib.h>

#include "http/http.h"

static void assert_redirects(const char *url, const char *location, const char *expected)
{
    struct dt_http_answer a = {.status = 302};
    dt_buffer_printf(&a.headers, "HTTP/1.1 302 Found\r\nlocation: %s\r\n\r\n", location);
    char *target = dt_http_redirection(&a, url);
    assert_string_equal(target, expected);
    free(target);
    a.status = 200;
    assert_null(dt_http_redirection(&a, url));
    dt_http_answer_release(&a);
}

static void a_redirection_may_be_relative(void **state)
{
    (void)state;
    assert_redirects("https://a.b:1/c/d?e", "http://x/y", "http://x/y");
    assert_redirects("https://a.b:1/c/d?e", "//x/y", "https://x/y");
    assert_redirects("https://a.b:1/c/d?e/f", "/y?z", "https://a.b:1/y?z");
    assert_redirects("https://a.b:1/c/d?e/f", "y", "https://a.b:1/c/y");
    assert_redirects("https://a.b", "y", "https://a.b/y");
    assert_redirects("https://a.b?q", "/y", "https://a.b/y");
    assert_redirects("https://a.b/c/d?e", "?f=g", "https://a.b/c/d?f=g");
    assert_redirects("https://a.b/c", "/y?from=https://x/z", "https://a.b/y?from=https://x/z");
    assert_redirects("https://a.b/c/d", "y?from=http://x", "https://a.b/c/y?from=http://x");
}

/* RFC 9110, section 5.5. */
static void the_value_of_a_header_has_no_blanks_around_it(void **state)
{
    static const char *const cases[][2] = {
        {"etag:\"a\"", "\"a\""}, {"ETag: \t\"a b\" \t", "\"a b\""}, {"ETag:  ", ""}, {"ETag:", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_http_answer a = {.status = 200};
        dt_buffer_printf(&a.headers, "HTTP/1.1 200 OK\r\nETa: x\r\n%s\r\n\r\n", cases[i][0]);
        char *value = dt_http_header(&a, "ETag");
        assert_string_equal(value, cases[i][1]);
        free(value);
        dt_http_answer_release(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_redirection_may_be_relative),
        cmocka_unit_test(the_value_of_a_header_has_no_blanks_around_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
