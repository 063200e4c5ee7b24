/* SPDX-License-Identifier: MIT */
#include "device/cuda/host/blas.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/partial-sums.h"

#define WORKSPACE_BYTES ((size_t)32 << 20)
#define MOST_PLANS      1024
#define TUNED_USE       3 /* a shape is timed at its third use */
#define CANDIDATES      8
#define TIMED_RUNS      4
#define WORTH           0.97f /* an algorithm must take less than this part of the library's time */
#define MOST_SUMS       ((int64_t)1 << 18)

/* What identifies a plan; compared as bytes. */
struct key {
    int64_t rows, columns, depth, a_stride, b_stride, c_stride, aux_stride;
    int16_t a_alignment, b_alignment, c_alignment, bias_alignment, aux_alignment; /* bytes */
    int16_t type, c_type, epilogue;
    int8_t transpose_a, transpose_b, accumulate, replicated, unused[4];
};

struct plan {
    struct key key;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t choice;
    int uses;
    bool none;   /* the library does not support the product */
    bool slower; /* than the alternative */
};

/* A product by one algorithm. */
struct call {
    struct key key;
    const void *a, *b;
    void *c, *bias, *aux; /* bias: or the output of column sums */
    cublasLtMatmulHeuristicResult_t choice;
};

struct dt_cuda_blas {
    cublasLtHandle_t library;
    void *workspace;
    float *sums; /* MOST_SUMS; the library stores column sums here, and a kernel accumulates them */
    struct plan *plans; /* MOST_PLANS; when full, the oldest is replaced */
    int count, next;
    bool tune, tf32;
    cudaEvent_t begin, end;
};

int dt_cuda_blas_open(struct dt_device *dev, struct dt_error *err)
{
    struct dt_cuda_blas *blas = calloc(1, sizeof *blas);
    dt_cuda_of(dev)->blas = blas;
    if (blas == NULL || (blas->plans = calloc(MOST_PLANS, sizeof *blas->plans)) == NULL)
        return dt_fail(err, DT_ENOMEM, "no memory for the cuda engine");
    blas->tune = dt_cuda_is_set("DT_CUDA_TUNE", true);
    blas->tf32 = dt_cuda_is_set("DT_CUDA_TF32", false);
    cublasStatus_t status = cublasLtCreate(&blas->library);
    if (status != CUBLAS_STATUS_SUCCESS)
        return dt_fail(err, DT_EMISSING, "cuBLASLt cannot be initialized: status %d", (int)status);
    if (cudaMalloc(&blas->workspace, WORKSPACE_BYTES) != cudaSuccess ||
        cudaMalloc((void **)&blas->sums, MOST_SUMS * sizeof *blas->sums) != cudaSuccess)
        return dt_fail(err, DT_ENOMEM, "no device memory for the cuda engine");
    if (cudaEventCreateWithFlags(&blas->begin, cudaEventDefault) != cudaSuccess ||
        cudaEventCreateWithFlags(&blas->end, cudaEventDefault) != cudaSuccess)
        return dt_fail(err, DT_EMISSING, "the cuda engine cannot measure time");
    return 0;
}

static void release_plan(struct plan *p)
{
    if (p->a)
        cublasLtMatrixLayoutDestroy(p->a);
    if (p->b)
        cublasLtMatrixLayoutDestroy(p->b);
    if (p->c)
        cublasLtMatrixLayoutDestroy(p->c);
    if (p->product)
        cublasLtMatmulDescDestroy(p->product);
    *p = (struct plan){.uses = 0};
}

void dt_cuda_blas_close(struct dt_device *dev)
{
    struct dt_cuda_blas *blas = dt_cuda_of(dev)->blas;
    if (blas == NULL)
        return;
    for (int i = 0; i < blas->count; i++)
        release_plan(&blas->plans[i]);
    free(blas->plans);
    if (blas->begin)
        cudaEventDestroy(blas->begin);
    if (blas->end)
        cudaEventDestroy(blas->end);
    cudaFree(blas->workspace);
    cudaFree(blas->sums);
    if (blas->library)
        cublasLtDestroy(blas->library);
    free(blas);
}

/* --- plans ------------------------------------------------------------------------------------ */
static cudaDataType_t data_type(int dtype)
{
    return dtype == DT_DTYPE_F32 ? CUDA_R_32F : dtype == DT_DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_16F;
}

/* At most 16. */
static int16_t alignment_of(const void *memory)
{
    uintptr_t address = (uintptr_t)memory;
    return address % 16 == 0 ? 16 : (int16_t)(address & -address);
}

/* The stride of a single row does not matter. */
static int64_t stride_of(const struct dt_tensor *x)
{
    return x->rows <= 1 ? x->columns : x->stride;
}

