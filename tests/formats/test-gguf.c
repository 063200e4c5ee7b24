/* SPDX-License-Identifier: MIT */
/* GGUF files: layout and errors. tests/tools/dt-export.bats
 * compares logits with those of another reader. */
#include "scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "formats/gguf.h"
#include "math/rng.h"

static struct dt_device *dev;
static struct dt_error err;
static const char path[] = "m.gguf";

static const struct dt_model_config llama = {.family = DT_FAMILY_LLAMA,
                                             .vocab_size = 11,
                                             .max_seq_len = 8,
                                             .hidden_size = 32,
                                             .num_layers = 1,
                                             .num_heads = 4,
                                             .num_kv_heads = 2,
                                             .intermediate_size = 64,
                                             .layer_norm_epsilon = 1e-6,
                                             .rope_theta = 10000};

static int prepare(void **state)
{
    return enter_scratch(state) < 0 ? -1 : dt_device_open(&dev, "cpu", 1, &err);
}

static int clean_up(void **state)
{
    dt_device_close(dev);
    return leave_scratch(state);
}

static struct dt_model *new_model(enum dt_family family)
{
    struct dt_model *m;
    struct dt_model_config config = llama;
    config.family = family;
    config.num_kv_heads = family == DT_FAMILY_GPT2 ? 4 : 2;
    config.tie_word_embeddings = family != DT_FAMILY_LLAMA;
    assert_int_equal(dt_model_config_check(&config, "model", &err), 0);
    assert_int_equal(dt_model_new(&m, dev, &config, DT_DTYPE_F32, &err), 0);
    dt_model_initialize(m, 3);
    return m;
}

static int write_model(const struct dt_model *m, enum dt_gguf_weights type)
{
    const struct dt_gguf_options options = {.name = "tiny", .type = type, .bos = UINT32_MAX};
    return dt_gguf_write(m, &options, path, &err);
}

/* The data of the tensor with this name, of rows x columns. */
static const float *find_tensor(const char *file, size_t size, const char *name, uint64_t columns,
                                uint64_t rows, uint64_t data_bytes)
{
    const char *at = memmem(file, size, name, strlen(name));
    uint32_t rank, type;
    uint64_t shape[2], offset;
    assert_non_null(at);
    at += strlen(name);
    memcpy(&rank, at, 4);
    memcpy(shape, at + 4, 16);
    memcpy(&type, at + 20, 4);
    memcpy(&offset, at + 24, 8);
    assert_int_equal(rank, 2);
    assert_int_equal(type, 0);
    assert_int_equal(shape[0], columns);
    assert_int_equal(shape[1], rows);
    assert_int_equal(offset % 32, 0);
    return (const float *)(file + size - data_bytes + offset);
}

static uint64_t data_bytes_of(const struct dt_model *m)
{
    uint64_t sum = 0;
    for (int i = 0; i < m->table.count; i++)
        sum += ((uint64_t)m->table.params[i].count * 4 + 31) / 32 * 32;
    return sum;
}

/* Row (head, j, i) of reshape(H, 2, D/2) is at (head, i, j), because llama.cpp rotates adjacent
 * channels. */
static void check_permuted(const float *file, const float *own, int64_t heads, int64_t size,
                           int64_t columns)
{
    for (int64_t h = 0; h < heads; h++)
        for (int64_t j = 0; j < 2; j++)
            for (int64_t i = 0; i < size / 2; i++)
                assert_memory_equal(file + (h * size + i * 2 + j) * columns,
                                    own + (h * size + j * (size / 2) + i) * columns,
                                    (size_t)columns * sizeof *own);
}

