/* SPDX-License-Identifier: MIT */
/* Files of GGUF that other programs write: keys and tensors of each architecture, and what is
 * refused. */
#include "gguf-of.h"

#include "base/buffer.h"
#include "formats/gguf.h"
#include "json/json.h"

static struct dt_device *dev;
static struct dt_error err;
static const char path[] = "m.gguf";

static int prepare(void **state)
{
    return enter_scratch(state) < 0 ? -1 : dt_device_open(&dev, "cpu", 1, &err);
}

static int clean_up(void **state)
{
    dt_device_close(dev);
    return leave_scratch(state);
}

/* --- files ------------------------------------------------------------------------------------*/

/* clang-format off */
#define KEYS(architecture, epsilon) "general.architecture=str:" architecture " " architecture \
    ".context_length=u32:8 " architecture ".embedding_length=u32:8 " architecture ".block_count=u32:1 " \
    architecture ".feed_forward_length=u32:8 " architecture ".attention.head_count=u32:2 " \
    architecture ".attention." epsilon "=f32:1e-6 "
#define RMS          "layer_norm_rms_epsilon"
#define NORM         "layer_norm_epsilon"
#define BOTH(name)   name ".weight@8:1 " name ".bias@8 "
#define HEAD         "output.weight@8x3:1 "
#define GATED        "blk.0.attn_norm.weight@8:1 blk.0.attn_output.weight@8x8 blk.0.ffn_norm.weight@8:1 " \
                     "blk.0.ffn_up.weight@8x8 blk.0.ffn_down.weight@8x8 "
#define SPLIT        "blk.0.attn_q.weight@8x8 blk.0.attn_k.weight@8x8 blk.0.attn_v.weight@8x8 blk.0.ffn_gate.weight@8x8 "
#define EMBEDDED     "token_embd.weight@8x3 output_norm.weight@8:1 "
#define BIASED(name) name ".weight@8x8 " name ".bias@8 "

static const char
    llama[] = KEYS("llama", RMS) EMBEDDED HEAD GATED SPLIT,
    qwen2[] = KEYS("qwen2", RMS) EMBEDDED HEAD GATED SPLIT
              "blk.0.attn_q.bias@8 blk.0.attn_k.bias@8 blk.0.attn_v.bias@8 ",
    granite[] = KEYS("granite", RMS) "granite.attention.scale=f32:0.5 granite.logit_scale=f64:2 "
                EMBEDDED HEAD GATED SPLIT,
    gemma2[] = KEYS("gemma2", RMS) "gemma2.attention.sliding_window=u32:4 " EMBEDDED GATED SPLIT
               "blk.0.post_attention_norm.weight@8:1 blk.0.post_ffw_norm.weight@8:1 ",
    gemma3[] = KEYS("gemma3", RMS) EMBEDDED GATED SPLIT
               "blk.0.post_attention_norm.weight@8:1 blk.0.post_ffw_norm.weight@8:1 "
               "blk.0.attn_q_norm.weight@4:1 blk.0.attn_k_norm.weight@4:1 ",
    phi3[] = KEYS("phi3", RMS) EMBEDDED HEAD "blk.0.attn_norm.weight@8:1 blk.0.attn_output.weight@8x8 "
             "blk.0.ffn_norm.weight@8:1 blk.0.ffn_down.weight@8x8 "
             "blk.0.attn_qkv.weight@8x24 blk.0.ffn_up.weight@8x16 ",
    gpt2[] = KEYS("gpt2", NORM) "token_embd.weight@8x3 position_embd.weight@8x8 " BOTH("output_norm")
             BOTH("blk.0.attn_norm") BOTH("blk.0.ffn_norm") "blk.0.attn_qkv.weight@8x24 blk.0.attn_qkv.bias@24 "
             BIASED("blk.0.attn_output") BIASED("blk.0.ffn_up") BIASED("blk.0.ffn_down"),
    gptneox[] = KEYS("gptneox", NORM) "gptneox.use_parallel_residual=bool:1 gptneox.rope.dimension_count=u32:4 "
                "token_embd.weight@8x3 " HEAD BOTH("output_norm") BOTH("blk.0.attn_norm")
                BOTH("blk.0.ffn_norm") "blk.0.attn_qkv.weight@8x24 blk.0.attn_qkv.bias@24 "
                BIASED("blk.0.attn_output") BIASED("blk.0.ffn_up") BIASED("blk.0.ffn_down");

