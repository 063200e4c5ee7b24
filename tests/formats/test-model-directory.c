/* SPDX-License-Identifier: MIT */
/* Model directories: saving and loading, configurations of transformers, damaged files. */
#include "scratch.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "formats/safetensors-export.h"
#include "model/tiny-models.h"

static int set_up(void **state)
{
    return make_scratch(state) < 0 ? -1 : open_device(state);
}

static int tear_down(void **state)
{
    close_device(state);
    return remove_scratch(state);
}

static void check_saving(const struct dt_model_config *config)
{
    struct dt_model *m = new_model_of(config), *again;
    assert_int_equal(dt_model_export(m, DT_DTYPE_F32, 0, 18, NULL, scratch, &err), 0);
    assert_int_equal(dt_model_load(&again, dev, scratch, &err), 0);
    assert_memory_equal(&again->config, &m->config, sizeof m->config);
    assert_memory_equal(again->parameters, m->parameters,
                        (size_t)m->table.elements * sizeof *m->parameters);
    dt_model_free(again);
    dt_model_free(m);
}

static void a_saved_model_loads_equal(void **state)
{
    (void)state;
    struct dt_model_config dropping = tiny_bert, fused = tiny_llama;
    fused.family = DT_FAMILY_PHI3;
    dropping.dropout = 0.25;
    dropping.attention_dropout = 0.125;
    check_saving(&tiny_llama);
    check_saving(&tiny_qwen3);
    check_saving(&tiny_olmo2);
    check_saving(&dropping);
    check_saving(&tiny_distilbert);
    check_saving(&tiny);
    check_saving(&fused);
    fused.family = DT_FAMILY_GPT_NEOX;
    fused.num_kv_heads = 4;
    fused.tie_word_embeddings = true;
    check_saving(&fused);
}

static void a_tokenizers_purpose_is_told(void **state)
{
    (void)state;
    static const char tokenizer[] =
        "{\"added_tokens\": [{\"id\": 5, \"content\": \"<eot>\"}, {\"id\": 6, \"content\": "
        "\"[MASK]\"}, "
        "{\"content\": \"<pad>\"}, {\"id\": 8, \"content\": \"<pad>\"}, 7]}";
    char *path = dt_path_join(scratch, DT_TOKENIZER_FILE), *text;
    char *config = dt_path_join(scratch, DT_TOKENIZER_CONFIG_FILE);
    size_t size;
    assert_int_equal(dt_file_write(path, tokenizer, strlen(tokenizer), &err), 0);
    assert_int_equal(dt_tokenizer_config_write(scratch, 5, 5, 64, &err), 0);
    assert_int_equal(dt_file_read(config, 10000, &text, &size, &err), 0);
    assert_non_null(strstr(text, "\"tokenizer_class\": \"PreTrainedTokenizerFast\""));
    assert_non_null(strstr(text, "\"model_max_length\": 64"));
    assert_non_null(strstr(text, "\"attention_mask\""));
    assert_null(strstr(text, "token_type_ids"));
    assert_non_null(strstr(text, "\"bos_token\": \"<eot>\""));
    assert_non_null(strstr(text, "\"mask_token\": \"[MASK]\""));
    assert_non_null(strstr(text, "\"pad_token\": \"<pad>\""));
    free(text);
    assert_int_equal(dt_file_write(path, "[]", 2, &err), 0);
    assert_int_equal(dt_tokenizer_config_write(scratch, 5, 5, 64, &err), 0);
    assert_int_equal(dt_file_write(path, "[", 1, &err), 0);
    assert_true(dt_tokenizer_config_write(scratch, 5, 5, 64, &err) < 0);
    free(path);
    free(config);
}

static int read_config(const char *text, struct dt_model_config *config)
{
    char *path = dt_path_join(scratch, "other.json");
    assert_int_equal(dt_file_write(path, text, strlen(text), &err), 0);
    int rc = dt_model_config_read(config, path, &err);
    free(path);
    return rc;
}

#define LLAMA_JSON                                                                                 \
    "{\"model_type\": \"llama\", \"vocab_size\": 300, \"max_position_embeddings\": 64, "           \
    "\"hidden_size\": 32, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "                  \
    "\"intermediate_size\": 96"

