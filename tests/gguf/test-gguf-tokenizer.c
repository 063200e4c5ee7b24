/* SPDX-License-Identifier: MIT */
/* Tokenizers of GGUF files: tokenizer.json to GGUF and back, and what is refused. */
#include "gguf-of.h"

#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "gguf/gguf-tokenizer.h"

static struct dt_error err;
static const char path[] = "t.gguf", *name = "tiny"; /* of the model */

/* Writes a file without tensors that holds the tokenizer. */
static int write_file(const char *text, long size)
{
    struct dt_gguf_values v = {DT_BUFFER_EMPTY, 0};
    struct dt_buffer file = DT_BUFFER_EMPTY;
    struct json_object *json;
    assert_int_equal(dt_json_parse(text, strlen(text), "text", &json, &err), 0);
    int rc = dt_gguf_tokenizer_write(&v, json, size, name, "text", &err);
    dt_gguf_add_number(&file, DT_GGUF_MAGIC, 4);
    dt_gguf_add_number(&file, DT_GGUF_VERSION, 4);
    dt_gguf_add_number(&file, 0, 8);
    dt_gguf_add_number(&file, v.count, 8);
    dt_buffer_append(&file, v.bytes.data ? v.bytes.data : "", v.bytes.size);
    rc = rc < 0 ? rc : dt_file_write(path, file.data, file.size, &err);
    dt_buffer_release(&v.bytes);
    dt_buffer_release(&file);
    json_object_put(json);
    return rc;
}

/* The tokenizer of the file, as compact JSON. */
static char *read_back(void)
{
    struct json_object *json;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    if (dt_gguf_tokenizer_load(path, &json, &err) < 0)
        fail_msg("%s", err.text);
    dt_json_add_value(&text, json, DT_JSON_COMPACT);
    json_object_put(json);
    return text.data;
}

static void assert_kept(const char *text, const char *const *parts)
{
    assert_int_equal(write_file(text, 6), 0);
    char *back = read_back();
    for (; *parts; parts++)
        if (strstr(back, *parts) == NULL)
            fail_msg("%s is not in %s", *parts, back);
    free(back);
}

static void assert_refused(const char *text, const char *reason)
{
    assert_true(write_file(text, 6) < 0);
    if (strstr(err.text, reason) == NULL)
        fail_msg("'%s', not '%s'", err.text, reason);
}

#define VOCABULARY "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"<|endoftext|>\":3}"
#define ADDED      "\"added_tokens\":[{\"id\":3,\"content\":\"<|endoftext|>\",\"special\":true}],"
#define GPT2                                                                                       \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true}"
#define NO_REGEX                                                                                   \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":"      \
    "false}"
#define MODEL(more) "\"model\":{\"type\":\"BPE\"," more VOCABULARY ",\"merges\":[\"a b\"]}"
#define QWEN                                                                                       \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| "              \
    "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(regex)                                                                               \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"        \
    "\"" regex "\"},\"behavior\":\"Isolated\",\"invert\":false}," NO_REGEX "]}"

static void byte_level_tokenizers_are_kept(void **state)
{
    (void)state;
    assert_kept("{" ADDED "\"pre_tokenizer\":" GPT2 "," MODEL("") "}",
                (const char *[]){"\"merges\":[\"a b\"]", VOCABULARY, "\"pre_tokenizer\":" GPT2,
                                 "\"ignore_merges\":false", "\"special\":true", NULL});
    assert_kept("{" ADDED "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":" SPLIT(
                    QWEN) "," MODEL("") "}",
                (const char *[]){"{\"type\":\"NFC\"}", "\"pre_tokenizer\":" SPLIT(QWEN), NULL});
    assert_kept("{" ADDED "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
                "\"Digits\",\"individual_digits\":true}," GPT2 "]}," MODEL("") "}",
                (const char *[]){"{\"type\":\"Digits\",\"individual_digits\":true}", NULL});
}

static void a_normalizer_is_kept_whatever_the_pre_tokenizer(void **state)
{
    static const char *const pres[] = {SPLIT(QWEN), GPT2};
    (void)state;
    for (int i = 0; i < 4; i++) {
        char *text = dt_asprintf("{" ADDED "%s\"pre_tokenizer\":%s," MODEL("") "}",
                                 i % 2 ? "\"normalizer\":{\"type\":\"NFC\"}," : "", pres[i / 2]);
        assert_int_equal(write_file(text, 6), 0);
        char *back = read_back();
        assert_int_equal(strstr(back, "NFC") != NULL, i % 2);
        free(back);
        free(text);
    }
}

