/* SPDX-License-Identifier: MIT */
/*
 * op-speed [DEVICE [ROWS]]: speed of an engine's ops on activations of GPT-2 124M in bf16, relative
 * to the measured peaks of the device (copy and fastest GEMM), and of the GEMMs of a step of a
 * quarter of the rows. Prints one JSON object per line: op, milliseconds, GB/s or GFLOP/s, and the
 * share of the measured peak. Each operand counts once. With the default ROWS, operands are several
 * times larger than a GPU's cache.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "device/device.h"
#include "math/rng.h"

enum { WIDTH = 768, HEADS = 12, LENGTH = 1024, VOCABULARY = 50304, REPEATS = 5 };
enum { TOKENS = 50257, CHUNK = 2560 }; /* of GPT-2; rows of logits that the head takes at a time */

/* A GEMM of a step: C (rows x columns); for the gradient of a weight, C += in fp32. */
struct product {
    const char *name;
    int64_t rows, columns, depth;
    bool transpose_a, transpose_b;
    bool sums; /* also sums the rows of b (gradient of the bias) */
};

struct operands {
    struct dt_device *dev;
    int64_t rows, logit_rows;
    struct dt_tensor x, y, z, wide, wide2, qkv, logits, weight, bias, matrix, stats, lse;
    struct dt_tensor dweight, dbias, dtable, table, flat, turns;
    float *losses, *moments[3];
    int64_t parameters;
    int32_t *ids;
    const struct product *product;
};

static void *allocate(struct dt_device *dev, size_t bytes)
{
    void *memory = dev->ops->allocate(dev, bytes);
    if (memory == NULL) {
        fprintf(stderr, "op-speed: no memory of the device left\n");
        exit(1);
    }
    return memory;
}

static struct dt_tensor matrix(struct dt_device *dev, enum dt_dtype dtype, int64_t rows,
                               int64_t columns)
{
    struct dt_error err;
    size_t bytes = (size_t)(rows * columns) * dt_dtype_size(dtype);
    struct dt_tensor x = dt_matrix_of(dtype, allocate(dev, bytes), rows, columns);
    if (dt_device_fill(dev, &x, (uint64_t)rows, &err) < 0) {
        fprintf(stderr, "op-speed: %s\n", err.text);
        exit(1);
    }
    return x;
}

static void prepare(struct operands *o, struct dt_device *dev, int64_t rows)
{
    *o = (struct operands){.dev = dev, .rows = rows, .logit_rows = rows / 8};
    o->x = matrix(dev, DT_DTYPE_BF16, rows, WIDTH), o->y = matrix(dev, DT_DTYPE_BF16, rows, WIDTH);
    o->z = matrix(dev, DT_DTYPE_BF16, rows, WIDTH);
    o->wide = matrix(dev, DT_DTYPE_BF16, rows, 4 * WIDTH),
    o->wide2 = matrix(dev, DT_DTYPE_BF16, rows, 4 * WIDTH);
    o->qkv = matrix(dev, DT_DTYPE_BF16, rows, 3 * WIDTH);
    o->logits = matrix(dev, DT_DTYPE_BF16, o->logit_rows, VOCABULARY);
    o->weight = matrix(dev, DT_DTYPE_BF16, 1, WIDTH),
    o->bias = matrix(dev, DT_DTYPE_BF16, 1, 4 * WIDTH);
    o->matrix = matrix(dev, DT_DTYPE_BF16, WIDTH, 4 * WIDTH);
    o->table = matrix(dev, DT_DTYPE_BF16, VOCABULARY, WIDTH);
    o->dtable = matrix(dev, DT_DTYPE_F32, VOCABULARY, WIDTH);
    o->stats = matrix(dev, DT_DTYPE_F32, rows, 2), o->lse = matrix(dev, DT_DTYPE_F32, rows, HEADS);
    o->dweight = matrix(dev, DT_DTYPE_F32, 1, 4 * WIDTH),
    o->dbias = matrix(dev, DT_DTYPE_F32, 1, 4 * WIDTH);
    o->turns = matrix(dev, DT_DTYPE_F32, LENGTH, WIDTH / HEADS);
    o->parameters = (int64_t)VOCABULARY * WIDTH;
    for (int i = 0; i < 3; i++)
        o->moments[i] = matrix(dev, DT_DTYPE_F32, 1, o->parameters).data;
    dev->ops->zero(dev, &(struct dt_tensor){o->moments[1], DT_DTYPE_F32, 1, o->parameters,
                                            o->parameters, false});
    o->losses = allocate(dev, (size_t)rows * sizeof *o->losses);
    o->ids = allocate(dev, (size_t)rows * sizeof *o->ids);
    int32_t *ids = dt_alloc((size_t)rows, sizeof *ids);
    struct dt_rng rng;
    dt_rng_init(&rng, 7);
    for (int64_t i = 0; i < rows; i++) /* as in text: low ids are frequent */
        ids[i] =
            (int32_t)(dt_rng_double(&rng) * dt_rng_double(&rng) * dt_rng_double(&rng) * VOCABULARY);
    dev->ops->upload(dev, o->ids, ids, (size_t)rows * sizeof *ids);
    free(ids);
}

