/* SPDX-License-Identifier: MIT */
/* Malformed files of tokenizer.json: what each gives. */
#include "changed.h"
#include "gguf-of.h"

#include "pretokenize/pattern.h"
#include "token/tokenizer.h"
#include "token/unigram.h"
#include "token/vocabulary.h"
#include "tokenizer-files/tokenizer-files.h"
#include "json/json.h"

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
#define STEPS(steps) "\"post_processor\":{\"type\":\"Sequence\",\"processors\":" steps "}"
#define TEXT         "{\"Sequence\":{\"id\":\"A\"}}"
#define BOS          "{\"SpecialToken\":{\"id\":\"<s>\"}}"
#define AROUND       "{\"type\":\"RobertaProcessing\",\"sep\":[\"b\",1],\"cls\":[\"a\",0]}"
#define FLAG(name)   "member \"" name "\" is not true or false"

static const struct change cases[] = {
    {whole, "[]", "is not a JSON object"},
    {whole, "{}", "member \"model\" is missing"},
    {whole, "{", "byte 1: JSON text ends too early: expected a complete tokenizer.json"},
    {"\"type\":\"BPE\"", "\"type\":\"Fancy\"", "model Fancy is not supported"},
    {"\"byte_fallback\":false", "\"byte_fallback\":\"no\"", FLAG("byte_fallback")},
    {"\"byte_fallback\":false", "\"fuse_unk\":0", FLAG("fuse_unk")},
    {"\"byte_fallback\":false", "\"ignore_merges\":[]", FLAG("ignore_merges")},
    {"\"byte_fallback\":false", "\"byte_fallback\":true,\"end_of_word_suffix\":\"</w>\"",
     "\"byte_fallback\" is not supported with affixes"},
    {"\"byte_fallback\":false", "\"byte_fallback\":true,\"continuing_subword_prefix\":\"##\"",
     "\"byte_fallback\" is not supported with affixes"},
    {"\"dropout\":null", "\"dropout\":0.1", "\"dropout\": 0.1 is not supported"},
    {"\"dropout\":null", "\"dropout\":true", "\"dropout\": true is not supported"},
    {"\"dropout\":null", "\"dropout\":\"x\"", "\"dropout\": x is not supported"},
    {"\"dropout\":null", "\"dropout\":1", "\"dropout\": 1 is not supported"},
    {"\"dropout\":null", "\"continuing_subword_prefix\":5",
     "member \"continuing_subword_prefix\" is not a string"},
    {"\"dropout\":null", "\"end_of_word_suffix\":5",
     "member \"end_of_word_suffix\" is not a string"},
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
    {"\"post_processor\":null", "\"post_processor\":{\"type\":\"Nope\"}",
     "post_processor Nope is not supported"},
    {"\"post_processor\":null", "\"post_processor\":{\"type\":\"TemplateProcessing\"}",
     "member \"single\" is missing"},
    {"\"post_processor\":null",
     "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<"
     "s>\"}}]}",
     "member \"special_tokens\" is missing"},
    {"\"post_processor\":null",
     "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<"
     "s>\"}}],"
     "\"special_tokens\":{\"<s>\":{}}}",
     "member \"ids\" is missing"},
    {"\"post_processor\":null",
     TEMPLATE("{\"SpecialToken\":{\"id\":\"<s>\"}}", "0,0,0,0,0,0,0,0,0"),
     "post_processor: id 0 is not in the vocabulary, or exceeds 8 ids on one side"},
    {"\"post_processor\":null", TEMPLATE(TEXT "," BOS "," TEXT, "0"),
     "post_processor: a template has the text more than once"},
    {"\"post_processor\":null", TEMPLATE(BOS, "0"), "post_processor: a template lacks the text"},
    {"\"post_processor\":null", TEMPLATE("", "0"), "post_processor: a template lacks the text"},
    {"\"post_processor\":null", STEPS("[" AROUND "," AROUND "]"),
     "post_processor: more than one step adds tokens"},
    {"\"post_processor\":null", STEPS("5"), "member \"processors\" is not an array"},
    {"\"post_processor\":null", STEPS("[{\"type\":\"Nope\"}]"),
     "post_processor Nope is not supported"},
    {"\"post_processor\":null", STEPS("[{\"type\":\"Sequence\"}]"),
     "post_processor: a Sequence in a Sequence"},
    {"{\"type\":\"Digits\",\"individual_digits\":true}", "{\"type\":\"ByteLevel\"}",
     "decoder Fuse is not supported with the pre_tokenizer ByteLevel"},
    /* added tokens */
    {"\"added_tokens\":[", "\"added_tokens\":5,\"other\":[",
     "member \"added_tokens\" is not an array"},
    {"{\"id\":4,", "7,{\"id\":4,", "added token 1: is not a JSON object"},
    {"\"content\":\"<s>\"", "\"content\":5", "added token 1: member \"content\" is not a string"},
    {"\"content\":\"<s>\"", "\"content\":\"<\\u0000>\"",
     "added token 1: member \"content\" holds a zero byte"},
    {"\"id\":4,", "", "added token 1: member \"id\" is missing"},
    {"\"id\":4", "\"id\":-4", "added token 1: '<s>' has a negative id"},
    {"\"id\":4", "\"id\":99999999999", ""},
    {"{\"id\":4,", "{\"id\":5,\"content\":\"<s>\"},{\"id\":4,",
     "added token 2: '<s>' is listed twice"},
    {"{\"id\":4,", "{\"id\":0,\"content\":\"zz\"},{\"id\":4,", "id 0 has two tokens, 'a' and 'zz'"},
    {"\"content\":\"<s>\"", "\"normalized\":true,\"content\":\" \"",
     "added token 4: its normalized text is empty"},
    {"{\"id\":4,", "{\"id\":5,\"content\":\"\\u2003x\",\"rstrip\":true},{\"id\":4,",
     "added token 5 begins with white space, and 5 has rstrip, which is not supported together"},
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
    {"\"a b\"", "5", "merge 1: is neither \"left right\" nor [\"left\", \"right\"]"},
    {"\"a b\"", "[\"a\"]", "merge 1: is neither"},
    {"\"a b\"", "[\"a\",5]", "merge 1: is neither"},
    {"\"a b\"", "[5,\"a\"]", "merge 1: is neither"},
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
        {"\"byte_fallback\":false", "\"byte_fallback\":null"},
        {"\"dropout\":null", "\"dropout\":false"},
        {"\"dropout\":null", "\"dropout\":\"\""},
        {"\"dropout\":null", "\"dropout\":0.0"},
        {"\"dropout\":null", "\"end_of_word_suffix\":\"</w>\""},
        {"\"dropout\":null", "\"end_of_word_suffix\":\"\""},
        {"\"a b\"", "[\"a\",\"b\"]"},
        {"\"post_processor\":null", STEPS("[{\"type\":\"ByteLevel\"}," AROUND "]")},
        {"\"special\":true", "\"special\":true,\"rstrip\":true"},
        {"\"type\":\"BPE\",", ""}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct dt_tokenizer *t;
        struct dt_error err;
        if (load(&t, others[i][0], others[i][1], &err) < 0)
            fail_msg("%s", err.text);
        dt_tokenizer_free(t);
    }
}

