/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "document/document.h"
#include "math/rng.h"
#include "pretokenize/byte-level.h"
#include "token/id-lines.h"
#include "token/tokenizer.h"
#include "token/vocabulary.h"
#include "tokenizer-files/tokenizer-files.h"
#include "json/json.h"

/* Files of the same names were made by `tokenizers`: see tests/tools/dt-tokenize.bats. */
#define GOLDEN "tests/token/golden/"
#define KINDS  "tests/token/kinds/"

static struct dt_tokenizer *load(const char *path)
{
    struct dt_tokenizer *t;
    struct dt_error err = {.text = ""};
    int rc = dt_tokenizer_load(&t, path, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    return t;
}

static char *write_file(const char *name, const char *text, size_t size)
{
    struct dt_error err;
    char *path = dt_path_join(scratch, name);
    assert_int_equal(dt_file_write(path, text, size, &err), 0);
    return path;
}

static char *read_golden(const char *name, size_t *size)
{
    struct dt_error err;
    char *path = dt_asprintf(GOLDEN "%s", name), *text;
    assert_int_equal(dt_file_read(path, 1 << 20, &text, size, &err), 0);
    free(path);
    return text;
}

/* The golden tokenizer with the first occurrence of from replaced. */
static char *write_changed(const char *from, const char *to)
{
    size_t size;
    char *text = read_golden("tokenizer.json", &size), *place = strstr(text, from);
    assert_non_null(place);
    char *changed = dt_asprintf("%.*s%s%s", (int)(place - text), text, to, place + strlen(from));
    char *path = write_file("changed.json", changed, strlen(changed));
    free(text);
    free(changed);
    return path;
}

static char *ids_line(const struct dt_tokenizer *t, int allow_special, const char *text,
                      size_t size)
{
    struct dt_encoder *e = dt_encoder_new(t);
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    dt_encoder_allow_special(e, allow_special);
    dt_encoder_encode(e, text, size, &ids);
    dt_ids_to_line(ids.data, ids.count, &line);
    line.data[line.size - 1] = '\0';
    dt_ids_release(&ids);
    dt_encoder_free(e);
    return line.data;
}

static void expect_ids(const struct dt_tokenizer *t, int allow_special, const char *text,
                       const char *expected)
{
    char *line = ids_line(t, allow_special, text, strlen(text));
    assert_string_equal(line, expected);
    free(line);
}

static void check_golden(const char *tokenizer, const char *ids)
{
    char *path = dt_asprintf(GOLDEN "%s", tokenizer);
    char *documents_path[] = {GOLDEN "documents.jsonl"};
    struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_JSONL};
    struct dt_tokenizer *t = load(path);
    struct dt_documents *documents;
    struct dt_document document = DT_DOCUMENT_EMPTY;
    struct dt_error err;
    size_t size;
    char *expected = read_golden(ids, &size), *line = expected;
    int count = 0;
    assert_int_equal(dt_documents_open(&documents, documents_path, 1, &options, &err), 0);
    while (dt_documents_next(documents, &document, &err) > 0) {
        char *end = strchr(line, '\n'), *ours;
        *end = '\0';
        ours = ids_line(t, 0, document.text.data, document.text.size);
        assert_string_equal(ours, line);
        free(ours);
        line = end + 1;
        count++;
    }
    assert_int_equal(count, 22);
    assert_ptr_equal(line, expected + size);
    dt_documents_close(documents);
    dt_document_release(&document);
    dt_tokenizer_free(t);
    free(expected);
    free(path);
}

static void golden_ids_are_those_of_other_implementations(void **state)
{
    (void)state;
    check_golden("tokenizer.json", "tokenizer.ids");
    check_golden("hugging-face.json", "hugging-face.ids");
}