static void copy(struct operands *o)
{
    o->dev->ops->copy(o->dev, &o->wide2, &o->wide);
}

static void multiply(struct operands *o)
{
    o->dev->ops->matmul(o->dev, &o->wide, &o->x, &o->matrix, &(struct dt_matmul){.bias = NULL});
}

static void multiply_bias_gelu(struct operands *o)
{
    o->dev->ops->matmul(o->dev, &o->wide, &o->x, &o->matrix,
                        &(struct dt_matmul){.bias = &o->bias,
                                            .activation = DT_ACTIVATION_GELU_TANH,
                                            .aux = &o->wide2});
}

static void combine(struct operands *o)
{
    o->dev->ops->combine(o->dev, &o->wide, 0.5f, &o->wide2, 0.5f);
}

static void gelu(struct operands *o)
{
    o->dev->ops->activation_forward(o->dev, &o->wide, &o->wide2, DT_ACTIVATION_GELU_TANH);
}

static void gelu_erf_backward(struct operands *o)
{
    o->dev->ops->activation_backward(o->dev, &o->wide, &o->wide2, DT_ACTIVATION_GELU_ERF);
}

static void dropout(struct operands *o)
{
    o->dev->ops->dropout(o->dev, &o->x, LENGTH, &(struct dt_dropout){.rate = 0.1f, .key = 1});
}

static void bias_backward(struct operands *o)
{
    o->dev->ops->bias_backward(o->dev, &o->dbias, &o->wide, 1);
}

static void embedding(struct operands *o)
{
    o->dev->ops->embedding_forward(o->dev, &o->x, o->ids, &o->table, NULL, LENGTH, 0);
}

static void embedding_backward(struct operands *o)
{
    o->dev->ops->embedding_backward(o->dev, &o->dtable, NULL, &o->x, o->ids, LENGTH, 1);
}

static void norm(struct operands *o)
{
    struct dt_tensor bias = dt_tensor_columns(&o->bias, 0, WIDTH);
    o->dev->ops->norm_forward(o->dev, &o->y, &o->stats, &o->z, &o->x, &o->y, &o->weight, &bias,
                              1e-5f);
}

static void norm_backward(struct operands *o)
{
    struct dt_tensor dw = dt_tensor_columns(&o->dweight, 0, WIDTH),
                     db = dt_tensor_columns(&o->dbias, 0, WIDTH);
    o->dev->ops->norm_backward(o->dev, &o->z, &dw, &db, &o->y, &o->x, &o->weight, &o->stats, 1);
}

