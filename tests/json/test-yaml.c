/* SPDX-License-Identifier: MIT */
/* YAML files as JSON values, and what each malformed one gives. */
#include "changed.h"

#include "json/yaml.h"

#define PATH "t.yaml"

/* The value of a text as compact JSON, or its error without "t.yaml:". */
static void expect(const char *text, size_t size, const char *wanted)
{
    struct json_object *value;
    struct dt_error err;
    struct dt_buffer found = DT_BUFFER_EMPTY;
    write_bytes(PATH, text, size);
    int rc = dt_yaml_read(PATH, &value, &err);
    if (rc == 0)
        dt_json_add_value(&found, value, DT_JSON_COMPACT);
    else
        dt_buffer_add_string(&found, err.text + strlen(PATH ":"));
    dt_buffer_add_string(&found, "");
    assert_true(rc == 0 || (rc == DT_EFORMAT && value == NULL));
    if (strncmp(found.data, wanted, strlen(wanted)) != 0)
        fail_msg("'%s' gives '%s', not '%s'", text, found.data, wanted);
    dt_buffer_release(&found);
    json_object_put(value);
}

static void texts_are_read_or_refused(void **state)
{
    static const char *const cases[][2] = {
        {"a: 1\nb: [x, 'null', ~, null, 1e-3]\n",
         "{\"a\":\"1\",\"b\":[\"x\",\"null\",\"\",\"\",\"1e-3\"]}"},
        {"- {}\n- []\n", "[{},[]]"},
        {"plain", "\"plain\""},
        {"!!map {a: !!seq [!!str 5]}", "{\"a\":[\"5\"]}"},
        {"? !!str a\n: 5", "{\"a\":\"5\"}"},
        {"", " is empty"},
        {"# nothing\n", " is empty"},
        {"a: 1\na: 2\n", "2:1: this key was given before"},
        {"[a]: 1\n", "1:1: a key must be a short text"},
        {"a: 1\n---\nb: 2\n", "2:1: a second document"},
        {"a: &x 1\nb: *x\n", "2:4: aliases are not taken"},
        {"*x : 1\n", "1:1: a key must be a short text"},
        {"a: !function f\n", "1:4: the tag !function is not supported: write a plain value"},
        {"a: !!int 5\n", "1:4: the tag tag:yaml.org,2002:int is not supported"},
        {"a: !!python/object {}\n", "1:4: the tag tag:yaml.org,2002:python/object is not"},
        {"a: !x []\n", "1:4: the tag !x is not supported"},
        {"!x a: 5\n", "1:1: the tag !x is not supported"},
        {"a: \"b\\0c\"\n", "1:4: a text holds a zero byte"},
        {"\"a\\0\": 1\n", "1:1: a text holds a zero byte"},
        {"a: [1\n", "2:1: did not find expected ',' or ']'"},
        {"a: [1, {b: *x}]", "1:12: aliases are not taken"},
        {"a: {b: [}}", "1:9: did not find expected node content"},
        {"a: \"\n", "2:1: found unexpected end of stream"},
        {"a: [", "2:1: did not find expected node content"},
        {"a: 1\n...\nb: \"\n", "3:1: did not find expected <document start>"},
        {"a: 1\n*", "2:2: did not find expected alphabetic or numeric character"},
        {"a: !x!y z", "1:4: found undefined tag handle"},
        {"{a: 1}}", "1:7: did not find expected <document start>"},
        {"]", "1:1: did not find expected node content"},
        {"!x!y z", "1:1: found undefined tag handle"},
        {"{}\n\"", "2:2: found unexpected end of stream"},
        {"\xff\xfe"
         "a",
         "1:1: incomplete UTF-16 character"},
        {"%YAML 3.0\n---\na: 1", "1:1: found incompatible YAML document"},
        {"\x01", "1:1: control characters are not allowed"},
        {"a: \xff", "1:1: invalid leading UTF-8 octet"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(cases[i][0], strlen(cases[i][0]), cases[i][1]);
}

/* All keys of 255 bytes fit; nesting is bounded, and so is the size of a file. */
static void sizes_are_bounded(void **state)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct json_object *value;
    struct dt_error err;
    (void)state;
    dt_buffer_printf(&text, "%0255d: 1", 0);
    expect(text.data, text.size, "{\"0000");
    dt_buffer_clear(&text);
    dt_buffer_printf(&text, "%0256d: 1", 0);
    expect(text.data, text.size, "1:1: a key must be a short text");
    for (int deep = 65; deep <= 66; deep++) {
        dt_buffer_clear(&text);
        for (int i = 0; i < 2 * deep; i++)
            dt_buffer_add_char(&text, i < deep ? '[' : ']');
        expect(text.data, text.size, deep == 65 ? "[[[[" : "1:");
    }
    dt_buffer_release(&text);
    assert_true(dt_yaml_read("none.yaml", &value, &err) < 0);
    assert_null(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read_or_refused),
        cmocka_unit_test(sizes_are_bounded),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