static void tokens_are_found_by_bytes_and_by_id(void **state)
{
    (void)state;
    struct dt_tokenizer *t = load(GOLDEN "hugging-face.json");
    size_t size;
    assert_int_equal(dt_tokenizer_size(t), 400);
    assert_int_equal(dt_tokenizer_eot(t), 0);
    assert_int_equal(dt_tokenizer_find(t, "<pad>", 5), 1);
    assert_int_equal(dt_tokenizer_find(t, "!", 1), 2);
    assert_int_equal(dt_tokenizer_find(t, "\0", 1), 2 + 188);
    assert_int_equal(dt_tokenizer_find(t, "nothing like it", 15), DT_NO_TOKEN);
    uint32_t the = dt_tokenizer_find(t, " the", 4);
    assert_int_not_equal(the, DT_NO_TOKEN);
    assert_memory_equal(dt_tokenizer_bytes(t, the, &size), " the", 4);
    assert_int_equal(size, 4);
    dt_tokenizer_bytes(t, 400, &size);
    assert_int_equal(size, 0);
    dt_tokenizer_free(t);
}

static void ids_know_whether_they_are_special_or_go_on_with_a_word(void **state)
{
    (void)state;
    struct dt_tokenizer *t = load(GOLDEN "tokenizer.json");
    static const struct {
        const char *token;
        bool continues;
    } tokens[] = {{"he", true},  {" ", false},   {" he", false}, {",", false},
                  {"\n", false}, {"\xc3", true}, {"7", true}};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        uint32_t id = dt_tokenizer_find(t, tokens[i].token, strlen(tokens[i].token));
        assert_int_not_equal(id, DT_NO_TOKEN);
        assert_int_equal(dt_tokenizer_continues_word(t, id), tokens[i].continues);
        assert_false(dt_tokenizer_is_special(t, id));
    }
    uint32_t eot = dt_tokenizer_eot(t);
    assert_true(dt_tokenizer_is_special(t, eot));
    assert_false(dt_tokenizer_continues_word(t, eot));
    assert_false(dt_tokenizer_is_special(t, dt_tokenizer_size(t)));
    assert_false(dt_tokenizer_continues_word(t, DT_NO_TOKEN));
    dt_tokenizer_free(t);
}

static void any_bytes_come_back(void **state)
{
    (void)state;
    struct dt_tokenizer *t = load(GOLDEN "tokenizer.json");
    struct dt_encoder *e = dt_encoder_new(t);
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_buffer back = DT_BUFFER_EMPTY;
    struct dt_error err;
    struct dt_rng rng;
    dt_rng_init(&rng, 5);
    for (int round = 0; round < 2000; round++) {
        char text[300];
        size_t size = dt_rng_below(&rng, sizeof text);
        uint32_t values = 1 + dt_rng_below(&rng, 256), first = dt_rng_below(&rng, 256);
        for (size_t i = 0; i < size; i++)
            text[i] = (char)(first + dt_rng_below(&rng, values));
        ids.count = 0;
        dt_buffer_clear(&back);
        dt_encoder_encode(e, text, size, &ids);
        assert_int_equal(dt_tokenizer_decode(t, ids.data, ids.count, &back, &err), 0);
        assert_int_equal(back.size, size);
        assert_memory_equal(back.data ? back.data : "", text, size);
    }
    dt_buffer_release(&back);
    dt_ids_release(&ids);
    dt_encoder_free(e);
    dt_tokenizer_free(t);
}

static void a_text_at_the_end_of_memory_is_not_overrun(void **state)
{
    (void)state;
    struct dt_tokenizer *t = load(GOLDEN "tokenizer.json");
    for (size_t size = 0; size < 40; size++) {
        char *text = malloc(size ? size : 1); /* valgrind and ASan see a byte too far */
        memset(text, "e \xe8'"[size % 4], size);
        char *line = ids_line(t, 1, text, size);
        assert_true(size == 0 || *line);
        free(line);
        free(text);
    }
    dt_tokenizer_free(t);
}

