/* SPDX-License-Identifier: MIT */
/*
 * What the cuda engine's kernels ask of memory. Without an argument, tests hold the counts to
 * what is right; "test-bytes-sent table" prints them.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

extern "C" {
#include "test.h"
}

#include "device/cuda/cuda.h"
#include "device/cuda/epilogue.h"
#include "device/cuda/host/links.h"
#include "device/cuda/kernel.cuh"
#include "device/cuda/ptx.cuh"
#include "traffic/traffic.h"

extern "C" const struct dt_engine dt_engine;

namespace
{
constexpr size_t operand_bytes = (size_t)96 << 20, scratch_bytes = (size_t)16 << 20;
constexpr int64_t rows = 128, many = 2048, width = 768, heads = 2, channels = 64, length = 256;
constexpr int64_t logit_rows = 8, vocabulary = 50304, parameters = 1 << 16;

struct dt_device device, *const dev = &device;
const struct dt_ops *const ops = dt_engine.ops;
enum dt_dtype type; /* of large tensors */
char *memory;       /* of operands */
size_t used;
std::deque<struct dt_tensor> tensors;

/* --- operands, as long as one op runs --------------------------------------------------------- */
void *allocate(size_t bytes)
{
    void *at = memory + used;
    used += (bytes + 255) / 256 * 256;
    assert_true(used <= operand_bytes);
    return at;
}

struct dt_tensor *matrix(int64_t count, int64_t columns, enum dt_dtype of = type)
{
    void *data = allocate((size_t)(count * columns) * dt_dtype_size(of));
    tensors.push_back(dt_matrix_of(of, data, count, columns));
    return &tensors.back();
}

struct dt_tensor *floats(int64_t count, int64_t columns)
{
    return matrix(count, columns, DT_DTYPE_F32);
}

float *vector(int64_t n)
{
    return static_cast<float *>(allocate((size_t)n * sizeof(float)));
}

/* Different numbers below most. */
int32_t *ids(int64_t n, int64_t most)
{
    int32_t *at = static_cast<int32_t *>(allocate((size_t)n * sizeof(int32_t)));
    for (int64_t i = 0; i < n; i++)
        at[i] = (int32_t)(i * 7919 % most); /* a prime */
    return at;
}

template <class Work> struct traffic counted(Work work)
{
    const struct dt_cuda *cuda = dt_cuda_of(dev);
    memset(memory, 0, used);
    used = 0;
    tensors.clear();
    traffic_begin(memory, operand_bytes, cuda->scratch, cuda->scratch_bytes);
    work();
    return traffic_end();
}

/* --- kernels whose counts are known ----------------------------------------------------------- */
__global__ void copy_floats(float *y, const float *x, int step)
{
    y[threadIdx.x] = x[(int)threadIdx.x * step];
}

__global__ void copy_vectors(float4 *y, const float4 *x)
{
    y[threadIdx.x] = x[threadIdx.x];
}

/* Through shared memory, by an asynchronous copy, which the compiler sees as neither load nor
 * store. */
__global__ void copy_shared(float *y, const float *x, int step)
{
    DT_SHARED(float, tile, 32 * 33);
    for (int i = 0; i < step; i++)
        tile[i * 32 + (int)threadIdx.x] = 0;
    dt_copy_async(tile + 4 * threadIdx.x, x + 4 * threadIdx.x, 16);
    dt_commit_copies();
    dt_wait_copies<0>();
    __syncthreads();
    y[threadIdx.x] = tile[(int)threadIdx.x * step];
}

