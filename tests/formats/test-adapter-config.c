/* SPDX-License-Identifier: MIT */
/* adapter_config.json and base_model.json: what is read, refused and written. test-adapter.c
 * computes with adapters. */
#include "changed.h"

#include <stdlib.h>

#include "base/path.h"
#include "formats/adapter.h"

static struct dt_error err;
static const char config_path[] = "a/" DT_ADAPTER_CONFIG_FILE;

#define CONFIG                                                                                     \
    "{\"peft_type\":\"LORA\",\"base_model_name_or_path\":\"base\",\"r\":4,\"lora_alpha\":8,"       \
    "\"lora_dropout\":0.5,\"target_modules\":[\"q_proj\",\"v_proj\"],\"use_rslora\":true,"         \
    "\"bias\":\"none\"}"
#define LONG "0123456789012345678901234567890123456789012345678901234567890123456789"

static int prepare(void **state)
{
    return enter_scratch(state) < 0 ? -1 : dt_file_make_directories("a", &err);
}

static void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

static void members_are_read_or_refused(void **state)
{
    static const char other[] = "'bias' has a value with which dt does not compute adapters";
    static const char list[] = "target_modules must be a list of names";
    static const struct change changes[] = {
        {"\"LORA\"", "\"IA3\"", "'peft_type' has a value with which dt does not compute adapters"},
        {"\"LORA\"", "1", "'peft_type' has a value with which dt does not compute adapters"},
        {"\"none\"", "\"all\"", other},
        {"\"none\"", "1", other},
        {"\"none\"", "true", other},
        {"\"none\"", "[1]", other},
        {"\"none\"", "{\"q_proj\":8}", other},
        {"\"none\"", "[]", NULL},
        {"\"none\"", "{}", NULL},
        {"\"none\"", "null", NULL},
        {"\"none\"", "false", NULL},
        {"\"bias\"", "\"task_type\"", NULL},
        {"\"bias\":\"none\"", "\"init_lora_weights\":\"gaussian\"", NULL},
        {"\"bias\":\"none\"", "\"init_lora_weights\":true", NULL},
        {"\"bias\":\"none\"", "\"init_lora_weights\":\"pissa\"", "'init_lora_weights' has a value"},
        {"[\"q_proj\",\"v_proj\"]", "\"all-linear\"", NULL},
        {"[\"q_proj\",\"v_proj\"]", "\"q_proj\"", list},
        {"[\"q_proj\",\"v_proj\"]", "{}", list},
        {"\"q_proj\"", "1", list},
        {"q_proj", "q_proj,k_proj", list},
        {"q_proj", LONG LONG LONG LONG, "target_modules: its names have more than 255 bytes"},
        {"\"r\":4", "\"r\":0", "r is 0, and must be from 1 to 16384"},
        {"\"r\":4", "\"r\":16385", "r is 16385, and must be from 1 to 16384"},
        {"\"r\":4", "\"r\":\"4\"", "member \"r\" is not"},
        {"\"lora_alpha\":8", "\"lora_alpha\":\"8\"", "member \"lora_alpha\" is not"},
        {"0.5", "\"0.5\"", "member \"lora_dropout\" is not"},
        {"\"lora_dropout\":0.5,", "", NULL},
        {"\"use_rslora\":true,", "", NULL},
        {"true", "\"no\"", "member \"use_rslora\" is not"},
        {CONFIG, "[]", "is not a JSON object"},
        {CONFIG, "{", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const struct change *c = &changes[i];
        struct dt_lora lora;
        char *base;
        write_changed(config_path, CONFIG, c->from, c->to);
        int rc = dt_adapter_read_config("a", &lora, &base, &err);
        if (c->message)
            assert_message(c, config_path, rc, &err);
        else if (rc < 0)
            fail_msg("'%s' for '%s': %s", c->to, c->from, err.text);
        else
            assert_string_equal(base, "base");
        free(base);
    }
}

static void members_have_their_values(void **state)
{
    struct dt_lora lora;
    char *base;
    (void)state;
    write_text(config_path, CONFIG);
    assert_int_equal(dt_adapter_read_config("a", &lora, NULL, &err), 0);
    assert_int_equal(lora.rank, 4);
    assert_true(lora.alpha == 8 && lora.dropout == 0.5 && lora.rslora);
    assert_string_equal(lora.targets, "q_proj,v_proj");
    write_changed(config_path, CONFIG, "\"base\"", "null");
    assert_int_equal(dt_adapter_read_config("a", &lora, &base, &err), 0);
    assert_null(base);
}

/* --- the base model --------------------------------------------------------------------------- */

static void find_base(int expected, const char *message)
{
    char *base;
    int rc = dt_adapter_find_base("a", &base, &err);
    if (rc != expected || (rc < 0 && strstr(err.text, message) == NULL))
        fail_msg("%d '%s', not '%s'", rc, rc < 0 ? err.text : "", message);
    assert_true((base == NULL) == (rc < 0));
    free(base);
}

static void the_base_model_is_there_and_no_adapter(void **state)
{
    (void)state;
    write_text(config_path, CONFIG);
    find_base(DT_EMISSING, "a: is an adapter of the model 'base', which is not there: name");
    write_text("base", "a file of GGUF");
    find_base(0, "");
    remove("base");
    assert_int_equal(dt_file_make_directories("base", &err), 0);
    find_base(0, "");
    write_text("base/" DT_ADAPTER_CONFIG_FILE, CONFIG);
    find_base(DT_EINVALID, "a: is an adapter of 'base', which is one too: merge that with");
    write_text("base/model.safetensors", "");
    find_base(0, "");
    remove("base/model.safetensors");
    write_text("base/model.safetensors.index.json", "");
    find_base(0, "");
    remove("base/model.safetensors.index.json");
    static const char *const files[] = {"base/model.safetensors.index.json",
                                        "base/model.safetensors", "base/" DT_ADAPTER_CONFIG_FILE};
    for (int i = 0; i < 3; i++) { /* each is looked for before the one before */
        remove(files[i]);
        assert_int_equal(symlink("nothing", files[i]), 0);
        find_base(DT_EIO, files[i]);
    }
    assert_int_equal(dt_file_remove_tree("base", &err), 0);
    write_changed(config_path, CONFIG, "\"base\"", "null");
    find_base(DT_EMISSING, "a: is an adapter of the model '', which is not there");
    write_text(config_path, "{");
    find_base(DT_EFORMAT, config_path);
}

/* peft may write its files beside those of a model. */
static void a_directory_is_a_model_or_an_adapter(void **state)
{
    static const char model[] = "both/model.safetensors";
    static const char weights[] = "both/" DT_ADAPTER_WEIGHTS_FILE;
    (void)state;
    assert_int_equal(dt_adapter_probe("both", &err), 0);
    assert_int_equal(dt_file_make_directories("both", &err), 0);
    assert_int_equal(dt_adapter_probe("both", &err), 0);
    write_text("both/" DT_ADAPTER_CONFIG_FILE, CONFIG);
    assert_int_equal(dt_adapter_probe("both", &err), 1);
    write_text(weights, "");
    assert_int_equal(dt_adapter_probe("both", &err), 1);
    write_text(model, "");
    assert_int_equal(dt_adapter_probe("both", &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "both: has a model and an adapter, and it is not clear"));
    remove(weights);
    assert_int_equal(dt_adapter_probe("both", &err), 0); /* the model */
    assert_int_equal(symlink("nothing", weights), 0);
    assert_int_equal(dt_adapter_probe("both", &err), DT_EIO);
    assert_non_null(strstr(err.text, weights));
    assert_int_equal(dt_file_remove_tree("both", &err), 0);
}

static void another_base_model_is_refused_by_its_hash(void **state)
{
    static const char path[] = "a/" DT_ADAPTER_BASE_FILE;
    (void)state;
    assert_int_equal(dt_adapter_check_base("a", 0x123, &err), 0);
    write_text(path, "{\"parameters\":\"0000000000000123\"}");
    assert_int_equal(dt_adapter_check_base("a", 0x123, &err), 0);
    assert_int_equal(dt_adapter_check_base("a", 0x124, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "the hash 0000000000000123, and those given have "
                                     "0000000000000124: the base model is another one"));
    write_text(path, "{\"parameters\":1}");
    assert_int_equal(dt_adapter_check_base("a", 0x123, &err), DT_EFORMAT);
    write_text(path, "{");
    assert_int_equal(dt_adapter_check_base("a", 0x123, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, path));
    remove(path);
}

/* --- writing, and merging --------------------------------------------------------------------- */

static struct dt_model_config model_of(enum dt_family family)
{
    struct dt_model_config c = {.family = family,
                                .vocab_size = 8,
                                .max_seq_len = 8,
                                .hidden_size = 8,
                                .num_layers = 1,
                                .num_heads = 2,
                                .num_kv_heads = 2,
                                .intermediate_size = 8,
                                .layer_norm_epsilon = 1e-5,
                                .rope_theta = 10000,
                                .tie_word_embeddings = true,
                                .lora = {.rank = 2, .alpha = 4, .targets = DT_LORA_ALL}};
    if (dt_model_config_check(&c, "model", &err) < 0)
        fail_msg("%s", err.text);
    return c;
}

static void assert_written(struct dt_model_config *c, const char *targets, const char *part)
{
    struct dt_lora lora;
    char *base, *here = dt_path_real("."), *text;
    size_t size;
    assert_int_equal(dt_adapter_write_config("a", c, ".", 0x123, &err), 0);
    assert_int_equal(dt_adapter_check_base("a", 0x123, &err), 0);
    assert_int_equal(dt_adapter_read_config("a", &lora, &base, &err), 0);
    assert_string_equal(base, here);
    assert_int_equal(lora.rank, c->lora.rank);
    assert_true(lora.alpha == c->lora.alpha && lora.dropout == c->lora.dropout);
    assert_string_equal(lora.targets, targets);
    assert_int_equal(dt_file_read(config_path, 1 << 16, &text, &size, &err), 0);
    if (strstr(text, part) == NULL)
        fail_msg("%s is not in %s", part, text);
    free(text);
    free(here);
    free(base);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct dt_model_config llama = model_of(DT_FAMILY_LLAMA), gpt2 = model_of(DT_FAMILY_GPT2),
                           neox = model_of(DT_FAMILY_GPT_NEOX), bert = model_of(DT_FAMILY_BERT);
    assert_written(&llama, "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj",
                   "\"task_type\": \"CAUSAL_LM\"");
    assert_written(&gpt2, "c_attn,c_proj,c_fc", "\"fan_in_fan_out\": true");
    assert_written(&neox, "query_key_value,attention.dense,dense_h_to_4h,dense_4h_to_h",
                   "\"fan_in_fan_out\": false");
    assert_written(&bert, "query,key,value,attention.output.dense,intermediate.dense,output.dense",
                   "\"task_type\": null");
    llama.lora = (struct dt_lora){.rank = 2, .alpha = 0.1, .dropout = 0.25};
    strcpy(llama.lora.targets, "v_proj,q_proj,v_proj");
    assert_written(&llama, "v_proj,q_proj", "\"lora_alpha\": 0.1");
    assert_int_equal(dt_adapter_write_config("none", &llama, ".", 0x123, &err), DT_EIO);
}

static void each_part_of_an_adapter_is_needed_to_merge_it(void **state)
{
    struct dt_model_config c = model_of(DT_FAMILY_LLAMA);
    struct dt_table t;
    (void)state;
    dt_table_init(&t, &c, NULL);
    float *parameters = dt_alloc((size_t)t.elements, sizeof *parameters);
    remove("a/" DT_ADAPTER_BASE_FILE);
    write_text(config_path, "{");
    assert_int_equal(dt_adapter_merge("a", &c, &t, parameters, &err), DT_EFORMAT);
    write_changed(config_path, CONFIG, "q_proj", "x_proj");
    assert_int_equal(dt_adapter_merge("a", &c, &t, parameters, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "'x_proj' is not a linear map"));
    write_text(config_path, CONFIG);
    assert_true(dt_adapter_merge("a", &c, &t, parameters, &err) < 0);
    assert_non_null(strstr(err.text, DT_ADAPTER_WEIGHTS_FILE));
    write_text("a/" DT_ADAPTER_BASE_FILE, "{\"parameters\":\"0000000000000123\"}");
    assert_int_equal(dt_adapter_merge("a", &c, &t, parameters, &err), DT_EINVALID);
    dt_table_release(&t);
    free(parameters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_read_or_refused),
        cmocka_unit_test(members_have_their_values),
        cmocka_unit_test(the_base_model_is_there_and_no_adapter),
        cmocka_unit_test(a_directory_is_a_model_or_an_adapter),
        cmocka_unit_test(another_base_model_is_refused_by_its_hash),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(each_part_of_an_adapter_is_needed_to_merge_it),
    };
    return cmocka_run_group_tests(tests, prepare, leave_scratch);
}