static void ids_outside_the_vocabulary_are_refused(void **state)
{
    (void)state;
    struct dt_tokenizer *t = load(GOLDEN "tokenizer.json");
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct dt_error err;
    uint32_t ids[] = {1, 2, 420};
    assert_int_equal(dt_tokenizer_decode(t, ids, 3, &text, &err), DT_EFORMAT);
    assert_string_equal(err.text, "id 420 at index 2 is not in the vocabulary");
    dt_buffer_release(&text);
    dt_tokenizer_free(t);
}

/* Writes t as GPT-2's pair of files; returns the path of the first. */
static char *write_pair(const struct dt_tokenizer *t, const char *prefix)
{
    struct dt_buffer vocabulary = DT_BUFFER_EMPTY, merges = DT_BUFFER_EMPTY, token;
    dt_buffer_add_string(&merges, "#version: 0.2\n");
    for (uint32_t id = 0; id < dt_tokenizer_size(t); id++) {
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, id, &size);
        token = (struct dt_buffer)DT_BUFFER_EMPTY;
        dt_byte_level_encode(bytes, size, &token);
        dt_buffer_add_string(&vocabulary, id ? ", " : "{");
        dt_json_add_string(&vocabulary, token.data, token.size);
        dt_buffer_printf(&vocabulary, ": %u", id);
        dt_buffer_release(&token);
    }
    dt_buffer_add_string(&vocabulary, "}");
    for (uint32_t i = 0; i < t->merge_count; i++) {
        size_t left, right;
        const char *a = dt_tokenizer_bytes(t, t->merges[i].left, &left);
        const char *b = dt_tokenizer_bytes(t, t->merges[i].right, &right);
        dt_byte_level_encode(a, left, &merges);
        dt_buffer_add_char(&merges, ' ');
        dt_byte_level_encode(b, right, &merges);
        dt_buffer_add_string(&merges, i % 2 ? "\n" : "\r\n");
    }
    char *name = dt_asprintf("%smerges.txt", prefix);
    free(write_file(name, merges.data, merges.size));
    free(name);
    name = dt_asprintf("%svocab.json", prefix);
    char *path = write_file(name, vocabulary.data, vocabulary.size);
    free(name);
    dt_buffer_release(&vocabulary);
    dt_buffer_release(&merges);
    return path;
}

static void equal_tokenizers_have_equal_fingerprints_in_any_format(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_tokenizer *whole = load(GOLDEN "tokenizer.json"), *pair, *copy, *named;
    char *plain = write_pair(whole, ""), *prefixed = write_pair(whole, "x.");
    char *saved = dt_path_join(scratch, "saved.json");
    assert_int_equal(dt_tokenizer_save(whole, saved, &err), 0);
    copy = load(saved);
    pair = load(prefixed);
    named = load(scratch); /* which holds vocab.json and no tokenizer.json */
    assert_int_equal(dt_tokenizer_fingerprint(pair), dt_tokenizer_fingerprint(whole));
    assert_int_equal(dt_tokenizer_fingerprint(copy), dt_tokenizer_fingerprint(whole));
    assert_int_equal(dt_tokenizer_fingerprint(named), dt_tokenizer_fingerprint(whole));
    assert_int_equal(dt_tokenizer_eot(pair), dt_tokenizer_eot(whole));
    expect_ids(pair, 1, "the<|endoftext|>", "83 256 419");
    assert_int_equal(unlink(plain), 0);
    assert_int_equal(unlink(prefixed), 0);
    dt_tokenizer_free(named);
    dt_tokenizer_free(copy);
    dt_tokenizer_free(pair);
    dt_tokenizer_free(whole);
    free(saved);
    free(plain);
    free(prefixed);
}