static void llamas_queries_and_keys_are_permuted(void **state)
{
    (void)state;
    struct dt_model *m = new_model(DT_FAMILY_LLAMA);
    char *file;
    size_t size;
    assert_int_equal(write_model(m, DT_GGUF_F32), 0);
    assert_int_equal(dt_file_read(path, 1 << 20, &file, &size, &err), 0);
    uint64_t bytes = data_bytes_of(m);
    const struct dt_param *q = dt_table_find(&m->table, DT_ROLE_Q_WEIGHT, 0);
    const struct dt_param *k = dt_table_find(&m->table, DT_ROLE_K_WEIGHT, 0);
    const struct dt_param *v = dt_table_find(&m->table, DT_ROLE_V_WEIGHT, 0);
    check_permuted(find_tensor(file, size, "blk.0.attn_q.weight", 32, 32, bytes),
                   m->parameters + q->offset, 4, 8, 32);
    check_permuted(find_tensor(file, size, "blk.0.attn_k.weight", 32, 16, bytes),
                   m->parameters + k->offset, 2, 8, 32);
    assert_memory_equal(find_tensor(file, size, "blk.0.attn_v.weight", 32, 16, bytes),
                        m->parameters + v->offset, 32 * 16 * 4);
    free(file);
    dt_model_free(m);
}

static void gpt2s_linear_maps_are_transposed(void **state)
{
    (void)state;
    struct dt_model *m = new_model(DT_FAMILY_GPT2);
    char *file;
    size_t size;
    assert_int_equal(write_model(m, DT_GGUF_F32), 0);
    assert_int_equal(dt_file_read(path, 1 << 20, &file, &size, &err), 0);
    const float *own = m->parameters + dt_table_find(&m->table, DT_ROLE_UP_WEIGHT, 0)->offset;
    const float *there = find_tensor(file, size, "blk.0.ffn_up.weight", 32, 64, data_bytes_of(m));
    for (int out = 0; out < 64; out++)
        for (int in = 0; in < 32; in++)
            assert_true(there[out * 32 + in] == own[in * 64 + out]);
    free(file);
    dt_model_free(m);
}

/* 1 + w rounds to what dt computes with, so the file has it, and w read back gives it again. */
static void gemmas_norms_are_stored_with_1_added(void **state)
{
    (void)state;
    struct dt_model *m = new_model(DT_FAMILY_GEMMA), *again;
    static const float weights[] = {0.1234567F, -0.9876543F, 3.1415926F, -2.5F};
    char *file;
    size_t size;
    float *norm = m->parameters + dt_table_find(&m->table, DT_ROLE_NORM2_WEIGHT, 0)->offset;
    memcpy(norm, weights, sizeof weights);
    assert_int_equal(write_model(m, DT_GGUF_F16), 0);
    assert_int_equal(dt_gguf_read(&again, dev, (struct dt_model_use){DT_DTYPE_F32}, path, &err), 0);
    const float *back =
        again->parameters + dt_table_find(&again->table, DT_ROLE_NORM2_WEIGHT, 0)->offset;
    for (int i = 0; i < 4; i++)
        assert_true(back[i] + 1 == weights[i] + 1);
    dt_model_free(again);

    const float stored = weights[0] + 1, other = 0.1F; /* 0.1F - 1 rounds */
    assert_int_equal(dt_file_read(path, 1 << 20, &file, &size, &err), 0);
    char *at = memmem(file, size, &stored, sizeof stored);
    assert_non_null(at);
    memcpy(at, &other, sizeof other);
    assert_int_equal(dt_file_write(path, file, size, &err), 0);
    assert_int_equal(dt_gguf_read(&again, dev, (struct dt_model_use){DT_DTYPE_F32}, path, &err),
                     DT_EFORMAT);
    assert_non_null(
        strstr(err.text, "element 0 is 0.100000001, which is not 1 + a number in fp32"));
    free(file);
    dt_model_free(m);
}