static bool has_aux(int epilogue)
{
    return epilogue >= DT_CUDA_ACTIVATE && epilogue <= DT_CUDA_ACTIVATE_BACKWARD;
}

static bool has_bias(int epilogue)
{
    return epilogue == DT_CUDA_BIAS || epilogue == DT_CUDA_ACTIVATE_BIAS;
}

static bool has_sums(int epilogue)
{
    return epilogue == DT_CUDA_SUMS_A || epilogue == DT_CUDA_SUMS_B;
}

static struct key key_of(const struct dt_cuda_product *p)
{
    struct key key;
    memset(&key, 0, sizeof key); /* and the padding */
    key.rows = p->c.rows;
    key.columns = p->c.columns;
    key.depth = p->transpose_a ? p->a.rows : p->a.columns;
    key.a_stride = stride_of(&p->a);
    key.b_stride = stride_of(&p->b);
    key.c_stride = stride_of(&p->c);
    if (has_aux(p->epilogue)) {
        key.aux_stride = stride_of(&p->aux);
        key.aux_alignment = alignment_of(p->aux.data);
    }
    if (has_bias(p->epilogue))
        key.bias_alignment = alignment_of(p->bias.data);
    key.a_alignment = alignment_of(p->a.data);
    key.b_alignment = alignment_of(p->b.data);
    key.c_alignment = alignment_of(p->c.data);
    key.type = (int16_t)p->a.dtype;
    key.c_type = (int16_t)p->c.dtype;
    key.epilogue = (int16_t)p->epilogue;
    key.transpose_a = p->transpose_a;
    key.transpose_b = p->transpose_b;
    key.accumulate = p->accumulate;
    key.replicated = p->replicated;
    return key;
}

static cublasLtEpilogue_t library_epilogue(int epilogue)
{
    static const cublasLtEpilogue_t of[] = {
        [DT_CUDA_PLAIN] = CUBLASLT_EPILOGUE_DEFAULT,
        [DT_CUDA_BIAS] = CUBLASLT_EPILOGUE_BIAS,
        [DT_CUDA_ACTIVATE] = CUBLASLT_EPILOGUE_GELU_AUX,
        [DT_CUDA_ACTIVATE_BIAS] = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
        [DT_CUDA_ACTIVATE_BACKWARD] = CUBLASLT_EPILOGUE_DGELU,
        [DT_CUDA_SUMS_A] = CUBLASLT_EPILOGUE_BGRADB, /* operands are swapped: describe() */
        [DT_CUDA_SUMS_B] = CUBLASLT_EPILOGUE_BGRADA,
    };
    return of[epilogue];
}

/* These functions return true on success. */
static bool set(struct plan *p, cublasLtMatmulDescAttributes_t attribute, const void *value,
                size_t size)
{
    return cublasLtMatmulDescSetAttribute(p->product, attribute, value, size) ==
           CUBLAS_STATUS_SUCCESS;
}

/* The library's matrices are column-major. So it computes C' = op(B)' op(A)': our B is its first
 * operand, and our rows are its columns. */
static bool describe(struct plan *p, bool tf32)
{
    const struct key *k = &p->key;
    cublasComputeType_t compute =
        k->type == DT_DTYPE_F32 && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasOperation_t first = k->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = k->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = library_epilogue(k->epilogue);
    cudaDataType_t c_type = data_type(k->c_type);
    bool ok = cublasLtMatmulDescCreate(&p->product, compute, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS;
    ok = ok && set(p, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
    ok = ok && set(p, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
    ok = ok && set(p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (has_bias(k->epilogue) || has_sums(k->epilogue))
        ok = ok && set(p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &c_type, sizeof c_type);
    if (has_aux(k->epilogue)) {
        ok = ok && set(p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &c_type, sizeof c_type);
        ok = ok &&
             set(p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &k->aux_stride, sizeof k->aux_stride);
    }
    return ok;
}

/* Sets the addresses of bias and aux. The library proposes algorithms for their alignment. */
static bool point(struct plan *p, const struct call *c)
{
    bool ok = true;
    if (has_bias(p->key.epilogue) || has_sums(p->key.epilogue))
        ok = set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &c->bias, sizeof c->bias);
    if (has_aux(p->key.epilogue))
        ok = ok && set(p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &c->aux, sizeof c->aux);
    return ok;
}

static bool lay_out(cublasLtMatrixLayout_t *layout, int dtype, int64_t rows, int64_t columns,
                    int64_t stride)
{
    return cublasLtMatrixLayoutCreate(layout, data_type(dtype), (uint64_t)columns, (uint64_t)rows,
                                      stride) == CUBLAS_STATUS_SUCCESS;
}

static bool lay_out_all(struct plan *p)
{
    const struct key *k = &p->key;
    int64_t m = k->rows, n = k->columns, depth = k->depth;
    return lay_out(&p->a, k->type, k->transpose_a ? depth : m, k->transpose_a ? m : depth,
                   k->a_stride) &&
           lay_out(&p->b, k->type, k->transpose_b ? n : depth, k->transpose_b ? depth : n,
                   k->b_stride) &&
           lay_out(&p->c, k->c_type, m, n, k->c_stride);
}

/* The algorithms that the library's heuristic proposes and that run here; returns their number. */
static int propose(struct dt_cuda_blas *blas, const struct plan *p,
                   cublasLtMatmulHeuristicResult_t found[CANDIDATES])
{
    cublasLtMatmulPreference_t wish;
    const size_t workspace = WORKSPACE_BYTES;
    const uint32_t a = (uint32_t)p->key.a_alignment, b = (uint32_t)p->key.b_alignment;
    const uint32_t c = (uint32_t)p->key.c_alignment;
    int count = 0;
    if (cublasLtMatmulPreferenceCreate(&wish) != CUBLAS_STATUS_SUCCESS)
        return 0;
    cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                         sizeof workspace);
    cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &b,
                                         sizeof b);
    cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &a,
                                         sizeof a);
    cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c,
                                         sizeof c);
    cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &c,
                                         sizeof c);
    if (cublasLtMatmulAlgoGetHeuristic(blas->library, p->product, p->b, p->a, p->c, p->c, wish,
                                       CANDIDATES, found, &count) != CUBLAS_STATUS_SUCCESS)
        count = 0;
    cublasLtMatmulPreferenceDestroy(wish);
    int valid = 0;
    for (int i = 0; i < count; i++)
        if (found[i].state == CUBLAS_STATUS_SUCCESS)
            found[valid++] = found[i];
    return valid;
}