static void rms_norm(struct operands *o)
{
    struct dt_tensor rstd = dt_matrix(o->stats.data, o->rows, 1);
    o->dev->ops->rms_norm_forward(o->dev, &o->y, &rstd, &o->z, &o->x, &o->y, &o->weight, 0, 1e-5f);
}

static void rope(struct operands *o)
{
    o->dev->ops->rope(o->dev, &o->x, &o->turns, WIDTH / HEADS, LENGTH, 0, false);
}

static void swiglu(struct operands *o)
{
    o->dev->ops->gated_forward(o->dev, &o->wide, &o->wide, &o->wide2, DT_ACTIVATION_SILU);
}

static void cross_entropy(struct operands *o)
{
    o->dev->ops->cross_entropy(o->dev, o->losses, NULL, &o->logits, o->ids,
                               &(struct dt_cross_entropy){.scale = 1e-4f});
}

static void adamw(struct operands *o)
{
    float *const state[] = {o->moments[1], o->moments[2]};
    o->dev->ops->update(o->dev, o->moments[0], state, o->dtable.data, o->parameters,
                        &(struct dt_update){.rule = DT_UPDATE_RULE_ADAMW,
                                            .learning_rate = 1e-4f,
                                            .weight_decay = 0.1f,
                                            .gradient_scale = 1,
                                            .beta1 = 0.9f,
                                            .beta2 = 0.95f,
                                            .epsilon = 1e-8f,
                                            .correction1 = 1,
                                            .correction2 = 1});
}

static void sum_squares(struct operands *o)
{
    (void)o->dev->ops->sum_squares(o->dev, o->dtable.data, o->parameters);
}

static struct dt_attention attention_of(const struct operands *o)
{
    return (struct dt_attention){.batch = o->rows / LENGTH,
                                 .heads = HEADS,
                                 .kv_heads = HEADS,
                                 .queries = LENGTH,
                                 .key_stride = LENGTH};
}

static void attention(struct operands *o)
{
    const struct dt_attention how = attention_of(o);
    struct dt_tensor q = dt_tensor_columns(&o->qkv, 0, WIDTH),
                     k = dt_tensor_columns(&o->qkv, WIDTH, WIDTH);
    struct dt_tensor v = dt_tensor_columns(&o->qkv, 2 * WIDTH, WIDTH);
    o->dev->ops->attention_forward(o->dev, &o->y, &o->lse, &q, &k, &v, &how);
}

static void attention_backward(struct operands *o)
{
    const struct dt_attention how = attention_of(o);
    struct dt_tensor q = dt_tensor_columns(&o->qkv, 0, WIDTH),
                     k = dt_tensor_columns(&o->qkv, WIDTH, WIDTH);
    struct dt_tensor v = dt_tensor_columns(&o->qkv, 2 * WIDTH, WIDTH);
    struct dt_tensor dq = dt_tensor_columns(&o->wide, 0, WIDTH),
                     dk = dt_tensor_columns(&o->wide, WIDTH, WIDTH);
    struct dt_tensor dv = dt_tensor_columns(&o->wide, 2 * WIDTH, WIDTH);
    o->dev->ops->attention_backward(o->dev, &dq, &dk, &dv, &o->x, &o->y, &o->lse, &q, &k, &v, &how);
}

/* Seconds of one run: the median of some series of runs. */
static double time_of(struct operands *o, void (*op)(struct operands *))
{
    struct dt_error err;
    double times[REPEATS];
    int runs = 1;
    for (int i = 0; i < 4; i++) /* GEMMs are tuned at their third use */
        op(o);
    for (int i = 0; i < REPEATS; i++) {
        if (o->dev->ops->synchronize(o->dev, &err) < 0) {
            fprintf(stderr, "op-speed: %s\n", err.text);
            exit(1);
        }
        double start = dt_clock_now();
        for (int run = 0; run < runs; run++)
            op(o);
        if (o->dev->ops->synchronize(o->dev, &err) < 0)
            exit(1);
        times[i] = (dt_clock_now() - start) / runs;
        if (i == 0)
            runs = times[0] < 0.02 ? (int)(0.02 / times[0]) + 1 : 1;
        for (int j = i; j > 0 && times[j] < times[j - 1]; j--) {
            double smaller = times[j];
            times[j] = times[j - 1], times[j - 1] = smaller;
        }
    }
    return times[REPEATS / 2];
}

