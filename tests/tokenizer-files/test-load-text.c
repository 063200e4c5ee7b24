/* SPDX-License-Identifier: MIT */
/* Vocabularies without merges: lines of "BASE64 RANK", tekken.json and vocab.txt; what each
 * malformed one gives. */
#include "changed.h"

#include "encoding/base64.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"

static struct dt_error err;

/* Writes a file and loads it; the tokenizer, or NULL with an error that begins with the path and
 * then message. */
static struct dt_tokenizer *load(const char *path, const char *text, const char *pattern,
                                 const char *message)
{
    struct dt_tokenizer *t = NULL;
    size_t n = strlen(path);
    write_bytes(path, text, strlen(text));
    int rc = dt_tokenizer_load_with(&t, path, pattern, &err);
    if (rc == 0 && message == NULL)
        return t;
    if (rc == 0 || message == NULL || strncmp(err.text, path, n) != 0 ||
        strncmp(err.text + n, message, strlen(message)) != 0)
        fail_msg("'...%s': '%s', not '%s'", text + (strlen(text) > 40 ? strlen(text) - 40 : 0),
                 rc < 0 ? err.text : "", message ? message : "");
    return NULL;
}

static uint32_t id_of(const struct dt_tokenizer *t, const char *token)
{
    return dt_tokenizer_find(t, token, strlen(token));
}

/* --- lines of "BASE64 RANK" ------------------------------------------------------------------- */

/* The 256 bytes as tokens, each with before, between and after its Base64 and rank. */
static void add_bytes(struct dt_buffer *b, const char *before, const char *between,
                      const char *after)
{
    for (int i = 0; i < 256; i++) {
        const char byte = (char)i;
        dt_buffer_add_string(b, before);
        dt_base64_encode(&byte, 1, b);
        dt_buffer_printf(b, "%s%d%s", between, i, after);
    }
}

/* The same of lines: these and then more. */
static struct dt_tokenizer *load_lines(const char *more, const char *pattern, const char *message)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    add_bytes(&text, "", " ", "\n");
    dt_buffer_add_string(&text, more);
    struct dt_tokenizer *t = load("t.tiktoken", text.data, pattern, message);
    dt_buffer_release(&text);
    return t;
}

static void lines_of_ranks_are_read(void **state)
{
    static const char *const same[] = {"YWI= 256\n", "YWI= 256", "\n\r\nYWI= 256\r\n",
                                       "= 7\nYWI= 256"};
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct dt_tokenizer *t = load_lines(same[i], "gpt2", NULL);
        assert_int_equal(id_of(t, "b"), 'b');
        assert_int_equal(id_of(t, "ab"), 256);
        dt_tokenizer_free(t);
    }
}

static void malformed_lines_of_ranks_are_refused(void **state)
{
    static const char *const lines[] = {
        "YQ==",     "YQ== ",    "YQ==1",   "YQ 1",   "YQ== x",          "YQ== -1",
        "YQ== 1.5", "YQ== 1 2", "YQ== 1 ", "Y!== 1", "Y+/! 1",          " 1",
        "= ",       "YQ=a 1",   "=YQ= 1",  "==== 1", "YQ== 12345678901"};
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        load_lines(lines[i], "gpt2", ":257: expected 'BASE64 RANK'");
    load_lines("YWI= 0\n", "gpt2", ":257: id 0 has two tokens, '\\x00' and 'ab'");
    load_lines("YWI= 256\nYWI= 257\n", "gpt2", ":258: tokens 256 and 257 are both 'ab'");
    load_lines("YQ== 256\n", "gpt2", ":257: tokens 97 and 256 are both 'a'");
    load_lines("YWI= 9999999999\n", "gpt2", ":257: ");
    load_lines("", NULL, ": does not define a pre-tokenizer pattern");
    load("t.tiktoken", "YQ== 0\n", "gpt2", ": the byte 0x00 is not in the vocabulary");
    assert_true(dt_tokenizer_load(&(struct dt_tokenizer *){NULL}, "vocab.txt", &err) < 0);
    assert_int_equal(dt_tokenizer_load(&(struct dt_tokenizer *){NULL}, "none.tiktoken", &err),
                     DT_EIO);
}

/* --- tekken.json ------------------------------------------------------------------------------ */

#define TEKKEN "tekken.json"
#define SIZES  "\"default_num_special_tokens\":3,\"default_vocab_size\":261"

static struct dt_buffer tekken; /* a good one */

