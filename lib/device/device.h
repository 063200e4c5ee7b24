/* SPDX-License-Identifier: MIT */
/*
 * Devices and the op table: the border between what is computed and where.
 *
 * Model and training code call the ops below and never ask which device they
 * run on. An engine is a plug-in (cpu-avx512.so, ...) that exports one struct
 * dt_engine; dt_device_open finds the one that fits the machine.
 *
 *     struct dt_device *dev;
 *     DT_TRY(dt_device_open(&dev, "cpu", threads, err));
 *     dev->ops->matmul(dev, &y, &x, &w, &(struct dt_matmul){.bias = b.data});
 *
 * Shapes: B sequences, T tokens each, R = B*T rows, C channels, H heads,
 * V vocabulary. A tensor is a matrix view; leading dimensions are flattened
 * into its rows. Ops do not allocate, and may return before they are done:
 * synchronize() waits and reports what went wrong. Wrong shapes are bugs of
 * the caller (assert). With the cpu engine every result has the same bits
 * whatever the number of threads: work is cut at rows or columns, and sums run
 * in an order fixed by the shape.
 */
#ifndef DT_DEVICE_DEVICE_H
#define DT_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "device/activations.h"
#include "device/links.h"
#include "device/update-rules.h"

/* Element types. The 16-bit ones are for storage: every op computes in fp32 and
 * rounds its result to nearest even. */
enum dt_dtype { DT_DTYPE_F32, DT_DTYPE_BF16, DT_DTYPE_F16 };

/* rows x columns elements, stride elements from one row to the next. The
 * memory is borrowed from an arena or a buffer of the device. A stride of 0
 * makes every row the same one, for operands that are only read. */
struct dt_tensor {
    void *data;
    enum dt_dtype dtype;
    int64_t rows, columns, stride;
};

/* How matmul treats its operands, and what it does to the product. */
struct dt_matmul {
    bool transpose_a, transpose_b;
    bool accumulate;              /* C += instead of C = */
    const struct dt_tensor *bias; /* 1 x N, added to each row; or NULL */
    enum dt_activation activation;
    /* As C, where there is an activation: what it is applied to is kept there. With
     * derivative, C is the product times the activation's derivative at aux. */
    struct dt_tensor *aux;
    bool derivative;
    /* Unless NULL, the sum of the rows of A (1 x M; A is transposed), or of B (1 x N; B is not),
     * is added to it in fp32: the gradient of a bias, beside that of its weight. One at most,
     * without bias and activation, and of matrices whose rows do not stand for many. */
    struct dt_tensor *sums_a, *sums_b;
    /* Ranks make this product each for itself, and come to the same bits on devices of one kind. */
    bool replicated;
};

/* Dropout (Srivastava et al. 2014) as a function: element e of a sequence, of the
 * global index sample + (its place in the batch), is kept where word e mod 4 of
 * dt_random(key, index, e / 4) is at least rate * 2^32, and then divided by 1 - rate.
 * So no mask is stored, and backward repeats forward. */
struct dt_dropout {
    float rate;      /* 0: none */
    uint64_t key;    /* of (seed, layer, place in the layer) */
    uint64_t sample; /* global index of the batch's first sequence */
    int64_t first;   /* row of the batch with which the operand of ops->dropout begins */
    int64_t past;    /* tokens of every sequence before the first of its rows there */
};

/* Attention of queries over keys. Row t of sequence b is row b*T + t of q, y and
 * their gradients; of k and v it is row b*key_stride + t, so that a cache with
 * room for more can be read in place. Query t sees keys 0 .. past+t, or all of
 * its sequence when bidirectional; and of these, with begins and ends, those from
 * begins[r] to below ends[r], where r is the query's row (documents, padding).
 * Each head of k and v serves heads / kv_heads heads of q that stand side by
 * side (Ainslie et al. 2023).
 *
 * k and v may be a block of their sequences' keys, from first_key on (Liu et al. 2023): what a
 * query sees is counted in the whole sequence all the same. Then y and gradients are fp32. */