/* An op, and its bytes or FLOPs per element of x or of the logits. */
struct op {
    const char *name;
    void (*run)(struct operands *);
    double bytes, flops; /* one of them */
};

/* A view of N rows and columns in the memory of x, of the logits or of the head's weight. */
static struct dt_tensor shaped(const struct operands *o, const struct dt_tensor *x, int64_t rows,
                               int64_t columns)
{
    struct dt_tensor logits = dt_tensor_rows(&o->logits, 0, rows);
    if (columns == TOKENS)
        return dt_tensor_columns(&logits, 0, TOKENS);
    if (rows == TOKENS && x->dtype == DT_DTYPE_BF16)
        x = &o->table;
    return dt_matrix_of(x->dtype, x->data, rows, columns);
}

static void multiply_product(struct operands *o)
{
    const struct product *p = o->product;
    struct dt_tensor a = p->transpose_a ? shaped(o, &o->wide, p->depth, p->rows)
                                        : shaped(o, &o->wide, p->rows, p->depth);
    struct dt_tensor b = p->transpose_b ? shaped(o, &o->qkv, p->columns, p->depth)
                                        : shaped(o, &o->qkv, p->depth, p->columns);
    struct dt_tensor c = shaped(o, p->transpose_a ? &o->dtable : &o->wide2, p->rows, p->columns);
    struct dt_tensor sums = dt_tensor_columns(&o->dbias, 0, p->sums ? p->columns : 0);
    const struct dt_matmul how = {.transpose_a = p->transpose_a,
                                  .transpose_b = p->transpose_b,
                                  .accumulate = p->transpose_a,
                                  .sums_b = p->sums ? &sums : NULL};
    o->dev->ops->matmul(o->dev, &c, &a, &b, &how);
}

/* The GEMMs of a layer and of the head: forward, gradient of the input, gradient of the weight. */
static void measure_products(struct operands *o, double peak)
{
    const int64_t rows = o->rows / 4, c = WIDTH;
    const int64_t chunk = o->logit_rows < CHUNK ? o->logit_rows : CHUNK;
    const struct product products[] = {
        {"qkv", rows, 3 * c, c, false, false, false},
        {"qkv, input", rows, c, 3 * c, false, true, false},
        {"qkv, weight", c, 3 * c, rows, true, false, false},
        {"qkv, weight and bias", c, 3 * c, rows, true, false, true},
        {"projection", rows, c, c, false, false, false},
        {"projection, input", rows, c, c, false, true, false},
        {"projection, weight", c, c, rows, true, false, false},
        {"up", rows, 4 * c, c, false, false, false},
        {"up, input", rows, c, 4 * c, false, true, false},
        {"up, weight", c, 4 * c, rows, true, false, false},
        {"up, weight and bias", c, 4 * c, rows, true, false, true},
        {"down", rows, c, 4 * c, false, false, false},
        {"down, input", rows, 4 * c, c, false, true, false},
        {"down, weight", 4 * c, c, rows, true, false, false},
        {"head", chunk, TOKENS, c, false, true, false},
        {"head, input", chunk, c, TOKENS, false, false, false},
        {"head, weight", TOKENS, c, chunk, true, false, false},
    };
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const struct product *p = o->product = &products[i];
        double seconds = time_of(o, multiply_product);
        double rate = 2.0 * (double)p->rows * (double)p->columns * (double)p->depth / seconds;
        printf("{\"op\": \"%s, %lld x %lld x %lld\", \"ms\": %.4f, \"gigaflops\": %.1f, "
               "\"of_peak\": %.3f}\n",
               p->name, (long long)p->rows, (long long)p->columns, (long long)p->depth,
               1e3 * seconds, 1e-9 * rate, rate / peak);
        fflush(stdout);
    }
}

