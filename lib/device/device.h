/* SPDX-License-Identifier: MIT */
/*
 * Devices and their ops.
 *
 * Model and training code call the ops below, whatever the device. An engine is a
 * plug-in (cpu-avx512.so, ...) that exports one struct dt_engine; dt_device_open
 * loads the best one for the machine.
 *
 *     struct dt_device *dev;
 *     DT_TRY(dt_device_open(&dev, "cpu", threads, err));
 *     dev->ops->matmul(dev, &y, &x, &w, &(struct dt_matmul){.bias = b.data});
 *
 * Shapes: B sequences, T tokens each, R = B*T rows, C channels, H heads,
 * V vocabulary. A tensor is a matrix view; leading dimensions are flattened
 * into its rows. Ops do not allocate device memory, and are asynchronous:
 * synchronize() waits and reports errors. Wrong shapes are bugs of the caller
 * (assert). The cpu engine's results have the same bits for any number of
 * threads: rows or columns are divided among threads, and the shape alone
 * determines the order of sums.
 */
#ifndef DT_DEVICE_DEVICE_H
#define DT_DEVICE_DEVICE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "device/activations.h"
#include "device/links.h"
#include "device/split-logits.h"
#include "device/update-rules.h"
#include "hash/sum-hash.h"
#include "math/exact-sum.h"

/* Element types. The 16-bit ones are for storage: every op computes in fp32 and
 * rounds its result to nearest even. */
enum dt_dtype { DT_DTYPE_F32, DT_DTYPE_BF16, DT_DTYPE_F16 };

/* rows x columns elements, stride elements from one row to the next. The
 * memory belongs to an arena or a buffer of the device. A stride of 0 broadcasts
 * one row to all, for operands that are only read.
 *
 * With panels the rows are divided into panels of DT_PANEL rows, the last of which may have fewer,
 * one after another, and a panel is stored column by column, of bf16 by pairs of columns, element
 * by element; a last one without a pair follows them: ops->store_panels. Only matmul reads it, as a
 * transposed B, and embedding_forward, as tokens. */
struct dt_tensor {
    void *data;
    enum dt_dtype dtype;
    int64_t rows, columns, stride;
    bool panels;
};
#define DT_PANEL 64

/* Two factors of a product. */
struct dt_factors {
    const struct dt_tensor *a, *b;
};

/* Options of matmul, and its epilogue. */
struct dt_matmul {
    bool transpose_a, transpose_b;
    /* The order of the sum over K: it is divided into parts of equal length, a power of two, whose
     * sums are added in a binary tree. 0: one part. part_ends: where each part ends; NULL: equal.
     */
    int parts;
    const int64_t *part_ends;
    /* Further products that are added to each part; transposed alike, of the same element type. */
    const struct dt_factors *more;
    int more_count;
    bool accumulate;              /* C += instead of C = */
    const struct dt_tensor *bias; /* 1 x N, added to each row; or NULL */
    enum dt_activation activation;
    /* Shaped as C; required with an activation, whose input it keeps. With derivative, C is
     * the product times the activation's derivative at aux. */
    struct dt_tensor *aux;
    bool derivative;
    /* Unless NULL, sums_a += the sum of A's rows (1 x M, fp32; requires transpose_a), sums_b +=
     * that of B's (1 x N, fp32; B not transposed): the gradient of a bias, with that of its weight.
     * At most one of them, without bias and activation, and not with a stride of 0. */
    struct dt_tensor *sums_a, *sums_b;
    /* Every rank computes this product; the bits must be the same on devices of the same type. */
    bool replicated;
};

/* Dropout (Srivastava et al. 2014) as a function: element e of a sequence, of the
 * global index sample + (its index in the batch), is kept where word e mod 4 of
 * dt_random(key, index, e / 4) is at least rate * 2^32, and then divided by 1 - rate.
 * Therefore no mask is stored: backward generates it again. */
struct dt_dropout {
    float rate;      /* 0: none */
    uint64_t key;    /* of (seed, layer, dropout of the layer) */
    uint64_t sample; /* global index of the batch's first sequence */
    int64_t first;   /* row of the batch that is row 0 of ops->dropout's operand */
    int64_t past;    /* position of the first row of every sequence there */
};