/* Streams and shards in the world carry these. */
static void fingerprints_are_for_ever(void **state)
{
    (void)state;
    struct dt_tokenizer *t = load(GOLDEN "tokenizer.json");
    assert_true(dt_tokenizer_fingerprint(t) == 0x2f3e9ce5b3ae782d);
    dt_tokenizer_free(t);
    t = load(GOLDEN "hugging-face.json");
    assert_true(dt_tokenizer_fingerprint(t) == 0x6ad2f43610ae4a23);
    dt_tokenizer_free(t);
}

/* Another version has other letters, so other ids. */
static void another_version_of_unicode_has_another_fingerprint(void **state)
{
    (void)state;
    static const char *const files[] = {GOLDEN "tokenizer.json", KINDS "bert.json",
                                        KINDS "qwen.json"};
    for (int i = 0; i < 3; i++) {
        struct dt_tokenizer *t = load(files[i]);
        uint64_t now = dt_tokenizer_compute_fingerprint(t, "15.0.0"),
                 later = dt_tokenizer_compute_fingerprint(t, "16.0.0"),
                 latest = dt_tokenizer_compute_fingerprint(t, "17.0.0");
        assert_true(dt_tokenizer_fingerprint(t) == now);
        assert_true(later != now && latest != now && later != latest);
        dt_tokenizer_free(t);
    }
}

static void a_change_of_the_ids_changes_the_fingerprint(void **state)
{
    (void)state;
    static const char *const changes[][2] = {
        {"\"h e\",\n      \"\xc4\xa0 t\"",
         "\"\xc4\xa0 t\",\n      \"h e\""}, /* the order of two merges */
        {"\"he\": 256", "\"he\": 500"},
        {"\"special\": true", "\"special\": false"},
    };
    struct dt_tokenizer *whole = load(GOLDEN "tokenizer.json");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char *path = write_changed(changes[i][0], changes[i][1]);
        struct dt_tokenizer *t = load(path);
        assert_int_not_equal(dt_tokenizer_fingerprint(t), dt_tokenizer_fingerprint(whole));
        dt_tokenizer_free(t);
        free(path);
    }
    dt_tokenizer_free(whole);
}

static void a_token_of_the_model_alone_changes_the_fingerprint(void **state)
{
    (void)state;
    uint64_t prints[2];
    for (int i = 0; i < 2; i++) { /* Q is in the vocabulary, or only an added token */
        char *text = dt_asprintf("{\"added_tokens\": [{\"id\": 1, \"content\": \"Q\", "
                                 "\"single_word\": true, \"special\": "
                                 "false}], \"model\": {\"type\": \"BPE\", \"unk_token\": \"?\", "
                                 "\"vocab\": {\"?\": 0%s}, "
                                 "\"merges\": []}}",
                                 i ? "" : ", \"Q\": 1");
        char *path = write_file("apart.json", text, strlen(text));
        struct dt_tokenizer *t = load(path);
        struct dt_encoder *e = dt_encoder_new(t);
        struct dt_ids ids = DT_IDS_EMPTY;
        dt_encoder_encode(e, "aQ", 2, &ids);
        assert_int_equal(ids.data[1], !i);
        prints[i] = dt_tokenizer_fingerprint(t);
        dt_ids_release(&ids);
        dt_encoder_free(e);
        dt_tokenizer_free(t);
        free(path);
        free(text);
    }
    assert_true(prints[0] != prints[1]);
}

static void special_tokens_are_ordinary_text_unless_allowed(void **state)
{
    (void)state;
    struct dt_tokenizer *t = load(GOLDEN "hugging-face.json");
    char *spelled = ids_line(t, 0, "a<pad>", 6);
    assert_null(strstr(spelled, " 1"));
    assert_string_equal(spelled, "66 29 81 66 69 31");
    free(spelled);
    expect_ids(t, 1, "a<pad>", "66 1");
    expect_ids(t, 1, "<|endoftext|><pad><pad", "0 1 29 81 66 69");
    expect_ids(t, 1, "<pad", "29 81 66 69");
    dt_tokenizer_free(t);
}