static void configurations_of_transformers_are_read(void **state)
{
    (void)state;
    struct dt_model_config c;
    assert_int_equal(read_config(LLAMA_JSON "}", &c), 0);
    assert_int_equal(c.num_kv_heads, 4);
    assert_false(c.tie_word_embeddings);
    assert_true(c.layer_norm_epsilon == 1e-6 && c.rope_theta == 10000);
    assert_int_equal(read_config(LLAMA_JSON ", \"rope_theta\": 5e5, \"rope_scaling\": null}", &c),
                     0);
    assert_true(c.rope_theta == 5e5);
    assert_int_equal(read_config(LLAMA_JSON ", \"rope_parameters\": {\"rope_type\": \"default\", "
                                            "\"rope_theta\": 250000}, \"head_dim\": 8, "
                                            "\"num_key_value_heads\": 2}",
                                 &c),
                     0);
    assert_true(c.rope_theta == 250000 && c.num_kv_heads == 2);
}

static void missing_rates_have_the_defaults_of_transformers(void **state)
{
    (void)state;
    static const char *const gpt2 = "{\"model_type\": \"gpt2\", \"vocab_size\": 300, "
                                    "\"n_positions\": 64, \"n_embd\": 32, \"n_layer\": 2, "
                                    "\"n_head\": 4, \"n_inner\": null%s}";
    struct dt_model_config c;
    char *silent = dt_asprintf(gpt2, ""),
         *spoken = dt_asprintf(gpt2, ", \"resid_pdrop\": 0.0, \"embd_pdrop\": 0.0");
    assert_int_equal(read_config(silent, &c), 0);
    assert_true(c.dropout == 0.1 && c.attention_dropout == 0.1);
    assert_int_equal(read_config(spoken, &c), 0);
    assert_true(c.dropout == 0 && c.attention_dropout == 0.1);
    assert_int_equal(read_config(LLAMA_JSON "}", &c), 0);
    assert_true(c.dropout == 0 && c.attention_dropout == 0);
    free(silent);
    free(spoken);
}

static void variants_of_bert_are_refused(void **state)
{
    (void)state;
    static const char *const variants[][2] = {
        {"\"is_decoder\": true", "is_decoder is true, but must be false, dt knows no other"},
        {"\"type_vocab_size\": 4", "type_vocab_size is 4, but must be 2, dt knows no other"},
        {"\"hidden_act\": \"gelu_new\"", "hidden_act is \"gelu_new\", but must be \"gelu\""},
        {"\"tie_word_embeddings\": false", "tie_word_embeddings is false, but must be true"},
        {"\"hidden_dropout_prob\": 1.5", "dropout must be at least 0 and below 1"},
    };
    struct dt_model_config c;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        char *text = dt_asprintf("{\"model_type\": \"bert\", \"vocab_size\": 300, "
                                 "\"max_position_embeddings\": 64, \"hidden_size\": 32, "
                                 "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
                                 "\"intermediate_size\": 64, %s}",
                                 variants[i][0]);
        assert_true(read_config(text, &c) < 0);
        if (strstr(err.text, variants[i][1]) == NULL)
            fail_msg("%s: %s", variants[i][1], err.text);
        free(text);
    }
}

static void variants_of_llama_are_refused(void **state)
{
    (void)state;
    static const char *const variants[][2] = {
        {", \"hidden_act\": \"gelu\"}", "hidden_act is \"gelu\", but must be \"silu\""},
        {", \"attention_bias\": 1}", "attention_bias"},
        {", \"head_dim\": 7}", "head_dim 7 is odd"},
        {", \"intermediate_size\": 0}", "intermediate_size must be from 1 to 2^40, not 0"},
        {", \"quantization_config\": {}}", "quantization_config is not a member that dt knows"},
        {", \"use_sliding_window\": false}", "use_sliding_window is not a member that dt knows"},
        {", \"num_key_value_heads\": 3}", "num_heads 4 is not a multiple of num_kv_heads 3"},
        {", \"rope_scaling\": {\"type\": \"longrope\", \"factor\": 2}}",
         "rope_scaling of type 'longrope' is not known"},
        {", \"rope_scaling\": {\"type\": \"linear\"}}",
         "model.rope_scaling linear needs a rope_factor above 0"},
        {", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2, \"beta_fast\": 4}}",
         "rope_scaling.beta_fast is not known with type linear"},
        {", \"rope_scaling\": {\"factor\": 2}}", "rope_scaling.factor is not known with type none"},
        {", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 0.5}}",
         "model.rope_factor must be from 1 to 1e12, not 0.5"},
        {", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2, \"mscale\": 1}}",
         "rope_scaling.mscale is not known with type yarn"},
        {", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2, \"truncate\": false}}",
         "rope_scaling.truncate is not known with type yarn"},
        {", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}, \"rope_parameters\": "
         "{\"rope_type\": \"linear\", \"factor\": 4}}",
         "rope_parameters scales other than rope_scaling"},
        {", \"rope_parameters\": {\"rope_type\": \"llama3\", \"factor\": 8}}",
         "model.rope_scaling llama3 needs a rope_original_length above 0"},
        {", \"rope_theta\": 0.5}", "rope_theta must be from 1"},
        {", \"rope_parameters\": []}", "rope_parameters"},
        {", \"tie_word_embeddings\": \"no\"}", "tie_word_embeddings"},
        {", \"rope_parameters\": {\"type\": \"linear\", \"rope_type\": \"default\"}}",
         "rope_parameters.rope_type is not type, which means the same"},
        {", \"model_type\": \"mixtral\"}", "model_type 'mixtral' is not a family"},
    };
    struct dt_model_config c;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        char *text = dt_asprintf("%s%s", LLAMA_JSON, variants[i][0]);
        assert_true(read_config(text, &c) < 0);
        if (strstr(err.text, variants[i][1]) == NULL)
            fail_msg("%s: %s", variants[i][1], err.text);
        free(text);
    }
}