/* Their ids are 0, 1 ... in order. */
static void the_tokens_around_a_text_are_read(void **state)
{
    static const struct {
        const char *post;
        size_t before, after;
    } rows[] = {{STEPS("[" AROUND ",{\"type\":\"ByteLevel\"}]"), 1, 1},
                {TEMPLATE(BOS "," TEXT, "0,1"), 2, 0},
                {TEMPLATE(TEXT "," BOS, "0,1,2"), 0, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dt_tokenizer *t;
        struct dt_error err;
        if (load(&t, "\"post_processor\":null", rows[i].post, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(t->before.count, rows[i].before);
        assert_int_equal(t->after.count, rows[i].after);
        for (uint32_t k = 0; k < rows[i].before; k++)
            assert_int_equal(t->before.data[k], k);
        for (uint32_t k = 0; k < rows[i].after; k++)
            assert_int_equal(t->after.data[k], rows[i].before + k);
        dt_tokenizer_free(t);
    }
}

/* As `tokenizers`. */
static void the_last_of_two_ids_of_a_token_counts(void **state)
{
    struct dt_tokenizer *t;
    struct dt_error err;
    (void)state;
    assert_int_equal(load(&t, "\"c\":3", "\"c\":5,\"c\":3", &err), 0);
    assert_int_equal(dt_tokenizer_find(t, "c", 1), 3);
    assert_int_equal(dt_tokenizer_size(t), 5);
    dt_tokenizer_free(t);
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

/* --- kinds of files ---------------------------------------------------------------------------*/

/* clang-format off */
#define ROOT(steps, model) "{" steps "\"model\":{" model "}}"
#define STEP(kind, type)   "\"" kind "\":{\"type\":\"" type "\"},"
#define WORDS(more)        "\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0,\"a\":1}," more
#define PREFIX             "\"continuing_subword_prefix\":\"##\","
#define UNK                "\"unk_token\":\"[UNK]\""
#define LONGEST            "\"max_input_chars_per_word\":100,"
#define GOOD_WORDS         WORDS(PREFIX LONGEST UNK)
#define LEVEL(more)        "\"type\":\"WordLevel\",\"vocab\":{\"[UNK]\":0}" more
#define BPE(more)          "\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\":0,\"b\":1}" more
#define BYTES              STEP("pre_tokenizer", "ByteLevel")
#define PLAIN              "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
#define TWICE              "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\"},{\"type\":\"ByteLevel\"}]},"
#define NORM(type)         STEP("normalizer", type)
#define BERTS              NORM("BertNormalizer") STEP("pre_tokenizer", "BertPreTokenizer")
#define ADDED(id, text, more) "\"added_tokens\":[{\"id\":" id ",\"content\":\"" text "\"" more "}],"
#define UNI(vocab, more)   "\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"u\",0]" vocab "]" more

static const struct {
    const char *text, *pattern;
    const char *message; /* NULL: it is read */
} kinds[] = {
    {ROOT("", GOOD_WORDS), NULL, NULL},
    {ROOT(BERTS, GOOD_WORDS), NULL, NULL},
    {ROOT(BERTS STEP("decoder", "WordPiece"), GOOD_WORDS), NULL, NULL},
    {ROOT(BERTS STEP("decoder", "Fuse"), GOOD_WORDS), NULL, NULL},
    {ROOT(NORM("BertNormalizer") STEP("pre_tokenizer", "Whitespace"), GOOD_WORDS), NULL, NULL},
    {ROOT(BERTS ADDED("2", "x", ",\"normalized\":true"), GOOD_WORDS), NULL, NULL},
    {ROOT("\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":\"no\"}," STEP("pre_tokenizer", "BertPreTokenizer"), GOOD_WORDS), NULL, FLAG("lowercase")},
    {ROOT("", WORDS(LONGEST UNK)), NULL, "member \"continuing_subword_prefix\" is missing"},
    {ROOT("", WORDS("\"continuing_subword_prefix\":\"#\"," LONGEST UNK)), NULL, "\"continuing_subword_prefix\": \"#\" is not supported"},
    {ROOT("", WORDS(PREFIX UNK)), NULL, "member \"max_input_chars_per_word\" is missing"},
    {ROOT("", WORDS(PREFIX UNK ",\"max_input_chars_per_word\":0")), NULL, "\"max_input_chars_per_word\" is not 1 to 1000"},
    {ROOT("", WORDS(PREFIX UNK ",\"max_input_chars_per_word\":1001")), NULL, "\"max_input_chars_per_word\" is not 1 to 1000"},
    {ROOT("", WORDS(PREFIX LONGEST "\"unk_token\":null")), NULL, "member \"unk_token\" is missing"},
    {ROOT("", WORDS(PREFIX LONGEST "\"unk_token\":\"x\"")), NULL, "the unknown token 'x' is not in the vocabulary"},
    {ROOT("", GOOD_WORDS), "gpt2", "WordPiece takes no pattern: remove --pattern"},
    {ROOT("", LEVEL("," UNK)), NULL, NULL},
    {ROOT("", LEVEL("")), NULL, "member \"unk_token\" is missing"},
    {ROOT("", LEVEL(",\"unk_token\":\"x\"")), NULL, "the unknown token 'x' is not in the vocabulary"},
    {ROOT(BYTES, BPE("")), NULL, NULL},
    {ROOT(BYTES STEP("decoder", "ByteLevel"), BPE("")), NULL, NULL},
    {ROOT(BYTES, BPE(",\"byte_fallback\":true")), NULL, "\"byte_fallback\" is not supported with the pre_tokenizer ByteLevel and"},
    {ROOT(PLAIN NORM("NFC"), BPE("")), NULL, NULL},
    {ROOT(PLAIN NORM("Lowercase"), BPE("")), NULL, NULL},
    {ROOT(TWICE, BPE("")), NULL, "pre_tokenizer: more than one ByteLevel"},
    {ROOT("", BPE("")), "gpt2", NULL},
    {ROOT(NORM("NFC"), BPE("")), "gpt2", NULL},
    {ROOT(NORM("Lowercase"), BPE("")), "gpt2", "--pattern is not supported with normalizer Lowercase"},
    {ROOT(ADDED("3", "x", "") BERT("[\"a\",2]") ",", BPE("")), NULL, "post_processor: id 2 is not in the vocabulary"},
    {ROOT(BYTES, UNI("", "")), NULL, "model Unigram with the pre_tokenizer ByteLevel is not supported"},
    {ROOT(ADDED("0", "u", ",\"special\":true"), UNI("", "")), NULL, NULL},
    {ROOT(ADDED("1", "u", ""), UNI("", "")), NULL, NULL},
    {ROOT("", UNI(",[\"\",1]", "")), NULL, "token 1 is empty"},
    {ROOT("", UNI("", ",\"byte_fallback\":true")), NULL, NULL},
    {ROOT("", UNI(",[\"<0x41>\",1]", ",\"byte_fallback\":true")), NULL, "\"byte_fallback\" with 1 of the tokens <0x00> to <0xFF> is not supported"},
};
/* clang-format on */

/* The tokenizer, or NULL with an error that begins with the path and then message. */
static struct dt_tokenizer *load_kind(const char *path, const char *pattern, const char *message)
{
    struct dt_tokenizer *t = NULL;
    struct dt_error err = {.text = ""};
    size_t n = strlen(path);
    int rc = dt_tokenizer_load_with(&t, path, pattern, &err);
    if (message == NULL
            ? rc < 0
            : rc == 0 || strncmp(err.text, path, n) != 0 || strncmp(err.text + n, ": ", 2) != 0 ||
                  strncmp(err.text + n + 2, message, strlen(message)) != 0)
        fail_msg("'%s', not '%s'", err.text, message ? message : "");
    return rc < 0 ? NULL : t;
}

static void each_kind_is_read_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        write_bytes(PATH, kinds[i].text, strlen(kinds[i].text));
        struct dt_tokenizer *t = load_kind(PATH, kinds[i].pattern, kinds[i].message);
        if (t)
            dt_tokenizer_free(t);
    }
    struct dt_tokenizer *t;
    struct dt_error err;
    assert_true(dt_tokenizer_load(&t, "absent.json", &err) < 0);
}

static void bytes_of_unigram_are_tokens(void **state)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    (void)state;
    dt_buffer_add_string(&text, "{\"model\":{" UNI(",[\"a\",1]", ""));
    text.size--; /* the ] */
    for (int byte = 0; byte < 256; byte++)
        dt_buffer_printf(&text, ",[\"<0x%02X>\",-1]", byte);
    dt_buffer_printf(&text, "],\"byte_fallback\":true}}");
    write_bytes(PATH, text.data, text.size);
    struct dt_tokenizer *t = load_kind(PATH, NULL, NULL);
    assert_int_equal(t->unigram->byte_ids['A'], 2 + 'A');
    dt_tokenizer_free(t);
    dt_buffer_release(&text);
}

/* Llama 3's pattern and Mistral's tokens. */
static void mistrals_tokens_with_another_pattern_are_refused(void **state)
{
    static const char *const names[] = {"<s>", "[INST]"};
    struct json_object *regex = dt_json_new_string(dt_pattern_find("llama3")->regex);
    (void)state;
    for (int both = 0; both < 4; both++) {
        struct dt_buffer text = DT_BUFFER_EMPTY;
        dt_buffer_add_string(&text, "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{"
                                    "\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":false,"
                                    "\"pattern\":{\"Regex\":");
        dt_json_add_value(&text, regex, DT_JSON_COMPACT);
        dt_buffer_printf(&text, "}},{\"type\":\"ByteLevel\",\"use_regex\":false,"
                                "\"add_prefix_space\":false}]},\"added_tokens\":[");
        for (int i = 0; i < 2; i++)
            if (both & 1 << i)
                dt_buffer_printf(&text, "%s{\"id\":%d,\"content\":\"%s\"}",
                                 both == 3 && i ? "," : "", 2 + i, names[i]);
        dt_buffer_printf(&text, "],\"model\":{%s}}", BPE(""));
        write_bytes(PATH, text.data, text.size);
        struct dt_tokenizer *t = load_kind(
            PATH, NULL, both == 3 ? "is Mistral's tokenizer with the pattern llama3" : NULL);
        if (t)
            dt_tokenizer_free(t);
        dt_buffer_release(&text);
    }
    struct dt_tokenizer *t = load_kind(PATH, "tekken", NULL);
    dt_tokenizer_free(t);
    json_object_put(regex);
}

static void tokenizers_of_gguf_are_read(void **state)
{
    (void)state;
    write_gguf("t.gguf", "tokenizer.ggml.model=str:gpt2 tokenizer.ggml.pre=str:gpt-2 "
                         "tokenizer.ggml.tokens=str[]:a,b tokenizer.ggml.merges=str[]: ");
    struct dt_tokenizer *t = load_kind("t.gguf", NULL, NULL);
    assert_int_equal(dt_tokenizer_find(t, "b", 1), 1);
    dt_tokenizer_free(t);
    write_gguf("t.gguf", "general.name=str:x");
    load_kind("t.gguf", NULL, "has no tokenizer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_malformed_file_is_refused),
        cmocka_unit_test(malformed_unigrams_are_refused),
        cmocka_unit_test(scores_are_read_whatever_their_exponent),
        cmocka_unit_test(flags_may_be_null_or_missing),
        cmocka_unit_test(the_tokens_around_a_text_are_read),
        cmocka_unit_test(each_kind_is_read_or_refused),
        cmocka_unit_test(bytes_of_unigram_are_tokens),
        cmocka_unit_test(mistrals_tokens_with_another_pattern_are_refused),
        cmocka_unit_test(tokenizers_of_gguf_are_read),
        cmocka_unit_test(the_last_of_two_ids_of_a_token_counts),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