static int make_tekken(void **state)
{
    dt_buffer_add_string(&tekken,
                         "{\"config\":{\"pattern\":\"'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| "
                         "?\\\\p{N}+| ?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+\"," SIZES
                         "},\"vocab\":[");
    add_bytes(&tekken, "{\"token_bytes\":\"", "\",\"rank\":", "},");
    dt_buffer_add_string(&tekken, "{\"rank\":256,\"token_bytes\":\"YWI=\"},"
                                  "{\"rank\":257,\"token_bytes\":\"YWM=\"}],"
                                  "\"special_tokens\":[{\"rank\":1,\"token_str\":\"<s>\"},"
                                  "{\"rank\":2,\"token_str\":\"</s>\"}]}");
    return enter_scratch(state);
}

static int free_tekken(void **state)
{
    dt_buffer_release(&tekken);
    return leave_scratch(state);
}

#define CONTRADICT "\"default_vocab_size\" "

static const struct change refused[] = {
    {"\"config\":{", "\"config\":5,\"other\":{", "member \"config\" is not an object"},
    {"\"vocab\":[", "\"vocab\":5,\"other\":[", ""},
    {"\"default_num_special_tokens\":3,", "", "member \"default_num_special_tokens\" is missing"},
    {"\"default_vocab_size\":261", "\"x\":6", "member \"default_vocab_size\" is missing"},
    {SIZES, "\"default_num_special_tokens\":-1,\"default_vocab_size\":261", CONTRADICT "261"},
    {SIZES, "\"default_num_special_tokens\":3,\"default_vocab_size\":2", CONTRADICT "2"},
    {SIZES, "\"default_num_special_tokens\":3,\"default_vocab_size\":9999999",
     CONTRADICT "9999999"},
    {"\"special_tokens\":[", "\"special_tokens\":5,\"other\":[",
     "member \"special_tokens\" is not an array"},
    {"\"pattern\":\"'s|", "\"pattern\":\"", "the pattern 't|"},
    {"\"pattern\"", "\"patten\"", "member \"pattern\" is missing"},
    {"{\"rank\":1,\"token_str\":\"<s>\"}", "5", "special token 1: "},
    {"\"token_str\":\"<s>\"", "\"token_str\":5", "special token 1: member \"token_str\""},
    {"{\"rank\":1,\"token_str\"", "{\"token_str\"", "special token 1: member \"rank\" is missing"},
    {"{\"rank\":1,\"token_str\"", "{\"rank\":3,\"token_str\"",
     "special token 1: rank 3 is not below 3"},
    {"{\"rank\":1,\"token_str\"", "{\"rank\":-1,\"token_str\"",
     "special token 1: rank -1 is not below 3"},
    {"{\"rank\":1,\"token_str\"", "{\"rank\":2,\"token_str\"",
     "special token 2: id 2 has two tokens, '<s>' and '</s>'"},
    {"{\"rank\":256,\"token_bytes\":\"YWI=\"}", "null", "token 257: "},
    {"\"token_bytes\":\"YWI=\"", "\"token_bytes\":5", "token 257: member \"token_bytes\""},
    {"\"token_bytes\":\"YWI=\"", "\"token_bytes\":\"YQ\"", "token 257: expected a \"rank\" from 0"},
    {"{\"rank\":256", "{\"rank\":-1", "token 257: expected a \"rank\" from 0"},
    {"{\"rank\":256,", "{", "token 257: member \"rank\" is missing"},
    {"{\"rank\":257", "{\"rank\":256", "token 258: "},
    {"\"YWM=\"", "\"YWI=\"", "token 258: tokens 259 and 260 are both 'ab'"},
    {"\"YWM=\"", "\"PHM+\"", "token 258: tokens 1 and 260 are both '<s>'"},
    {"\"</s>\"", "\"<s>\"", "special token 2: tokens 1 and 2 are both '<s>'"},
    {"\"YQ==\",\"rank\":97", "\"YWQ=\",\"rank\":97", "the byte 0x61 is not in the vocabulary"},
};

static struct dt_tokenizer *load_tekken(const char *from, const char *to, const char *pattern)
{
    struct dt_tokenizer *t;
    write_changed(TEKKEN, tekken.data, from, to);
    if (dt_tokenizer_load_with(&t, TEKKEN, pattern, &err) < 0)
        fail_msg("%s", err.text);
    return t;
}