/* The factor of PowerSGD of rank 4 for a matrix of the vocabulary. */
static void orthonormalize(struct operands *o)
{
    struct dt_tensor x = dt_matrix(o->dtable.data, 4, VOCABULARY);
    o->dev->ops->orthonormalize(o->dev, &x);
}

/* The largest 1% of the gradients (top-k compression). */
static void take_largest(struct operands *o)
{
    o->dev->ops->take_largest(o->dev, o->moments[2], o->parameters, o->parameters / 100,
                              o->dtable.data, o->moments[0]);
}

static void measure_all(struct operands *o)
{
    double n = (double)o->rows * WIDTH, l = (double)o->logit_rows * VOCABULARY;
    double parameters = (double)o->parameters, product = 2 * 4 * WIDTH * n;
    double scores = 2.0 * LENGTH * n; /* 2 GEMMs over T/2 keys on average */
    const struct op ops[] = {
        {"copy", copy, 16 * n, 0},
        {"matmul", multiply, 0, product},
        {"matmul + bias + GELU", multiply_bias_gelu, 0, product},
        {"combine", combine, 24 * n, 0},
        {"GELU (tanh)", gelu, 16 * n, 0},
        {"GELU (erf) backward", gelu_erf_backward, 24 * n, 0},
        {"dropout", dropout, 4 * n, 0},
        {"bias backward", bias_backward, 8 * n, 0},
        {"embedding", embedding, 4 * n, 0},
        {"embedding backward", embedding_backward, 10 * n, 0},
        {"norm", norm, 8 * n, 0},
        {"norm backward", norm_backward, 8 * n, 0},
        {"RMS norm", rms_norm, 8 * n, 0},
        {"rope", rope, 4 * n, 0},
        {"SwiGLU", swiglu, 24 * n, 0},
        {"cross-entropy", cross_entropy, 4 * l, 0},
        {"AdamW", adamw, 28 * parameters, 0},
        {"sum of squares", sum_squares, 4 * parameters, 0},
        {"orthonormalize", orthonormalize, 32 * VOCABULARY, 0},
        {"largest 1%", take_largest, 24 * parameters, 0},
        {"attention", attention, 0, scores},
        {"attention backward", attention_backward, 0, 2.5 * scores},
    };
    double copied = 0, multiplied = dt_device_peak(o->dev, DT_DTYPE_BF16, 1);
    printf("{\"op\": \"fastest matmul\", \"gigaflops\": %.1f}\n", 1e-9 * multiplied);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        double seconds = time_of(o, ops[i].run), rate = (ops[i].bytes + ops[i].flops) / seconds;
        copied = i == 0 ? rate : copied;
        printf("{\"op\": \"%s\", \"ms\": %.4f, \"%s\": %.1f, \"of_peak\": %.3f}\n", ops[i].name,
               1e3 * seconds, ops[i].bytes > 0 ? "gigabytes_per_second" : "gigaflops", 1e-9 * rate,
               rate / (ops[i].bytes > 0 ? copied : multiplied));
        fflush(stdout);
    }
    measure_products(o, multiplied);
}

int main(int argc, char **argv)
{
    struct dt_device *dev;
    struct dt_error err;
    struct operands o;
    int64_t rows = argc > 2 ? atoll(argv[2]) : 128 * LENGTH;
    if (rows < LENGTH || rows % LENGTH != 0) {
        fprintf(stderr, "op-speed: ROWS is a multiple of %d\n", LENGTH);
        return 2;
    }
    if (dt_device_open(&dev, argc > 1 ? argv[1] : "cuda", 0, &err) < 0) {
        fprintf(stderr, "op-speed: %s\n", err.text);
        return 1;
    }
    prepare(&o, dev, rows);
    measure_all(&o);
    dt_device_close(dev);
    return 0;
}
