/* SPDX-License-Identifier: MIT */
/* One primitive per combination of transposes and accumulation, with runtime dimensions, serves
 * every shape. Without a scratchpad, threads can share it. */
#include "device/cpu/bf16.h"

#include <stddef.h>

#if defined(__AVX512F__) && !defined(DT_STATIC) /* oneDNN is a shared library */
#include <stdlib.h>

#include "device/cpu/onednn.h"

/* Upper bounds of oneDNN's allocations: for an engine with its kernels, and for one product. */
#define HEAP_TO_OPEN    ((size_t)16 << 20)
#define HEAP_OF_PRODUCT ((size_t)16 << 10)

struct dt_cpu_bf16 {
    int threads;
    dnnl_engine_t engine;
    dnnl_primitive_t primitives[8]; /* bits: A transposed, B transposed, accumulate */
    dnnl_stream_t streams[];        /* one per thread */
};

/* oneDNN 3 has objects where oneDNN 2 has values. */
#if DNNL_VERSION_MAJOR >= 3
#define POINTER(description)   (description)
#define describe_by_strides    dnnl_memory_desc_create_with_strides
#define destroy(description)   dnnl_memory_desc_destroy(description)
#define append_sum(operations) dnnl_post_ops_append_sum(operations, 1.0f, 0, dnnl_data_type_undef)
typedef const_dnnl_memory_desc_t description_pointer;

static dnnl_status_t describe_product(dnnl_primitive_desc_t *result, dnnl_engine_t engine,
                                      dnnl_memory_desc_t a, dnnl_memory_desc_t b,
                                      dnnl_memory_desc_t c, dnnl_primitive_attr_t how)
{
    return dnnl_matmul_primitive_desc_create(result, engine, a, b, NULL, c, how);
}
#else
#define POINTER(description)   (&(description))
#define describe_by_strides    dnnl_memory_desc_init_by_strides
#define destroy(description)   ((void)(description))
#define append_sum(operations) dnnl_post_ops_append_sum(operations, 1.0f)
typedef const dnnl_memory_desc_t *description_pointer;

static dnnl_status_t describe_product(dnnl_primitive_desc_t *result, dnnl_engine_t engine,
                                      dnnl_memory_desc_t a, dnnl_memory_desc_t b,
                                      dnnl_memory_desc_t c, dnnl_primitive_attr_t how)
{
    dnnl_matmul_desc_t product;
    dnnl_status_t status = dnnl_matmul_desc_init(&product, &a, &b, NULL, &c);
    return status == dnnl_success ? dnnl_primitive_desc_create(result, &product, how, engine, NULL)
                                  : status;
}
#endif

static dnnl_memory_desc_t describe(int64_t rows, int64_t columns, int64_t stride, bool transposed,
                                   dnnl_data_type_t type)
{
    dnnl_memory_desc_t result;
    dnnl_dims_t sides = {rows, columns}, strides = {stride, 1};
    if (transposed)
        strides[0] = 1, strides[1] = stride;
    dt_cpu_check_onednn(describe_by_strides(&result, 2, sides, type, strides));
    return result;
}

static bool create_primitive(dnnl_engine_t engine, dnnl_primitive_t *result, bool transpose_a,
                             bool transpose_b, bool add)
{
    const int64_t later = DNNL_RUNTIME_DIM_VAL;
    dnnl_memory_desc_t a = describe(later, later, later, transpose_a, dnnl_bf16);
    dnnl_memory_desc_t b = describe(later, later, later, transpose_b, dnnl_bf16);
    dnnl_memory_desc_t c = describe(later, later, later, false, dnnl_f32);
    dnnl_primitive_attr_t how = NULL;
    dnnl_post_ops_t sum = NULL;
    dnnl_primitive_desc_t description = NULL;
    bool made = dt_cpu_onednn_has(dnnl_primitive_attr_create(&how)) &&
                dt_cpu_onednn_has(
                    dnnl_primitive_attr_set_scratchpad_mode(how, dnnl_scratchpad_mode_user)) &&
                dt_cpu_onednn_has(dnnl_post_ops_create(&sum)) &&
                (!add || dt_cpu_onednn_has(append_sum(sum))) &&
                dt_cpu_onednn_has(dnnl_primitive_attr_set_post_ops(how, sum)) &&
                dt_cpu_onednn_has(describe_product(&description, engine, a, b, c, how));
    if (made) { /* threads can share it only without a scratchpad */
        description_pointer scratchpad =
            dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
        made = (scratchpad == NULL || dnnl_memory_desc_get_size(scratchpad) == 0) &&
               dt_cpu_onednn_has(dnnl_primitive_create(result, description));
    }
    dnnl_primitive_desc_destroy(description);
    dnnl_post_ops_destroy(sum);
    dnnl_primitive_attr_destroy(how);
    destroy(a), destroy(b), destroy(c);
    return made;
}