struct dt_attention {
    int64_t batch;
    int64_t heads;      /* of q and y */
    int64_t kv_heads;   /* of k and v; heads is a multiple of it */
    int64_t queries;    /* T of q */
    int64_t past;       /* keys before the first query */
    int64_t key_stride; /* rows of k and v from one sequence to the next */
    bool bidirectional;
    const int32_t *begins, *ends; /* on the device, batch x queries each; or NULL */
    /* Of the weights: element (h T + t) T + k for head h, query t, key k, all counted in the
     * whole sequence of T. */
    struct dt_dropout dropout;
    int64_t first_head;      /* h of the first head of q, where others lie elsewhere */
    int64_t length;          /* T; 0: queries */
    int64_t first_key, keys; /* the block; 0: all keys up to the last query */
    /* A softmax over several blocks. Forward, R x 2H fp32 (or NULL: over one): of each head the
     * highest score so far, behind these the sums of e^(score - that). */
    const struct dt_tensor *softmax;
    bool continued;  /* goes on from other blocks; backward, adds to the gradients */
    bool unfinished; /* will go on: y, in fp32, is not yet divided by the sums */
};

struct dt_cross_entropy {
    float scale;           /* of the gradient; 0: none is wanted */
    float label_smoothing; /* s: the target is 1 - s on its token and s / V on every one */
    float z_loss;          /* z: adds z * (log of the softmax's sum)^2 (Chowdhery et al. 2022) */
};

/* What is known of a row of logits from some of its columns: their number, the highest h, the
 * sums of e^(x - h) and of h - x, the target's logit or minus infinity, and 1 if the target is
 * the first of the highest, otherwise 0. */
#define DT_LOGIT_SUMS 6

struct dt_device;

struct dt_ops {
    /* Memory of the device: 64-byte aligned, zeroed; NULL when there is none. */
    void *(*allocate)(struct dt_device *, size_t bytes);
    void (*release)(struct dt_device *, void *memory, size_t bytes);
    void (*upload)(struct dt_device *, void *device_memory, const void *host, size_t bytes);
    void (*download)(struct dt_device *, void *host, const void *device_memory, size_t bytes);
    /* Bytes that allocate could still give. */
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

    /* y = activation of x, as matmul's. */
    void (*activation_forward)(struct dt_device *, struct dt_tensor *y, const struct dt_tensor *x,
                               enum dt_activation);

    /* dx (RxC), the gradient of an activation's result, becomes that of its input x. */
    void (*activation_backward)(struct dt_device *, struct dt_tensor *dx, const struct dt_tensor *x,
                                enum dt_activation);

    /* x (RxC) = dropout of x, where row r, counted from how->first, is row r mod T of sequence
     * r / T; element (t, c) of a sequence is its element (past + t) C + c. */
    void (*dropout)(struct dt_device *, struct dt_tensor *x, int64_t length,
                    const struct dt_dropout *how);

    /* bias (1xN) += sum over the rows of dy (RxN). Gradients of parameters are fp32. */
    void (*bias_backward)(struct dt_device *, struct dt_tensor *dbias, const struct dt_tensor *dy);

    /* y (RxC) = tokens[ids[r]] + positions[past + r mod T] (positions NULL: without
     * them); ids lie on the device. Ids below 0, or of no row of tokens, are other
     * ranks': for these tokens count as 0, and have no gradient. */
    void (*embedding_forward)(struct dt_device *, struct dt_tensor *y, const int32_t *ids,
                              const struct dt_tensor *tokens, const struct dt_tensor *positions,
                              int64_t length, int64_t past);
    /* dtokens[ids[r]] += dy[r], dpositions[r mod T] += dy[r]; dpositions may be NULL. */
    void (*embedding_backward)(struct dt_device *, struct dt_tensor *dtokens,
                               struct dt_tensor *dpositions, const struct dt_tensor *dy,
                               const int32_t *ids, int64_t length);

    /* Whole rows: y[r] = x[rows[r]], and y[rows[r]] = x[r], where rows, which lie on the
     * device, are distinct and the other rows of y stay. */
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
    /* dsum += gradient through the norm; dweight, dbias += theirs. sum and stats
     * as norm_forward left them. */
    void (*norm_backward)(struct dt_device *, struct dt_tensor *dsum, struct dt_tensor *dweight,
                          struct dt_tensor *dbias, const struct dt_tensor *dy,
                          const struct dt_tensor *sum, const struct dt_tensor *weight,
                          const struct dt_tensor *stats);

