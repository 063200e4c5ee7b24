/* SPDX-License-Identifier: MIT */
/* Tokenizers of GGUF files: tokenizer.json to GGUF and back, and what is refused. */
#include "scratch.h"

#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "gguf/gguf-tokenizer.h"

static struct dt_error err;
static const char path[] = "t.gguf";

/* Writes a file without tensors that holds the tokenizer. */
static int write_file(const char *text, long size)
{
    struct dt_gguf_values v = {DT_BUFFER_EMPTY, 0};
    struct dt_buffer file = DT_BUFFER_EMPTY;
    struct json_object *json;
    assert_int_equal(dt_json_parse(text, strlen(text), "text", &json, &err), 0);
    int rc = dt_gguf_tokenizer_write(&v, json, size, "text", &err);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level_tokenizers_are_kept),
        cmocka_unit_test(pre_tokenizers_that_llama_cpp_lacks_are_refused),
        cmocka_unit_test(sentencepiece_tokenizers_are_kept),
        cmocka_unit_test(unknown_kinds_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
