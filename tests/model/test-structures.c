/* SPDX-License-Identifier: MIT */
/* Losses and gradients of what families add to a block, compared with a model in fp64: the loss of
 * each token, and the derivative by each tensor, along a random direction. */
#include "test.h"

#include <stdio.h>

#include "math/rng.h"
#include "model/forward-backward.h"
#include "reference-model.h"
#include "tiny-models.h"

enum { LENGTH = 11 };

/* Every parameter moves from its initial value, zeros and ones too. */
static double *random_parameters(struct dt_model *m)
{
    size_t n = (size_t)m->table.elements;
    double *values = dt_alloc(n, sizeof *values);
    struct dt_rng rng;
    dt_rng_init(&rng, 9);
    dt_model_initialize(m, 3);
    for (size_t i = 0; i < n; i++) {
        m->parameters[i] += (float)(0.8 * (dt_rng_double(&rng) - 0.5));
        values[i] = (double)m->parameters[i];
    }
    return values;
}

static void fill_batch(struct dt_batch *batch)
{
    struct dt_rng rng;
    uint32_t ids[LENGTH + 1];
    dt_rng_init(&rng, 4);
    for (int i = 0; i <= LENGTH; i++)
        ids[i] = dt_rng_below(&rng, 19);
    dt_batch_init(batch, 1, LENGTH);
    dt_batch_next_token(batch, ids, 1, LENGTH);
}

/* The derivative of the reference's loss by tensor p along a random direction, which is written to
 * along. */
static double derivative(struct reference *r, double *parameters, const struct dt_batch *batch,
                         const struct dt_param *p, double *along)
{
    const double step = 1e-5;
    double *at = parameters + p->offset, losses[2];
    struct dt_rng rng;
    dt_rng_init(&rng, 77);
    for (int64_t j = 0; j < p->count; j++)
        along[j] = dt_rng_double(&rng) - 0.5;
    for (int side = 0; side < 2; side++) {
        for (int64_t j = 0; j < p->count; j++)
            at[j] += (side ? -2 : 1) * step * along[j];
        losses[side] = reference_loss(r, batch->inputs, batch->targets, LENGTH, NULL);
    }
    for (int64_t j = 0; j < p->count; j++)
        at[j] += step * along[j];
    return (losses[0] - losses[1]) / (2 * step);
}

static void check_gradients(const char *name, const struct dt_model *m, struct reference *r,
                            double *parameters, const struct dt_batch *batch,
                            const float *gradients)
{
    double *along = dt_alloc((size_t)m->table.elements, sizeof *along);
    for (int i = 0; i < m->table.count; i++) {
        const struct dt_param *p = &m->table.params[i];
        double got = 0, size = 0, want = derivative(r, parameters, batch, p, along);
        for (int64_t j = 0; j < p->count; j++) {
            got += along[j] * (double)gradients[p->offset + j];
            size += pow((double)gradients[p->offset + j], 2);
        }
        if (!(fabs(got - want) <= 2e-5 * sqrt(size) + 1e-6))
            fail_msg("%s: %s: derivative %.9g instead of %.9g", name, p->name, got, want);
    }
    free(along);
}

static void check_losses(const char *name, const struct dt_model *m, const struct reference *r,
                         struct dt_workspace *w, const struct dt_batch *batch)
{
    float losses[LENGTH];
    double want[LENGTH];
    dt_model_score(m, w, batch, losses, NULL);
    reference_loss(r, batch->inputs, batch->targets, LENGTH, want);
    for (int t = 0; t < LENGTH; t++)
        if (!(fabs((double)losses[t] - want[t]) <= 3e-6 * (1 + want[t])))
            fail_msg("%s: token %d: loss %.9g instead of %.9g", name, t, (double)losses[t],
                     want[t]);
}

