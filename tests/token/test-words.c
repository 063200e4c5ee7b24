/* SPDX-License-Identifier: MIT */
/* Encoding by words, with their cache, against the encoding of whole texts: what spans need. */
#include "scratch.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "math/rng.h"
#include "token/tokenizer.h"
#include "token/words.h"
#include "tokenizer-files/tokenizer-files.h"

/* Tokenizers of tests/token, and whether their text is cut into words. */
static const struct {
    const char *path;
    bool has_words;
} files[] = {
    {"families/llama2.json", true},         {"families/mistral.json", true},
    {"families/metaspace.json", false},     {"families/roberta.json", true},
    {"families/starcoder.json", true},      {"families/deepseek.json", true},
    {"families/clip.json", true},           {"families/claude.json", true},
    {"families/openai-gpt.json", true},     {"families/prefixed.json", true},
    {"families/neox.json", false},          {"families/gemma.json", true},
    {"families/behaviors.json", false},     {"families/word-level.json", false},
    {"families/bert-steps.json", false},    {"pieces/bpe.model", true},
    {"pieces/bpe-bytes.model", true},       {"pieces/unigram.model", false},
    {"pieces/unigram-bytes.model", true},   {"pieces/unigram-suffix.model", false},
    {"pieces/unigram-across.model", false}, {"pieces/unigram.json", true},
    {"pieces/unigram-lines.model", true},
};

static const char *const parts[] = {"the",
                                    "The",
                                    "ring",
                                    "end.",
                                    "a,b",
                                    "x",
                                    "caf\xc3\xa9",
                                    "\xe2\x96\x81",
                                    "a\xe2\x96\x81",
                                    "\xe2\x96\x81n",
                                    "12",
                                    "\xcc\x88",
                                    "\xef\xac\x81",
                                    "<sep>",
                                    "an",
                                    "antidisestablishmentarianism",
                                    " ",
                                    " ",
                                    " ",
                                    " ",
                                    "  ",
                                    "   ",
                                    "\n",
                                    "\t",
                                    "\xe3\x80\x80",
                                    "\xc2\xa0",
                                    " \n",
                                    "\xff",
                                    "\x01",
                                    "'s",
                                    "<h1>",
                                    "\xf0\x9f\x91\x8d"};

static void make_text(struct dt_rng *rng, struct dt_buffer *text)
{
    dt_buffer_clear(text);
    for (uint64_t n = dt_rng_below(rng, 40); n > 0; n--)
        dt_buffer_add_string(text, parts[dt_rng_below(rng, sizeof parts / sizeof *parts)]);
}

/* A word whose two segmentations nearly tie, until sums are too large for their difference. */
static void make_long_text(struct dt_rng *rng, struct dt_buffer *text)
{
    dt_buffer_clear(text);
    for (int i = 0; i < 20000; i++)
        dt_buffer_add_string(text, dt_rng_below(rng, 2) ? " ab" : " ba");
}

static const char near_ties[] =
    "{\"version\": \"1.0\", \"added_tokens\": [], \"normalizer\": null,"
    "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\","
    "  \"prepend_scheme\": \"always\", \"split\": false},"
    "\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", -20],"
    "  [\"\xe2\x96\x81\", -4], [\"a\", -2], [\"b\", -3], [\"ab\", -5.000000000001]]}}";

static void check_file(const char *path, bool has_words, int rounds,
                       void (*make)(struct dt_rng *, struct dt_buffer *))
{
    struct dt_tokenizer *t;
    struct dt_error err;
    struct dt_ids ids = DT_IDS_EMPTY, expected = DT_IDS_EMPTY;
    struct dt_spans spans = {NULL, 0, 0};
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct dt_rng rng;
    if (dt_tokenizer_load(&t, path, &err) < 0)
        fail_msg("%s", err.text);
    if (t->has_words != has_words)
        fail_msg("%s: words: %d", path, t->has_words);
    struct dt_encoder *by_words = dt_encoder_new(t), *whole = dt_encoder_new(t);
    dt_encoder_keep_spans(whole, &spans);
    dt_rng_init(&rng, 5);
    for (int round = 0; round < rounds; round++) {
        make(&rng, &text);
        ids.count = expected.count = spans.count = 0;
        dt_encoder_encode(by_words, text.data, text.size, &ids);
        dt_encoder_encode(whole, text.data, text.size, &expected);
        if (ids.count != expected.count ||
            memcmp(ids.data, expected.data, ids.count * sizeof *ids.data) != 0)
            fail_msg("%s: round %d: %.*s", path, round, (int)text.size, text.data);
    }
    dt_encoder_free(by_words);
    dt_encoder_free(whole);
    dt_ids_release(&ids);
    dt_ids_release(&expected);
    dt_spans_release(&spans);
    dt_buffer_release(&text);
    dt_tokenizer_free(t);
}

