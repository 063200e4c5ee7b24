/* SPDX-License-Identifier: MIT */
/* Templates against Jinja as transformers sets it up: golden/templates.jsonl was made by
 * tests/oracles/make_templates.py. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "template/template.h"
#include "test.h"
#include "unicode/utf8.h"
#include "json/json.h"

#define NOW 1753500000 /* of make_templates.py */

static struct dt_error err;

/* Renders text; NULL if it fails. Owned by the caller. */
static char *render(const char *text, struct json_object *values, struct dt_template_spans *spans)
{
    struct dt_template *t;
    struct dt_buffer out = DT_BUFFER_EMPTY;
    if (dt_template_parse(&t, text, strlen(text), "test", &err) < 0)
        return NULL;
    int rc = dt_template_render(t, values, NOW, &out, spans, &err);
    dt_template_free(t);
    dt_buffer_add_string(&out, "");
    if (rc == 0)
        return out.data;
    dt_buffer_release(&out);
    return NULL;
}

/* Renders text with {"n": 7}, and expects an error with this part. */
static void fails(const char *text, const char *part)
{
    struct json_object *values;
    assert_int_equal(dt_json_parse("{\"n\":7}", 7, "values", &values, &err), 0);
    char *made = render(text, values, NULL);
    if (made)
        fail_msg("'%s' was rendered: '%s'", text, made);
    if (strstr(err.text, part) == NULL)
        fail_msg("'%s': the error is '%s', not '%s'", text, err.text, part);
    json_object_put(values);
}

/* What dt refuses although Jinja computes it. */
static bool is_refused(const char *reason)
{
    static const char *const reasons[] = {"is not supported", "beyond 64 bits",
                                          "has no text",      "have no text",
                                          "use |list",        "are not supported"};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strstr(reason, reasons[i]))
            return true;
    return false;
}

static void templates_give_the_text_that_jinja_gives(void **state)
{
    (void)state;
    char *text, *line, *rest;
    size_t size;
    struct json_object *first, *values;
    int same = 0, refused = 0;
    setenv("TZ", "UTC", 1);
    tzset();
    assert_int_equal(
        dt_file_read("tests/template/golden/templates.jsonl", 1 << 20, &text, &size, &err), 0);
    line = strtok_r(text, "\n", &rest);
    assert_int_equal(dt_json_parse(line, strlen(line), "line", &first, &err), 0);
    values = json_object_object_get(first, "values");
    while ((line = strtok_r(NULL, "\n", &rest))) {
        struct json_object *row, *expected;
        assert_int_equal(dt_json_parse(line, strlen(line), "line", &row, &err), 0);
        const char *template = dt_json_text(json_object_object_get(row, "template"));
        expected = json_object_object_get(row, "text");
        char *made = render(template, values, NULL);
        if (made && expected == NULL)
            fail_msg("'%s' is an error for Jinja, and gave '%s'", template, made);
        if (made && strcmp(made, dt_json_text(expected)) != 0)
            fail_msg("'%s' gave '%s', not '%s'", template, made, dt_json_text(expected));
        if (made == NULL && expected && !is_refused(err.text))
            fail_msg("'%s' failed: %s", template, err.text);
        same += made != NULL;
        refused += made == NULL && expected;
        free(made);
        json_object_put(row);
    }
    assert_true(same > 250);
    assert_true(refused < 20);
    json_object_put(first);
    free(text);
}

static void what_generation_blocks_wrote_is_known(void **state)
{
    (void)state;
    const char *template =
        "{% for i in range(2) %}é{% generation %}{{ n }}!{% endgeneration %}"
        "{% endfor %}{% set x %}{% generation %}a{% endgeneration %}{% endset %}";
    struct dt_template_spans spans = {0};
    struct json_object *values;
    assert_int_equal(dt_json_parse("{\"n\":7}", 7, "values", &values, &err), 0);
    char *made = render(template, values, &spans);
    assert_string_equal(made, "é7!é7!");
    assert_int_equal(spans.count, 2);
    assert_int_equal(spans.items[0].begin, 2);
    assert_int_equal(spans.items[0].end, 4);
    assert_int_equal(spans.items[1].begin, 6);
    assert_int_equal(spans.items[1].end, 8);
    free(spans.items);
    free(made);
    json_object_put(values);
}