__global__ void half_the_lanes(float4 *y, const float4 *x)
{
    DT_SHARED(float4, part, 32);
    if (threadIdx.x < 16)
        part[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = part[threadIdx.x / 2];
}

template <class... Parameters, class... Arguments>
struct traffic traffic_of(void (*kernel)(Parameters...), Arguments... arguments)
{
    return counted(
        [&] { dt_cuda_launch(dt_cuda_of(dev)->stream, 1, 32, 0, kernel, arguments...); });
}

void expect(const struct traffic &t, uint64_t least, uint64_t asked, uint64_t sectors,
            uint64_t parts, uint64_t turns)
{
    assert_int_equal(t.least, least);
    assert_int_equal(t.asked, asked);
    assert_int_equal(t.sectors, sectors);
    assert_int_equal(t.parts, parts);
    assert_int_equal(t.turns, turns);
}

void test_counts_of_known_kernels(void **)
{
    float *x = reinterpret_cast<float *>(memory), *y = x + 4096;
    float4 *x4 = reinterpret_cast<float4 *>(x), *y4 = reinterpret_cast<float4 *>(y);
    expect(traffic_of(copy_floats, y, x, 1), 256, 256, 8, 0, 0);
    expect(traffic_of(copy_floats, y, x, 2), 256, 256, 12, 0, 0);
    expect(traffic_of(copy_floats, y, x, 32), 256, 256, 36, 0, 0);
    expect(traffic_of(copy_floats, y, x, 0), 132, 132, 5, 0, 0);
    expect(traffic_of(copy_floats, y + 1, x, 1), 256, 256, 9, 0, 0);
    expect(traffic_of(copy_vectors, y4, x4), 1024, 1024, 32, 0, 0);
    assert_int_equal(traffic_of(copy_vectors, y4, x4).accesses, 64);
    expect(traffic_of(half_the_lanes, y4, x4), 768, 768, 24, 6, 6);
    /* 4 parts of the copy's 16 bytes, one of each store, one of the load. */
    expect(traffic_of(copy_shared, y, x, 1), 640, 640, 20, 6, 6);
    expect(traffic_of(copy_shared, y, x, 2), 640, 640, 20, 7, 8);
    expect(traffic_of(copy_shared, y, x, 32), 640, 640, 20, 37, 68);
    expect(traffic_of(copy_shared, y, x, 33), 640, 640, 20, 38, 38);
}

/* --- the op table ----------------------------------------------------------------------------- */
struct dt_attention attention()
{
    struct dt_attention how = {};
    how.batch = 1, how.heads = how.kv_heads = heads, how.queries = how.key_stride = length;
    return how;
}

/* Queries, keys and values side by side. */
struct projected {
    struct dt_tensor all = *matrix(length, 3 * heads * channels);
    struct dt_tensor q = dt_tensor_columns(&all, 0, heads *channels),
                     k = dt_tensor_columns(&all, heads *channels, heads *channels),
                     v = dt_tensor_columns(&all, 2 * heads * channels, heads *channels);
};

void attention_forward()
{
    struct dt_attention how = attention();
    projected x;
    ops->attention_forward(dev, matrix(length, heads * channels), floats(length, heads), &x.q, &x.k,
                           &x.v, &how);
}

void attention_backward()
{
    struct dt_attention how = attention();
    projected x, d;
    ops->attention_backward(dev, &d.q, &d.k, &d.v, matrix(length, heads * channels),
                            matrix(length, heads * channels), floats(length, heads), &x.q, &x.k,
                            &x.v, &how);
}

void cross_entropy(float scale)
{
    struct dt_cross_entropy how = {};
    how.scale = scale;
    ops->cross_entropy(dev, vector(logit_rows), vector(logit_rows), matrix(logit_rows, vocabulary),
                       ids(logit_rows, vocabulary), &how);
}

/* How many times the fewest: bytes asked for, sectors that hold them, turns of shared memory; and
 * bytes that a lane asks for at once, on average. */
struct figures {
    double ratio, sectors, turns, width;
};

struct op {
    const char *name;
    struct figures bounds[2]; /* in bf16, and in fp32 */
    void (*run)();
};

const struct op table[] = {
    {"copy to another type",
     {{1, 1.67, 1, 15.9}, {1, 1.67, 1, 15.9}},
     [] {
         ops->copy(dev, matrix(rows, width, type == DT_DTYPE_F32 ? DT_DTYPE_BF16 : DT_DTYPE_F32),
                   matrix(rows, width));
     }},
    {"combine",
     {{1, 1, 1, 15.9}, {1, 1, 1, 15.9}},
     [] { ops->combine(dev, matrix(rows, width), 1, matrix(rows, width), 1); }},
    {"bias and GELU",
     {{1.34, 1, 1, 15.9}, {1.34, 1, 1, 15.9}},
     [] {
         struct dt_tensor *kept = matrix(rows, 4 * width);
         dt_cuda_bias_activation(dev, matrix(rows, 4 * width), kept, matrix(1, 4 * width), kept,
                                 DT_ACTIVATION_GELU_TANH);
     }},
    {"GELU",
     {{1, 1, 1, 15.9}, {1, 1, 1, 15.9}},
     [] {
         ops->activation_forward(dev, matrix(rows, 4 * width), matrix(rows, 4 * width),
                                 DT_ACTIVATION_GELU_TANH);
     }},
    {"GELU backward",
     {{1, 1, 1, 15.9}, {1, 1, 1, 15.9}},
     [] {
         ops->activation_backward(dev, matrix(rows, 4 * width), matrix(rows, 4 * width),
                                  DT_ACTIVATION_GELU_TANH);
     }},
    {"dropout",
     {{1, 1, 1, 15.9}, {1, 1, 1, 15.9}},
     [] {
         struct dt_dropout how = {};
         how.rate = 0.1f;
         ops->dropout(dev, matrix(rows, width), rows, &how);
     }},
    {"bias backward",
     {{1.04, 1.11, 1, 14.5}, {1.02, 1.03, 1, 15.2}},
     [] { ops->bias_backward(dev, floats(1, 3 * width), matrix(many, 3 * width), 1); }},
    {"embedding",
     {{1.01, 1.03, 1, 12.9}, {1.01, 1.03, 1, 12.9}},
     [] {
         ops->embedding_forward(dev, matrix(rows, width), ids(rows, 1024), matrix(1024, width),
                                matrix(rows, width), rows, 0);
     }},
    {"embedding backward",
     {{1.27, 1.66, 1.03, 11.2}, {1.41, 1.06, 1.03, 10.3}},
     [] {
         ops->embedding_backward(dev, floats(1024, width), floats(rows, width),
                                 matrix(4 * rows, width), ids(4 * rows, 300), rows, 1);
     }},
    {"gather",
     {{1.01, 1.04, 1, 11.9}, {1.01, 1.04, 1, 11.9}},
     [] { ops->gather(dev, matrix(rows, width), matrix(1024, width), ids(rows, 1024)); }},
    {"scatter",
     {{1.01, 1.04, 1, 11.9}, {1.01, 1.04, 1, 11.9}},
     [] { ops->scatter(dev, matrix(1024, width), matrix(rows, width), ids(rows, 1024)); }},
    {"norm",
     {{1.5, 1.01, 1, 15.9}, {1.5, 1.01, 1, 15.9}},
     [] {
         ops->norm_forward(dev, matrix(rows, width), floats(rows, 2), matrix(rows, width),
                           matrix(rows, width), matrix(rows, width), matrix(1, width),
                           matrix(1, width), 1e-5f);
     }},
    {"norm backward",
     {{1.38, 1.03, 1, 10.6}, {1.38, 1.03, 1, 10.6}},
     [] {
         ops->norm_backward(dev, matrix(many, width), floats(1, width), floats(1, width),
                            matrix(many, width), matrix(many, width), matrix(1, width),
                            floats(many, 2), 1);
     }},
    {"RMS norm",
     {{1.25, 1.01, 1, 15.9}, {1.25, 1.01, 1, 15.9}},
     [] {
         ops->rms_norm_forward(dev, matrix(rows, width), floats(rows, 1), matrix(rows, width),
                               matrix(rows, width), matrix(rows, width), matrix(1, width), 0,
                               1e-5f);
     }},
    {"RMS norm backward",
     {{1.32, 1.02, 1, 12.5}, {1.32, 1.02, 1, 12.5}},
     [] {
         ops->rms_norm_backward(dev, matrix(many, width), floats(1, width), matrix(many, width),
                                matrix(many, width), matrix(1, width), 0, floats(many, 1), 1);
     }},
    {"RMS norm of heads",
     {{1.13, 1.02, 1, 15.4}, {1.25, 1.02, 1, 15.7}},
     [] {
         struct dt_tensor *x = matrix(rows, width);
         ops->rms_norm_forward(dev, matrix(rows, width), floats(rows, width / channels), x, x, NULL,
                               matrix(1, channels), 0, 1e-5f);
     }},
    {"RMS norm of heads backward",
     {{1.08, 1.01, 1, 13.7}, {1.14, 1.02, 1, 13.7}},
     [] {
         ops->rms_norm_backward(dev, matrix(rows, width), floats(1, channels), matrix(rows, width),
                                matrix(rows, width), matrix(1, channels), 0,
                                floats(rows, width / channels), 1);
     }},
    {"rope",
     {{1.16, 1.15, 1, 15.9}, {1.12, 1, 1, 15.9}},
     [] {
         ops->rope(dev, matrix(8 * rows, width), floats(rows, channels), channels, rows, 0, false);
     }},
    {"SwiGLU",
     {{1, 1, 1, 15.9}, {1, 1, 1, 15.9}},
     [] {
         ops->gated_forward(dev, matrix(rows, width), matrix(rows, width), matrix(rows, width),
                            DT_ACTIVATION_SILU);
     }},
    {"SwiGLU backward",
     {{1, 1, 1, 15.9}, {1, 1, 1, 15.9}},
     [] {
         ops->gated_backward(dev, matrix(rows, width), matrix(rows, width), matrix(rows, width),
                             matrix(rows, width), DT_ACTIVATION_SILU);
     }},
    {"attention", {{1.25, 1.01, 1, 15.6}, {1.75, 1.44, 1.02, 3.9}}, attention_forward},
    {"attention backward", {{1.93, 1.05, 1, 13.9}, {2.55, 2.16, 1.02, 4.4}}, attention_backward},
    {"cross-entropy", {{1.01, 1.01, 1, 14.9}, {1.51, 1.01, 1, 15.6}}, [] { cross_entropy(1); }},
    {"cross-entropy, loss alone",
     {{1.01, 1.02, 1, 14.1}, {1.01, 1.01, 1, 15}},
     [] { cross_entropy(0); }},
    {"logit sums",
     {{1.01, 1.01, 1, 15}, {1.01, 1.01, 1, 15.4}},
     [] {
         const struct dt_logit_parts parts = {vocabulary, 0, 1};
         const struct dt_logit_map map = {};
         ops->logit_sums(dev, floats(logit_rows, DT_LOGIT_SUMS), matrix(logit_rows, vocabulary),
                         ids(logit_rows, vocabulary), &parts, &map);
     }},
    {"cross-entropy of sums",
     {{1.01, 1.04, 1, 11.5}, {1.01, 1.02, 1, 13.2}},
     [] {
         struct dt_cross_entropy how = {};
         const struct dt_logit_parts parts = {vocabulary, 0, 1};
         how.scale = 1;
         ops->cross_entropy_of_sums(
             dev, vector(logit_rows), vector(logit_rows), matrix(logit_rows, vocabulary),
             floats(2 * logit_rows, DT_LOGIT_SUMS), ids(logit_rows, vocabulary), &parts, &how);
     }},
    /* A partial sum of 168 bytes is stored and read for 16 KiB; for more than 16 MiB, less often.
     */
    {"sum of squares",
     {{1.03, 1.03, 1, 15.7}, {1.03, 1.03, 1, 15.7}},
     [] { (void)ops->sum_squares(dev, vector(parameters), parameters); }},
    {"exact sum",
     {{1.03, 1.03, 1, 15.7}, {1.03, 1.03, 1, 15.7}},
     [] {
         struct dt_exact_sum *sum = (struct dt_exact_sum *)vector(2 * DT_EXACT_SUM_WORDS);
         ops->exact_sum(dev, sum, vector(parameters), parameters, false);
     }},
    {"AdamW",
     {{1, 1, 1, 15.9}, {1, 1, 1, 15.9}},
     [] {
         struct dt_update how = {};
         how.rule = DT_UPDATE_RULE_ADAMW;
         how.correction1 = how.correction2 = 1;
         float *const moments[] = {vector(parameters), vector(parameters)};
         ops->update(dev, vector(parameters), moments, vector(parameters), parameters, &how);
     }},
    {"SGD",
     {{1, 1, 1, 15.9}, {1, 1, 1, 15.9}},
     [] {
         struct dt_update how = {};
         how.rule = DT_UPDATE_RULE_SGD;
         how.correction1 = how.correction2 = 1;
         float *const momentum[] = {vector(parameters)};
         ops->update(dev, vector(parameters), momentum, vector(parameters), parameters, &how);
     }},
    {"sum of ranks",
     {{1, 1, 1, 15.9}, {1, 1, 1, 15.9}},
     [] {
         dt_cuda_add_floats(dt_cuda_flush(dev), vector(parameters), vector(parameters),
                            (size_t)parameters);
     }},
};

double share(uint64_t x, uint64_t of)
{
    return of ? (double)x / (double)of : 1;
}

struct figures figures_of(const struct traffic &t)
{
    return {share(t.asked, t.least), share(32 * t.sectors, t.asked), share(t.turns, t.parts),
            share(t.access_bytes, t.accesses)};
}

const char *type_name()
{
    return type == DT_DTYPE_F32 ? "fp32" : "bf16";
}

void print_table()
{
    printf("%-26s %-4s %9s %9s %6s %7s %6s %5s\n", "op", "type", "least", "asked", "ratio",
           "sectors", "turns", "width");
    for (enum dt_dtype of : {DT_DTYPE_BF16, DT_DTYPE_F32})
        for (const struct op &op : table) {
            type = of;
            struct traffic t = counted(op.run);
            struct figures f = figures_of(t);
            printf("%-26s %-4s %9llu %9llu %6.3f %7.3f %6.2f %5.1f\n", op.name, type_name(),
                   (unsigned long long)t.least, (unsigned long long)t.asked, f.ratio, f.sectors,
                   f.turns, f.width);
        }
}

void test_ops_ask_for_no_more_than_is_right(void **)
{
    for (enum dt_dtype of : {DT_DTYPE_BF16, DT_DTYPE_F32})
        for (const struct op &op : table) {
            type = of;
            struct figures f = figures_of(counted(op.run)), most = op.bounds[type == DT_DTYPE_F32];
            if (f.ratio > most.ratio || f.sectors > most.sectors || f.turns > most.turns ||
                f.width < most.width)
                fail_msg("%s, %s: %.4f times the least, %.4f the sectors, %.4f turns, %.2f bytes "
                         "at once",
                         op.name, type_name(), f.ratio, f.sectors, f.turns, f.width);
        }
}

int open_engine(void **)
{
    struct dt_error err;
    setenv("CUDA_EMULATOR", "eager", 1);
    device.ops = ops;
    device.engine = &dt_engine;
    if (dt_engine.open(dev, &err) < 0)
        return -1;
    memory = static_cast<char *>(dt_cuda_allocate(dev, operand_bytes));
    return memory && dt_cuda_scratch(dev, scratch_bytes) ? 0 : -1;
}

int close_engine(void **)
{
    dt_cuda_release(dev, memory, operand_bytes);
    dt_engine.close(dev);
    return 0;
}
} // namespace

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_of_known_kernels),
        cmocka_unit_test(test_ops_ask_for_no_more_than_is_right),
    };
    if (argc < 2 || strcmp(argv[1], "table") != 0)
        return cmocka_run_group_tests(tests, open_engine, close_engine);
    if (open_engine(nullptr) != 0)
        return 1;
    print_table();
    return close_engine(nullptr);
}