struct dt_cpu_bf16 *dt_cpu_bf16_open(int threads)
{
    if (!__builtin_cpu_supports("avx512bf16"))
        return NULL;
    dt_cpu_need_heap(HEAP_TO_OPEN);
    struct dt_cpu_bf16 *p = calloc(1, sizeof *p + (size_t)threads * sizeof *p->streams);
    if (p == NULL)
        dt_cpu_no_memory("oneDNN");
    p->threads = threads;
    bool made = dt_cpu_onednn_has(dnnl_engine_create(&p->engine, dnnl_cpu, 0));
    for (int i = 0; i < 8; i++)
        made = made && create_primitive(p->engine, &p->primitives[i], i & 1, i & 2, i & 4);
    for (int i = 0; i < threads; i++)
        made = made && dt_cpu_onednn_has(dnnl_stream_create(&p->streams[i], p->engine,
                                                            dnnl_stream_default_flags));
    if (made)
        return p;
    dt_cpu_bf16_close(p);
    return NULL;
}

void dt_cpu_bf16_close(struct dt_cpu_bf16 *p)
{
    if (p == NULL)
        return;
    for (int i = 0; i < p->threads; i++)
        dnnl_stream_destroy(p->streams[i]);
    for (int i = 0; i < 8; i++)
        dnnl_primitive_destroy(p->primitives[i]);
    dnnl_engine_destroy(p->engine);
    free(p);
}

static dnnl_memory_t memory_of(const struct dt_cpu_bf16 *p, description_pointer description,
                               const void *data)
{
    dnnl_memory_t memory;
    dt_cpu_check_onednn(dnnl_memory_create(&memory, description, p->engine, (void *)data));
    return memory;
}

void dt_cpu_bf16_multiply(struct dt_cpu_bf16 *p, int thread, int64_t m, int64_t n, int64_t k,
                          struct dt_cpu_bf16_operand a, struct dt_cpu_bf16_operand b,
                          bool accumulate, float *c, int64_t stride)
{
    dt_cpu_need_heap(HEAP_OF_PRODUCT);
    dnnl_memory_desc_t of_a = describe(m, k, a.stride, a.transposed, dnnl_bf16);
    dnnl_memory_desc_t of_b = describe(k, n, b.stride, b.transposed, dnnl_bf16);
    dnnl_memory_desc_t of_c = describe(m, n, stride, false, dnnl_f32);
    dnnl_exec_arg_t arguments[3] = {{DNNL_ARG_SRC, memory_of(p, POINTER(of_a), a.data)},
                                    {DNNL_ARG_WEIGHTS, memory_of(p, POINTER(of_b), b.data)},
                                    {DNNL_ARG_DST, memory_of(p, POINTER(of_c), c)}};
    dt_cpu_check_onednn(
        dnnl_primitive_execute(p->primitives[a.transposed | b.transposed << 1 | accumulate << 2],
                               p->streams[thread], 3, arguments));
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(arguments[i].memory);
    destroy(of_a), destroy(of_b), destroy(of_c);
}

#else /* never opened */

struct dt_cpu_bf16 *dt_cpu_bf16_open(int threads)
{
    (void)threads;
    return NULL;
}

void dt_cpu_bf16_close(struct dt_cpu_bf16 *p)
{
    (void)p;
}

void dt_cpu_bf16_multiply(struct dt_cpu_bf16 *p, int thread, int64_t m, int64_t n, int64_t k,
                          struct dt_cpu_bf16_operand a, struct dt_cpu_bf16_operand b,
                          bool accumulate, float *c, int64_t stride)
{
    (void)p, (void)thread, (void)m, (void)n, (void)k, (void)a, (void)b;
    (void)accumulate, (void)c, (void)stride;
}

#endif
