/* SPDX-License-Identifier: MIT */
/* Each type of step on one text. tests/token/test-families.c compares whole pipelines with
 * `tokenizers`. */
#include "json-of.h"

#include <stdlib.h>
#include <string.h>

#include "character-map-of.h"
#include "encoding/base64.h"
#include "steps/byte-steps.h"
#include "steps/steps-internal.h"
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
    {DT_STEPS_NORMALIZER, "{'type': 'Replace', 'pattern': {'String': ''}, 'content': '-'}", "ab",
     "0-2:-a-b-"},
    {DT_STEPS_NORMALIZER, "{'type': 'Strip'}", "  ab ", "2-4:ab"},
    {DT_STEPS_NORMALIZER, "{'type': 'Lowercase'}", "\xc3\x84H", "0-3:\xc3\xa4h"},
    {DT_STEPS_NORMALIZER, "{'type': 'NFD'}", "\xc3\xa4", "0-2:a\xcc\x88"},
    {DT_STEPS_NORMALIZER,
     "{'type': 'Sequence', 'normalizers': [{'type': 'NFD'}, {'type': 'StripAccents'}]}",
     "\xc3\xa4h", "0-3:ah"},
    {DT_STEPS_NORMALIZER, "{'type': 'Precompiled'}", "A", "0-1:A"},
    {DT_STEPS_NORMALIZER, "{'type': 'Nmt'}", "ab", "0-2:ab"},
    {DT_STEPS_NORMALIZER, "{'type': 'Nmt'}", /* controls are dropped */
     "\x01\x08\x0b\x0e\x1f\x7f\xc2\x8f\xc2\x9f|", "10-11:|"},
    {DT_STEPS_NORMALIZER, "{'type': 'Nmt'}", /* white space becomes a space, other text stays */
     "\t\n\f\r\xe1\x9a\x80\xe2\x80\x8b\xe2\x80\x8f\xe2\x80\xa8\xe2\x80\xa9" MARK
     "\xef\xbb\xbf\xef\xbf\xbd\xc2\x80\xff\xe2\x80\x90\xe2\x80\xaa\xf0\x9f\x98\x80",
     "0-41:            \xc2\x80\xff\xe2\x80\x90\xe2\x80\xaa\xf0\x9f\x98\x80"},
    {DT_STEPS_PRE_TOKENIZER,
     "{'type': 'Metaspace', 'replacement': '" MARK "', 'prepend_scheme': 'always'}", "ab c",
     "0-2:" MARK "ab 2-4:" MARK "c"},
    {DT_STEPS_PRE_TOKENIZER, "{'type': 'Digits', 'individual_digits': true}", "a12",
     "0-1:a 1-2:1 2-3:2"},
    {DT_STEPS_PRE_TOKENIZER, "{'type': 'WhitespaceSplit'}", "a  b.", "0-1:a 3-5:b."},
    {DT_STEPS_PRE_TOKENIZER, "{'type': 'Whitespace'}", "a b.", "0-1:a 2-3:b 3-4:."},
    {DT_STEPS_PRE_TOKENIZER, "{'type': 'Punctuation', 'behavior': 'Isolated'}", "a.b",
     "0-1:a 1-2:. 2-3:b"},
    {DT_STEPS_PRE_TOKENIZER, "{'type': 'Split', 'pattern': {'String': ''}, 'behavior': 'Isolated'}",
     "a\xc3\xa4 b", "0-1:a 1-3:\xc3\xa4 3-4:  4-5:b"},
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

