/* SPDX-License-Identifier: MIT */
/* Each type of step on one text. tests/token/test-families.c compares whole pipelines with
 * `tokenizers`. */
#include "json-of.h"

#include <string.h>

#include "steps/steps.h"

#define MARK "\xe2\x96\x81"

/* A component of tokenizer.json, a text, and its pieces as "start-end:text", where start .. end-1
 * is the piece's range in the text. */
static const struct {
    enum dt_steps_kind kind;
    const char *json, *text, *pieces;
} cases[] = {
    {DT_STEPS_NORMALIZER, "{'type': 'Prepend', 'prepend': '" MARK "'}", "ab", "0-2:" MARK "ab"},
    {DT_STEPS_NORMALIZER, "{'type': 'Replace', 'pattern': {'String': ' '}, 'content': '" MARK "'}",
     "a b", "0-3:a" MARK "b"},
    {DT_STEPS_NORMALIZER, "{'type': 'Strip'}", "  ab ", "2-4:ab"},
    {DT_STEPS_NORMALIZER, "{'type': 'Lowercase'}", "\xc3\x84H", "0-3:\xc3\xa4h"},
    {DT_STEPS_NORMALIZER, "{'type': 'NFD'}", "\xc3\xa4", "0-2:a\xcc\x88"},
    {DT_STEPS_NORMALIZER,
     "{'type': 'Sequence', 'normalizers': [{'type': 'NFD'}, {'type': 'StripAccents'}]}",
     "\xc3\xa4h", "0-3:ah"},
    {DT_STEPS_PRE_TOKENIZER,
     "{'type': 'Metaspace', 'replacement': '" MARK "', 'prepend_scheme': 'always'}", "ab c",
     "0-2:" MARK "ab 2-4:" MARK "c"},
    {DT_STEPS_PRE_TOKENIZER, "{'type': 'Digits', 'individual_digits': true}", "a12",
     "0-1:a 1-2:1 2-3:2"},
    {DT_STEPS_PRE_TOKENIZER, "{'type': 'WhitespaceSplit'}", "a  b.", "0-1:a 3-5:b."},
    {DT_STEPS_PRE_TOKENIZER, "{'type': 'Whitespace'}", "a b.", "0-1:a 2-3:b 3-4:."},
    {DT_STEPS_PRE_TOKENIZER, "{'type': 'Punctuation', 'behavior': 'Isolated'}", "a.b",
     "0-1:a 1-2:. 2-3:b"},
    {DT_STEPS_PRE_TOKENIZER,
     "{'type': 'Split', 'pattern': {'Regex': '[a-z]+'}, 'behavior': 'Removed', 'invert': true}",
     "a1bc", "0-1:a 2-4:bc"},
};

/* Single quotes stand for double ones. */
static struct json_object *parse(const char *quoted)
{
    char json[256] = "";
    for (size_t i = 0; quoted[i] != '\0'; i++)
        json[i] = quoted[i] == '\'' ? '"' : quoted[i];
    return json_of(json);
}

static void steps_edit_and_split_and_keep_origins(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_steps steps = {NULL, 0, 0};
        struct dt_pieces p = {.first = true, .text.keep_origins = true}, spare = {.items = NULL};
        struct dt_buffer found = DT_BUFFER_EMPTY;
        struct dt_error err;
        struct json_object *component = parse(cases[i].json);
        assert_int_equal(dt_steps_read(&steps, cases[i].kind, component, "t", &err), 0);
        dt_traced_text_set(&p.text, cases[i].text, strlen(cases[i].text), 0);
        if (cases[i].kind == DT_STEPS_NORMALIZER)
            dt_steps_normalize(&steps, &p.text, &spare.text);
        dt_pieces_add(&p, 0, p.text.bytes.size);
        if (cases[i].kind == DT_STEPS_PRE_TOKENIZER)
            dt_steps_split(&steps, &p, &spare);
        for (size_t k = 0; k < p.count; k++) {
            size_t from = p.items[k].start, to = p.items[k].end;
            struct dt_span origin = dt_traced_text_origin(&p.text, from, to);
            dt_buffer_printf(&found, "%s%d-%d:%.*s", k ? " " : "", (int)origin.start,
                             (int)origin.end, (int)(to - from), p.text.bytes.data + from);
        }
        dt_buffer_add_char(&found, '\0');
        assert_string_equal(found.data, cases[i].pieces);
        dt_buffer_release(&found);
        dt_pieces_release(&p);
        dt_pieces_release(&spare);
        dt_steps_release(&steps);
        json_object_put(component);
    }
}

static void unknown_steps_are_refused_by_name(void **state)
{
    (void)state;
    struct dt_steps steps = {NULL, 0, 0};
    struct dt_error err;
    struct json_object *component = parse("{'type': 'CTC'}");
    assert_int_equal(dt_steps_read(&steps, DT_STEPS_DECODER, component, "t", &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "decoder CTC is not supported"));
    json_object_put(component);
    dt_steps_release(&steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_edit_and_split_and_keep_origins),
        cmocka_unit_test(unknown_steps_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
