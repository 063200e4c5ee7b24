/* SPDX-License-Identifier: MIT */
/* Begin and end of texts and the chat template of a model's directory; what malformed files give.
 */
#include "gguf-of.h"

#include <string.h>

#include "formats/text-tokens.h"

static struct dt_text_tokens tokens;
static struct dt_error err;

static int read_file(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
    int rc = dt_text_tokens_read(&tokens, ".", 100, &err);
    remove(name);
    return rc;
}

static void malformed_files_are_refused(void **state)
{
    static const char *const cases[][3] = {
        {"config.json", "[]", "./config.json: is not a JSON object"},
        {"config.json", "{", "./config.json: byte 1: JSON text ends too early"},
        {"config.json", "{\"eos_token_id\":\"1\"}",
         "./config.json: eos_token_id is neither an integer nor a list"},
        {"config.json", "{\"eos_token_id\":[1,\"x\"]}",
         "./config.json: an id of eos_token_id is not an integer"},
        {"generation_config.json", "{\"eos_token_id\":[null]}",
         "./generation_config.json: an id of eos_token_id is not an integer"},
        {"config.json", "{\"eos_token_id\":[1,2,3,4,5,6,7,8,9]}",
         "./config.json: more than 8 ids in eos_token_id"},
        {"tokenizer_config.json", "{\"add_bos_token\":\"no\"}",
         "./tokenizer_config.json: member \"add_bos_token\" is not true or false"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int rc = read_file(cases[i][0], cases[i][1]);
        assert_string_equal(err.text, cases[i][2]);
        assert_int_equal(rc, DT_EFORMAT);
        dt_text_tokens_release(&tokens);
    }
}

static void ids_outside_of_the_vocabulary_are_none(void **state)
{
    (void)state;
    assert_int_equal(read_file("config.json", "{\"bos_token_id\":-1,\"eos_token_id\":[100,7]}"), 0);
    assert_true(tokens.bos == UINT32_MAX && tokens.end_count == 1 && tokens.ends[0] == 7);
    dt_text_tokens_release(&tokens);
    assert_int_equal(read_file("config.json", "{\"bos_token_id\":3,\"eos_token_id\":null}"), 0);
    assert_true(tokens.bos == 3 && tokens.end_count == 0 && tokens.adds_bos == -1);
    dt_text_tokens_release(&tokens);
}

static void gguf_files_have_keys_for_three_ends(void **state)
{
#define K "tokenizer.ggml."
    static const struct {
        const char *file;
        int count;
        uint32_t ends[3];
    } cases[] = {
        {"general.name=str:x", 0, {0}},
        {K "eos_token_id=u32:7", 1, {7}},
        {K "eot_token_id=u32:8", 1, {8}},
        {K "eom_token_id=u32:9 " K "eot_token_id=u32:8 " K "eos_token_id=u32:7", 3, {7, 8, 9}},
        {K "eos_token_id=u32:7 " K "eot_token_id=u32:7 " K "eom_token_id=u32:100", 1, {7}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_gguf("m.gguf", cases[i].file);
        assert_int_equal(dt_text_tokens_read(&tokens, "m.gguf", 100, &err), 0);
        assert_int_equal(tokens.end_count, cases[i].count);
        assert_memory_equal(tokens.ends, cases[i].ends,
                            (size_t)cases[i].count * sizeof *tokens.ends);
        dt_text_tokens_release(&tokens);
    }
    write_gguf("m.gguf", K "eot_token_id=str:x");
    assert_int_equal(dt_text_tokens_read(&tokens, "m.gguf", 100, &err), DT_EFORMAT);
    dt_text_tokens_release(&tokens);
#undef K
}

static void a_list_of_templates_has_a_default(void **state)
{
    static const char *const cases[][2] = {
        {"\"x\"", "x"},
        {"[{\"name\":\"tools\",\"template\":\"t\"},{\"name\":\"default\",\"template\":\"d\"}]",
         "d"},
        {"[{\"name\":null,\"template\":\"t\"}]", NULL},
        {"[{\"name\":\"default\",\"template\":null}]", NULL},
        {"[{\"name\":\"default\",\"template\":5}]", NULL},
        {"[{\"name\":\"default\"},7,null]", NULL},
        {"{}", NULL},
        {"null", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"chat_template\":%s,\"add_bos_token\":true}", cases[i][0]);
        assert_int_equal(read_file("tokenizer_config.json", text), 0);
        assert_int_equal(tokens.adds_bos, 1);
        if (cases[i][1])
            assert_string_equal(tokens.chat_template, cases[i][1]);
        else
            assert_null(tokens.chat_template);
        dt_text_tokens_release(&tokens);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_files_are_refused),
        cmocka_unit_test(ids_outside_of_the_vocabulary_are_none),
        cmocka_unit_test(gguf_files_have_keys_for_three_ends),
        cmocka_unit_test(a_list_of_templates_has_a_default),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