/* Attention. Row t of sequence b is row b*T + t of q, y and their gradients; of k
 * and v it is row b*key_stride + t, so that a KV cache with a larger capacity is
 * read in place. Query t is at position p = past+t of its sequence, and attends to keys
 * 0 .. p, or to all keys of its sequence if bidirectional; with a window (Beltagy et al. 2020),
 * only to keys p - window + 1 .. p, or p - window / 2 .. p + window / 2 if bidirectional; with
 * begins and ends, only to those from begins[r] to below ends[r], where r is the query's row
 * (documents, padding). The output of a query without keys is 0, its log-sum-exp minus infinity.
 * Each head of k and v serves heads / kv_heads adjacent heads of q (GQA, Ainslie et al. 2023). The
 * bits of a query's results depend on its own keys alone. */
struct dt_attention {
    int64_t batch;
    int64_t heads;      /* of q and y */
    int64_t kv_heads;   /* of k and v; heads is a multiple of it */
    int64_t queries;    /* T of q */
    int64_t past;       /* keys before the first query */
    int64_t key_stride; /* rows of k and v from one sequence to the next */
    bool bidirectional;
    int64_t window; /* 0: none; blocks of keys outside it cost no time */
    float scale;    /* of the products of queries and keys, at least 0; 0: 1 / sqrt(D) */
    float softcap;  /* c: a scaled score s becomes c tanh(s / c), before masks; 0: none */
    const int32_t *begins, *ends; /* on the device, batch x queries each; or NULL */
    /* Of the attention weights: head h, query t and key k are element (h T + t) T + k, with
     * positions in the whole sequence of T tokens. */
    struct dt_dropout dropout;
    int64_t first_head; /* global index of q's first head: tensor parallelism */
    int64_t length;     /* T, the keys of a bidirectional sequence; 0: past + queries */
};

/* From x, the product of the head, to logits: scale x, and with a softcap c, c tanh(scale x / c)
 * (Gemma 2). */
struct dt_logit_map {
    float scale;   /* 0: 1 */
    float softcap; /* 0: none */
};

/* The keys that a query at position p may attend to, by position alone: p - before to p + after. */
struct dt_attention_band {
    int64_t before, after;
};

static inline struct dt_attention_band dt_attention_band_of(const struct dt_attention *how)
{
    int64_t before = how->bidirectional ? how->window / 2 : how->window - 1;
    struct dt_attention_band band = {how->window > 0 ? before : INT32_MAX, INT32_MAX};
    if (!how->bidirectional)
        band.after = 0;
    else if (how->window > 0)
        band.after = before;
    return band;
}

/* size: D, channels of a head. */
static inline float dt_attention_scale(const struct dt_attention *how, int64_t size)
{
    return how->scale != 0 ? how->scale : 1.0f / sqrtf((float)size);
}

struct dt_cross_entropy {
    float scale;             /* of the gradient; 0: compute the loss only */
    float label_smoothing;   /* s: the target is 1 - s on its token and s / V on every one */
    float z_loss;            /* z: adds z * (log of the softmax's sum)^2 (Chowdhery et al. 2022) */
    struct dt_logit_map map; /* from x below to logits */
};

/* Statistics of a part of a row of logits (device/split-logits.h): the number of columns, the
 * highest logit h, the sums of e^(x - h) and of h - x, the target's logit or minus infinity, and 1
 * if the target is the first of the highest, otherwise 0. */
#define DT_LOGIT_SUMS 6

struct dt_device;

struct dt_ops {
    /* Device memory: 64-byte aligned, zeroed; NULL if out of memory. */
    void *(*allocate)(struct dt_device *, size_t bytes);
    void (*release)(struct dt_device *, void *memory, size_t bytes);
    void (*upload)(struct dt_device *, void *device_memory, const void *host, size_t bytes);
    void (*download)(struct dt_device *, void *host, const void *device_memory, size_t bytes);
    /* Bytes of free device memory. */
    size_t (*available)(struct dt_device *);
    int (*synchronize)(struct dt_device *, struct dt_error *);

    /* to = from, row by row; strides and element types may differ. */
    void (*copy)(struct dt_device *, struct dt_tensor *to, const struct dt_tensor *from);
    /* x = 0, all rows. */
    void (*zero)(struct dt_device *, struct dt_tensor *x);
    /* y = a x + b y, element by element; element types may differ, and x may be y. */
    void (*combine)(struct dt_device *, struct dt_tensor *y, float b, const struct dt_tensor *x,
                    float a);

    /* C (MxN) = act(op(A) (MxK) * op(B) (KxN) + bias). A and B have one element type;
     * C has it too, or is fp32. */
    void (*matmul)(struct dt_device *, struct dt_tensor *c, const struct dt_tensor *a,
                   const struct dt_tensor *b, const struct dt_matmul *how);