static void errors_name_the_line_and_what_is_wrong(void **state)
{
    (void)state;
    fails("\n{{ n|frobnicate }}", "test, line 2: the filter 'frobnicate' is not supported");
    fails("{{ n is prime }}", "line 1: the test 'prime' is not supported");
    fails("{% call x() %}{% endcall %}", "the statement 'call' is not supported");
    fails("{{ a.b }}", "'a' is undefined");
    fails("\n\n{{ raise_exception('roles must alternate') }}", "line 3: roles must alternate");
    fails("{% if n %}", "expected {% endif %}");
    fails("{{ n", "line 1: {{ without }}");
    fails("{{ 'x' }", "{{ without }}");
    fails("{{ n ? 1 }}", "unexpected character '?'");
    fails("{{ [].append(1) }}", "the method 'append' of a list is not supported");
    fails("{{ 9223372036854775807 * 2 }}", "beyond 64 bits");
    fails("{{ '99999999999999999999'|int }}", "the number 1e+20 is beyond 64 bits");
    fails("{{ '-99999999999999999999'|int }}", "the number -1e+20 is beyond 64 bits");
    fails("{{ 1e19|int }}", "the number 1e+19 is beyond 64 bits");
    fails("{{ '1e19'|int }}", "the number 1e+19 is beyond 64 bits");
}