static void words_have_the_ids_of_the_whole_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = dt_asprintf("tests/token/%s", files[i].path);
        check_file(path, files[i].has_words, 2000, make_text);
        free(path);
    }
}

static void words_after_large_sums_have_the_ids_of_the_whole_text(void **state)
{
    (void)state;
    char *path = dt_path_join(scratch, "tokenizer.json");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(near_ties, f);
    fclose(f);
    check_file(path, true, 3, make_long_text);
    free(path);
}

static void words_end_before_spaces_after_visible_characters(void **state)
{
    (void)state;
    static struct dt_tokenizer t; /* all-zero but for words */
    const char *text = "ab  cd\n e. f\xc3\xa9 g h";
    size_t ends[32];
    t.words.after['b'] = t.words.after['.'] = t.words.after['g'] = true;
    assert_int_equal(dt_words_find(&t, (const unsigned char *)text, strlen(text), ends, 32), 4);
    assert_int_equal(ends[0], 2);
    assert_int_equal(ends[1], 10);
    assert_int_equal(ends[2], 16);
    assert_int_equal(ends[3], strlen(text));
}

static void words_begin_with_line_feeds_that_become_spaces(void **state)
{
    (void)state;
    static struct dt_tokenizer t;
    const char *text = "ab\nb\n\nb \n";
    const unsigned char *bytes = (const unsigned char *)text;
    size_t ends[32];
    t.words.after['b'] = true;
    assert_int_equal(dt_words_find(&t, bytes, strlen(text), ends, 32), 2);
    t.words.joins_lines = true;
    assert_int_equal(dt_words_find(&t, bytes, strlen(text), ends, 32), 4);
    assert_int_equal(ends[0], 2);
    assert_int_equal(ends[1], 4);
    assert_int_equal(ends[2], 7);
    struct dt_words_key line = dt_words_key(bytes + 2, 2, 2, 0);
    struct dt_words_key space = dt_words_key((const unsigned char *)" b", 2, 2, 0);
    assert_false(dt_words_same(line, space));
    dt_words_join_lines(&line);
    dt_words_join_lines(&space);
    assert_true(dt_words_same(line, space));
}

static bool starts_word(const struct dt_tokenizer *t, unsigned char byte)
{
    return byte == ' ' || (t->words.joins_lines && byte == '\n');
}

/* Every offset in a block of 64 bytes, and texts of more words than fit. */
static void words_of_long_texts_are_found_in_parts(void **state)
{
    (void)state;
    static struct dt_tokenizer t;
    unsigned char text[1000];
    struct dt_rng rng;
    dt_rng_init(&rng, 5);
    t.words.after['b'] = true;
    for (int round = 0; round < 500; round++) {
        size_t size = 1 + dt_rng_below(&rng, sizeof text), ends[65], at = 0;
        t.words.joins_lines = round % 4 < 2;
        for (size_t i = 0; i < size; i++)
            text[i] = (unsigned char)"b \n\xa0\x21"[dt_rng_below(&rng, round % 2 ? 3 : 5)];
        while (at < size) {
            size_t count = dt_words_find(&t, text + at, size - at, ends, 65);
            assert_true(count >= 1 && count <= 65);
            for (size_t i = 1, k = 0; i <= ends[count - 1]; i++)
                if (at + i == size || (starts_word(&t, text[at + i]) && text[at + i - 1] == 'b'))
                    assert_int_equal(ends[k++], i);
            at += ends[count - 1];
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_have_the_ids_of_the_whole_text),
        cmocka_unit_test(words_after_large_sums_have_the_ids_of_the_whole_text),
        cmocka_unit_test(words_end_before_spaces_after_visible_characters),
        cmocka_unit_test(words_begin_with_line_feeds_that_become_spaces),
        cmocka_unit_test(words_of_long_texts_are_found_in_parts),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