    /* Rearranges x, which is contiguous, into panels of its rows or columns, in place: products
     * with its transpose, or with x itself, then read it sequentially. x becomes a tensor with
     * panels, of columns that of its transpose. Returns whether this element type can be; NULL: the
     * engine has no panels. */
    bool (*store_panels)(struct dt_device *, struct dt_tensor *x, bool columns);

    /* y = activation(x), with the same bits as matmul's. */
    void (*activation_forward)(struct dt_device *, struct dt_tensor *y, const struct dt_tensor *x,
                               enum dt_activation);

    /* dx (RxC) *= the activation's derivative at x: from the gradient of its output to that of its
     * input. */
    void (*activation_backward)(struct dt_device *, struct dt_tensor *dx, const struct dt_tensor *x,
                                enum dt_activation);

    /* x (RxC) = dropout of x. Row r, counted from how->first, is row r mod T of sequence r / T,
     * where T is length; row t and column c of a sequence are its element (past + t) C + c. */
    void (*dropout)(struct dt_device *, struct dt_tensor *x, int64_t length,
                    const struct dt_dropout *how);

    /* bias (1xN) += sum over the rows of dy (RxN). Gradients of parameters are fp32. parts: the
     * number of parts of the rows whose sums are added in a binary tree; also below. */
    void (*bias_backward)(struct dt_device *, struct dt_tensor *dbias, const struct dt_tensor *dy,
                          int parts);

    /* y (RxC) = tokens[ids[r]] + positions[past + r mod T] (positions NULL: without
     * them); ids are on device. Ids outside the rows of tokens belong to other ranks'
     * vocabulary shards: their embedding is 0, without a gradient. */
    void (*embedding_forward)(struct dt_device *, struct dt_tensor *y, const int32_t *ids,
                              const struct dt_tensor *tokens, const struct dt_tensor *positions,
                              int64_t length, int64_t past);
    /* dtokens[ids[r]] += dy[r], dpositions[r mod T] += dy[r]; dpositions may be NULL. Rows of the
     * same token, or position, are first added to each other, in parts. */
    void (*embedding_backward)(struct dt_device *, struct dt_tensor *dtokens,
                               struct dt_tensor *dpositions, const struct dt_tensor *dy,
                               const int32_t *ids, int64_t length, int parts);

    /* gather: y[r] = x[rows[r]]. scatter: y[rows[r]] = x[r], other rows of y stay; rows are
     * distinct. rows is on device. */
    void (*gather)(struct dt_device *, struct dt_tensor *y, const struct dt_tensor *x,
                   const int32_t *rows);
    void (*scatter)(struct dt_device *, struct dt_tensor *y, const struct dt_tensor *x,
                    const int32_t *rows);

    /* sum (RxC) = x + add (add NULL: sum = x, and sum may be x itself);
     * y = (sum - mean) * rstd * weight + bias over each row (Ba et al. 2016).
     * stats (Rx2) keeps mean and rstd. */
    void (*norm_forward)(struct dt_device *, struct dt_tensor *y, struct dt_tensor *stats,
                         struct dt_tensor *sum, const struct dt_tensor *x,
                         const struct dt_tensor *add, const struct dt_tensor *weight,
                         const struct dt_tensor *bias, float epsilon);
    /* dsum, dweight, dbias += the gradients. sum and stats: outputs of norm_forward. */
    void (*norm_backward)(struct dt_device *, struct dt_tensor *dsum, struct dt_tensor *dweight,
                          struct dt_tensor *dbias, const struct dt_tensor *dy,
                          const struct dt_tensor *sum, const struct dt_tensor *weight,
                          const struct dt_tensor *stats, int parts);

    /* sum as in norm_forward; y = sum * rstd * (offset + weight) over each row, where rstd is
     * 1 / sqrt(mean of squares + epsilon) (Zhang and Sennrich 2019). rstd (Rx1) is kept.
     * If x has G times the columns of weight, each of a row's G groups (the heads of
     * queries or keys) is normalized separately, and rstd is RxG. */
    void (*rms_norm_forward)(struct dt_device *, struct dt_tensor *y, struct dt_tensor *rstd,
                             struct dt_tensor *sum, const struct dt_tensor *x,
                             const struct dt_tensor *add, const struct dt_tensor *weight,
                             float weight_offset, float epsilon);
    /* dsum, dweight += the gradients. */
    void (*rms_norm_backward)(struct dt_device *, struct dt_tensor *dsum, struct dt_tensor *dweight,
                              const struct dt_tensor *dy, const struct dt_tensor *sum,
                              const struct dt_tensor *weight, float weight_offset,
                              const struct dt_tensor *rstd, int parts);