/* What is not a template: each error of the lexer and of statements. */
static void malformed_templates_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"{{ '\\x4g' }}", "line 1: an escape in a string wants hexadecimal digits"},
        {"{{ '\\u00'", "an escape in a string wants hexadecimal digits"},
        {"{{ '\\x\x10\x10' }}", "an escape in a string wants hexadecimal digits"},
        {"{{ '\\ud800' }}", "an escape in a string is not a character of Unicode"},
        {"{{ '\\U00110000' }}", "an escape in a string is not a character of Unicode"},
        {"{{ '\\N{DASH}' }}", "\\N{...} in a string is not supported: write the character"},
        {"{{ 'x\\", "a string does not end"},
        {"{{ '\\n\\n' }}{% nope %}", "line 1: the statement 'nope' is not supported"},
        {"{{ '\n\\\n' }}{% nope %}", "line 3: the statement 'nope' is not supported"},
        {"{{ 0x10 }}", "a number ends with a letter; only decimal numbers are supported"},
        {"{{ 1e }}", "a number ends with a letter"},
        {"{{ 1.5e+ }}", "a number ends with a letter"},
        {"{{ 1_a }}", "a number ends with a letter"},
        {"{{ 012 }}", "a number has a zero before it"},
        {"{{ 1__0 }}", "an underscore that is not between digits"},
        {"{{ 1_ }}", "an underscore that is not between digits"},
        {"{{ 1.5_ }}", "an underscore that is not between digits"},
        {"{{ '\\\u00e9' }}", "a backslash before a character beyond ASCII is not supported"},
        {"{{ missing|indent }}", "'missing' is undefined"},
        {"{{ n is defined is true }}", "a test follows another one"},
        {"{{ [n]|indent }}", "indent wants a string, not a list"},
        {"{{ n +}}", "expected an expression, found '}}'"},
        {"x\n{# y\n", "line 2: {# without #}"},
        {"{#", "{# without #}"},
        {"{% if n", "{% without %}"},
        {"\n{% raw %}", "line 2: {% raw %} is not supported"},
        {"{%raw-%}", "{% raw %} is not supported"},
        {"{% rawness %}", "the statement 'rawness' is not supported"},
        {"{% %}", "the statement '' is not supported"},
        {"{{ n n }}", "expected '}}', found 'n'"},
        {"{{ n", "{{ without }}"},
        {"{% if n x %}", "expected '%}', found 'x'"},
        {"{% if n %}{% endfor %}", "expected {% endif %}"},
        {"{% if n %}{% else x %}", "expected '%}', found 'x'"},
        {"{% if n %}{% else %}{% elif n %}", "expected {% endif %}"},
        {"{% if n %}{% elif %}", "line 1: "},
        {"{% endif %}", "{% endif %} ends nothing"},
        {"{% else %}", "{% else %} ends nothing"},
        {"{% elif n %}", "{% elif %} ends nothing"},
        {"{% for %}", "expected 'a name', found '%}'"},
        {"{% for x of n %}", "expected 'in', found 'of'"},
        {"{% for (x, y in n) %}", "expected ')', found 'in'"},
        {"{% for x. in n %}", "line 1: "},
        {"{% set x.'y' = 1 %}", "expected 'a name', found 'y'"},
        {"{% for x in %}", "line 1: "},
        {"{% 'if' n %}{% endif %}", "the statement 'if' is not supported"},
        {"{% if n %}{% 'endif' %}", "expected {% endif %}"},
        {"{% if n %}{% else %}{% if %}", "line 1: "},
        {"{% for x in n if %}", "line 1: "},
        {"{% for x in [1] recursive %}", "recursive loops are not supported"},
        {"{% for x in [1] y %}", "expected '%}', found 'y'"},
        {"{% for x in [1] %}", "expected {% endfor %}"},
        {"{% for x in [1] %}{% else y %}", "expected '%}', found 'y'"},
        {"{% for x in [1] %}{% else %}{% if %}", "line 1: "},
        {"{% set 5 = 1 %}", "expected 'a name', found '5'"},
        {"{% set a = %}", "line 1: "},
        {"{% set true = 1 %}", "cannot assign to 'true'"},
        {"{% for a, None in [] %}{% endfor %}", "cannot assign to 'None'"},
        {"{% if n if n %}{% endif %}", "expected '%}', found 'if'"},
        {"{% set a, b %}x{% endset %}", "{% set %} of a block has one name"},
        {"{% set a|5 %}x{% endset %}", "line 1: "},
        {"{% set a %}x", "expected {% endset %}"},
        {"{% set a 1 %}x", "expected '%}', found '1'"},
        {"{% set a %}{% if %}", "line 1: "},
        {"{% macro 1() %}", "expected 'a name', found '1'"},
        {"{% macro f %}", "expected '(', found '%}'"},
        {"{% macro f(a b) %}", "expected ',', found 'b'"},
        {"{% macro f(1) %}", "expected 'a name', found '1'"},
        {"{% macro f(a=) %}", "line 1: "},
        {"{% macro f(a,) x %}", "expected '%}', found 'x'"},
        {"{% macro f() %}{% if %}", "line 1: "},
        {"{% macro f() %}", "expected {% endmacro %}"},
        {"{% filter 5 %}", "line 1: "},
        {"{% filter upper x %}", "expected '%}', found 'x'"},
        {"{% filter upper %}{% if %}", "line 1: "},
        {"{% filter upper %}", "expected {% endfilter %}"},
        {"{% generation x %}", "expected '%}', found 'x'"},
        {"{% generation %}{% if %}", "line 1: "},
        {"{% generation %}", "expected {% endgeneration %}"},
        {"{% break %}", "{% break %} stands outside of a loop"},
        {"{% continue %}", "{% continue %} stands outside of a loop"},
        {"{% for i in [1] %}{% macro f() %}{% break %}", "{% break %} stands outside of a loop"},
        {"{% for i in [1] %}{% generation %}{% break %}", "{% break %} stands outside of a loop"},
    };
    struct dt_template *t;
    struct dt_buffer deep = DT_BUFFER_EMPTY;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        fails(cases[i][0], cases[i][1]);
    for (int i = 0; i < 101; i++)
        dt_buffer_add_string(&deep, "{% if n %}");
    fails(deep.data, "statements are nested more than 100 deep");
    dt_buffer_release(&deep);
    assert_int_equal(dt_template_parse(&t, "a\0b", 3, "test", &err), DT_EFORMAT);
    assert_string_equal(err.text, "test, line 1: the template is not UTF-8, or has a zero byte");
    assert_int_equal(dt_template_parse(&t, "\xff", 1, "test", &err), DT_EFORMAT);
    assert_null(t);
}