static void only_a_metaspace_that_marks_the_first_word_needs_origins(void **state)
{
    static const struct {
        const char *json;
        bool needs;
    } rows[] = {
        {"{'type': 'Metaspace', 'replacement': '" MARK "', 'prepend_scheme': 'first'}", true},
        {"{'type': 'Metaspace', 'replacement': '" MARK "', 'prepend_scheme': 'always'}", false},
        {"{'type': 'Metaspace', 'replacement': '" MARK "', 'prepend_scheme': 'never'}", false},
        {"{'type': 'Digits'}", false},
        {"{'type': 'Sequence', 'pretokenizers': [{'type': 'Digits'},"
         " {'type': 'Metaspace', 'replacement': '" MARK "', 'prepend_scheme': 'first'}]}",
         true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dt_steps steps = {NULL, 0, 0};
        struct dt_error err;
        struct json_object *component = parse(rows[i].json);
        assert_int_equal(dt_steps_read(&steps, DT_STEPS_PRE_TOKENIZER, component, "t", &err), 0);
        assert_int_equal(dt_steps_need_origins(&steps), rows[i].needs);
        dt_steps_release(&steps);
        json_object_put(component);
    }
}

/* --- Precompiled ------------------------------------------------------------------------------*/

/* The step with the map of a text in Base64. */
static int read_map(struct dt_steps *steps, const char *text, size_t size, struct dt_error *err)
{
    char *json = dt_asprintf("{\"type\": \"Precompiled\", \"precompiled_charsmap\": %s%.*s%s}",
                             size ? "\"" : "1", (int)size, text, size ? "\"" : "");
    struct json_object *component = json_of(json);
    int rc = dt_steps_read(steps, DT_STEPS_NORMALIZER, component, "t", err);
    json_object_put(component);
    free(json);
    return rc;
}

/* A -> a, B -> nothing, and if other is not 0 that character -> a space. */
static struct dt_steps map_of(char other)
{
    char bytes[MAP_BYTES];
    struct dt_steps steps = {NULL, 0, 0};
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct dt_error err;
    size_t size = make_map(bytes);
    if (other)
        put_rule(bytes, other, 0);
    dt_base64_encode(bytes, size, &text);
    assert_int_equal(read_map(&steps, text.data, text.size, &err), 0);
    dt_buffer_release(&text);
    return steps;
}

static void rules_replace_short_clusters_and_characters_of_long_ones(void **state)
{
#define ACUTE "\xcc\x81"
    static const struct {
        const char *text, *normalized;
    } texts_of[] = {
        {"xAx", "xax"},
        {"AA\xff\xfe|A", "aa\xff\xfe|a"},
        {"xB", "x"},
        {"AB", "a"},
        {"x\r\nA", "x\r\na"},
        {"A" ACUTE "x", "ax"},
        {"A" ACUTE ACUTE ACUTE "x", "a" ACUTE ACUTE ACUTE "x"},
        {"xe" ACUTE, "xe" ACUTE},
        {"e" ACUTE, "e" ACUTE},
        {ACUTE, ACUTE},
    };
    struct dt_steps steps = map_of('\0');
    (void)state;
    for (size_t i = 0; i < sizeof texts_of / sizeof *texts_of; i++) {
        struct dt_traced_text text = {.keep_origins = true}, spare = {.keep_origins = true};
        dt_traced_text_set(&text, texts_of[i].text, strlen(texts_of[i].text), 0);
        dt_steps_normalize(&steps, &text, &spare);
        dt_buffer_add_char(&text.bytes, '\0');
        assert_string_equal(text.bytes.data, texts_of[i].normalized);
        dt_traced_text_release(&text);
        dt_traced_text_release(&spare);
    }
    dt_steps_release(&steps);
}

/* A map of one more rule: C and an acute accent -> U+00E9. */
static void map_of_a_letter_and_an_accent(struct dt_buffer *base64)
{
    char bytes[MAP_BYTES];
    size_t size = make_map(bytes);
    put_unit(bytes, 0x100 ^ 'C', OFFSET(0x100 ^ 'C', 0x210) | 'C');
    put_unit(bytes, 0x210 ^ 0xcc, OFFSET(0x210 ^ 0xcc, 0x220) | 0xcc);
    put_unit(bytes, 0x220 ^ 0x81, OFFSET(0x220 ^ 0x81, 0x230) | HAS_VALUE | 0x81);
    put_unit(bytes, 0x230, VALUE | 5);
    dt_base64_encode(bytes, size, base64);
}

/* Text is copied in blocks. */
static void accents_are_composed_after_a_run_of_ascii_of_any_length(void **state)
{
    struct dt_steps steps = {NULL, 0, 0};
    struct dt_buffer map = DT_BUFFER_EMPTY;
    struct dt_error err;
    (void)state;
    map_of_a_letter_and_an_accent(&map);
    char *json = dt_asprintf("{\"type\": \"SentencePiece\", \"add_dummy_prefix\": false, "
                             "\"user_defined_symbols\": [], \"precompiled_charsmap\": \"%.*s\"}",
                             (int)map.size, map.data);
    struct json_object *component = json_of(json);
    assert_int_equal(dt_steps_read(&steps, DT_STEPS_NORMALIZER, component, "t", &err), 0);
    for (size_t length = 1; length <= 1 << 16; length *= 2) {
        struct dt_traced_text text = {.keep_origins = false}, spare = {.keep_origins = false};
        struct dt_buffer bytes = DT_BUFFER_EMPTY;
        for (size_t i = 1; i < length; i++)
            dt_buffer_add_char(&bytes, 'x');
        dt_buffer_add_string(&bytes, "C" ACUTE "x");
        dt_traced_text_set(&text, bytes.data, bytes.size, 0);
        dt_steps_normalize(&steps, &text, &spare);
        assert_int_equal(text.bytes.size, length + 2);
        assert_memory_equal(text.bytes.data + length - 1, "\xc3\xa9x", 3);
        dt_buffer_release(&bytes);
        dt_traced_text_release(&text);
        dt_traced_text_release(&spare);
    }
    dt_steps_release(&steps);
    json_object_put(component);
    dt_buffer_release(&map);
    free(json);
}

static void words_are_cut_where_no_rule_matches(void **state)
{
    static const struct {
        char rule; /* 0: only those of A and B */
        enum dt_word_start start;
        bool cut, joins_lines;
    } rows[] = {
        {0, DT_WORD_START_SPACE, true, false},
        {0, DT_WORD_START_MARK, false, false},
        {' ', DT_WORD_START_SPACE, false, false},
        {'\n', DT_WORD_START_SPACE, true, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dt_steps steps = map_of(rows[i].rule);
        struct dt_word_cuts cuts = {.start = rows[i].start};
        memset(cuts.after, true, 128);
        cuts.after['.'] = false;
        assert_int_equal(dt_steps_cut_words(&steps, &cuts), rows[i].cut);
        assert_int_equal(cuts.joins_lines, rows[i].joins_lines);
        assert_true(cuts.after['x'] && !cuts.after['A'] && !cuts.after['.']);
        dt_steps_release(&steps);
    }
    for (int marked = 0; marked < 2; marked++) { /* without a map, and of Nmt */
        struct dt_word_cuts cuts = {.start = marked ? DT_WORD_START_MARK : DT_WORD_START_SPACE};
        assert_int_equal(dt_normalizer_precompiled.cut(NULL, &cuts), !marked);
        assert_false(cuts.joins_lines);
        assert_int_equal(dt_normalizer_nmt.cut(NULL, &cuts), !marked);
        assert_true(cuts.joins_lines);
    }
}

static void damaged_maps_are_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "t: normalizer Precompiled: \"precompiled_charsmap\" is not Base64"},
        {"!", "t: normalizer Precompiled: \"precompiled_charsmap\" is not Base64"},
        {"AAAA", "t: normalizer Precompiled: character map: expected a trie"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dt_steps steps = {NULL, 0, 0};
        struct dt_error err;
        assert_int_equal(read_map(&steps, rows[i].text, strlen(rows[i].text), &err), DT_EFORMAT);
        assert_memory_equal(err.text, rows[i].message, strlen(rows[i].message));
        dt_steps_release(&steps);
    }
}

