/* SPDX-License-Identifier: MIT */
/*
 * cuBLASLt on the processor. Matrices lie column by column; op(A) op(B) is summed in
 * fp32. It refuses what the library would: layouts that do not fit, addresses less
 * aligned than was promised. Each product has two algorithms, which are the same
 * but for the word "second" in CUDA_EMULATOR. What the words "plain" and "aligned" make it refuse,
 * emulator.h says.
 */
#include <cstdlib>
#include <cstring>
#include <vector>

#include "emulator.h"
#include "settings.h"
#include "toolkit/cublasLt.h"
#include "toolkit/cuda_bf16.h"
#include "toolkit/cuda_fp16.h"

struct emulated_product {
    cublasOperation_t transpose_a, transpose_b;
    cublasLtEpilogue_t epilogue;
    void *bias;
    void *aux;
    int64_t aux_stride;
    cudaDataType_t bias_type, aux_type;
};

struct emulated_layout {
    cudaDataType_t type;
    int64_t rows, columns, stride;
};

struct emulated_preference {
    uint32_t alignment[4]; /* of A, B, C, D */
};

namespace
{
constexpr uint64_t algorithm_mark = 0x616c676f;

float get(const void *matrix, cudaDataType_t type, int64_t at)
{
    if (type == CUDA_R_32F)
        return static_cast<const float *>(matrix)[at];
    if (type == CUDA_R_16BF)
        return __bfloat162float(static_cast<const __nv_bfloat16 *>(matrix)[at]);
    return __half2float(static_cast<const __half *>(matrix)[at]);
}

void put(void *matrix, cudaDataType_t type, int64_t at, float x)
{
    if (type == CUDA_R_32F)
        static_cast<float *>(matrix)[at] = x;
    else if (type == CUDA_R_16BF)
        static_cast<__nv_bfloat16 *>(matrix)[at] = __float2bfloat16_rn(x);
    else
        static_cast<__half *>(matrix)[at] = __float2half_rn(x);
}

float gelu(float x)
{
    return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

float gelu_slope(float x)
{
    float t = tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.7978845608f * (1 + 3 * 0.044715f * x * x);
}

/* op(matrix) as fp32, column by column. */
std::vector<float> widen(const void *matrix, const emulated_layout &l, bool transpose)
{
    std::vector<float> out((size_t)(l.rows * l.columns));
    for (int64_t j = 0; j < l.columns; j++)
        for (int64_t i = 0; i < l.rows; i++)
            out[(size_t)(transpose ? i * l.columns + j : j * l.rows + i)] =
                get(matrix, l.type, j * l.stride + i);
    return out;
}

struct task {
    emulated_product how;
    emulated_layout a, b, c, d;
    float alpha, beta;
    const void *a_data, *b_data, *c_data;
    void *d_data;
    bool backwards;
};

float finish(const task &t, int64_t i, int64_t j, float x)
{
    if (t.how.epilogue == CUBLASLT_EPILOGUE_BIAS ||
        t.how.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
        x += get(t.how.bias, t.how.bias_type, i);
    if (t.how.epilogue == CUBLASLT_EPILOGUE_GELU_AUX ||
        t.how.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
        put(t.how.aux, t.how.aux_type, j * t.how.aux_stride + i, x);
        return gelu(x);
    }
    if (t.how.epilogue == CUBLASLT_EPILOGUE_DGELU)
        return x * gelu_slope(get(t.how.aux, t.how.aux_type, j * t.how.aux_stride + i));
    return x;
}

/* Over the depth: of the rows of op(A), or of the columns of op(B). */
void put_sums(const task &t, const float *matrix, int64_t count, int64_t depth, int64_t across,
              int64_t along)
{
    for (int64_t i = 0; i < count; i++) {
        float sum = 0;
        for (int64_t p = 0; p < depth; p++)
            sum += matrix[i * across + p * along];
        put(t.how.bias, t.how.bias_type, i, sum);
    }
}

void multiply(const task &t)
{
    bool ta = t.how.transpose_a == CUBLAS_OP_T, tb = t.how.transpose_b == CUBLAS_OP_T;
    int64_t m = t.d.rows, n = t.d.columns, k = ta ? t.a.rows : t.a.columns;
    std::vector<float> a = widen(t.a_data, t.a, ta), b = widen(t.b_data, t.b, tb);
    std::vector<float> column((size_t)m);
    if (t.how.epilogue == CUBLASLT_EPILOGUE_BGRADA)
        put_sums(t, a.data(), m, k, 1, m);
    else if (t.how.epilogue == CUBLASLT_EPILOGUE_BGRADB)
        put_sums(t, b.data(), n, k, k, 1);
    for (int64_t j = 0; j < n; j++) {
        std::fill(column.begin(), column.end(), 0.0f);
        for (int64_t step = 0; step < k; step++) {
            int64_t p = t.backwards ? k - 1 - step : step;
            float factor = t.alpha * b[(size_t)(j * k + p)];
            const float *from = a.data() + p * m;
            for (int64_t i = 0; i < m; i++)
                column[(size_t)i] += factor * from[i];
        }
        for (int64_t i = 0; i < m; i++) {
            float x = column[(size_t)i];
            if (t.beta != 0)
                x += t.beta * get(t.c_data, t.c.type, j * t.c.stride + i);
            put(t.d_data, t.d.type, j * t.d.stride + i, finish(t, i, j, x));
        }
    }
}

bool fits(const emulated_product &how, const emulated_layout &a, const emulated_layout &b,
          const emulated_layout &c, const emulated_layout &d)
{
    bool ta = how.transpose_a == CUBLAS_OP_T, tb = how.transpose_b == CUBLAS_OP_T;
    return a.type == b.type && c.type == d.type && (ta ? a.columns : a.rows) == d.rows &&
           (tb ? b.rows : b.columns) == d.columns &&
           (ta ? a.rows : a.columns) == (tb ? b.columns : b.rows) && c.rows == d.rows &&
           c.columns == d.columns;
}

/* An address that is not there is aligned to anything: the library reads alignments off it. */
uint64_t alignment_of(const void *memory)
{
    uint64_t address = reinterpret_cast<uintptr_t>(memory);
    return address % 16 == 0 ? 16 : address & -address;
}

bool is_aligned(const void *memory, uint64_t to)
{
    return reinterpret_cast<uintptr_t>(memory) % to == 0;
}
} // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = reinterpret_cast<cublasLtHandle_t>(new char);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete reinterpret_cast<char *>(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *product, cublasComputeType_t,
                                        cudaDataType_t)
{
    *product = new emulated_product();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product)
{
    delete product;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size)
{
    static const struct {
        size_t place, size;
    } fields[] = {
        {offsetof(emulated_product, transpose_a), sizeof product->transpose_a},
        {offsetof(emulated_product, transpose_b), sizeof product->transpose_b},
        {offsetof(emulated_product, epilogue), sizeof product->epilogue},
        {offsetof(emulated_product, bias), sizeof product->bias},
        {offsetof(emulated_product, bias_type), sizeof product->bias_type},
        {offsetof(emulated_product, aux), sizeof product->aux},
        {offsetof(emulated_product, aux_stride), sizeof product->aux_stride},
        {offsetof(emulated_product, aux_type), sizeof product->aux_type},
    };
    if (size != fields[attribute].size)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(reinterpret_cast<char *>(product) + fields[attribute].place, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t stride)
{
    if (rows == 0 || columns == 0 || stride < (int64_t)rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    *layout = new emulated_layout{type, (int64_t)rows, (int64_t)columns, stride};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = new emulated_preference{{256, 256, 256, 256}};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size)
{
    if (attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES && size == sizeof(uint32_t))
        memcpy(&preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
               value, size);
    else if (size != sizeof(size_t))
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t *results, int *count)
{
    bool plain = emulator::settings().plain && product->epilogue != CUBLASLT_EPILOGUE_DEFAULT;
    *count = 0;
    if (product->aux_stride % 8 != 0)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (plain || !fits(*product, *a, *b, *c, *d))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    results[0] = {};
    results[0].state = CUBLAS_STATUS_NOT_SUPPORTED; /* the library may return such, too */
    for (*count = 1; *count < 3 && *count < most; ++*count) {
        results[*count] = {};
        results[*count].algo.data[0] = algorithm_mark;
        for (int i = 0; i < 4; i++)
            results[*count].algo.data[1 + i] = preference->alignment[i];
        results[*count].algo.data[5] = alignment_of(product->bias);
        results[*count].algo.data[6] = alignment_of(product->aux);
        results[*count].algo.data[7] = (uint64_t)*count - 1;
    }
    return CUBLAS_STATUS_SUCCESS;
}

static bool suits_tensor_cores(const void *matrix, const emulated_layout &layout)
{
    return layout.type == CUDA_R_32F || (is_aligned(matrix, 16) && layout.stride % 8 == 0);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *, size_t,
                              cudaStream_t stream)
{
    const uint64_t *promised = algorithm->data + 1;
    if (algorithm->data[0] != algorithm_mark ||
        !fits(*product, *a_layout, *b_layout, *c_layout, *d_layout))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_aligned(a, promised[0]) || !is_aligned(b, promised[1]) || !is_aligned(c, promised[2]) ||
        !is_aligned(d, promised[3]) || !is_aligned(product->bias, promised[4]) ||
        !is_aligned(product->aux, promised[5]))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (emulator::settings().aligned &&
        !(suits_tensor_cores(a, *a_layout) && suits_tensor_cores(b, *b_layout) &&
          suits_tensor_cores(d, *d_layout)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const task t = {*product,
                    *a_layout,
                    *b_layout,
                    *c_layout,
                    *d_layout,
                    *static_cast<const float *>(alpha),
                    *static_cast<const float *>(beta),
                    a,
                    b,
                    c,
                    d,
                    emulator::settings().second && algorithm->data[7] == 1};
    bool slow = emulator::settings().second && algorithm->data[7] == 0;
    cudaError_t error = emulator::enqueue(stream, [=] {
        multiply(t);
        if (slow)
            emulator::pass_time(1);
    });
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