    /* Rotary embedding of x (Rx(heads*D)), in place (Su et al. 2021): in each head of D
     * channels, the pair of channels j and j + D/2 of row r is rotated by the angle whose
     * cosine and sine are columns j and j + D/2 of table[past + r mod T]. inverse: rotates
     * back, as backward needs. table has D columns, or fewer, n: then the first n channels of
     * each head are rotated, in pairs j and j + n/2. */
    void (*rope)(struct dt_device *, struct dt_tensor *x, const struct dt_tensor *table,
                 int64_t head_dim, int64_t length, int64_t past, bool inverse);

    /* y = activation(gate) up, element by element: SwiGLU with SILU, GEGLU with GELU (Shazeer
     * 2020). */
    void (*gated_forward)(struct dt_device *, struct dt_tensor *y, const struct dt_tensor *gate,
                          const struct dt_tensor *up, enum dt_activation);
    /* Sets dgate; dy becomes the gradient of up. */
    void (*gated_backward)(struct dt_device *, struct dt_tensor *dgate, struct dt_tensor *dy,
                           const struct dt_tensor *gate, const struct dt_tensor *up,
                           enum dt_activation);

    /* y (RxC) = softmax(q k' scale) v of each head, without storing the scores
     * (FlashAttention, Dao et al. 2022); lse (R x H) keeps each row's log-sum-exp. */
    void (*attention_forward)(struct dt_device *, struct dt_tensor *y, struct dt_tensor *lse,
                              const struct dt_tensor *q, const struct dt_tensor *k,
                              const struct dt_tensor *v, const struct dt_attention *how);
    /* Sets dq, and dk and dv of all key_stride rows of each sequence: 0 of the keys that no query
     * attends to. dk and dv may be fp32 with k and v of another type. */
    void (*attention_backward)(struct dt_device *, struct dt_tensor *dq, struct dt_tensor *dk,
                               struct dt_tensor *dv, const struct dt_tensor *dy,
                               const struct dt_tensor *y, const struct dt_tensor *lse,
                               const struct dt_tensor *q, const struct dt_tensor *k,
                               const struct dt_tensor *v, const struct dt_attention *how);

    /* x (RxV) becomes logits, as cross_entropy computes them. */
    void (*map_logits)(struct dt_device *, struct dt_tensor *x, const struct dt_logit_map *map);
    /* losses[r] = -log softmax(logits[r])[targets[r]], with label smoothing and z-loss, where
     * logits are how->map of x; 0 if the target is negative. hits[r], unless hits is NULL, is 1 if
     * the target is the first of the highest logits, otherwise 0. If scale is not 0, x becomes
     * scale * dloss/dx. */
    void (*cross_entropy)(struct dt_device *, float *losses, float *hits, struct dt_tensor *x,
                          const int32_t *targets, const struct dt_cross_entropy *how);
    /* Vocabulary-parallel cross-entropy: a rank has some columns of the logits, which are one or
     * several parts. logit_sums sets sums (R x DT_LOGIT_SUMS, fp32) of each part, in the order of
     * their columns, of the map of x; targets are relative to the rank's first column, and other
     * ranks' targets are outside the range. Then cross_entropy_of_sums takes the gathered sums of
     * all parts of all ranks (R rows each), and sets losses, hits and, with a scale, the rank's
     * columns of the gradient. Every row has a target. */
    void (*logit_sums)(struct dt_device *, struct dt_tensor *sums, const struct dt_tensor *x,
                       const int32_t *targets, const struct dt_logit_parts *parts,
                       const struct dt_logit_map *map);
    void (*cross_entropy_of_sums)(struct dt_device *, float *losses, float *hits,
                                  struct dt_tensor *x, const struct dt_tensor *sums,
                                  const int32_t *targets, const struct dt_logit_parts *parts,
                                  const struct dt_cross_entropy *how);

    /* Adds n floats, or their squares, to the exact sum, in device memory; without waiting. */
    void (*exact_sum)(struct dt_device *, struct dt_exact_sum *sum, const float *x, int64_t n,
                      bool squares);
    /* The exact sum of squares of n floats, rounded once. Waits for the result. */
    double (*sum_squares)(struct dt_device *, const float *x, int64_t n);