static void tekken_is_read(void **state)
{
    (void)state;
    struct dt_tokenizer *t = load_tekken("", "", NULL);
    assert_int_equal(id_of(t, "<SPECIAL_0>"), 0);
    assert_int_equal(id_of(t, "<s>"), 1);
    assert_int_equal(id_of(t, "ab"), 259);
    dt_tokenizer_free(t);
    t = load_tekken(SIZES, "\"default_num_special_tokens\":3,\"default_vocab_size\":259", "gpt2");
    assert_int_equal(id_of(t, "ab"), DT_NO_TOKEN);
    assert_int_equal(dt_tokenizer_size(t), 259);
    dt_tokenizer_free(t);
    t = load_tekken("\"special_tokens\"", "\"others\"", NULL);
    assert_int_equal(id_of(t, "<unk>"), 0);
    assert_int_equal(id_of(t, "</s>"), 2);
    dt_tokenizer_free(t);
    t = load_tekken("\"<s>\"", "\"<x>\"", NULL); /* nothing begins a text */
    assert_int_equal(id_of(t, "<x>"), 1);
    dt_tokenizer_free(t);
    write_changed(TEKKEN, tekken.data, SIZES,
                  "\"default_num_special_tokens\":22,\"default_vocab_size\":280");
    assert_int_equal(dt_tokenizer_load(&t, TEKKEN, &err), 0);
    assert_int_equal(id_of(t, "<SPECIAL_21>"), 21);
    dt_tokenizer_free(t);
}

static void malformed_tekken_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct dt_tokenizer *t;
        write_changed(TEKKEN, tekken.data, refused[i].from, refused[i].to);
        int rc = dt_tokenizer_load(&t, TEKKEN, &err);
        assert_message(&refused[i], TEKKEN, rc, &err);
    }
}

/* --- vocab.txt -------------------------------------------------------------------------------- */

#define VOCAB  "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##re\n"
#define CONFIG "tokenizer_config.json"

/* Whether "The" is one known token: of the lower case, unless the vocabulary has capitals. */
static bool lowers(const struct dt_tokenizer *t)
{
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_encoder *e = dt_encoder_new(t);
    dt_encoder_encode(e, "THE", 3, &ids);
    bool found = ids.count == 1 && ids.data[0] == id_of(t, "the");
    dt_encoder_free(e);
    dt_ids_release(&ids);
    return found;
}

static void lines_of_tokens_are_read(void **state)
{
    static const struct {
        const char *vocab, *config;
        bool lower;
    } cases[] = {
        {VOCAB, NULL, true},
        {VOCAB "Cap\n", NULL, false},
        {"[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nthe", NULL, true},
        {VOCAB, "{}", true},
        {VOCAB, "{\"do_lower_case\":false}", false},
        {VOCAB "Cap\n", "{\"do_lower_case\":true,\"strip_accents\":null}", true},
        {VOCAB, "{\"do_lower_case\":true,\"strip_accents\":false,\"tokenize_chinese_chars\":false}",
         true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        remove(CONFIG);
        if (cases[i].config)
            write_bytes(CONFIG, cases[i].config, strlen(cases[i].config));
        struct dt_tokenizer *t = load("vocab.txt", cases[i].vocab, NULL, NULL);
        assert_int_equal(lowers(t), cases[i].lower);
        assert_int_equal(id_of(t, "[SEP]"), 3);
        dt_tokenizer_free(t);
    }
    remove(CONFIG);
}

static void malformed_lines_of_tokens_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"[PAD]\n[CLS]\n[SEP]\n", ": does not contain the token [UNK], which WordPiece needs"},
        {"[UNK]\n[SEP]\n", ": does not contain the token [CLS], which WordPiece needs"},
        {"[UNK]\n\n[CLS]\n", ": token 1 is empty"},
        {"[UNK]\n[CLS]\n", ": does not contain the token [SEP], which WordPiece needs"},
        {VOCAB "a\nthe\n", ": tokens 5 and 8 are both 'the'"},
    };
    char path[sizeof scratch + 16];
    (void)state;
    snprintf(path, sizeof path, "%s/vocab.txt", scratch);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        load(path, cases[i][0], NULL, cases[i][1]);
    load(path, VOCAB, "gpt2", ": a WordPiece vocabulary takes no pattern: remove --pattern");
    write_bytes(CONFIG, "{\"do_lower_case\":\"no\"}", 22);
    load(path, VOCAB, NULL, ": ");
    assert_non_null(strstr(err.text, CONFIG ": member \"do_lower_case\" is not true or false"));
    write_bytes(CONFIG, "{", 1);
    load(path, VOCAB, NULL, ": ");
    remove(CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_ranks_are_read),
        cmocka_unit_test(malformed_lines_of_ranks_are_refused),
        cmocka_unit_test(tekken_is_read),
        cmocka_unit_test(malformed_tekken_is_refused),
        cmocka_unit_test(lines_of_tokens_are_read),
        cmocka_unit_test(malformed_lines_of_tokens_are_refused),
    };
    return cmocka_run_group_tests(tests, make_tekken, free_tekken);
}