    /* sum as in norm_forward; y = sum * rstd * weight over each row, where rstd is
     * 1 / sqrt(mean of squares + epsilon) (Zhang and Sennrich 2019). rstd (Rx1) is kept.
     * If x has G times the columns of weight, each row is G groups with a norm of its
     * own (the heads of queries or keys), and rstd is RxG. */
    void (*rms_norm_forward)(struct dt_device *, struct dt_tensor *y, struct dt_tensor *rstd,
                             struct dt_tensor *sum, const struct dt_tensor *x,
                             const struct dt_tensor *add, const struct dt_tensor *weight,
                             float epsilon);
    /* dsum += gradient through the norm; dweight += its own. */
    void (*rms_norm_backward)(struct dt_device *, struct dt_tensor *dsum, struct dt_tensor *dweight,
                              const struct dt_tensor *dy, const struct dt_tensor *sum,
                              const struct dt_tensor *weight, const struct dt_tensor *rstd);

    /* Rotates x (Rx(heads*D)) in place (Su et al. 2021): in each head of D channels,
     * channels j and j + D/2 of row r are one point of a plane, turned by the angle
     * whose cosine and sine are channels j and j + D/2 of turns[past + r mod T].
     * inverse turns back, which is also the gradient's way. turns has D columns. */
    void (*rope)(struct dt_device *, struct dt_tensor *x, const struct dt_tensor *turns,
                 int64_t length, int64_t past, bool inverse);

    /* y = gate / (1 + exp(-gate)) * up, element by element (Shazeer 2020). */
    void (*swiglu_forward)(struct dt_device *, struct dt_tensor *y, const struct dt_tensor *gate,
                           const struct dt_tensor *up);
    /* Sets dgate, and turns dy into the gradient of up. */
    void (*swiglu_backward)(struct dt_device *, struct dt_tensor *dgate, struct dt_tensor *dy,
                            const struct dt_tensor *gate, const struct dt_tensor *up);

    /* y (RxC) = softmax(q k' / sqrt(C/H)) v, head by head, without storing the
     * scores (Dao et al. 2022); lse (R x H) keeps each row's log-sum-exp. */
    void (*attention_forward)(struct dt_device *, struct dt_tensor *y, struct dt_tensor *lse,
                              const struct dt_tensor *q, const struct dt_tensor *k,
                              const struct dt_tensor *v, const struct dt_attention *how);
    /* Sets dq, dk, dv. There are as many keys as queries, y and lse are those of all keys, and
     * key_stride = queries. */
    void (*attention_backward)(struct dt_device *, struct dt_tensor *dq, struct dt_tensor *dk,
                               struct dt_tensor *dv, const struct dt_tensor *dy,
                               const struct dt_tensor *y, const struct dt_tensor *lse,
                               const struct dt_tensor *q, const struct dt_tensor *k,
                               const struct dt_tensor *v, const struct dt_attention *how);

    /* losses[r] = -log softmax(logits[r])[targets[r]], and what label smoothing and
     * z-loss make of it; 0 where the target is negative. hits[r], unless hits is NULL, is
     * 1 where the target is the first of the highest logits, otherwise 0. If scale is
     * not 0, logits become scale * dloss/dlogits. */
    void (*cross_entropy)(struct dt_device *, float *losses, float *hits, struct dt_tensor *logits,
                          const int32_t *targets, const struct dt_cross_entropy *how);
    /* The same of logits whose columns are dealt out to ranks. First the sums (R x
     * DT_LOGIT_SUMS, fp32) over a rank's columns; targets count from the first of these, and
     * those that are not among them are others'. Then, with the sums of all parts one below
     * another in the order of their columns (R rows each), losses and hits, and with a scale
     * the rank's columns of the gradient. Every row has a target. */
    void (*logit_sums)(struct dt_device *, struct dt_tensor *sums, const struct dt_tensor *logits,
                       const int32_t *targets);
    void (*cross_entropy_of_sums)(struct dt_device *, float *losses, float *hits,
                                  struct dt_tensor *logits, const struct dt_tensor *sums,
                                  const int32_t *targets, const struct dt_cross_entropy *how);