static void added_tokens_that_are_not_special_are_always_found(void **state)
{
    (void)state;
    char *path = write_changed("\"added_tokens\": [",
                               "\"added_tokens\": [{\"id\": 420, \"content\": \"Blank Line\"},"
                               "{\"id\": 421, \"content\": \"Blank\", \"special\": false},"
                               "{\"id\": 422, \"content\": \"\xc3\xa9\xc3\xa9\"},");
    struct dt_tokenizer *t = load(path);
    assert_int_equal(dt_tokenizer_size(t), 423);
    expect_ids(t, 0, "Blank Line", "420"); /* the longest */
    expect_ids(t, 0, "Blank Lin", "421 336 263");
    expect_ids(t, 0,
               "\xc3\xa9\xc3\xa9"
               "Blank",
               "422 421");
    dt_tokenizer_free(t);
    free(path);
}

static const struct {
    const char *from, *to, *message;
} wrong_files[] = {
    {"\"BPE\"", "\"WordPiece\"", "member \"continuing_subword_prefix\" is not a string"},
    {"\"normalizer\": null", "\"normalizer\": {\"type\": \"NFX\"}",
     "normalizer NFX is not supported"},
    {"\"pre_tokenizer\": {\"type\": \"ByteLevel\"", "\"pre_tokenizer\": {\"type\": \"Meta\"",
     "pre_tokenizer Meta is not supported"},
    {"\"pre_tokenizer\": {",
     "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
     "\"pattern\": {\"Regex\": \"(a)\\\\1\"}, \"behavior\": \"Isolated\", \"invert\": false}, "
     "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}]},\n\"x\": {",
     "pre_tokenizer Split: an escape that is not supported at byte 4 of the regular expression "
     "(a)\\1"},
    {"\"pre_tokenizer\": {",
     "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Wordless\"}]},"
     "\n\"x\": {",
     "pre_tokenizer Wordless is not supported"},
    {"\"post_processor\": null", "\"post_processor\": {\"type\": \"TemplateProcessing\"}",
     "member \"single\" is missing"},
    {"\"post_processor\": null",
     "\"post_processor\": {\"type\": \"Sequence\", \"processors\": [{\"type\": \"BertProcessing\", "
     "\"cls\": "
     "[\"x\", 1], \"sep\": [\"x\", 1]}, {\"type\": \"ByteLevel\"}, {\"type\": "
     "\"RobertaProcessing\", "
     "\"cls\": [\"x\", 1], \"sep\": [\"x\", 1]}]}",
     "post_processor: more than one step adds tokens"},
    {"\"post_processor\": null",
     "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {\"id\": "
     "\"A\"}}, "
     "{\"Sequence\": {\"id\": \"A\"}}], \"special_tokens\": {}}",
     "post_processor: a template has the text more than once"},
    {"\"post_processor\": null",
     "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [], \"special_tokens\": "
     "{}}",
     "post_processor: a template lacks the text"},
    {"\"post_processor\": null", "\"post_processor\": {\"type\": \"Fuse\"}",
     "post_processor Fuse is not supported"},
    {"\"post_processor\": null",
     "\"post_processor\": {\"type\": \"BertProcessing\", \"cls\": [\"x\", 9999], \"sep\": [\"x\", "
     "1]}",
     "post_processor: id 9999 is not in the vocabulary"},
    {"\"decoder\": {\"type\": \"ByteLevel\"", "\"decoder\": {\"type\": \"Fuse\"",
     "decoder Fuse is not supported"},
    {"\"pre_tokenizer\": {",
     "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"ByteLevel\", "
     "\"add_prefix_space\": false}, {\"type\": \"Metaspace\", \"replacement\": "
     "\"\xe2\x96\x81\"}]}, "
     "\"x\": {",
     "pre_tokenizer: Metaspace after ByteLevel is not supported"},
    {"\"decoder\": {",
     "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"}, {\"type\": "
     "\"ByteLevel\"}]}, \"x\": {",
     "decoder Fuse is not supported"},
    {"\"dropout\": null", "\"dropout\": 0.1", "\"dropout\": 0.1 is not supported"},
    {"\"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n    \"byte_fallback\": false",
     "\"end_of_word_suffix\": \"</w>\", \"byte_fallback\": true",
     "\"byte_fallback\" is not supported with affixes"},
    {"\"added_tokens\": [", "\"added_tokens\": [{\"id\": 9000}, ",
     "added token 1: member \"content\" is missing"},
    {"\"added_tokens\": [", "\"added_tokens\": [{\"id\": 3, \"content\": \"<x>\"}, ",
     "id 3 has two tokens, '$' and '<x>'"},
    {"\"added_tokens\": [", "\"added_tokens\": [{\"id\": 3, \"content\": \"<|endoftext|>\"}, ",
     "added token 2: '<|endoftext|>' is listed twice"},
    {"\"added_tokens\": [", "\"added_tokens\": [{\"id\": 300, \"content\": \"an\"}, ",
     "token 'an' has the id 259, but 300 as added token"},
    {"\"!\": 0", "\"!\": 1", "id 1 has two tokens, '!' and '\"'"},
    {"\"\xc4\x80\": 188", "\"\xc4\x80\": 187", "id 187 has two tokens, '\\xff' and '\\x00'"},
    {"\"!\": 0", "\"!\": 4194304", "id 4194304 of token '!' is not below 4194304"},
    {"\"!\": 0", "\"!\": -1", "the id of token '!' is not an integer from 0"},
    {"\"!\": 0", "\"!\": \"0\"", "the id of token '!' is not an integer from 0"},
    {"\"!\": 0", "\"\": 0", "token 0 is empty"},
    {"\"h e\"", "\"h !e\"", "merge 1: merges '!e', which is not in the vocabulary"},
    {"\"h e\"", "\"q q\"", "merge 1: makes 'qq', which is not in the vocabulary"},
    {"\"h e\"", "\"he\"", "merge 1: expected two tokens separated by one space, not 'he'"},
    {"\"h e\"", "\"h e e\"", "merge 1: expected two tokens separated by one space, not 'h e e'"},
    {"\"h e\"", "\" e\"", "merge 1: merges '', which is not in the vocabulary"},
    {"\"h e\"", "7", "merge 1: is neither \"left right\" nor [\"left\", \"right\"]"},
    {"\"h e\"", "[\"h\", 7]", "merge 1: is neither \"left right\" nor [\"left\", \"right\"]"},
    {"\"h e\"", "\"h e\", \"h e\"", "merges 1 and 2 (counted from 1) are the same"},
    {"\"merges\"", "\"margins\"", "member \"merges\" is missing"},
    {"\"model\"", "\"muddle\"", "member \"model\" is missing"},
    {"\"version\"", "version", "line 2: "},
};