static void check(const char *name, const struct dt_model_config *config)
{
    struct dt_model *m;
    assert_int_equal(dt_model_new(&m, dev, config, DT_DTYPE_F32, &err), 0);
    double *parameters = random_parameters(m);
    struct reference r = {&m->table, &m->config, parameters};
    float *gradients = dt_alloc((size_t)m->table.elements, sizeof *gradients);
    struct dt_workspace *w;
    struct dt_batch batch;
    struct dt_flat flat = {0};
    fill_batch(&batch);
    dt_flat_set(&flat, &m->table, DT_DTYPE_F32, gradients);
    assert_int_equal(dt_workspace_new(&w, m, &(struct dt_workspace_shape){1, LENGTH, true}, &err),
                     0);
    dt_model_backward(m, w, &batch, &flat, &(struct dt_pass){.scale = 1});
    check_losses(name, m, &r, w, &batch);
    check_gradients(name, m, &r, parameters, &batch, gradients);
    dt_flat_release(&flat);
    dt_batch_release(&batch);
    dt_workspace_free(w);
    dt_model_free(m);
    free(gradients), free(parameters);
}

/* The families that the reference must also agree with. */
static void families_match_the_reference(void **state)
{
    (void)state;
    check("gpt2", &tiny);
    check("llama", &tiny_llama);
    check("qwen3", &tiny_qwen3);
    check("olmo2", &tiny_olmo2);
    check("bert", &tiny_bert);
    check("distilbert", &tiny_distilbert);
}

static void granites_scales_match_the_reference(void **state)
{
    (void)state;
    struct dt_model_config c = tiny_granite;
    check("granite", &c);
    c.residual_scale = 0;
    check("embedding_scale", &c);
}

static void biases_match_the_reference(void **state)
{
    (void)state;
    struct dt_model_config c = tiny_llama;
    check("qwen2", &tiny_qwen2);
    c.attention_bias = DT_ATTENTION_BIAS_ALL;
    check("attention_bias", &c);
    c.mlp_bias = true;
    check("mlp_bias", &c);
}

static void parallel_residuals_match_the_reference(void **state)
{
    (void)state;
    struct dt_model_config c = tiny_gpt_neox;
    check("gpt_neox", &c);
    c.residual_scale = 0.5;
    check("residual_scale", &c);
    c.parallel_residual = false;
    check("without parallel_residual", &c);
}

static void norms_of_inputs_and_outputs_match_the_reference(void **state)
{
    (void)state;
    struct dt_model_config c = tiny_gemma2;
    check("gemma2", &c);
    c.attention_softcap = 2;
    c.attention_scale = 0.4;
    c.sliding_window = 3;
    c.global_every = 2;
    c.global_first = 1;
    c.head_dim = 6;
    check("window, softcap, scale, head_dim", &c);
    c.logit_softcap = 3;
    c.residual_scale = 0.5;
    check("logit_softcap, residual_scale", &c);
}

static void a_norm_of_embeddings_matches_the_reference(void **state)
{
    (void)state;
    struct dt_model_config c = tiny_modernbert;
    check("modernbert", &c);
    c.sliding_window = 4;
    c.global_every = 2;
    c.rope_local_theta = 5;
    check("window, rope_local_theta", &c);
}

static void gemma3_matches_the_reference(void **state)
{
    (void)state;
    struct dt_model_config c = tiny_gemma2;
    c.family = DT_FAMILY_GEMMA3_TEXT;
    c.qk_norm = true;
    c.rope_local_theta = 7;
    c.sliding_window = 3;
    c.global_every = 2;
    c.global_first = 1;
    check("gemma3_text", &c);
}

static void skipped_positions_match_the_reference(void **state)
{
    (void)state;
    check("smollm3", &tiny_smollm3);
}

/* Position t has row t + 2. */
static void offset_positions_match_the_reference(void **state)
{
    (void)state;
    check("roberta", &tiny_roberta);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_match_the_reference),
        cmocka_unit_test(granites_scales_match_the_reference),
        cmocka_unit_test(biases_match_the_reference),
        cmocka_unit_test(parallel_residuals_match_the_reference),
        cmocka_unit_test(norms_of_inputs_and_outputs_match_the_reference),
        cmocka_unit_test(a_norm_of_embeddings_matches_the_reference),
        cmocka_unit_test(gemma3_matches_the_reference),
        cmocka_unit_test(skipped_positions_match_the_reference),
        cmocka_unit_test(offset_positions_match_the_reference),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