/* Takes the library's first choice; false if it has none. */
static bool choose_first(struct dt_cuda_blas *blas, struct plan *p)
{
    cublasLtMatmulHeuristicResult_t found[CANDIDATES];
    if (propose(blas, p, found) == 0)
        return false;
    p->choice = found[0];
    return true;
}

static struct call call_of(const struct dt_cuda_blas *blas, const struct dt_cuda_product *product)
{
    struct call c;
    memset(&c, 0, sizeof c); /* and the padding */
    c.key = key_of(product);
    c.a = product->a.data;
    c.b = product->b.data;
    c.c = product->c.data;
    c.bias = has_sums(product->epilogue) ? blas->sums : product->bias.data;
    c.aux = product->aux.data;
    return c;
}

static struct plan *find_plan(struct dt_cuda_blas *blas, const struct call *c)
{
    for (int i = 0; i < blas->count; i++)
        if (memcmp(&blas->plans[i].key, &c->key, sizeof c->key) == 0)
            return &blas->plans[i];
    struct plan *p = &blas->plans[blas->next];
    blas->next = (blas->next + 1) % MOST_PLANS;
    blas->count += blas->count < MOST_PLANS;
    release_plan(p);
    p->key = c->key;
    p->none = !describe(p, blas->tf32) || !lay_out_all(p) || !point(p, c) || !choose_first(blas, p);
    return p;
}

/* --- running and timing ----------------------------------------------------------------------- */
static bool run(struct dt_device *dev, const struct call *c, cudaStream_t stream)
{
    const float one = 1, beta = c->key.accumulate ? 1 : 0;
    struct dt_cuda_blas *blas = dt_cuda_of(dev)->blas;
    struct plan *p = find_plan(blas, c);
    return !p->none && point(p, c) &&
           cublasLtMatmul(blas->library, p->product, &one, c->b, p->b, c->a, p->a, &beta, c->c,
                          p->c, c->c, p->c, &c->choice.algo, blas->workspace,
                          c->choice.workspaceSize, stream) == CUBLAS_STATUS_SUCCESS;
}

static void put_call(struct dt_device *dev, cudaStream_t stream, const void *context)
{
    if (!run(dev, context, stream))
        dt_cuda_note_text(dev, "cuBLASLt refuses a product of matrices");
}

/* Adds the stored column sums, after the product. */
static void add_sums(struct dt_device *dev, const struct dt_cuda_product *product)
{
    if (has_sums(product->epilogue))
        dt_cuda_add_chunks(dev, (struct dt_cuda_totals){{product->bias.data}},
                           dt_cuda_of(dev)->blas->sums, 1, 0, product->bias.columns);
}

/* What is timed: a product with one algorithm, or the alternative. */
struct contest {
    const struct dt_cuda_product *product;
    const cublasLtMatmulHeuristicResult_t *choice; /* NULL: the alternative */
    void (*instead)(struct dt_device *, const struct dt_cuda_product *);
};