static void synonyms_of_a_setting_must_agree(void **state)
{
    (void)state;
#define GPT2_JSON                                                                                  \
    "{\"model_type\": \"gpt2\", \"vocab_size\": 300, \"n_positions\": 64, \"n_embd\": 32, "        \
    "\"n_layer\": 2, \"n_head\": 4"
#define DISTILBERT_JSON                                                                            \
    "{\"model_type\": \"distilbert\", \"vocab_size\": 300, \"max_position_embeddings\": 64, "      \
    "\"dim\": 32, \"n_layers\": 2, \"n_heads\": 4, \"hidden_dim\": 64"
    static const struct {
        const char *model, *agrees, *differs, *fault;
    } cases[] = {
        {LLAMA_JSON ", \"rope_theta\": 5e5", "\"rope_parameters\": {\"rope_theta\": 500000}}",
         "\"rope_parameters\": {\"rope_theta\": 1e4}}",
         "rope_parameters.rope_theta is 10000, but rope_theta, which means the same, is 500000"},
        {LLAMA_JSON ", \"rope_scaling\": {\"rope_theta\": 5e5}",
         "\"rope_parameters\": {\"rope_theta\": 5e5}}",
         "\"rope_parameters\": {\"rope_theta\": 1e4}}",
         "rope_parameters.rope_theta is 10000, but rope_scaling.rope_theta, which means the same, "
         "is "
         "500000"},
        {GPT2_JSON, "\"n_ctx\": 64}", "\"n_ctx\": 128}",
         "n_ctx is 128, but n_positions, which means the same, is 64: remove one of them"},
        {GPT2_JSON, "\"hidden_size\": 32}", "\"hidden_size\": 64}", "but n_embd"},
        {GPT2_JSON, "\"num_hidden_layers\": 2}", "\"num_hidden_layers\": 3}", "but n_layer"},
        {DISTILBERT_JSON, "\"num_attention_heads\": 4}", "\"num_attention_heads\": 8}",
         "but n_heads"},
    };
    struct dt_model_config c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *agrees = dt_asprintf("%s, %s", cases[i].model, cases[i].agrees);
        char *differs = dt_asprintf("%s, %s", cases[i].model, cases[i].differs);
        assert_int_equal(read_config(agrees, &c), 0);
        assert_int_equal(read_config(differs, &c), DT_EFORMAT);
        if (strstr(err.text, cases[i].fault) == NULL)
            fail_msg("%s", err.text);
        free(agrees);
        free(differs);
    }
}

/* Whether word is accepted as the value of a member of a configuration. If not, the error must name
 * the member. */
static void assert_word(const char *model, const char *member, const char *word, bool taken)
{
    struct dt_model_config c;
    char *text = dt_asprintf("%s, \"%s\": %s}", model, member, word);
    if ((read_config(text, &c) == 0) != taken)
        fail_msg("%s: %s is %s", member, word, taken ? "refused" : "taken");
    if (!taken)
        assert_non_null(strstr(err.text, member));
    free(text);
}