static void wrong_files_are_refused_by_name_and_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong_files / sizeof *wrong_files; i++) {
        char *path = write_changed(wrong_files[i].from, wrong_files[i].to);
        struct dt_tokenizer *t;
        struct dt_error err = {.text = ""};
        assert_int_equal(dt_tokenizer_load(&t, path, &err), DT_EFORMAT);
        assert_null(t);
        assert_true(strncmp(err.text, path, strlen(path)) == 0);
        if (strstr(err.text, wrong_files[i].message) == NULL)
            assert_string_equal(err.text, wrong_files[i].message);
        free(path);
    }
}

static void merges_as_pairs_and_a_split_by_the_same_regex_are_the_same_tokenizer(void **state)
{
    (void)state;
    static const char *const changes[][2] = {
        {"\"h e\"", "[\"h\", \"e\"]"},
        {"\"pre_tokenizer\": {",
         "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
         "\"pattern\": {\"Regex\": \"'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| "
         "?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+\"}, \"behavior\": \"Isolated\", "
         "\"invert\": false}, {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
         "\"use_regex\": false}]},\n\"x\": {"},
    };
    struct dt_tokenizer *whole = load(GOLDEN "tokenizer.json");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char *path = write_changed(changes[i][0], changes[i][1]);
        struct dt_tokenizer *t = load(path);
        assert_int_equal(dt_tokenizer_fingerprint(t), dt_tokenizer_fingerprint(whole));
        dt_tokenizer_free(t);
        free(path);
    }
    dt_tokenizer_free(whole);
}

