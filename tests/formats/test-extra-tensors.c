/* SPDX-License-Identifier: MIT */
/* Extra tensors in weight files: each is checked, known as harmless, or refused. */
#include "scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "formats/model-directory.h"
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

struct extra {
    const char *name, *dtype, *shape;
    const void *data;
    size_t bytes;
};

/* Appends a file with the tensors of list, and x: first in the header, and last (or first) in the
 * data. */
static void add_file(struct dt_buffer *file, const struct dt_named_tensor *list, int count,
                     const struct extra *x, bool first)
{
    struct dt_buffer head = DT_BUFFER_EMPTY;
    size_t at = first ? x->bytes : 0, data = 0;
    for (int i = 0; i < count; i++)
        data += (size_t)list[i].shape[0] * (size_t)(list[i].rank == 2 ? list[i].shape[1] : 1) * 4;
    dt_buffer_printf(&head, "{\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                     x->name, x->dtype, x->shape, first ? 0 : data, (first ? 0 : data) + x->bytes);
    for (int i = 0; i < count; i++) {
        const struct dt_named_tensor *t = &list[i];
        int64_t columns = t->rank == 2 ? t->shape[1] : 1;
        size_t bytes = (size_t)(t->shape[0] * columns) * 4;
        dt_buffer_printf(&head, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%lld", t->name,
                         (long long)t->shape[0]);
        if (t->rank == 2)
            dt_buffer_printf(&head, ",%lld", (long long)columns);
        dt_buffer_printf(&head, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes);
        at += bytes;
    }
    dt_buffer_add_char(&head, '}');
    uint64_t size = head.size;
    dt_buffer_append(file, &size, sizeof size);
    dt_buffer_append(file, head.data, head.size);
    if (first)
        dt_buffer_append(file, x->data, x->bytes);
    for (int i = 0; i < count; i++)
        dt_buffer_append(file, list[i].data,
                         (size_t)list[i].shape[0] *
                             (size_t)(list[i].rank == 2 ? list[i].shape[1] : 1) * 4);
    if (!first)
        dt_buffer_append(file, x->data, x->bytes);
    dt_buffer_release(&head);
}

static void write_named(const char *name, const struct dt_buffer *b)
{
    char *path = dt_path_join(scratch, name);
    assert_int_equal(dt_file_write(path, b->data, b->size, &err), 0);
    free(path);
}

static int load(const struct dt_model *m)
{
    struct dt_model *again;
    int rc = dt_model_load(&again, dev, scratch, &err);
    if (rc == 0)
        assert_memory_equal(again->parameters, m->parameters,
                            (size_t)m->table.elements * sizeof *m->parameters);
    dt_model_free(again);
    return rc;
}

/* Loads the model from files with x first, and with x last; both must have the same result. */
static int load_with(const struct dt_model *m, const struct extra *x)
{
    struct dt_named_tensor *list = dt_weights_named_tensors(&m->table, m->parameters, "");
    int rc[2];
    for (int first = 0; first < 2; first++) {
        struct dt_buffer b = DT_BUFFER_EMPTY;
        add_file(&b, list, m->table.count, x, first);
        write_named(DT_WEIGHTS_FILE, &b);
        rc[first] = load(m);
        dt_buffer_release(&b);
    }
    free(list);
    assert_int_equal(rc[0], rc[1]);
    return rc[0];
}

static struct dt_model *export_model(const struct dt_model_config *config)
{
    struct dt_model *m = new_model_of(config);
    assert_int_equal(dt_model_export(m, DT_DTYPE_F32, 0, 18, NULL, scratch, &err), 0);
    return m;
}

static void assert_refused_with(const struct dt_model *m, const struct extra *x, const char *reason)
{
    if (load_with(m, x) != DT_EFORMAT)
        fail_msg("accepted: %s", x->name);
    if (strstr(err.text, x->name) == NULL || strstr(err.text, reason) == NULL)
        fail_msg("%s: %s", x->name, err.text);
}

#define EMBEDDING (19 * 8)

/* A copy of the embedding (19 x 8) with this name is accepted, and refused if one bit differs. */
static void check_twin(const struct dt_model_config *config, const char *name)
{
    struct dt_model *m = export_model(config);
    float twin[EMBEDDING];
    memcpy(twin, dt_table_view(&m->table, &m->weights, DT_ROLE_TOKEN_EMBEDDING, -1).data,
           sizeof twin);
    struct extra x = {name, "F32", "[19,8]", twin, sizeof twin};
    if (load_with(m, &x) != 0)
        fail_msg("%s: %s", name, err.text);
    twin[EMBEDDING - 1] = nextafterf(twin[EMBEDDING - 1], 9);
    assert_refused_with(m, &x, "has other values than");
    assert_non_null(strstr(err.text, "embed"));
    assert_non_null(strstr(err.text, "tie_word_embeddings"));
    x.shape = "[8,19]";
    assert_refused_with(m, &x, "has another shape or type than");
    dt_model_free(m);
}

static void a_tied_head_must_be_the_embedding(void **state)
{
    (void)state;
    struct dt_model_config tied_llama = tiny_llama, tied_qwen3 = tiny_qwen3;
    tied_llama.tie_word_embeddings = tied_qwen3.tie_word_embeddings = true;
    check_twin(&tied_llama, "lm_head.weight");
    check_twin(&tied_qwen3, "lm_head.weight");
    check_twin(&tiny_bert, "cls.predictions.decoder.weight");
    check_twin(&tiny_distilbert, "vocab_projector.weight");
}

static void gpt2s_tied_head_must_be_the_embedding(void **state)
{
    (void)state;
    struct dt_model *m = export_model(&tiny);
    float twin[EMBEDDING];
    memcpy(twin, dt_table_view(&m->table, &m->weights, DT_ROLE_TOKEN_EMBEDDING, -1).data,
           sizeof twin);
    struct extra x = {"lm_head.weight", "F32", "[19,8]", twin, sizeof twin};
    assert_int_equal(load_with(m, &x), 0);
    twin[0] = -twin[0];
    assert_refused_with(m, &x, "has other values than 'transformer.wte.weight'");
    dt_model_free(m);
}

static void a_bias_under_two_names_must_have_one_value(void **state)
{
    (void)state;
    struct dt_model *m = export_model(&tiny_bert);
    const struct dt_param *p = dt_table_find(&m->table, DT_ROLE_HEAD_BIAS, 2);
    float bias[19];
    memcpy(bias, m->parameters + p->offset, sizeof bias);
    const struct extra x = {"cls.predictions.decoder.bias", "F32", "[19]", bias, sizeof bias};
    assert_int_equal(load_with(m, &x), 0);
    bias[7] += 1;
    assert_refused_with(m, &x, "has other values than 'cls.predictions.bias'");
    dt_model_free(m);
}

/* The embedding is in the second file of an index, its copy in the first. */
static void a_tied_head_in_another_shard_is_compared(void **state)
{
    (void)state;
    struct dt_model_config tied = tiny_llama;
    tied.tie_word_embeddings = true;
    struct dt_model *m = export_model(&tied);
    char *single = dt_path_join(scratch, DT_WEIGHTS_FILE);
    struct dt_named_tensor *list = dt_weights_named_tensors(&m->table, m->parameters, "");
    float twin[EMBEDDING];
    memcpy(twin, list[0].data, sizeof twin);
    const struct extra head = {"lm_head.weight", "F32", "[19,8]", twin, sizeof twin};
    const float theta[] = {1};
    const struct extra other = {"model.rotary_emb.inv_freq", "F32", "[1]", theta, sizeof theta};
    struct dt_buffer index = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&index, "{\"weight_map\":{\"lm_head.weight\":\"1.safetensors\","
                                 "\"model.rotary_emb.inv_freq\":\"2.safetensors\"");
    for (int i = 0; i < m->table.count; i++)
        dt_buffer_printf(&index, ",\"%s\":\"%d.safetensors\"", list[i].name, i < 3 ? 2 : 1);
    dt_buffer_add_string(&index, "}}");
    remove(single);
    write_named(DT_INDEX_FILE, &index);
    for (int wrong = 0; wrong < 2; wrong++) {
        struct dt_buffer one = DT_BUFFER_EMPTY, two = DT_BUFFER_EMPTY;
        twin[5] += (float)wrong;
        add_file(&one, list + 3, m->table.count - 3, &head, false);
        add_file(&two, list, 3, &other, true);
        write_named("1.safetensors", &one);
        write_named("2.safetensors", &two);
        int rc = load(m);
        if (rc != (wrong ? DT_EFORMAT : 0))
            fail_msg("%s", err.text);
        dt_buffer_release(&one);
        dt_buffer_release(&two);
    }
    assert_non_null(strstr(err.text, "1.safetensors: tensor 'lm_head.weight' has other values"));
    dt_buffer_release(&index);
    char *path = dt_path_join(scratch, DT_INDEX_FILE);
    remove(path);
    free(path);
    free(single);
    free(list);
    dt_model_free(m);
}

