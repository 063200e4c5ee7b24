/* SPDX-License-Identifier: MIT */
/* Compares the counts of a roofline with counts by hand, from the shapes of two models. */
#include "test.h"

#include <math.h>
#include <stdio.h>

#include "plan/roofline.h"

static struct dt_error err;
static struct dt_settings settings;
static struct dt_cluster cluster;
static struct dt_step_work work;

#define T 1024.0 /* tokens of a sequence */

/* 1 PFLOP/s, of which products and attention reach all; 10 TB/s of memory, all of it. */
static void count(const char *config, long batch, long batches)
{
    char sizes[3][64], path[4096];
    struct dt_plan_request request;
    struct dt_plan_layout layout;
    (void)snprintf(sizes[0], sizeof sizes[0], "training.batch_size=%ld", batch);
    (void)snprintf(sizes[1], sizeof sizes[1], "training.gradient_accumulation_steps=%ld", batches);
    (void)snprintf(sizes[2], sizeof sizes[2], "training.sequence_length=%.0f", T);
    (void)snprintf(path, sizeof path, "share/configs/%s.yaml", config);
    const char *const set[] = {sizes[0], sizes[1], sizes[2], "training.precision=bf16"};
    const char *const machine[] = {"device.tflops_16=1000",         "device.gemm_efficiency=1",
                                   "device.attention_efficiency=1", "device.bandwidth=10000",
                                   "device.bandwidth_efficiency=1", "device.launch=0"};
    const struct dt_plan_source source = {.config = path,
                                          .cluster = "share/clusters/8xh100.yaml",
                                          .set = set,
                                          .machine = machine,
                                          .set_count = 4,
                                          .machine_count = 6};
    assert_int_equal(dt_plan_request_read(&request, &settings, &cluster, &layout, &source, &err),
                     0);
    assert_int_equal(dt_roofline_make(&work, &request, &layout, &err), 0);
}

static void assert_counts(const struct dt_work *w, double flops, double bytes, double launches)
{
    assert_true(fabs(w->flops - flops) <= 1e-12 * flops);
    assert_true(fabs(w->bytes - bytes) <= 1e-12 * bytes);
    assert_true(w->launches == launches);
    assert_true(w->least >= fmax(w->flops / 1e15, w->bytes / 1e13) * (1 - 1e-12));
    assert_true(w->seconds >= w->least * (1 - 1e-12));
}

/* GPT-2 124M: 12 layers of 768 channels; 32 sequences; elements of 2 bytes. */
static void gpt2_is_as_by_hand(void **state)
{
    (void)state;
    const double layers = 12, c = 768, vocab = 50257, r = 32 * T, seen = T / 2;
    const double weights = 12 * c * c; /* of a layer: 3 + 1 + 4 + 4 matrices of c x c */
    /* Inputs and outputs of the four products, c + 3 c, c + c, c + 4 c and 4 c + c. */
    const double channels = (4 + 2 + 5 + 5) * c;
    count("gpt2-124m", 32, 1);
    assert_counts(&work.forward[DT_WORK_PRODUCTS], layers * 2 * r * weights,
                  layers * 2 * (r * channels + weights), layers * 4);
    /* Twice the operands; weights are read, their gradients in fp32 are read and written. */
    assert_counts(&work.backward[DT_WORK_PRODUCTS], layers * 4 * r * weights,
                  layers * (2 * 2 * r * channels + (2 + 8) * weights), layers * 8);
    assert_counts(&work.forward[DT_WORK_ATTENTION], layers * 4 * r * seen * c,
                  layers * 2 * r * 4 * c, layers);
    assert_counts(&work.backward[DT_WORK_ATTENTION], layers * 10 * r * seen * c,
                  layers * 2 * r * 8 * c, layers * 3);
    assert_counts(&work.forward[DT_WORK_NORMS], 0, layers * 2 * 2 * r * 4 * c, layers * 2);
    assert_counts(&work.forward[DT_WORK_HEAD], 2 * r * c * vocab,
                  2 * (r * c + c * vocab + r * vocab), 1);
    assert_counts(&work.forward[DT_WORK_LOSS], 0, 2 * 3 * r * vocab, 1);
    /* fp32: parameters and two moments are read and written, gradients read twice and zeroed;
     * weights of 2 bytes are written. */
    const double parameters = layers * (weights + 13 * c) + (vocab + T) * c + 2 * c;
    assert_true(fabs(work.update.bytes - parameters * (4 * 9 + 2)) <= 1e-4 * work.update.bytes);
}

/* A Llama of 8B: 32 layers of 4096 channels, 8 of 32 heads of keys, gated MLPs of 14336. */
static void llama_is_as_by_hand(void **state)
{
    (void)state;
    const double layers = 32, c = 4096, keys = 1024, inner = 14336, r = T, seen = T / 2;
    const double weights = c * (c + 2 * keys) + c * c + 3 * c * inner;
    const double channels = 2 * c + 2 * keys + 2 * c + 3 * (c + inner);
    count("llama-8b", 1, 4);
    assert_counts(&work.forward[DT_WORK_PRODUCTS], 4 * layers * 2 * r * weights,
                  4 * layers * 2 * (r * channels + weights), 4 * layers * 5);
    assert_counts(&work.backward[DT_WORK_PRODUCTS], 4 * layers * 4 * r * weights,
                  4 * layers * (2 * 2 * r * channels + 10 * weights), 4 * layers * 10);
    assert_counts(&work.forward[DT_WORK_ATTENTION], 4 * layers * 4 * r * seen * c,
                  4 * layers * 2 * r * 2 * (c + keys), 4 * layers);
    /* Rotations of queries and keys, and the gate: two operands and a result. */
    assert_counts(&work.forward[DT_WORK_ELEMENTS], 0,
                  4 * layers * 2 * r * (2 * (c + keys) + 3 * inner), 4 * layers * 3);
}

/* Each operation takes at least the longer of its arithmetic and of its memory. */
static void seconds_are_the_longer_of_two(void **state)
{
    (void)state;
    const struct dt_work *products = &work.forward[DT_WORK_PRODUCTS],
                         *norms = &work.forward[DT_WORK_NORMS];
    count("gpt2-124m", 32, 1);
    assert_true(fabs(products->least - products->flops / 1e15) <= 1e-12 * products->least);
    assert_true(fabs(norms->least - norms->bytes / 1e13) <= 1e-12 * norms->least);
    assert_true(products->seconds > products->least); /* writes do not overlap with arithmetic */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_is_as_by_hand),
        cmocka_unit_test(llama_is_as_by_hand),
        cmocka_unit_test(seconds_are_the_longer_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