static void damaged_files_are_refused_or_read(void **state)
{
    (void)state;
    struct dt_model *m = new_model(DT_FAMILY_LLAMA), *again;
    struct dt_rng rng;
    char *file;
    size_t size;
    assert_int_equal(write_model(m, DT_GGUF_Q8_0), 0);
    assert_int_equal(dt_file_read(path, 1 << 20, &file, &size, &err), 0);
    dt_rng_init(&rng, 1);
    for (size_t n = 0; n < size; n += n < 2000 ? 7 : 501) {
        assert_int_equal(dt_file_write(path, file, n, &err), 0);
        assert_int_equal(dt_gguf_read(&again, dev, (struct dt_model_use){DT_DTYPE_F32}, path, &err),
                         DT_EFORMAT);
        assert_null(again);
    }
    for (int times = 0; times < 1500; times++) {
        size_t at = dt_rng_below(&rng, 1800);
        char before = file[at];
        file[at] = (char)(times % 3 ? before ^ 1 << dt_rng_below(&rng, 8) : 0xff);
        assert_int_equal(dt_file_write(path, file, size, &err), 0);
        int rc = dt_gguf_read(&again, dev, (struct dt_model_use){DT_DTYPE_F32}, path, &err);
        if (rc < 0 && strncmp(err.text, path, strlen(path)) != 0)
            fail_msg("does not name the file: %s", err.text);
        dt_model_free(again);
        file[at] = before;
    }
    free(file);
    dt_model_free(m);
}

/* Overwrites bytes of a model's file with value, offset bytes after the start of needle. */
static void assert_model_refused(struct dt_model *m, const char *needle, size_t offset,
                                 uint64_t value, size_t bytes, const char *reason)
{
    struct dt_model *again;
    char *file;
    size_t size;
    assert_int_equal(write_model(m, DT_GGUF_F32), 0);
    assert_int_equal(dt_file_read(path, 1 << 20, &file, &size, &err), 0);
    char *at = memmem(file, size, needle, strlen(needle));
    assert_non_null(at);
    memcpy(at + offset, &value, bytes);
    assert_int_equal(dt_file_write(path, file, size, &err), 0);
    assert_true(dt_gguf_read(&again, dev, (struct dt_model_use){DT_DTYPE_F32}, path, &err) < 0);
    if (strstr(err.text, reason) == NULL)
        fail_msg("'%s', not '%s'", err.text, reason);
    free(file);
    dt_model_free(m);
}

static void assert_refused(const char *needle, size_t offset, uint64_t value, size_t bytes,
                           const char *reason)
{
    assert_model_refused(new_model(DT_FAMILY_LLAMA), needle, offset, value, bytes, reason);
}

/* Writes and reads a model with x among the weights of queries. Returns the first error. */
static int write_and_read(float x, enum dt_gguf_weights type)
{
    struct dt_model *m = new_model(DT_FAMILY_LLAMA), *again = NULL;
    const struct dt_param *p = &m->table.params[0];
    while (strstr(p->name, "q_proj") == NULL)
        p++;
    m->parameters[p->offset + 5] = x;
    int rc = write_model(m, type);
    rc = rc < 0 ? rc : dt_gguf_read(&again, dev, (struct dt_model_use){DT_DTYPE_F32}, path, &err);
    dt_model_free(again);
    dt_model_free(m);
    return rc;
}

static void weights_that_are_not_finite_in_the_files_type_are_not_written(void **state)
{
    (void)state;
    assert_int_equal(write_and_read(70000, DT_GGUF_F32), 0);
    assert_int_equal(write_and_read(70000, DT_GGUF_BF16), 0);
    assert_int_equal(write_and_read(70000, DT_GGUF_F16), DT_EFORMAT);
    assert_non_null(strstr(err.text, "q_proj.weight': element 5 is 70000, which overflows fp16"));
    assert_int_equal(write_and_read(8e6f, DT_GGUF_Q8_0), 0);
    assert_int_equal(write_and_read(9e6f, DT_GGUF_Q8_0), DT_EINVALID);
    assert_non_null(strstr(err.text, "q_proj.weight': the scale of a block overflows fp16"));
    assert_int_equal(write_and_read(-NAN, DT_GGUF_F32), DT_EFORMAT);
    assert_non_null(strstr(err.text, "q_proj.weight': element 5 is NaN"));
}