#define FACTORS "rope_freqs.weight@2:1 "
#define LAYER   "llama.block_count=u32:1"

/* A file in which a part is replaced, and a part of the configuration that is read. */
static const struct {
    const char *file, *from, *to, *part;
} readable[] = {
    {llama, "", "", "\"rms_norm_eps\":1e-06,"},
    {llama, RMS "=f32:1e-6", RMS "=f64:1e-6", "\"rms_norm_eps\":1e-06,"},
    {llama, HEAD, "", "\"tie_word_embeddings\":true"},
    {llama, LAYER, LAYER " llama.rope.scaling.type=str:none", "\"rope_theta\":10000"},
    {llama, LAYER, LAYER " llama.rope.scaling.type=str:linear llama.rope.scaling.factor=f32:2", "\"rope_type\":\"linear\""},
    {llama, LAYER, LAYER " llama.rope.scaling.factor=f32:2.5", "\"factor\":2.5"},
    {llama, LAYER, LAYER " llama.attention.head_count_kv=u32:2 llama.attention.key_length=u32:4", "\"head_dim\":4"},
    {llama, HEAD, HEAD FACTORS, "\"rope_type\":\"llama3\",\"factor\":1.0"},
    {llama, LAYER, LAYER " llama.rope.scaling.original_context_length=u32:4 " FACTORS, "\"original_max_position_embeddings\":4"},
    {qwen2, "", "", "\"model_type\":\"qwen2\""},
    {granite, "", "", "\"logits_scaling\":2"},
    {gemma2, "", "", "\"query_pre_attn_scalar\""},
    {gemma3, "", "", "\"layer_types\":[\"full_attention\"]"},
    {gemma3, "gemma3.block_count=u32:1", "gemma3.block_count=u32:1 gemma3.attention.sliding_window=u32:4",
     "\"layer_types\":[\"sliding_attention\"]"},
    {phi3, "", "", "\"model_type\":\"phi3\""},
    {phi3, HEAD, "output.weight@8x3h ", "\"tie_word_embeddings\":false"},
    {phi3, HEAD, "output.weight@8x3 ", "\"tie_word_embeddings\":true"},
    {gpt2, "", "", "\"n_positions\":8"},
    {gptneox, "", "", "\"use_parallel_residual\":true"},
    {gptneox, "residual=bool:1", "residual=bool:0", "\"use_parallel_residual\":false"},
    {gptneox, "gptneox.rope.dimension_count=u32:4 ", "gptneox.rope.dimension_count=u32:2 ", "\"rotary_pct\":0.5"},
};