static void pre_tokenizers_that_llama_cpp_lacks_are_refused(void **state)
{
    const char *reason = "llama.cpp has no pre-tokenizer with its normalizer, pre_tokenizer and";
    (void)state;
    assert_refused("{" ADDED "\"pre_tokenizer\":" SPLIT("a") "," MODEL("") "}", reason);
    assert_refused("{" ADDED "\"pre_tokenizer\":" NO_REGEX "," MODEL("") "}", reason);
    assert_refused("{" ADDED "\"pre_tokenizer\":" GPT2 "," MODEL("\"ignore_merges\":true,") "}",
                   reason);
    assert_refused("{" ADDED "\"normalizer\":{\"type\":\"Lowercase\"},\"pre_tokenizer\":" GPT2
                   "," MODEL("") "}",
                   reason);
    assert_refused("{" ADDED "\"pre_tokenizer\":{\"type\":\"Whitespace\"}," MODEL("") "}", reason);
    assert_refused("{" MODEL("") "}", reason);
    assert_refused("{\"model\":{\"type\":\"Unigram\"}}", "only BPE can be written to GGUF");
    assert_refused("{\"added_tokens\":[{\"id\":9,\"content\":\"x\"}],\"pre_tokenizer\":" GPT2
                   "," MODEL("") "}",
                   "token 'x' has id 9, the model only 6 tokens");
}