/* --- several steps ----------------------------------------------------------------------------*/

static void steps_may_be_many_and_change_nothing(void **state)
{
    struct dt_buffer json = DT_BUFFER_EMPTY;
    struct dt_steps steps = {NULL, 0, 0};
    struct dt_pieces p = {.items = NULL}, spare = {.items = NULL};
    struct dt_error err;
    (void)state;
    dt_buffer_add_string(&json, "{\"type\": \"Sequence\", \"decoders\": [");
    for (int i = 0; i < 32; i++)
        dt_buffer_printf(&json, "%s{\"type\": \"ByteLevel\"}", i ? "," : "");
    dt_buffer_printf(&json, "]}");
    struct json_object *component = json_of(json.data);
    assert_int_equal(dt_steps_read(&steps, DT_STEPS_DECODER, component, "t", &err), 0);
    dt_steps_insert(&steps, 0, &dt_decoder_fuse);
    assert_int_equal(steps.count, 33);
    dt_traced_text_set(&p.text, "ab", 2, 0);
    dt_pieces_add(&p, 0, 1);
    dt_pieces_add(&p, 1, 2);
    dt_steps_decode(&steps, &p, &spare);
    assert_int_equal(p.count, 1); /* Fuse */
    dt_steps_release(&steps);
    dt_steps_insert(&steps, 0, &dt_decoder_fuse);
    assert_int_equal(steps.count, 1);
    dt_steps_release(&steps);
    dt_pieces_release(&p);
    dt_pieces_release(&spare);
    json_object_put(component);
    dt_buffer_release(&json);
}

