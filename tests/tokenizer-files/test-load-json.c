/* SPDX-License-Identifier: MIT */
/* Malformed files of tokenizer.json: what each gives. */
#include "changed.h"

#include "token/tokenizer.h"
#include "token/unigram.h"
#include "token/vocabulary.h"
#include "tokenizer-files/tokenizer-files.h"

#define PATH "t.json"

static const char whole[] =
    "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":4,\"content\":\"<s>\",\"special\":true}],"
    "\"normalizer\":{\"type\":\"Strip\",\"strip_left\":true},"
    "\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":true},"
    "\"post_processor\":null,\"decoder\":{\"type\":\"Fuse\"},"
    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"byte_fallback\":false,"
    "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"c\":3},\"merges\":[\"a b\"]}}";

#define NORMALIZER "{\"type\":\"Strip\",\"strip_left\":true}"
#define SEQUENCE   "{\"type\":\"Sequence\",\"normalizers\":["
#define DEEP       SEQUENCE SEQUENCE SEQUENCE SEQUENCE SEQUENCE SEQUENCE SEQUENCE SEQUENCE SEQUENCE
#define BERT(cls)                                                                                  \
    "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"b\",1],\"cls\":" cls "}"
#define TEMPLATE(step, id)                                                                         \
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[" step "],"                   \
    "\"special_tokens\":{\"<s>\":{\"ids\":[" id "]}}}"
#define FLAG(name) "member \"" name "\" is not true or false"

static const struct change cases[] = {
    {whole, "[]", "is not a JSON object"},
    {whole, "{}", "member \"model\" is missing"},
    {whole, "{", "byte 1: JSON text ends too early: expected a complete tokenizer.json"},
    {"\"type\":\"BPE\"", "\"type\":\"Fancy\"", "model Fancy is not supported"},
    {"\"byte_fallback\":false", "\"byte_fallback\":\"no\"", FLAG("byte_fallback")},
    {"\"byte_fallback\":false", "\"fuse_unk\":0", FLAG("fuse_unk")},
    {"\"byte_fallback\":false", "\"ignore_merges\":[]", FLAG("ignore_merges")},
    {"\"dropout\":null", "\"dropout\":0.1", ""},
    {"\"unk_token\":null", "\"unk_token\":\"x\"", "the unknown token 'x' is not in the vocabulary"},
    {"\"unk_token\":null", "\"unk_token\":5", "member \"unk_token\" is not a string"},
    /* steps */
    {NORMALIZER, "5", "normalizer: expected an object with a \"type\""},
    {NORMALIZER, "{}", "member \"type\" is missing"},
    {NORMALIZER, "{\"type\":\"NFX\"}", "normalizer NFX is not supported"},
    {NORMALIZER, "{\"type\":\"Sequence\"}", "member \"normalizers\" is missing"},
    {NORMALIZER, DEEP "]}]}]}]}]}]}]}]}]}", "normalizer: more than 8 nested Sequences"},
    {"\"strip_left\":true", "\"strip_left\":\"no\"", "normalizer Strip: " FLAG("strip_left")},
    {"\"individual_digits\":true", "\"individual_digits\":1",
     "pre_tokenizer Digits: " FLAG("individual_digits")},
    {"\"Digits\"", "\"Fingers\"", "pre_tokenizer Fingers is not supported"},
    {"\"Fuse\"", "\"Fuze\"", "decoder Fuze is not supported"},
    {"\"post_processor\":null", "\"post_processor\":5", ""},
    {"\"post_processor\":null", BERT("[\"a\"]"), "post_processor: an id is not a whole number"},
    {"\"post_processor\":null", BERT("[\"a\",\"0\"]"),
     "post_processor: an id is not a whole number"},
    {"\"post_processor\":null", BERT("[\"a\",9]"), "post_processor: id 9 is not in the vocabulary"},
    {"\"post_processor\":null", BERT("[\"a\",-1]"),
     "post_processor: id -1 is not in the vocabulary"},
    {"\"post_processor\":null", BERT("5"), "member \"cls\" is not an array"},
    {"\"post_processor\":null", TEMPLATE("5", "0"),
     "post_processor: a step is neither a SpecialToken nor a Sequence"},
    {"\"post_processor\":null", TEMPLATE("{\"Token\":{}}", "0"),
     "post_processor: a step is neither a SpecialToken nor a Sequence"},
    {"\"post_processor\":null", TEMPLATE("{\"SpecialToken\":{\"id\":\"<s>\"}}", "null"),
     "post_processor: an id is not a whole number"},
    {"\"post_processor\":null", TEMPLATE("{\"SpecialToken\":{\"id\":\"<s>\"}}", "1.0"),
     "post_processor: an id is not a whole number"},
    {"\"post_processor\":null", TEMPLATE("{\"SpecialToken\":{\"id\":\"<t>\"}}", "0"),
     "member \"<t>\" is missing"},
    {"\"post_processor\":null", TEMPLATE("{\"SpecialToken\":5}", "0"), "is not a JSON object"},
    {"\"post_processor\":null", "\"post_processor\":{\"type\":\"Nope\"}", ""},
    {"{\"type\":\"Digits\",\"individual_digits\":true}", "{\"type\":\"ByteLevel\"}",
     "decoder Fuse is not supported with the pre_tokenizer ByteLevel"},
    /* added tokens */
    {"\"added_tokens\":[", "\"added_tokens\":5,\"other\":[",
     "member \"added_tokens\" is not an array"},
    {"{\"id\":4,", "7,{\"id\":4,", "added token 1: is not a JSON object"},
    {"\"content\":\"<s>\"", "\"content\":5", "added token 1: member \"content\" is not a string"},
    {"\"id\":4,", "", "added token 1: member \"id\" is missing"},
    {"\"id\":4", "\"id\":-4", "added token 1: '<s>' has a negative id"},
    {"\"id\":4", "\"id\":99999999999", ""},
    {"{\"id\":4,", "{\"id\":5,\"content\":\"<s>\"},{\"id\":4,",
     "added token 2: '<s>' is listed twice"},
    {"\"special\":true", "\"special\":\"no\"", "added token 1: " FLAG("special")},
    {"\"special\":true", "\"lstrip\":0", "added token 1: " FLAG("lstrip")},
    /* the vocabulary */
    {"\"vocab\":{", "\"vocab\":5,\"other\":{", ""},
    {"\"a\":0", "\"a\":\"0\"", ""},
    {"\"a\":0", "\"a\":-1", ""},
    {"\"a\":0", "\"a\":1.5", ""},
    {"\"b\":1", "\"b\":0", ""},
    {"\"c\":3", "\"c\":4", ""},
    {"\"merges\":[", "\"merges\":5,\"other\":[", ""},
    {"\"a b\"", "5", ""},
    {"\"a b\"", "[\"a\"]", ""},
    {"\"a b\"", "[\"a\",5]", ""},
    {"\"a b\"", "\"a\"", ""},
    {"\"a b\"", "\"a x\"", ""},
    {"\"a b\"", "\"b c\"", ""},
};