static void nan_and_unexpected_null_are_refused_in_every_member(void **state)
{
    (void)state;
    static const char *const nullable[] = {"num_key_value_heads", "rope_scaling", "rope_parameters",
                                           "head_dim"};
    static const char *const others[] = {
        "rms_norm_eps",        "rope_theta", "initializer_range", "attention_dropout",
        "tie_word_embeddings", "hidden_act", "attention_bias",    "mlp_bias"};
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (int i = 0; i < 3; i++) {
        for (size_t j = 0; j < sizeof nullable / sizeof *nullable; j++)
            assert_word(LLAMA_JSON, nullable[j], words[i], false);
        for (size_t j = 0; j < sizeof others / sizeof *others; j++)
            assert_word(LLAMA_JSON, others[j], words[i], false);
    }
    for (size_t j = 0; j < sizeof nullable / sizeof *nullable; j++)
        assert_word(LLAMA_JSON, nullable[j], "null", true);
    for (size_t j = 0; j < sizeof others / sizeof *others; j++)
        assert_word(LLAMA_JSON, others[j], "null", false);
    assert_word(LLAMA_JSON ", \"rope_parameters\": {\"rope_theta\": 1e4", "rope_type", "NaN}",
                false);
    assert_word(LLAMA_JSON ", \"rope_parameters\": {\"rope_theta\": 1e4", "rope_type", "null}",
                false);
}

/* Truncated weight files are refused. A changed byte of the header or its length may be read, but
 * must not crash. */
static void damaged_weights_are_refused(void **state)
{
    (void)state;
    char *path = dt_path_join(scratch, DT_WEIGHTS_FILE), *data;
    size_t size, header;
    struct dt_model *m;
    assert_int_equal(dt_file_read(path, SIZE_MAX / 2, &data, &size, &err), 0);
    memcpy(&header, data, sizeof header);
    for (size_t cut = 0; cut < size; cut += cut < header + 16 ? 7 : 997) {
        assert_int_equal(dt_file_write(path, data, cut, &err), 0);
        assert_true(dt_model_load(&m, dev, scratch, &err) < 0);
        assert_non_null(strstr(err.text, DT_WEIGHTS_FILE));
    }
    for (size_t i = 0; i < header + 8; i += 3) {
        data[i] ^= 0x11;
        assert_int_equal(dt_file_write(path, data, size, &err), 0);
        if (dt_model_load(&m, dev, scratch, &err) == 0)
            dt_model_free(m);
        data[i] ^= 0x11;
    }
    free(data);
    free(path);
}

static void impossible_shapes_are_refused(void **state)
{
    (void)state;
    struct dt_model_config c = tiny;
    c.num_heads = 3;
    assert_true(dt_model_config_check(&c, "x.yaml: model", &err) < 0);
    assert_string_equal(err.text, "x.yaml: model.hidden_size 8 is not a multiple of num_heads 3");
    c = tiny;
    c.num_layers = 0;
    assert_true(dt_model_config_check(&c, "model", &err) < 0);
    assert_non_null(strstr(err.text, "num_layers"));
    c = tiny;
    c.num_kv_heads = 1;
    assert_true(dt_model_config_check(&c, "model", &err) < 0);
    assert_string_equal(err.text, "model.num_kv_heads must be num_heads with gpt2");
    c = tiny;
    c.tie_word_embeddings = false;
    assert_true(dt_model_config_check(&c, "model", &err) < 0);
    assert_string_equal(err.text, "model.tie_word_embeddings must be true with gpt2");
    c = tiny_llama;
    c.num_heads = c.num_kv_heads = 8;
    assert_true(dt_model_config_check(&c, "model", &err) < 0);
    assert_non_null(strstr(err.text, "RoPE needs an even head size"));
}

static void llamas_mlp_has_a_default_width(void **state)
{
    (void)state;
    struct dt_model_config c = tiny_llama;
    c.intermediate_size = 0;
    c.hidden_size = 288;
    assert_int_equal(dt_model_config_check(&c, "model", &err), 0);
    assert_int_equal(c.intermediate_size, 768); /* exactly 8/3 * 288 */
    c.intermediate_size = 0;
    c.hidden_size = 128;
    assert_int_equal(dt_model_config_check(&c, "model", &err), 0);
    assert_int_equal(c.intermediate_size, 384); /* 341 1/3, rounded up */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_saved_model_loads_equal),
        cmocka_unit_test(a_tokenizers_purpose_is_told),
        cmocka_unit_test(configurations_of_transformers_are_read),
        cmocka_unit_test(missing_rates_have_the_defaults_of_transformers),
        cmocka_unit_test(variants_of_bert_are_refused),
        cmocka_unit_test(variants_of_llama_are_refused),
        cmocka_unit_test(synonyms_of_a_setting_must_agree),
        cmocka_unit_test(nan_and_unexpected_null_are_refused_in_every_member),
        cmocka_unit_test(damaged_weights_are_refused),
        cmocka_unit_test(impossible_shapes_are_refused),
        cmocka_unit_test(llamas_mlp_has_a_default_width),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
