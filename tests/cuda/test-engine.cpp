/* SPDX-License-Identifier: MIT */
/* The engine from inside: where nothing is left of the device's memory, and what it times. */
#include <cstdlib>

extern "C" {
#include "test.h"
}

#include "device/cuda/kernel.cuh"

extern "C" {
#include "device/cuda/host/blas.h"

extern const struct dt_engine dt_engine;
}

namespace
{
constexpr int64_t side = 16;
struct dt_device device, *const dev = &device;
struct dt_error err;
void *all; /* but for what was taken before it */

struct dt_tensor take_matrix()
{
    return {dt_engine.ops->allocate(dev, side * side * sizeof(float)), DT_DTYPE_F32, side, side,
            side};
}

void take_all()
{
    size_t left, total;
    cudaMemGetInfo(&left, &total);
    assert_int_equal(cudaMalloc(&all, left), cudaSuccess);
}

/* Sums that go on are timed in memory beside them, when a product comes for the third time. */
void test_products_that_cannot_be_timed(void **)
{
    struct dt_tensor a = take_matrix(), b = take_matrix(), c = take_matrix();
    struct dt_matmul how = {};
    how.accumulate = true;
    take_all();
    for (int i = 0; i < 4; i++)
        dt_engine.ops->matmul(dev, &c, &a, &b, &how);
    assert_int_equal(dt_engine.ops->synchronize(dev, &err), 0);
    cudaFree(all);
    for (const struct dt_tensor &x : {a, b, c})
        dt_engine.ops->release(dev, x.data, side * side * sizeof(float));
}

/* The caller gets the error; it does not become a failure of ops. */
void test_memory_that_is_refused(void **)
{
    take_all();
    assert_null(dt_engine.ops->allocate(dev, 1));
    assert_int_equal(dt_engine.ops->synchronize(dev, &err), 0);
    cudaFree(all);
}

/* As fast as a product can be. */
void multiply_alone(struct dt_device *, const struct dt_cuda_product *p)
{
    struct dt_cuda_product plain = *p;
    plain.epilogue = DT_CUDA_PLAIN;
    dt_cuda_blas_multiply(dev, &plain);
}

/* A product at its first use is tuned itself, which does not count towards its time. */
void test_what_is_done_instead_is_tuned_before(void **)
{
    struct dt_cuda_product p = {};
    p.a = take_matrix(), p.b = take_matrix(), p.c = take_matrix(), p.bias = take_matrix();
    p.bias.rows = 1;
    p.transpose_a = p.accumulate = true;
    p.epilogue = DT_CUDA_SUMS_A;
    for (int use = 1; use <= 4; use++)
        assert_int_equal(dt_cuda_blas_takes(dev, &p, multiply_alone), use < 3);
    for (const struct dt_tensor &x : {p.a, p.b, p.c, p.bias})
        dt_engine.ops->release(dev, x.data, side * side * sizeof(float));
}

/* A launch that fails is named, and what follows does not hide it. */
void test_a_launch_that_fails_is_named(void **)
{
    constexpr int64_t size = 128;
    struct dt_tensor x[9];
    struct dt_attention how = {};
    how.batch = how.heads = how.kv_heads = 1, how.queries = how.key_stride = side;
    for (struct dt_tensor &t : x)
        t = {dt_engine.ops->allocate(dev, side * size * 2), DT_DTYPE_BF16, side, size, size};
    struct dt_tensor lse = {take_matrix().data, DT_DTYPE_F32, side, 1, 1};
    const auto backward = [&] {
        dt_engine.ops->attention_backward(dev, &x[0], &x[1], &x[2], &x[3], &x[4], &lse, &x[5],
                                          &x[6], &x[7], &how);
        dt_engine.ops->copy(dev, &x[8], &x[0]);
        return dt_engine.ops->synchronize(dev, &err);
    };
    assert_int_equal(backward(), 0);
    dt_cuda_of(dev)->stream->shared_limit = 1 << 20; /* which this GPU does not have */
    assert_int_equal(backward(), DT_EIO);
    assert_string_equal(err.text,
                        "the GPU failed (launch of attention_backward_keys): invalid argument");
}

int open_engine(void **)
{
    setenv("CUDA_EMULATOR", "sm=86", 0);
    unsetenv("DT_CUDA_TUNE");
    device.ops = dt_engine.ops;
    device.engine = &dt_engine;
    return dt_engine.open(dev, &err);
}

int close_engine(void **)
{
    dt_engine.close(dev);
    return 0;
}
} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_that_cannot_be_timed),
        cmocka_unit_test(test_memory_that_is_refused),
        cmocka_unit_test(test_what_is_done_instead_is_tuned_before),
        cmocka_unit_test(test_a_launch_that_fails_is_named), /* the last: the engine stays failed */
    };
    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