static void added_tokens_that_take_white_space_are_those_of_llama_cpp(void **state)
{
    static const char rest[] = ",\"content\":\"b\"}],\"pre_tokenizer\":" GPT2 "," MODEL("") "}";
    static const struct {
        const char *flag, *name;
        bool kept;
    } cases[] = {{"single_word", "Phi-3", false},
                 {"lstrip", "Phi-3", false},
                 {"rstrip", "Phi-2", false},
                 {"rstrip", "my Phi-3.5-mini", true},
                 {"rstrip", "phi3", true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = dt_asprintf("{\"added_tokens\":[{\"id\":1,\"%s\":true%s", cases[i].flag, rest);
        name = cases[i].name;
        if (cases[i].kept)
            assert_int_equal(write_file(text, 6), 0);
        else
            assert_refused(text, "the added token 'b' has single_word, lstrip or rstrip, which");
        free(text);
    }
    name = "tiny";
}

#define PIECES "\"vocab\":{\"<unk>\":0,\"<0x0A>\":1,\"a\":2,\"b\":3,\"ab\":4,\"\xe2\x96\x81\":5}"
#define SPACES                                                                                     \
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"    \
    "\"\xe2\x96\x81\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":"          \
    "\"\xe2\x96\x81\"}]}"
#define CHARACTERS(merges)                                                                         \
    "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"unk_token\":\"<unk>\"," PIECES           \
    ",\"merges\":" merges "}"

static void sentencepiece_tokenizers_are_kept(void **state)
{
    (void)state;
    assert_kept("{" SPACES "," CHARACTERS("[[\"a\",\"b\"]]") "}",
                (const char *[]){SPACES, PIECES, "\"merges\":[[\"a\",\"b\"]]",
                                 "\"byte_fallback\":true", "\"unk_token\":\"<unk>\"",
                                 "{\"type\":\"ByteFallback\"}", NULL});
    assert_refused("{" SPACES "," CHARACTERS("[]") "}", "its merges are not those of scores");
    assert_refused("{\"normalizer\":{\"type\":\"NFKC\"}," CHARACTERS("[[\"a\",\"b\"]]") "}",
                   "llama.cpp has no tokenizer with its normalizer");
}

/* Replaces text in the file by text of the same length. */
static void replace(const char *from, const char *to)
{
    char *file;
    size_t size;
    assert_int_equal(dt_file_read(path, 1 << 20, &file, &size, &err), 0);
    char *at = memmem(file, size, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    assert_int_equal(dt_file_write(path, file, size, &err), 0);
    free(file);
}

static void unknown_kinds_are_refused_by_name(void **state)
{
    struct json_object *json;
    (void)state;
    assert_int_equal(write_file("{" ADDED "\"pre_tokenizer\":" GPT2 "," MODEL("") "}", 6), 0);
    replace("gpt-2", "bloom");
    assert_int_equal(dt_gguf_tokenizer_load(path, &json, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "tokenizer.ggml.pre 'bloom' is not a pre-tokenizer"));
    replace("gpt2", "rwkv");
    assert_int_equal(dt_gguf_tokenizer_load(path, &json, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "tokenizer.ggml.model 'rwkv' is not known"));
    replace("tokenizer.ggml.model", "tokenizer.ggml.modex");
    assert_int_equal(dt_gguf_tokenizer_load(path, &json, &err), DT_EMISSING);
    assert_null(json);
}

/* --- files of others --------------------------------------------------------------------------*/

#define K "tokenizer.ggml."
/* clang-format off */
#define BYTES  K "model=str:gpt2 " K "pre=str:gpt-2 " K "merges=str[]: "
#define SCORED K "model=str:llama " K "scores=f32[]:0,-1,-2,0 "
#define TOKENS K "tokens=str[]:a,b,ab,end " K "token_type=i32[]:1,4,1,3 "
#define STRIP  "{\"type\":\"Strip\""
#define AROUND "\"single\":[{\"SpecialToken\":{\"id\":\"end\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\""

static const struct {
    const char *file;
    const char *part; /* of the JSON */
} readable[] = {
    {BYTES TOKENS, "{\"id\":3,\"content\":\"end\""},
    {BYTES K "tokens=str[]:a", "\"added_tokens\":[]"},
    {BYTES K "tokens=str[]:a,b " K "token_type=i32[]:1,5", "\"vocab\":{\"a\":0}"},
    {BYTES TOKENS K "add_bos_token=bool:1 " K "bos_token_id=u32:3", AROUND},
    {BYTES TOKENS K "add_bos_token=bool:1", "\"added_tokens\""},
    {BYTES TOKENS K "add_bos_token=bool:1 " K "bos_token_id=i32:-1", "\"added_tokens\""},
    {BYTES TOKENS K "add_bos_token=bool:1 " K "add_eos_token=bool:1 " K "eos_token_id=u32:3",
     "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"end\""},
    {BYTES TOKENS K "add_eos_token=bool:1 " K "add_bos_token=bool:1 " K "bos_token_id=u32:3", AROUND},
    {BYTES TOKENS K "add_eos_token=bool:1", "\"added_tokens\""},
    {BYTES TOKENS K "bos_token_id=u32:0 " K "add_eos_token=bool:1 " K "eos_token_id=u32:3",
     "\"single\":[{\"Sequence\":{\"id\":\"A\""},
    {K "model=str:gpt2 " K "merges=str[]:a,b " K "pre=str:qwen2 " TOKENS, "\"merges\":[\"a\",\"b\"]"},
    {K "model=str:gpt2 " K "merges=str[]: " K "pre=str:llama-bpe " TOKENS K "bos_token_id=u32:3", AROUND},
    {K "model=str:gpt2 " K "merges=str[]: " K "pre=str:llama3 " TOKENS, "\"ignore_merges\":true"},
    {K "model=str:gpt2 " K "merges=str[]: " K "pre=str:glm4 " TOKENS, "\"ignore_merges\":false"},
    {SCORED TOKENS K "bos_token_id=u32:3", AROUND},
    {SCORED TOKENS, STRIP},
    {SCORED TOKENS, "\"content\":\"end\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false"},
    {SCORED TOKENS "general.name=str:Phi-3-mini", "\"content\":\"end\",\"single_word\":false,\"lstrip\":false,\"rstrip\":true"},
    {SCORED "general.name=str:Phi3 " K "tokens=str[]:a,<s>,ab,end " K "token_type=i32[]:1,3,1,3",
     "\"content\":\"<s>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false"},
    {K "model=str:gpt2 " K "merges=str[]: " K "pre=str:jina-v2-es " K "tokens=str[]:<mask>,b " K "token_type=i32[]:3,3",
     "\"content\":\"<mask>\",\"single_word\":false,\"lstrip\":true,\"rstrip\":false"},
    {BYTES "general.name=str:Modern-BERT " K "tokens=str[]:[MASK],b " K "token_type=i32[]:3,3",
     "\"content\":\"[MASK]\",\"single_word\":false,\"lstrip\":true,\"rstrip\":false"},
    {SCORED TOKENS K "unknown_token_id=u32:3", "\"unk_token\":\"end\""},
    {SCORED TOKENS K "add_space_prefix=bool:0", "\"unk_token\":\"<unk>\""},
};

static const struct {
    const char *file, *message;
} unreadable[] = {
    {K "model=u32:1", "t.gguf: tokenizer.ggml.model must be a string"},
    {BYTES, "t.gguf: tokenizer: tokenizer.ggml.tokens is missing"},
    {BYTES TOKENS "dt.tokenizer.normalizer=u32:1", "t.gguf: dt.tokenizer.normalizer must be a string"},
    {BYTES TOKENS "dt.tokenizer.normalizer=str:NFKC", "t.gguf: tokenizer: dt.tokenizer.normalizer must be NFC or none"},
    {BYTES K "tokens=i32[]:1", "t.gguf: tokenizer.ggml.tokens must be an array of strings"},
    {BYTES K "tokens=str[]:a " K "token_type=str[]:a", "t.gguf: tokenizer.ggml.token_type must be an array"},
    {BYTES K "tokens=str[]:a " K "scores=i32[]:1", "t.gguf: tokenizer.ggml.scores must be an array"},
    {BYTES K "tokens=str[]:a " K "scores=f32[]:1,2", "t.gguf: tokenizer: tokens, scores and types differ in number"},
    {BYTES K "tokens=str[]:a " K "token_type=i32[]:1,2", "t.gguf: tokenizer: tokens, scores and types differ in number"},
    {BYTES K "tokens=str[]:a " K "token_type=i32[]:0", "t.gguf: tokenizer: a token is of an unknown type"},
    {BYTES K "tokens=str[]:a " K "token_type=i32[]:7", "t.gguf: tokenizer: a token is of an unknown type"},
    {BYTES K "tokens=str[]:a,,b", "t.gguf: tokenizer: a token is empty or has a zero byte"},
    {BYTES K "tokens=str[]:a,b~c", "t.gguf: tokenizer: a token is empty or has a zero byte"},
    {BYTES K "tokens=str[]:a,a", "t.gguf: tokenizer: a token is given twice"},
    {BYTES TOKENS K "add_bos_token=str:yes", "t.gguf: tokenizer.ggml.add_bos_token must be an integer"},
    {BYTES TOKENS K "add_eos_token=str:yes", "t.gguf: tokenizer.ggml.add_eos_token must be an integer"},
    {BYTES TOKENS K "bos_token_id=u32:4", "t.gguf: tokenizer.ggml.bos_token_id is not a token"},
    {BYTES TOKENS K "eos_token_id=i32:-2", "t.gguf: tokenizer.ggml.eos_token_id is not a token"},
    {BYTES TOKENS K "eos_token_id=f32:0", "t.gguf: tokenizer.ggml.eos_token_id must be an integer"},
    {K "model=str:gpt2 " K "pre=u32:1 " TOKENS, "t.gguf: tokenizer.ggml.pre must be a string"},
    {BYTES TOKENS "general.name=u32:1", "t.gguf: general.name must be a string"},
    {K "model=str:gpt2 " K "pre=str:gpt-2 " TOKENS, "t.gguf: tokenizer: tokenizer.ggml.merges is missing"},
    {K "model=str:gpt2 " K "pre=str:gpt-2 " K "merges=f32[]:1 " TOKENS, "t.gguf: tokenizer.ggml.merges must be an array of strings"},
    {K "model=str:gpt2 " K "pre=str:0123456789012345678901234567890123456789012345678901234567890123xyz " TOKENS,
     "t.gguf: tokenizer.ggml.pre '0123456789012345678901234567890123456789012345678901234567890123' is not"},
    {K "model=str:0123456789012345678901234567890123456789012345678901234567890123xyz " TOKENS,
     "t.gguf: tokenizer.ggml.model '0123456789012345678901234567890123456789012345678901234567890123' is not"},
    {K "model=str:llama " TOKENS, "t.gguf: tokenizer: tokenizer.ggml.scores is missing"},
    {K "model=str:llama " K "scores=f32[]:0,nan,-2,0 " TOKENS, "t.gguf: tokenizer: a score is NaN"},
    {SCORED TOKENS K "add_space_prefix=str:yes", "t.gguf: tokenizer.ggml.add_space_prefix must be an integer"},
    {SCORED TOKENS K "unknown_token_id=u32:9", "t.gguf: tokenizer.ggml.unknown_token_id is not a token"},
    {"general.name=str:x", "t.gguf: has no tokenizer: name one with --tokenizer"},
};
/* clang-format on */

static void files_of_others_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
        write_gguf(path, readable[i].file);
        char *text = read_back();
        if (strstr(text, readable[i].part) == NULL)
            fail_msg("%s: %s is not in %s", readable[i].file, readable[i].part, text);
        free(text);
    }
}

static void files_that_contradict_themselves_are_refused(void **state)
{
    struct json_object *json;
    (void)state;
    for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
        const char *message = unreadable[i].message;
        write_gguf(path, unreadable[i].file);
        assert_true(dt_gguf_tokenizer_load(path, &json, &err) < 0);
        if (strncmp(err.text, message, strlen(message)) != 0)
            fail_msg("%s: '%s', not '%s'", unreadable[i].file, err.text, message);
        assert_null(json);
    }
    remove(path);
    assert_true(dt_gguf_tokenizer_load(path, &json, &err) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level_tokenizers_are_kept),
        cmocka_unit_test(a_normalizer_is_kept_whatever_the_pre_tokenizer),
        cmocka_unit_test(pre_tokenizers_that_llama_cpp_lacks_are_refused),
        cmocka_unit_test(added_tokens_that_take_white_space_are_those_of_llama_cpp),
        cmocka_unit_test(sentencepiece_tokenizers_are_kept),
        cmocka_unit_test(unknown_kinds_are_refused_by_name),
        cmocka_unit_test(files_of_others_are_read),
        cmocka_unit_test(files_that_contradict_themselves_are_refused),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
