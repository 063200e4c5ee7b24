/* SPDX-License-Identifier: MIT */
/* Members of a document's "meta". */
#include "test.h"

#include <string.h>

#include "json/meta.h"

static void set_text(struct dt_buffer *b, const char *text)
{
    dt_buffer_clear(b);
    if (*text)
        dt_buffer_append(b, text, strlen(text));
    if (*text) /* ends with 0, as a document's */
        dt_buffer_reserve(b, b->size + 1), b->data[b->size] = '\0';
}

static void a_member_is_set_once_and_last(void **state)
{
    static const char *const cases[][2] = {
        {"", "{\"a\":7}"},
        {"{}", "{\"a\":7}"},
        {"{ }", "{ \"a\":7}"},
        {"{\r}", "{\r\"a\":7}"},
        {"{\n}", "{\n\"a\":7}"},
        {"{\"b\":1}", "{\"b\":1,\"a\":7}"},
        {"{\"b\": 1 \t}", "{\"b\": 1 \t,\"a\":7}"},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":7}"},
        {"{\"a\":1}", "{\"a\":7}"},
        {"{\"b\":\"a\"}", "{\"b\":\"a\",\"a\":7}"},
    };
    struct dt_buffer meta = DT_BUFFER_EMPTY;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_text(&meta, cases[i][0]);
        dt_meta_set(&meta, "a", "7");
        dt_buffer_add_string(&meta, "");
        assert_string_equal(meta.data, cases[i][1]);
    }
    dt_buffer_release(&meta);
}

static void members_of_another_type_are_missing(void **state)
{
    static const struct {
        const char *meta, *text;
        double number;
    } cases[] = {
        {"", "", -1},
        {"{}", "", -1},
        {"{\"a\":5}", "", 5},
        {"{\"a\":2.5}", "", 2.5},
        {"{\"a\":\"x\"}", "x", -1},
        {"{\"a\":true}", "", -1},
        {"{\"b\":\"a\"}", "", -1},
        {"{\"aa\":5,\"ba\":6}", "", -1},
        {"{\"aa\":6,\"\\u0061\":5}", "", 5},
        {"{\"a\":", "", -1},
        {"{\"b\":a", "", -1}, /* cut after the name */
        {"a", "", -1},
        {"{\"a\":null}", "", -1},
    };
    struct dt_buffer meta = DT_BUFFER_EMPTY, value = DT_BUFFER_EMPTY;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_text(&meta, cases[i].meta);
        dt_meta_get_string(&meta, "a", &value);
        assert_string_equal(value.data, cases[i].text);
        assert_true(dt_meta_get_number(&meta, "a", -1) == cases[i].number);
    }
    dt_buffer_release(&meta);
    dt_buffer_release(&value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_is_set_once_and_last),
        cmocka_unit_test(members_of_another_type_are_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