    /* Moves the k numbers of largest magnitude from x (n below 2^31) to values, in the order of
     * their indices, which indices receives; they become 0 in x. Of equal ones, the first are
     * taken; NaN is larger than all numbers. */
    void (*take_largest)(struct dt_device *, float *x, int64_t n, int64_t k, int32_t *indices,
                         float *values);
    /* Orthonormalizes the rows of x (RxN, fp32, R at most N) by modified Gram-Schmidt (Bjorck
     * 1967), with dot products in fp64. A row of norm below 1e-15, after subtraction of its
     * projections, becomes 0. */
    void (*orthonormalize)(struct dt_device *, struct dt_tensor *x);

    /* One optimizer step of how->rule on n parameters. state: an array of n floats for each of
     * the rule's dt_update_slots. */
    void (*update)(struct dt_device *, float *parameters, float *const *state,
                   const float *gradients, int64_t n, const struct dt_update *how);

    /* Adds the elements of x (RxC, fp32) to a hash in host memory: row r, column c has index
     * first + r stride + c. Waits for the result. */
    void (*hash)(struct dt_device *, struct dt_sum_hash *hash, const struct dt_tensor *x,
                 uint64_t seed, uint64_t first, uint64_t stride);
};

/* A plug-in exports this as "dt_engine". */
struct dt_engine {
    int abi;
    const char *name;
    /* The device has separate memory: the host accesses it only by upload and download. */
    bool own_memory;
    int64_t head_channels;        /* of a head of attention, at most; 0: any number */
    const struct dt_links *links; /* between devices of several ranks; NULL: not supported */
    const struct dt_ops *ops;
    const struct dt_ops *canonical; /* with the bits of dt-arithmetic(7); NULL: ops, which look at
                                       the device's canonical */
    int (*open)(struct dt_device *, struct dt_error *);
    void (*close)(struct dt_device *);
};
#define DT_ENGINE_ABI 22

struct dt_device {
    const struct dt_ops *ops;
    const struct dt_engine *engine;
    const char
        *isa; /* determines the bits: instruction set, or GPU; set by open, owned by the engine */
    int threads;          /* that the next op uses: dt_device_use_threads */
    int most_threads;     /* that it was opened with */
    bool chooses_threads; /* none was given: the fastest number is found, device/thread-choice.h */
    bool canonical;       /* dt_device_set_canonical */
    void *state;          /* of the engine */
};

/* name: "cpu" picks the best instruction set of this machine, "cpu-avx2" that
 * one. threads 0: OMP_NUM_THREADS, or up to all processors. Engines are loaded
 * from $DT_ENGINES, or from lib/dt beside the program's bin/. */
int dt_device_open(struct dt_device **dev, const char *name, int threads,
                   struct dt_error *err) DT_MUST_CHECK;
void dt_device_close(struct dt_device *dev); /* NULL is fine */
/* From now on ops use that number of threads, from 1 to most_threads; the bits stay the same. */
void dt_device_use_threads(struct dt_device *dev, int threads);
const char *dt_device_cpu_name(void); /* the engine that "cpu" opens */
/* Appends the names that are installed (options/completion.h). */
struct dt_buffer;
void dt_device_add_names(struct dt_buffer *words);

/* From now on all ops have the bits of dt-arithmetic(7), which are those of every machine and
 * engine: of the cpu engine, 16-bit products too; of the cuda engine, by its canonical kernels.
 * Otherwise an engine uses its fastest instructions. */
void dt_device_set_canonical(struct dt_device *dev);

/* For benchmarks: fills x, which is contiguous, with random numbers between -1 and 1; key is the
 * seed. The same 65536 numbers repeat. */
int dt_device_fill(struct dt_device *dev, struct dt_tensor *x, uint64_t key,
                   struct dt_error *err) DT_MUST_CHECK;
/* The highest speed of matrix products of this element type, measured for about `within` seconds,
 * in FLOP/s. 0 if out of memory. The reference of MFU is dt_peak_find (device/peaks.h). */
double dt_device_peak(struct dt_device *dev, enum dt_dtype type, double within);
/* Memory bandwidth in bytes per second: the highest speed at which processors read memory larger
 * than their caches, for about `within` seconds, or a device with separate memory sums floats. 0
 * if out of memory. */
double dt_device_read_speed(struct dt_device *dev, double within);

size_t dt_dtype_size(enum dt_dtype dtype); /* bytes of an element */

/* Views. */
struct dt_tensor dt_matrix(void *data, int64_t rows, int64_t columns); /* of fp32 */
struct dt_tensor dt_matrix_of(enum dt_dtype dtype, void *data, int64_t rows, int64_t columns);
struct dt_tensor dt_tensor_rows(const struct dt_tensor *x, int64_t first, int64_t count);
struct dt_tensor dt_tensor_columns(const struct dt_tensor *x, int64_t first, int64_t count);

#endif