static void constants_must_match_the_model(void **state)
{
    (void)state;
    float mask[144], frequencies[2] = {1, 0.1f}, score = -1e9f;
    uint8_t bits[144];
    uint16_t halves[2] = {0x3f80, 0x3dcd}; /* 1 and 0.1, bf16 */
    int64_t positions[12];
    for (int i = 0; i < 144; i++)
        mask[i] = bits[i] = i % 12 <= i / 12;
    for (int i = 0; i < 12; i++)
        positions[i] = i;
    float halved[2] = {0.5f, 0.05f};
    struct dt_model_config llama = tiny_llama, scaled;
    llama.num_heads = llama.num_kv_heads = 2; /* of 4 columns */
    scaled = llama;
    scaled.rope_scaling = DT_ROPE_SCALING_LINEAR;
    scaled.rope_factor = 2;
    const struct {
        const struct dt_model_config *config;
        struct extra extra;
        void *spoil; /* its first byte is changed */
        const char *reason;
    } cases[] = {
        {&tiny,
         {"transformer.h.0.attn.bias", "F32", "[1,1,12,12]", mask, sizeof mask},
         &mask[77],
         "is not the causal mask"},
        {&tiny,
         {"h.1.attn.bias", "BOOL", "[1,1,12,12]", bits, sizeof bits},
         &bits[1],
         "is not the causal mask"},
        {&tiny,
         {"h.1.attn.masked_bias", "F32", "[]", &score, sizeof score},
         (char *)&score + 3,
         "is not one number of at most"},
        {&llama,
         {"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", "[2]", frequencies, 8},
         (char *)&frequencies[1] + 2,
         "config.json's rope_theta"},
        {&llama,
         {"model.rotary_emb.inv_freq", "BF16", "[2]", halves, 4},
         &halves[1],
         "config.json's rope_theta"},
        {&scaled,
         {"model.rotary_emb.inv_freq", "F32", "[2]", halved, 8},
         (char *)&halved[1] + 2,
         "config.json's rope_theta"},
        {&tiny_bert,
         {"bert.embeddings.position_ids", "I64", "[1,12]", positions, 96},
         &positions[11],
         "does not count"},
        {&tiny_distilbert,
         {"distilbert.embeddings.position_ids", "I64", "[1,12]", positions, 96},
         &positions[0],
         "does not count"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_model *m = export_model(cases[i].config);
        positions[11] = 11;
        if (load_with(m, &cases[i].extra) != 0)
            fail_msg("%s: %s", cases[i].extra.name, err.text);
        *(unsigned char *)cases[i].spoil ^= 0x81;
        assert_refused_with(m, &cases[i].extra, cases[i].reason);
        dt_model_free(m);
    }
}

static void tensors_unknown_to_the_family_are_refused(void **state)
{
    (void)state;
    const float x[19] = {0};
    static const struct {
        const struct dt_model_config *config;
        const char *name;
    } cases[] = {{&tiny, "model.rotary_emb.inv_freq"},
                 {&tiny, "vocab_projector.weight"},
                 {&tiny, "x.lm_head.weight"},
                 {&tiny_llama, "h.0.attn.bias"},
                 {&tiny_bert, "lm_head.weight"},
                 {&tiny_distilbert, "bert.pooler.dense.bias"},
                 {&tiny_bert, "x.bert.pooler.dense.bias"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_model *m = export_model(cases[i].config);
        const struct extra extra = {cases[i].name, "F32", "[19]", x, sizeof x};
        assert_refused_with(m, &extra, "is not part of the model");
        dt_model_free(m);
    }
}

static void heads_of_other_tasks_are_ignored(void **state)
{
    (void)state;
    struct dt_model *m = export_model(&tiny_bert);
    const float x[8] = {7};
    const struct extra extra = {"bert.pooler.dense.bias", "F32", "[8]", x, sizeof x};
    assert_int_equal(load_with(m, &extra), 0);
    dt_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tied_head_must_be_the_embedding),
        cmocka_unit_test(gpt2s_tied_head_must_be_the_embedding),
        cmocka_unit_test(a_bias_under_two_names_must_have_one_value),
        cmocka_unit_test(a_tied_head_in_another_shard_is_compared),
        cmocka_unit_test(constants_must_match_the_model),
        cmocka_unit_test(tensors_unknown_to_the_family_are_refused),
        cmocka_unit_test(heads_of_other_tasks_are_ignored),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