/* As of `tokenizers`: later steps of a decoder see one text. */
static void the_decoder_byte_level_joins_tokens(void **state)
{
    (void)state;
    char *path = write_changed("\"decoder\": {",
                               "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": "
                               "\"ByteLevel\"}, {\"type\": "
                               "\"Replace\", \"pattern\": {\"String\": \"q z\"}, \"content\": "
                               "\"Q\"}, {\"type\": \"Strip\", "
                               "\"content\": \" \", \"start\": 1, \"stop\": 0}]},\n\"x\": {");
    struct dt_tokenizer *t = load(path);
    struct dt_encoder *e = dt_encoder_new(t);
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct dt_error err;
    dt_encoder_encode(e, "  a q z a", 9, &ids);
    assert_int_equal(dt_tokenizer_decode(t, ids.data, ids.count, &text, &err), 0);
    dt_buffer_add_char(&text, '\0');
    assert_string_equal(text.data, " a Q a");
    dt_ids_release(&ids);
    dt_buffer_release(&text);
    dt_encoder_free(e);
    dt_tokenizer_free(t);
    free(path);
}

static void missing_files_are_named(void **state)
{
    (void)state;
    struct dt_tokenizer *t;
    struct dt_error err;
    char *empty = dt_path_join(scratch, "empty"), *pair = dt_path_join(scratch, "y.vocab.json");
    assert_int_equal(dt_file_make_directories(empty, &err), 0);
    assert_int_equal(dt_tokenizer_load(&t, empty, &err), DT_EMISSING);
    assert_non_null(
        strstr(err.text, "empty: does not contain tokenizer.json or another tokenizer file"));
    free(write_file("y.vocab.json", "{}", 2));
    assert_int_equal(dt_tokenizer_load(&t, pair, &err), DT_EIO);
    assert_non_null(strstr(err.text, "y.merges.txt': No such file"));
    free(write_file("y.merges.txt", "#version: 0.2\na b c\n", 20));
    assert_int_equal(dt_tokenizer_load(&t, pair, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "y.merges.txt:2: expected two tokens"));
    free(write_file("y.vocab.json", "[]", 2));
    assert_int_equal(dt_tokenizer_load(&t, pair, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "y.vocab.json: is not a JSON object"));
    free(empty);
    free(pair);
}

/* Whatever is loaded from a damaged file must be usable; else there is a reason. */
static void damaged_files_do_no_harm(void **state)
{
    (void)state;
    struct dt_rng rng;
    size_t size;
    char *text = read_golden("hugging-face.json", &size);
    int refused = 0;
    dt_rng_init(&rng, 9);
    for (int round = 0; round < 400; round++) {
        char *damaged = dt_strndup(text, size);
        for (uint32_t n = 1 + dt_rng_below(&rng, 3); n > 0; n--)
            damaged[dt_rng_below(&rng, (uint32_t)size)] ^= (char)(1 << dt_rng_below(&rng, 8));
        size_t kept = round % 4 ? size : dt_rng_below(&rng, (uint32_t)size);
        char *path = write_file("damaged.json", damaged, kept);
        struct dt_tokenizer *t;
        struct dt_error err = {.text = ""};
        if (dt_tokenizer_load(&t, path, &err) == 0) {
            char *line = ids_line(t, 1, "The ferryman sang.<pad>", 23);
            assert_true(strlen(line) > 0);
            free(line);
            dt_tokenizer_free(t);
        } else {
            assert_true(strlen(err.text) > strlen(path));
            refused++;
        }
        free(path);
        free(damaged);
    }
    assert_in_range(refused, 100, 399);
    free(text);
}