    /* Sum of squares of n floats, in fp64 over fixed blocks. Waits for the result. */
    double (*sum_squares)(struct dt_device *, const float *x, int64_t n);
    /* Sum of n floats, likewise, but to memory of the device, without waiting. */
    void (*sum)(struct dt_device *, double *sum, const float *x, int64_t n);
    /* Likewise sums of squares: of each block of so many floats, a multiple of 4, and of what is
     * left of the n behind the last. */
    void (*square_blocks)(struct dt_device *, double *sums, const float *x, int64_t n,
                          int64_t block);

    /* Of the n numbers of x (n below 2^31), the k of largest magnitude, of equal ones those that
     * come first; what is no number is larger than all. values become they, in the order in which
     * they stood, and places where; in x they become 0. */
    void (*take_largest)(struct dt_device *, float *x, int64_t n, int64_t k, int32_t *places,
                         float *values);
    /* The rows of x (RxN, fp32, R at most N) become orthonormal, one after another: what each has
     * along those before it is taken away (Gram and Schmidt, as Bjorck 1967 orders it). Products
     * are summed in fp64. Of a row of which no more than 1e-15 is left nothing stays. */
    void (*orthonormalize)(struct dt_device *, struct dt_tensor *x);

    /* One optimizer step of how->rule on n parameters. state: an array of n floats for each of
     * the rule's dt_update_slots. */
    void (*update)(struct dt_device *, float *parameters, float *const *state,
                   const float *gradients, int64_t n, const struct dt_update *how);
};

/* What a plug-in exports, under the name "dt_engine". */
struct dt_engine {
    int abi;
    const char *name;
    /* The device's memory is its own: the host reaches it by upload and download alone. */
    bool own_memory;
    const struct dt_links *links; /* between devices of several ranks; NULL: none */
    const struct dt_ops *ops;
    int (*open)(struct dt_device *, struct dt_error *);
    void (*close)(struct dt_device *);
};
#define DT_ENGINE_ABI 12

struct dt_device {
    const struct dt_ops *ops;
    const struct dt_engine *engine;
    const char *isa; /* what bits follow from: instruction set, or GPU; set by open, and its own */
    int threads;
    void *state; /* the engine's own */
};

/* name: "cpu" picks the best instruction set of this machine, "cpu-avx2" that
 * one. threads 0: OMP_NUM_THREADS, or all processors. Engines are looked for
 * in $DT_ENGINES, or in lib/dt beside the program's bin/. */
int dt_device_open(struct dt_device **dev, const char *name, int threads,
                   struct dt_error *err) DT_MUST_CHECK;
void dt_device_close(struct dt_device *dev); /* NULL is fine */

/* For measurements: x, whose rows follow one another, becomes random numbers between -1 and 1
 * of key, the same 65536 again and again. */
int dt_device_fill(struct dt_device *dev, struct dt_tensor *x, uint64_t key,
                   struct dt_error *err) DT_MUST_CHECK;
/* The highest speed that this device shows within about a second in matrix products of
 * elements of that type, in floating-point operations a second: what MFU is measured
 * against. 0 where there is no memory for one. */
double dt_device_peak(struct dt_device *dev, enum dt_dtype type);
/* The highest speed at which the processors read memory too large for their caches, or a
 * device of its own memory adds up floats, in bytes a second: what generating is measured
 * against. */
double dt_device_read_speed(struct dt_device *dev);

size_t dt_dtype_size(enum dt_dtype dtype); /* bytes of an element */

/* Views. */
struct dt_tensor dt_matrix(void *data, int64_t rows, int64_t columns); /* of fp32 */
struct dt_tensor dt_matrix_of(enum dt_dtype dtype, void *data, int64_t rows, int64_t columns);
struct dt_tensor dt_tensor_rows(const struct dt_tensor *x, int64_t first, int64_t count);
struct dt_tensor dt_tensor_columns(const struct dt_tensor *x, int64_t first, int64_t count);

#endif