static bool take_part(struct dt_device *dev, const struct contest *c)
{
    if (c->choice == NULL) {
        c->instead(dev, c->product);
        return true;
    }
    struct call call = call_of(dt_cuda_of(dev)->blas, c->product);
    call.choice = *c->choice;
    bool ok = run(dev, &call, dt_cuda_flush(dev));
    add_sums(dev, c->product);
    return ok;
}

/* Milliseconds. The first runs are warm-up, in which the alternative is tuned itself. */
static float time_of(struct dt_device *dev, const struct contest *c)
{
    struct dt_cuda_blas *blas = dt_cuda_of(dev)->blas;
    float time = 1e30f;
    bool ok = true;
    for (int i = 0; ok && i < (c->choice ? 1 : TUNED_USE); i++)
        ok = take_part(dev, c);
    cudaEventRecord(blas->begin, dt_cuda_flush(dev));
    for (int i = 0; ok && i < TIMED_RUNS; i++)
        ok = take_part(dev, c);
    cudaEventRecord(blas->end, dt_cuda_flush(dev));
    if (cudaEventSynchronize(blas->end) == cudaSuccess && ok)
        cudaEventElapsedTime(&time, blas->begin, blas->end);
    return time;
}

/* The product with outputs that can be recomputed: if it accumulates, into temporary memory,
 * which the caller frees. False if that memory cannot be allocated. */
static bool set_aside(struct dt_device *dev, const struct dt_cuda_product *product,
                      struct dt_cuda_product *aside, void **memory)
{
    const struct dt_tensor *c = &product->c;
    size_t bytes = (size_t)(c->rows * stride_of(c)) * dt_dtype_size(c->dtype);
    size_t sums = has_sums(product->epilogue) ? (size_t)product->bias.columns * sizeof(float) : 0;
    *memory = NULL;
    *aside = *product;
    if (!product->accumulate && sums == 0)
        return true;
    if (cudaMallocAsync(memory, bytes + sums, dt_cuda_flush(dev)) != cudaSuccess) {
        (void)cudaGetLastError(); /* clears the error, for the calls that follow */
        *memory = NULL;
        return false;
    }
    aside->c.data = *memory;
    if (sums > 0)
        aside->bias.data = (char *)*memory + bytes;
    return true;
}

/* Selects the fastest algorithm. Returns its time. */
static float choose(struct dt_device *dev, struct plan *p, const struct dt_cuda_product *product)
{
    cublasLtMatmulHeuristicResult_t found[CANDIDATES];
    int count = propose(dt_cuda_of(dev)->blas, p, found);
    float best = 0;
    for (int i = 0; i < count; i++) {
        float time = time_of(dev, &(struct contest){product, &found[i], NULL});
        if (i == 0 || time < best * WORTH) {
            best = time;
            p->choice = found[i];
        }
    }
    return best;
}

/* Times the algorithms of a product that is used repeatedly, and the alternative, if there is
 * one. */
static void tune(struct dt_device *dev, struct plan *p, const struct dt_cuda_product *product,
                 void (*instead)(struct dt_device *, const struct dt_cuda_product *))
{
    struct dt_cuda_product aside;
    void *memory;
    if (++p->uses != TUNED_USE || !dt_cuda_of(dev)->blas->tune || p->key.replicated)
        return;
    if (set_aside(dev, product, &aside, &memory)) {
        float here = choose(dev, p, &aside);
        if (instead &&
            time_of(dev, &(struct contest){.product = &aside, .instead = instead}) < here * WORTH) {
            /* Plans that the alternative made may have replaced this one. */
            const struct call call = call_of(dt_cuda_of(dev)->blas, product);
            find_plan(dt_cuda_of(dev)->blas, &call)->slower = true;
        }
    }
    if (memory)
        cudaFreeAsync(memory, dt_cuda_flush(dev));
}

bool dt_cuda_blas_takes(struct dt_device *dev, const struct dt_cuda_product *product,
                        void (*instead)(struct dt_device *, const struct dt_cuda_product *))
{
    struct dt_cuda_blas *blas = dt_cuda_of(dev)->blas;
    const struct call call = call_of(blas, product);
    struct plan *p = find_plan(blas, &call);
    if (p->none || (has_sums(product->epilogue) && product->bias.columns > MOST_SUMS))
        return false;
    tune(dev, p, product, instead);
    return !find_plan(blas, &call)->slower;
}

void dt_cuda_blas_multiply(struct dt_device *dev, const struct dt_cuda_product *product)
{
    struct call call = call_of(dt_cuda_of(dev)->blas, product);
    struct plan *p = find_plan(dt_cuda_of(dev)->blas, &call);
    if (!p->none && product->epilogue == DT_CUDA_PLAIN)
        tune(dev, p, product, NULL);
    call.choice = p->choice;
    dt_cuda_put(dev, put_call, &call, sizeof call);
    add_sums(dev, product);
}