static void lines_of_ids_are_read_and_written(void **state)
{
    (void)state;
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    struct dt_error err;
    const char *text = "0 7  4294967295\t10\r";
    assert_int_equal(dt_ids_from_line(text, strlen(text), "f:1", &ids, &err), 0);
    assert_int_equal(ids.count, 4);
    dt_ids_to_line(ids.data, ids.count, &line);
    dt_ids_to_line(ids.data, 0, &line);
    assert_string_equal(line.data, "0 7 4294967295 10\n\n");
    static const char *const wrong[] = {"1 x", "1 2x", "1 4294967296", "1 -1",
                                        "1 99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(dt_ids_from_line(wrong[i], strlen(wrong[i]), "f:1", &ids, &err),
                         DT_EFORMAT);
        assert_string_equal(err.text,
                            "f:1: column 3: expected a token id, a number from 0 to 4294967295");
    }
    dt_ids_release(&ids);
    dt_buffer_release(&line);
}

static void bytes_are_spelled_and_read(void **state)
{
    (void)state;
    unsigned char order[256];
    struct dt_buffer spelled = DT_BUFFER_EMPTY, back = DT_BUFFER_EMPTY;
    dt_byte_level_order(order);
    assert_int_equal(order[0], '!');
    assert_int_equal(order[187], 0xff);
    assert_int_equal(order[188], 0);
    assert_int_equal(dt_byte_level_char(' '), 0x120);
    assert_int_equal(dt_byte_level_char(0xad), 0x143);
    dt_byte_level_encode((const char *)order, 256, &spelled);
    assert_true(dt_byte_level_decode(spelled.data, spelled.size, &back));
    assert_int_equal(back.size, 256);
    assert_memory_equal(back.data, order, 256);
    static const char *const outside[] = {"a b", "\xc2\xad", "\xc5\x84", "\xff", "\n"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        assert_false(dt_byte_level_decode(outside[i], strlen(outside[i]), &back));
        assert_int_equal(back.size, 256);
    }
    dt_buffer_release(&spelled);
    dt_buffer_release(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_ids_are_those_of_other_implementations),
        cmocka_unit_test(tokens_are_found_by_bytes_and_by_id),
        cmocka_unit_test(ids_know_whether_they_are_special_or_go_on_with_a_word),
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(a_text_at_the_end_of_memory_is_not_overrun),
        cmocka_unit_test(ids_outside_the_vocabulary_are_refused),
        cmocka_unit_test(equal_tokenizers_have_equal_fingerprints_in_any_format),
        cmocka_unit_test(fingerprints_are_for_ever),
        cmocka_unit_test(another_version_of_unicode_has_another_fingerprint),
        cmocka_unit_test(a_change_of_the_ids_changes_the_fingerprint),
        cmocka_unit_test(a_token_of_the_model_alone_changes_the_fingerprint),
        cmocka_unit_test(special_tokens_are_ordinary_text_unless_allowed),
        cmocka_unit_test(added_tokens_that_are_not_special_are_always_found),
        cmocka_unit_test(wrong_files_are_refused_by_name_and_place),
        cmocka_unit_test(merges_as_pairs_and_a_split_by_the_same_regex_are_the_same_tokenizer),
        cmocka_unit_test(the_decoder_byte_level_joins_tokens),
        cmocka_unit_test(missing_files_are_named),
        cmocka_unit_test(damaged_files_do_no_harm),
        cmocka_unit_test(lines_of_ids_are_read_and_written),
        cmocka_unit_test(bytes_are_spelled_and_read),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
