/* SPDX-License-Identifier: MIT */
#include "bench/step-bench.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "math/rng.h"
#include "model/forward-backward.h"
#include "parallel/train-state.h"

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

struct bench {
    const struct dt_settings *settings;
    struct dt_model *model;
    struct dt_train_state state;
    struct dt_workspace *work;
    struct dt_batch batch;
    struct dt_comm *alone;
    struct dt_mesh mesh;
    double *forward_backward, *update, *total;
};

static int open_bench(struct bench *b, struct dt_device *dev, int steps, struct dt_error *err)
{
    long batch = b->settings->training.batch_size, length = b->settings->training.sequence_length;
    const struct dt_model_config *c = &b->settings->model;
    struct dt_rng rng;
    dt_rng_init(&rng, 1);
    dt_batch_init(&b->batch, batch, length);
    b->batch.count = batch;
    b->batch.length = length;
    for (long i = 0; i < batch * length; i++) {
        bool one = c->num_labels > 0, some = dt_model_is_masked(c);
        b->batch.inputs[i] = (int32_t)dt_rng_below(&rng, (uint32_t)c->vocab_size);
        b->batch.targets[i] = (int32_t)dt_rng_below(&rng, (uint32_t)dt_model_logit_count(c));
        if (one ? i % length > 0 : some && i % 20 >= 3) /* one a text; 15% are predicted */
            b->batch.targets[i] = DT_NO_TARGET;
    }
    b->forward_backward = dt_alloc((size_t)steps, sizeof(double));
    b->update = dt_alloc((size_t)steps, sizeof(double));
    b->total = dt_alloc((size_t)steps, sizeof(double));
    DT_TRY(dt_comm_open(&b->alone, "self", NULL, err));
    DT_TRY(dt_mesh_open(&b->mesh, b->alone, b->settings, err));
    b->model = dt_model_plan(dev, &b->settings->model,
                             (enum dt_dtype)b->settings->training.precision, &b->mesh.part);
    DT_TRY(dt_model_allocate(b->model, err));
    dt_model_initialize(b->model, 1);
    DT_TRY(dt_train_state_plan(&b->state, b->model, b->settings, &b->mesh, err));
    DT_TRY(dt_train_state_allocate(&b->state, err));
    const struct dt_workspace_shape shape = {batch, length, true,
                                             (enum dt_recompute)b->settings->training.recompute};
    return dt_workspace_new(&b->work, b->model, &shape, err);
}

static int one_step(struct bench *b, long step, double *forward_backward, double *update,
                    struct dt_error *err)
{
    long batch = b->settings->training.batch_size, length = b->settings->training.sequence_length;
    struct dt_device *dev = b->model->device;
    double start = dt_clock_now();
    dt_data_parallel_begin_step(&b->state.dp, 1);
    dt_model_backward(b->model, b->work, &b->batch, &b->state.gradients,
                      &(struct dt_pass){.scale = 1.0f / (float)(batch * length)});
    DT_TRY(dev->ops->synchronize(dev, err));
    double middle = dt_clock_now(), norm;
    DT_TRY(dt_train_state_reduce_gradients(&b->state, &norm, err));
    dt_train_state_update(&b->state, b->settings, step, norm, 1);
    DT_TRY(dev->ops->synchronize(dev, err));
    *forward_backward = middle - start;
    *update = dt_clock_now() - middle;
    return 0;
}

static int run(struct bench *b, struct dt_device *dev, int steps, struct dt_step_times *times,
               struct dt_error *err)
{
    double ignored[2];
    DT_TRY(open_bench(b, dev, steps, err));
    DT_TRY(one_step(b, 0, &ignored[0], &ignored[1], err));
    const double processor = dt_clock_processor_now();
    for (int i = 0; i < steps; i++) {
        DT_TRY(one_step(b, i + 1, &b->forward_backward[i], &b->update[i], err));
        b->total[i] = b->forward_backward[i] + b->update[i];
    }
    long length = b->settings->training.sequence_length;
    int64_t tokens = b->settings->training.batch_size * length;
    *times = (struct dt_step_times){
        .processor = (dt_clock_processor_now() - processor) / steps,
        .forward_backward = median(b->forward_backward, steps),
        .update = median(b->update, steps),
        .total = median(b->total, steps),
        .flops = (double)tokens *
                 dt_model_flops_per_token(&b->settings->model, length, b->settings->data.mask_rate),
        .tokens = tokens,
        .parameters = b->model->table.parameters,
        .memory = dt_model_bytes(b->model) + b->state.arena.size + dt_workspace_bytes(b->work),
    };
    return 0;
}

int dt_step_bench(struct dt_device *dev, const struct dt_settings *settings, int steps,
                  struct dt_step_times *times, struct dt_error *err)
{
    struct bench b = {.settings = settings};
    int rc = run(&b, dev, steps, times, err);
    dt_workspace_free(b.work);
    dt_train_state_release(&b.state);
    dt_model_free(b.model);
    dt_mesh_release(&b.mesh);
    dt_batch_release(&b.batch);
    dt_comm_close(b.alone);
    free(b.forward_backward);
    free(b.update);
    free(b.total);
    return rc;
}