static void weights_that_are_not_finite_are_not_read(void **state)
{
    (void)state;
    struct dt_model *m = new_model(DT_FAMILY_LLAMA), *again;
    char *file;
    size_t size;
    assert_int_equal(write_model(m, DT_GGUF_F32), 0);
    assert_int_equal(dt_file_read(path, 1 << 20, &file, &size, &err), 0);
    const int64_t width = m->config.hidden_size;
    const float *q = find_tensor(file, size, "blk.0.attn_q.weight", (uint64_t)width,
                                 (uint64_t)width, data_bytes_of(m));
    const float infinite = -INFINITY;
    memcpy(file + ((const char *)(q + 7) - file), &infinite, sizeof infinite);
    assert_int_equal(dt_file_write(path, file, size, &err), 0);
    assert_int_equal(dt_gguf_read(&again, dev, (struct dt_model_use){DT_DTYPE_F32}, path, &err),
                     DT_EFORMAT);
    assert_non_null(strstr(err.text, "tensor 'blk.0.attn_q.weight': element 7 is -Inf"));
    assert_null(again);
    free(file);
    dt_model_free(m);
}

static void invalid_files_are_refused(void **state)
{
    (void)state;
    assert_refused("GGUF", 0, 0x21, 1, "is not a GGUF file");
    assert_refused("GGUF", 4, 2, 4, "is GGUF version 2");
    assert_refused("GGUF", 4, 3u << 24, 4, "is big-endian");
    assert_refused("GGUF", 8, UINT64_MAX, 8, "the number of tensors exceeds the size of the file");
    assert_refused("GGUF", 16, UINT64_MAX / 13, 8,
                   "the number of values exceeds the size of the file");
    assert_refused("GGUF", 24, UINT64_MAX - 7, 8, "a string is longer than the file");
    assert_refused("general.architecture", 20, 13, 4, "a value has an unknown type");
    assert_refused("general.architecture", 20, 9, 4, "an array");
    assert_refused("llama.block_count", 21, 0x7fffffff, 4, "");
    assert_refused("llama.context_length", 24, 0, 4, "max_position_embeddings must be from 1");
    assert_refused("llama.rope.freq_base", 6, 0x78, 1, "llama.xope.freq_base is not known");
    const char *q = "blk.0.attn_q.weight";
    assert_refused(q, 19, 5, 4, "a tensor must have 1 to 4 dimensions");
    assert_refused(q, 23, UINT64_MAX / 2, 8, "a tensor is too large");
    assert_refused(q, 23, 31, 8, "tensor 'blk.0.attn_q.weight' of the model's shape is missing");
    assert_refused(
        q, 39, 10, 4,
        "tensor 'blk.0.attn_q.weight' is of type Q2_K (10), which dt does not read: convert");
    assert_refused(q, 43, 4, 8, "a tensor is not aligned");
    assert_refused(q, 43, 0, 8, "tensors overlap");
    assert_refused(q, 43, UINT64_MAX - 31, 8, "the file ends before its tensors");
    assert_refused(q, 5, '1', 1, "");
    assert_model_refused(new_model(DT_FAMILY_STABLELM), "stablelm.rope.dimension_count", 33, 1, 4,
                         "m.gguf: model.rotary_dim must be even");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llamas_queries_and_keys_are_permuted),
        cmocka_unit_test(gpt2s_linear_maps_are_transposed),
        cmocka_unit_test(gemmas_norms_are_stored_with_1_added),
        cmocka_unit_test(damaged_files_are_refused_or_read),
        cmocka_unit_test(invalid_files_are_refused),
        cmocka_unit_test(weights_that_are_not_finite_in_the_files_type_are_not_written),
        cmocka_unit_test(weights_that_are_not_finite_are_not_read),
    };
    return cmocka_run_group_tests(tests, prepare, clean_up);
}