static const struct {
    const char *file, *from, *to;
    const char *message; /* begins what follows "m.gguf: " */
} unreadable[] = {
    {llama, "=str:llama", "=u32:1", "general.architecture must be a string"},
    {llama, "=str:llama", "=str:", "is of the architecture '', which is none of those that dt knows (gpt2, llama,"},
    {llama, "=str:llama", "=str:0123456789012345678901234567890123456789012345678901234567890123xyz",
     "is of the architecture '0123456789012345678901234567890123456789012345678901234567890123', which"},
    {llama, RMS "=f32:1e-6", RMS "=f32:nan", "llama.attention.layer_norm_rms_epsilon must be a finite floating-point number"},
    {llama, RMS "=f32:1e-6", RMS "=u32:1", "llama.attention.layer_norm_rms_epsilon must be a finite floating-point number"},
    {llama, LAYER, LAYER " llama.rope.scaling.type=u32:1", "llama.rope.scaling.type must be a string"},
    {llama, LAYER, "llama.block_count=i32:-1", "llama.block_count must be an integer from 0 to 2147483647"},
    {llama, LAYER, "llama.block_count=u32:2147483648", "llama.block_count must be an integer from 0 to 2147483647"},
    {llama, LAYER, "llama.block_count=str:1", "llama.block_count must be an integer"},
    {llama, LAYER, "llama.block_count=u32:99", "has fewer tensors than layers"},
    {llama, LAYER, LAYER " llama.vocab_size=str:3", "llama.vocab_size must be an integer"},
    {llama, LAYER, LAYER " llama.vocab_size=u32:4", "llama.vocab_size is 4, not 3"},
    {llama, LAYER, LAYER " llama.rope.dimension_count=u32:2", "llama.rope.dimension_count is 2, not 4"},
    {llama, LAYER, LAYER " llama.head_count=u32:3", "llama.head_count is not known"},
    {llama, "head_count=u32:2", "head_count=u32:0", "num_attention_heads must be from 1 to 2^40, not 0"},
    {llama, "token_embd.weight@8x3", "token_embd.bias@8x3", "matrix token_embd.weight is missing"},
    {llama, "token_embd.weight@8x3", "token_embd.weight@8", "matrix token_embd.weight is missing"},
    {llama, "token_embd.weight@8x3", "token_embd.weight@0x2147483648", "matrix token_embd.weight is missing"},
    {llama, "output_norm.weight@8", "output_norm.weight@8x1", "tensor 'output_norm.weight' of the model's shape is missing"},
    {llama, "output_norm.weight@8", "output_norm.weight@9", "tensor 'output_norm.weight' of the model's shape is missing"},
    {llama, "attn_q.weight@8x8", "attn_q.weight@8", "tensor 'blk.0.attn_q.weight' of the model's shape is missing"},
    {llama, "attn_q.weight@8x8", "attn_q.weight@7x8", "tensor 'blk.0.attn_q.weight' of the model's shape is missing"},
    {llama, "attn_q.weight@8x8", "attn_q.weight@8x9", "tensor 'blk.0.attn_q.weight' of the model's shape is missing"},
    {llama, HEAD, HEAD "extra@1 ", "tensor 'extra' is not part of the model"},
    {llama, HEAD, HEAD "rope_freqs.weight@3:1 ", "rope_freqs.weight has other factors than llama3 scaling"},
    {llama, HEAD, HEAD "rope_freqs.weight@2:2 ", "rope_freqs.weight has other factors than llama3 scaling"},
    {llama, HEAD, HEAD "rope_freqs.weight@16385 ", "tensor 'rope_freqs.weight' scales RoPE"},
    {llama, HEAD, HEAD "rope_freqs.weight@2x1 ", "tensor 'rope_freqs.weight' scales RoPE"},
    {qwen2, HEAD, HEAD FACTORS, "tensor 'rope_freqs.weight' scales RoPE, which dt reads from config.json only"},
    {granite, "granite.logit_scale=f64:2 ", "", "granite.logit_scale is missing"},
    {gemma2, "output_norm.weight@8:1 ", "output_norm.weight@8:0.1 ",
     "tensor 'output_norm.weight': element 0 is 0.100000001, which is not 1 + a number in fp32"},
    {gemma2, "output_norm.weight@8:1 ", "output_norm.weight@8:1 output.weight@8x3:2 ",
     "tensor 'output.weight' has other values than 'token_embd.weight', to which dt ties it"},
    {phi3, HEAD, "output.weight@8x4 ", "tensor 'output.weight' of the model's shape is missing"},
    {phi3, "ffn_up.weight@8x16", "ffn_up.weight@8x8", "tensor 'blk.0.ffn_up.weight' of the model's shape is missing"},
    {gptneox, "dimension_count=u32:4", "dimension_count=u32:5", "gptneox.rope.dimension_count must be at most the size of a head"},
    {gptneox, "dimension_count=u32:4", "dimension_count=i32:-2", "gptneox.rope.dimension_count must be at most the size of a head"},
    {gptneox, "dimension_count=u32:4", "dimension_count=u32:3", "model.rotary_dim must be even"},
    {gptneox, "dimension_count=u32:4", "dimension_count=str:4", "gptneox.rope.dimension_count must be an integer"},
};
/* clang-format on */

static void write_changed_file(const char *file, const char *from, const char *to)
{
    const char *at = strstr(file, from);
    assert_non_null(at);
    char *text = dt_asprintf("%.*s%s%s", (int)(at - file), file, to, at + strlen(from));
    write_gguf(path, text);
    free(text);
}