/* As those of `tokenizers` 0.22.2. */
static void decoders_see_the_tokens_of_those_before(void **state)
{
    static const struct {
        const char *json, *text; /* of the tokens "ab", "" and "ac" */
    } rows[] = {
        {"{'type': 'Replace', 'pattern': {'Regex': '^a'}, 'content': '-'}", "-b-c"},
        {"{'type': 'Replace', 'pattern': {'Regex': 'x*'}, 'content': '-'}", "-a-b--a-c-"},
        {"{'type': 'Sequence', 'decoders': [{'type': 'ByteLevel'},"
         " {'type': 'Strip', 'content': 'a', 'start': 1, 'stop': 0}]}",
         "bac"},
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        struct dt_steps steps = {NULL, 0, 0};
        struct dt_pieces p = {.items = NULL}, spare = {.items = NULL};
        struct dt_error err;
        struct json_object *component = parse(rows[i / 2].json);
        assert_int_equal(dt_steps_read(&steps, DT_STEPS_DECODER, component, "t", &err), 0);
        if (i % 2 != 0)
            dt_byte_steps_settle_decoder(&steps);
        dt_traced_text_set(&p.text, "abac", 4, 0);
        dt_pieces_add_token(&p, 0, 2);
        dt_pieces_add_token(&p, 2, 2);
        dt_pieces_add_token(&p, 2, 4);
        dt_steps_decode(&steps, &p, &spare);
        assert_int_equal(p.text.bytes.size, strlen(rows[i / 2].text));
        assert_memory_equal(p.text.bytes.data, rows[i / 2].text, p.text.bytes.size);
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
        cmocka_unit_test(only_a_metaspace_that_marks_the_first_word_needs_origins),
        cmocka_unit_test(rules_replace_short_clusters_and_characters_of_long_ones),
        cmocka_unit_test(accents_are_composed_after_a_run_of_ascii_of_any_length),
        cmocka_unit_test(words_are_cut_where_no_rule_matches),
        cmocka_unit_test(damaged_maps_are_refused),
        cmocka_unit_test(steps_may_be_many_and_change_nothing),
        cmocka_unit_test(decoders_see_the_tokens_of_those_before),
        cmocka_unit_test(unknown_steps_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