/* As Jinja with trim_blocks and lstrip_blocks renders it, and Python's strings. */
static void delimiters_and_escapes_are_those_of_jinja(void **state)
{
    static const char *const cases[][2] = {
        {"{{ '\\101\\7\\12345' }}", "A\aS45"},
        {"{{ '\\q\\'\\\"\\x41\\u00e9\\U0001f600' }}", "\\q'\"A\u00e9\U0001f600"},
        {"{{ 'a\\\nb' }}", "ab"},
        {"{{ 1_000 }} {{ 1.5e1 }} {{ 1e+2 }} {{ 2E1 }}", "1000 15.0 100.0 20.0"},
        {"{{ 0_0 }} {{ 012.5 }} {{ 1_0e1_0 }}", "0 12.5 100000000000.0"},
        {"a {#-#} b", "a b"},
        {"a {#--#} b", "ab"},
        {"a {#+#}\nb", "a b"},
        {"a  {%- if n -%}  b  {%- endif +%}\nc", "ab\nc"},
        {"a\n  {%+ if n %}\nb{% endif %}\n", "a\n  b"},
        {"a\r\nb\rc", "a\nb\nc"},
        {"a\n  ", "a\n  "},
        {"{{ missing is callable }}", "True"},
        {"{{ n }}\n{% if n %}{% endif %}  ", "7\n  "},
        {"{", "{"},
        {"a{b{{ n }}", "a{b7"},
        {"{{ '\\7!\\78' }}", "\a!\a8"},
        {"", ""},
    };
    struct json_object *values;
    (void)state;
    assert_int_equal(dt_json_parse("{\"n\":7}", 7, "values", &values, &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *made = render(cases[i][0], values, NULL);
        if (made == NULL || strcmp(made, cases[i][1]) != 0)
            fail_msg("'%s' gives '%s'", cases[i][0], made ? made : err.text);
        free(made);
    }
    json_object_put(values);
}

/* Renders each template of cases with values, until one without a text. */
static void give(const char *const cases[][2], const char *json)
{
    struct json_object *values;
    assert_int_equal(dt_json_parse(json, strlen(json), "values", &values, &err), 0);
    for (size_t i = 0; cases[i][0]; i++) {
        char *made = render(cases[i][0], values, NULL);
        if (made == NULL || strcmp(made, cases[i][1]) != 0)
            fail_msg("'%s' gives '%s', not '%s'", cases[i][0], made ? made : err.text, cases[i][1]);
        free(made);
    }
    json_object_put(values);
}

/* Jinja takes the else of a loop unless an iteration came to its end. */
static void loops_and_their_else_are_those_of_jinja(void **state)
{
    static const char *const cases[][2] = {
        {"{% for a in l %}{% break %}{% else %}E{% endfor %}", "E"},
        {"{% for a in l %}{% continue %}{% else %}E{% endfor %}", "E"},
        {"{% for a in l %}{% if a < 3 %}{% continue %}{% endif %}{% else %}E{% endfor %}", ""},
        {"{% for a in l %}{% for b in [] %}{% else %}{% break %}{% endfor %}{{ a }}{% endfor %}",
         ""},
        {"{% for a in l %}{% for b in [] %}{% else %}{% continue %}{% endfor %}{{ a }}{% endfor %}",
         ""},
        {"{% for a in [] %}{% else %}{% set q = 1 %}{% endfor %}{{ q }}", ""},
        {"{% for a in l %}{% filter upper %}a{% break %}{% endfilter %}b{% endfor %}", ""},
        {"{% set ns = namespace() %}{% for a in l %}{% set ns.x %}a{% break %}{% endset %}"
         "{% endfor %}{{ ns.x }}",
         ""},
        {NULL, NULL},
    };
    (void)state;
    give(cases, "{\"l\":[3,1,2]}");
}

static void numbers_of_texts_are_those_of_python(void **state)
{
    static const char *const cases[][2] = {
        {"{{ 'nan'|float }} {{ '-Inf'|float }} {{ 'infinity'|float }}", "nan -inf inf"},
        {"{{ 'inf'|int(4) }} {{ 'nan'|int }} {{ 'nan(1)'|float }}", "4 0 0.0"},
        {"{{ '1_000'|int }} {{ '1__0'|int }} {{ '_1'|int }} {{ '1_'|int }}", "1000 0 0 0"},
        {"{{ '0.3333333333333333333333333333333333333333333333333333333333333333'|float }}",
         "0.3333333333333333"},
        {"{{ ' 12\\t'|int }} {{ '0x10'|int(7) }} {{ '1e5'|int }} {{ '- 5'|int }}", "12 7 100000 0"},
        {NULL, NULL},
    };
    (void)state;
    give(cases, "{}");
    fails("{{ missing|int }}", "'missing' is undefined");
    fails("{{ missing|float }}", "'missing' is undefined");
}

static void generators_keep_what_was_not_read(void **state)
{
    static const char *const cases[][2] = {
        {"{% set g = l|map('string') %}{{ g|first }}{{ g|list }}", "3['1', '2']"},
        {"{% set g = l|map('string') %}{{ '1' in g }}{{ g|list }}", "True['2']"},
        {"{% set g = l|map('string') %}{{ 'x' in g }}{{ g|list }}", "False[]"},
        {"{{ o|map(attribute='q.z', default='-')|join }}{{ []|map('string')|first }}", "--"},
        {NULL, NULL},
    };
    (void)state;
    give(cases, "{\"l\":[3,1,2],\"o\":[{},{\"n\":1}]}");
    fails("{{ [1]|map('string')|last }}", "a generator has no last item: use |list");
    fails("{{ [{}]|map(attribute='q.z')|list }}", "'q' of a dictionary is undefined");
    fails("{{ [{}]|selectattr('q.z')|list }}", "'q' of a dictionary is undefined");
}

static void safe_texts_and_names_of_macros_are_those_of_jinja(void **state)
{
    static const char *const cases[][2] = {
        {"{{ '<'|safe|tojson + '<' }}", "\"<\"<"},
        {"{{ '<'|safe * 2 + '<' }}", "<<&lt;"},
        {"{{ '<'|safe|first + '<' }} {{ '<'|safe|join + '<' }}", "<< <<"},
        {"{{ '<'|safe|replace('a', 'b') + '<' }} {{ ('<'|safe).split('a')[0] + '<' }}", "<< <&lt;"},
        {"{{ ['é']|tojson(indent=-1) }}", "[\n\"é\"\n]"},
        {"{{ range(3) is sequence }} {{ {}.items() is sequence }}", "True False"},
        {"{% macro f() %}{{ kwargs }}{{ varargs }}{% endmacro %}{{ f() }}", "{}()"},
        {"{{ 'a,b,c'.replace(',', '-', true) }}", "a-b,c"},
        {NULL, NULL},
    };
    (void)state;
    give(cases, "{}");
    fails("{{ ('{}'|safe).format('<') }}", "'format' of a 'safe' string is not supported");
}

static void dates_are_those_of_python(void **state)
{
    static const char *const cases[][2] = {
        {"{{ strftime_now('%d %b %Y %H:%M %z%Z%%Z|') }}", "26 Jul 2025 03:20 %Z|"},
        {"{{ strftime_now('%Z') }}{{ strftime_now('') }}", ""},
        {"{{ strftime_now('%Y%') }}", "2025%"},
        {NULL, NULL},
    };
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    give(cases, "{}");
    fails("{{ strftime_now('%f') }}", "%f in strftime_now is not supported");
}

/* Jinja without settings, as lm-evaluation-harness has it. */
static void tasks_have_the_filters_of_jinja(void **state)
{
    static const char *const cases[][2] = {
        {"{{ {'b': \"é<'&\", 'a': 1}|tojson }}",
         "{\"a\": 1, \"b\": \"\\u00e9\\u003c\\u0027\\u0026\"}"},
        {"{{ [1]|tojson(1) }}", "[\n 1\n]"},
        {"{{ 'a' if false }}|{{ 'x' ~ ('a' if false) }}", "|x"},
        {"{{ [{}, {'k': 1}]|selectattr('k', 'defined')|list }}", "[{'k': 1}]"},
        {"{{ [1]|tojson(sort_keys=true) }}", NULL},
        {"{{ [{}]|map(attribute='k')|join }}", NULL},
        {"{{ [{}]|selectattr('k')|list }}", NULL},
        {"{{ [{}]|selectattr('k', 'eq', 1)|list }}", NULL},
    };
    struct json_object *values = dt_json_new_object();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_template *t;
        struct dt_buffer out = DT_BUFFER_EMPTY;
        const char *text = cases[i][0], *expected = cases[i][1];
        assert_int_equal(
            dt_template_parse_as(&t, DT_TEMPLATE_TASK, text, strlen(text), "test", &err), 0);
        int rc = dt_template_render(t, values, NOW, &out, NULL, &err);
        dt_buffer_add_string(&out, "");
        if (expected ? rc < 0 || strcmp(out.data, expected) != 0 : rc == 0)
            fail_msg("'%s' gives '%s'", text, rc < 0 ? err.text : out.data);
        dt_buffer_release(&out);
        dt_template_free(t);
    }
    json_object_put(values);
}