static int read_file(struct dt_model_config *c, long context)
{
    const struct dt_model_use use = {.compute = DT_DTYPE_F32, .context = context};
    struct dt_model *m;
    int rc = dt_gguf_read(&m, dev, use, path, &err);
    if (rc < 0) {
        assert_null(m);
        return rc;
    }
    assert_int_equal(dt_gguf_read_config(c, path, &err), 0);
    if (context == 0)
        assert_memory_equal(c, &m->config, sizeof *c);
    else
        assert_int_equal(m->config.max_seq_len, context);
    float *parameters = dt_alloc((size_t)m->table.elements, sizeof *parameters);
    assert_int_equal(dt_gguf_read_parameters(&m->table, DT_DTYPE_F32, path, parameters, &err), 0);
    assert_memory_equal(parameters, m->parameters, (size_t)m->table.elements * sizeof *parameters);
    free(parameters);
    dt_model_free(m);
    return 0;
}

static void files_of_each_architecture_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
        struct dt_model_config c;
        struct dt_buffer text = DT_BUFFER_EMPTY;
        write_changed_file(readable[i].file, readable[i].from, readable[i].to);
        if (read_file(&c, 0) < 0)
            fail_msg("'%s' for '%s': %s", readable[i].to, readable[i].from, err.text);
        struct json_object *json = dt_model_config_to_json(&c, 0);
        dt_json_add_value(&text, json, DT_JSON_COMPACT);
        dt_buffer_add_char(&text, '\0');
        if (strstr(text.data, readable[i].part) == NULL)
            fail_msg("%s is not in %s", readable[i].part, text.data);
        dt_buffer_release(&text);
        json_object_put(json);
    }
}

static void other_files_are_refused(void **state)
{
    struct dt_model_config c;
    (void)state;
    for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
        const char *message = unreadable[i].message;
        write_changed_file(unreadable[i].file, unreadable[i].from, unreadable[i].to);
        assert_true(read_file(&c, 0) < 0);
        if (strncmp(err.text, "m.gguf: ", 8) != 0 ||
            strncmp(err.text + 8, message, strlen(message)) != 0)
            fail_msg("'%s' for '%s': '%s', not '%s'", unreadable[i].to, unreadable[i].from,
                     err.text, message);
    }
}

static void a_context_may_be_set_where_positions_are_not_learned(void **state)
{
    struct dt_model_config c;
    (void)state;
    write_gguf(path, llama);
    assert_int_equal(read_file(&c, 100), 0);
    write_gguf(path, gpt2);
    assert_int_equal(read_file(&c, 100), DT_EINVALID);
    assert_non_null(strstr(err.text, "m.gguf: has learned embeddings of 8 positions"));
}

/* Of the parameters alone, and of the configuration alone. */
static void each_way_to_read_has_its_errors(void **state)
{
    struct dt_model_config c;
    struct dt_table table;
    float parameters[1];
    (void)state;
    write_changed_file(llama, "blk.0.ffn_up.weight@8x8", "blk.0.ffn_up.weight@8x9");
    assert_int_equal(dt_gguf_read_config(&c, path, &err), 0);
    dt_table_init(&table, &c, NULL);
    assert_int_equal(dt_gguf_read_parameters(&table, DT_DTYPE_F32, path, parameters, &err),
                     DT_EFORMAT);
    assert_non_null(strstr(err.text, "tensor 'blk.0.ffn_up.weight' of the model's shape"));
    write_changed_file(llama, "llama.block_count=u32:1", "llama.block_count=str:1");
    assert_int_equal(dt_gguf_read_config(&c, path, &err), DT_EFORMAT);
    assert_int_equal(dt_gguf_read_parameters(&table, DT_DTYPE_F32, path, parameters, &err),
                     DT_EFORMAT);
    remove(path);
    assert_true(dt_gguf_read_config(&c, path, &err) < 0);
    assert_true(dt_gguf_read_parameters(&table, DT_DTYPE_F32, path, parameters, &err) < 0);
    assert_true(read_file(&c, 0) < 0);
    dt_table_release(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_each_architecture_are_read),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(a_context_may_be_set_where_positions_are_not_learned),
        cmocka_unit_test(each_way_to_read_has_its_errors),
    };
    return cmocka_run_group_tests(tests, prepare, clean_up);
}
