/* SPDX-License-Identifier: MIT */
/* The dropout of adapters is that of training. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "model/decode.h"
#include "model/forward-backward.h"
#include "tiny-models.h"

#define LENGTH 8
#define V      19

static const struct dt_model_config dropping = {
    TINY_LLAMA, .num_heads = 4, .num_kv_heads = 2,
    .lora = {.rank = 2, .alpha = 16, .dropout = 0.5, .targets = DT_LORA_ALL}};

static const uint32_t ids[LENGTH + 1] = {3, 1, 4, 1, 5, 9, 2, 6, 5};

/* With random numbers in all matrices. */
static struct dt_model *new_adapted(void)
{
    struct dt_model_config config = dropping;
    dt_model_config_derive(&config);
    struct dt_model *m = new_model_of(&config);
    float *frozen = dt_alloc((size_t)m->frozen_table.elements, sizeof *frozen);
    dt_table_initialize(&m->frozen_table, 7, frozen);
    for (int64_t i = 0; i < m->frozen_table.elements; i++)
        frozen[i] *= 8;
    dt_model_set_frozen(m, frozen);
    free(frozen);
    for (int64_t i = 0; i < m->table.elements; i++)
        m->parameters[i] = (float)(i % 7) * 0.1f - 0.3f;
    dt_model_refresh(m);
    return m;
}

static void train(struct dt_model *m)
{
    struct dt_workspace *work;
    struct dt_batch batch;
    struct dt_flat gradients = {DT_DTYPE_F32};
    float *arena = dt_alloc((size_t)m->table.gradient_elements, sizeof *arena);
    const struct dt_workspace_shape shape = {1, LENGTH, .training = true};
    dt_flat_set(&gradients, &m->table, DT_DTYPE_F32, arena);
    dt_batch_init(&batch, 1, LENGTH);
    dt_batch_next_token(&batch, ids, 1, LENGTH);
    assert_int_equal(dt_workspace_new(&work, m, &shape, &err), 0);
    dt_model_backward(m, work, &batch, &gradients, &(struct dt_pass){.scale = 1, .seed = 5});
    dt_workspace_free(work);
    dt_batch_release(&batch);
    dt_flat_release(&gradients);
    free(arena);
}

static void decode(const struct dt_model *m, float logits[V])
{
    struct dt_decoder *d;
    assert_int_equal(dt_decoder_new(&d, m, 1, LENGTH, &err), 0);
    dt_decoder_feed(d, 0, ids, LENGTH, logits);
    dt_decoder_free(d);
}

static void decoding_has_no_dropout_after_a_step_of_training(void **state)
{
    float before[V], after[V];
    (void)state;
    struct dt_model *m = new_adapted();
    decode(m, before);
    train(m);
    decode(m, after);
    assert_memory_equal(after, before, sizeof before);
    dt_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_has_no_dropout_after_a_step_of_training),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