/* White space as Python's str.strip has it: each character of it, and its neighbours. */
static void white_space_is_that_of_python(void **state)
{
    static const struct {
        uint32_t first, last;
    } spaces[] = {{9, 13},          {0x1c, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},
                  {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                  {0x205f, 0x205f}, {0x3000, 0x3000}};
    struct json_object *values = dt_json_new_object();
    (void)state;
    for (uint32_t c = 1; c < 0x3100; c++) {
        char text[16] = "{#- -#}";
        bool space = false;
        for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
            space |= c >= spaces[i].first && c <= spaces[i].last;
        size_t size = dt_utf8_encode(c, text + strlen(text));
        char *made = render(text, values, NULL);
        assert_non_null(made);
        if (strlen(made) != (space ? 0 : size))
            fail_msg("U+%04X", c);
        free(made);
    }
    json_object_put(values);
}

/* A template is a program of a stranger. */
static void time_memory_and_depth_are_bounded(void **state)
{
    (void)state;
    struct dt_buffer deep = DT_BUFFER_EMPTY;
    fails("{% for a in range(100000) %}{% for b in range(100000) %}{{ a }}{% endfor %}{% endfor %}",
          "needs more than");
    fails("{{ range(100000)|map('string')|list|map('int')|list|sort(reverse=true) }}",
          "sorts at most 10000 items");
    fails("{{ 'x' * 99999999999 }}", "needs more than");
    fails("{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}"
          "{% endfor %}",
          "needs more than");
    fails("{{ ('x' * 100000)|replace('x', 'y' * 10000) }}", "needs more than");
    fails("{{ ['x' * 1000000] * 10000000 }}", "needs more than");
    fails("{{ (['x' * 1000000] * 1000)|join }}", "needs more than");
    fails("{{ range(100000000) }}", "range of more than");
    fails("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested more than");
    fails("{% set s = namespace(l=[]) %}{% for i in range(100000) %}{% set s.l = [s.l] %}"
          "{% endfor %}{{ s.l }}",
          "a value is nested more than 1000 deep");
    fails("{% set s = namespace(l=0) %}{% for i in range(100000) %}{% set s.l = {'a': s.l}.get %}"
          "{% endfor %}{{ s.l == s.l }}",
          "a value is nested more than 1000 deep");
    fails("{% set s = namespace(l=0) %}{% for i in range(60) %}{% set s.l = [s.l, s.l] %}"
          "{% endfor %}{{ s.l == s.l }}",
          "a value has more than 16777216 parts");
    fails("{{ ([[]] * 4000000)|tojson(indent=100) }}", "needs more than");
    dt_buffer_add_string(&deep, "{% macro f() %}");
    for (int i = 0; i < 190; i++)
        dt_buffer_add_string(&deep, i < 95    ? "{% filter trim %}"
                                    : i == 95 ? "{{ f() }}{% endfilter %}"
                                              : "{% endfilter %}");
    dt_buffer_add_string(&deep, "{% endmacro %}{{ f() }}");
    fails(deep.data, "nested more than 1500 deep");
    dt_buffer_clear(&deep);
    dt_buffer_add_string(&deep, "{% if n == 8 %}");
    for (int i = 0; i < 300000; i++)
        dt_buffer_add_string(&deep, "{% elif n == 8 %}");
    dt_buffer_add_string(&deep, "{% endif %}");
    fails(deep.data, "nested more than 1500 deep");
    dt_buffer_clear(&deep);
    for (int i = 0; i < 100000; i++)
        dt_buffer_add_string(&deep, "{{ [");
    fails(deep.data, "without }}");
    dt_buffer_clear(&deep);
    dt_buffer_add_string(&deep, "{{ ");
    for (int i = 0; i < 2000; i++)
        dt_buffer_add_char(&deep, i < 1000 ? '(' : ')');
    dt_buffer_add_string(&deep, " }}");
    fails(deep.data, "nested more than");
    dt_buffer_release(&deep);
}

static void numbers_beyond_64_bits_are_refused(void **state)
{
    (void)state;
    struct json_object *values;
    const char *text = "{\"n\":18446744073709551617}";
    assert_int_equal(dt_json_parse(text, strlen(text), "values", &values, &err), 0);
    assert_null(render("x", values, NULL));
    assert_non_null(strstr(err.text, "18446744073709551617 is beyond 64 bits"));
    json_object_put(values);
}

/* Filters would read beyond such a text, or not end. */
static void texts_that_are_not_utf_8_are_refused(void **state)
{
    static const char *const contexts[] = {"{\"s\":\"a\xf0\"}", "{\"s\":[{\"\xff\":1}]}"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct json_object *values;
        assert_int_equal(dt_json_parse(contexts[i], strlen(contexts[i]), "values", &values, &err),
                         0);
        assert_null(render("{{ s|trim }}{{ s|upper }}{{ s|list }}", values, NULL));
        assert_string_equal(err.text, "test: a text that the template is given is not UTF-8");
        json_object_put(values);
    }
}

/* Templates that break off anywhere are read, or refused by line. */
static void templates_may_be_cut_anywhere(void **state)
{
    static const char *const texts[] = {
        "a\r\nb\rc \xc3\xa9\xe2\x80\x83\n  {%- if n %}x{%+ endif -%}  \n y{# c -#} z\r",
        "{{ 'a\\x4F\\u00e9\\U0001F600\\101\\7\\n\\q\\\\' ~ \"b\" }}{{ 1_000 + 1.5e-3 + 2e+7 + 3.5 "
        "+ 4e }}",
        "{% set x = {'a': [1, (2)]} %}{{ x.a[0] + x['a'][1] ** 2 // 3 != 4 }}{{- x -}}{{+ x +}}",
        "{%raw %}",
        "{%  raw%}",
        "{% rawer %}",
        "{{ 12.a }}",
        "{{ 1e }}",
        "{{ 'a\\N{DASH}' }}",
        "{{ '\\ud800' }}",
        "{{ '\\xZZ' }}",
        "{{ '\\x0:' }}",
        "{{ 1x }}",
        "{{ ; }}",
        "{#+#}\x85 {#-#}",
        "{% for i in range(2) %}{{ i }}{% else %}b{% endfor %}{% generation %}a{% endgeneration %}",
        "{% if n %}a{% elif n > 2 %}b{% else %}c{% endif %}{% macro m(a, b=1) %}{% endmacro %}"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t n = 0; n <= strlen(texts[i]); n++)
            for (int kind = 0; kind < 2; kind++) {
                struct dt_template *t = NULL;
                char *cut = strndup(texts[i], n); /* ends where the template does */
                int rc =
                    dt_template_parse_as(&t, (enum dt_template_kind)kind, cut, n, "test", &err);
                if (rc < 0 && strncmp(err.text, "test, line ", 11) != 0)
                    fail_msg("'%s': %s", cut, err.text);
                if (rc == 0)
                    dt_template_marks_generation(t);
                dt_template_free(rc < 0 ? NULL : t);
                free(cut);
            }
}

/* What reads much and needs no memory for its results. */
static void what_is_read_is_bounded(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{% set n = s.count('aa') %}",
        "{% set n = s.rfind(t) %}",
        "{% set n = s == t %}",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct dt_buffer text = DT_BUFFER_EMPTY;
        dt_buffer_add_string(
            &text, "{% set s = 'a' * 1000000 %}{% set l = [0] * 100000 + [1] %}"
                   "{% set m = l + [] %}{% set t = s ~ '' %}{% set k = range(100000)|list %}"
                   "{% for i in range(100000) %}{% for j in range(100000) %}");
        dt_buffer_add_string(&text, bodies[i]);
        dt_buffer_add_string(&text, "{% endfor %}{% endfor %}");
        fails(text.data, "reads more than 1000000000 bytes and items in all");
        dt_buffer_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_give_the_text_that_jinja_gives),
        cmocka_unit_test(what_generation_blocks_wrote_is_known),
        cmocka_unit_test(templates_may_be_cut_anywhere),
        cmocka_unit_test(errors_name_the_line_and_what_is_wrong),
        cmocka_unit_test(malformed_templates_are_refused),
        cmocka_unit_test(delimiters_and_escapes_are_those_of_jinja),
        cmocka_unit_test(loops_and_their_else_are_those_of_jinja),
        cmocka_unit_test(numbers_of_texts_are_those_of_python),
        cmocka_unit_test(generators_keep_what_was_not_read),
        cmocka_unit_test(safe_texts_and_names_of_macros_are_those_of_jinja),
        cmocka_unit_test(dates_are_those_of_python),
        cmocka_unit_test(tasks_have_the_filters_of_jinja),
        cmocka_unit_test(white_space_is_that_of_python),
        cmocka_unit_test(time_memory_and_depth_are_bounded),
        cmocka_unit_test(what_is_read_is_bounded),
        cmocka_unit_test(numbers_beyond_64_bits_are_refused),
        cmocka_unit_test(texts_that_are_not_utf_8_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