static int load(struct dt_tokenizer **t, const char *from, const char *to, struct dt_error *err)
{
    write_changed(PATH, whole, from, to);
    return dt_tokenizer_load(t, PATH, err);
}

static void each_malformed_file_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_tokenizer *t;
        struct dt_error err = {.text = ""};
        int rc = load(&t, cases[i].from, cases[i].to, &err);
        assert_message(&cases[i], PATH, rc, &err);
    }
}

static void flags_may_be_null_or_missing(void **state)
{
    (void)state;
    static const char *const others[][2] = {
        {"\"post_processor\":null", BERT("[\"a\",0]")},
        {"\"post_processor\":null", TEMPLATE("{\"Sequence\":{\"id\":\"A\"}}", "0")},
        {"", ""},
        {"\"special\":true", "\"special\":null"},
        {",\"special\":true", ""},
        {"\"strip_left\":true", "\"strip_left\":null"},
        {"\"byte_fallback\":false", "\"byte_fallback\":null"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct dt_tokenizer *t;
        struct dt_error err;
        if (load(&t, others[i][0], others[i][1], &err) < 0)
            fail_msg("%s", err.text);
        dt_tokenizer_free(t);
    }
}

#define UNIGRAM                                                                                    \
    "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":false,"                       \
    "\"vocab\":[[\"u\",0],[\"a\",-1.5],[\"b\",2]]}}"

static void malformed_unigrams_are_refused(void **state)
{
    static const struct change unigrams[] = {
        {"\"unk_id\":0", "\"unk_id\":3", "\"unk_id\" 3 is not in the vocabulary"},
        {"\"unk_id\":0", "\"unk_id\":-1", "\"unk_id\" -1 is not in the vocabulary"},
        {"\"unk_id\":0", "\"unk_id\":null", "member \"unk_id\" is not a whole number"},
        {"\"vocab\":[", "\"vocab\":5,\"other\":[", "member \"vocab\" is not an array"},
        {"[\"a\",-1.5]", "[\"a\"]", "\"vocab\" element 1 is not [\"piece\", score]"},
        {"[\"a\",-1.5]", "\"a\"", "\"vocab\" element 1 is not [\"piece\", score]"},
        {"[\"a\",-1.5]", "[5,-1.5]", "\"vocab\" element 1 is not [\"piece\", score]"},
        {"[\"a\",-1.5]", "[\"a\",\"1\"]", "\"vocab\" element 1 is not [\"piece\", score]"},
        {"[\"a\",-1.5]", "[\"a\",1e999]", "\"vocab\" element 1 is not [\"piece\", score]"},
        {"[\"a\",-1.5]", "[\"b\",-1.5]", "piece 2 of \"vocab\" is there twice"},
        {"\"byte_fallback\":false", "\"byte_fallback\":1", FLAG("byte_fallback")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof unigrams / sizeof *unigrams; i++) {
        struct dt_tokenizer *t;
        struct dt_error err = {.text = ""};
        write_changed(PATH, UNIGRAM, unigrams[i].from, unigrams[i].to);
        assert_message(&unigrams[i], PATH, dt_tokenizer_load(&t, PATH, &err), &err);
    }
}

/* The value of a score that no double has, or that has a very long exponent. */
static void scores_are_read_whatever_their_exponent(void **state)
{
    static const struct {
        const char *text;
        double value;
    } scores[] = {{"-1.5", -1.5},
                  {"0.1e-99999999999999999999", 0},
                  {"-25e-1", -2.5},
                  {"0e99999999999999999999", 0},
                  {"12345678901234567890123", 12345678901234567890123.0},
                  {"0.00000000000000000000000000000125e30", 1.25}};
    (void)state;
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
        struct dt_tokenizer *t;
        struct dt_error err;
        write_changed(PATH, UNIGRAM, "-1.5", scores[i].text);
        assert_int_equal(dt_tokenizer_load(&t, PATH, &err), 0);
        if (t->unigram->scores[1] != scores[i].value)
            fail_msg("%s: %.17g", scores[i].text, t->unigram->scores[1]);
        dt_tokenizer_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_malformed_file_is_refused),
        cmocka_unit_test(malformed_unigrams_are_refused),
        cmocka_unit_test(scores_are_read_whatever_their_exponent),
        cmocka_unit_test(flags_may_be_null_or_missing),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
