/* SPDX-License-Identifier: MIT */
#include "train/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "formats/model-directory.h"
#include "math/rng.h"
#include "unicode/utf8.h"

const char *const dt_group_metric_names[] = {
    [DT_GROUP_METRIC_REWARD] = "reward",
    [DT_GROUP_METRIC_REWARD_STD] = "reward_std",
    [DT_GROUP_METRIC_TOKENS] = "completion_tokens",
    [DT_GROUP_METRIC_ENDED] = "completion_ended",
    [DT_GROUP_METRIC_RATIO_DEVIATION] = "ratio_deviation",
    [DT_GROUP_METRIC_CLIPPED] = "clip_fraction",
    [DT_GROUP_METRIC_KL] = "kl",
};

static void add(struct dt_exact_sum *sum, double value)
{
    dt_exact_sum_add(sum, (float)value);
    dt_exact_sum_normalize(sum);
}

/* --- the loss --------------------------------------------------------------------------------- */

static struct dt_group_token_loss token_loss(const struct dt_groups *g, int64_t i, double loss,
                                             double advantage)
{
    const struct dt_group_token token = {
        .log_probability = -loss,
        .sampled = -(double)g->sampled[i],
        .reference = g->reference ? -(double)g->referred[i] : 0,
        .advantage = advantage,
    };
    return dt_group_loss_of(&g->loss, &token);
}

static void set_weights(void *context, const struct dt_batch *batch, float *losses, float *weights)
{
    struct dt_groups *g = context;
    for (int64_t row = 0; row < batch->count; row++) {
        int64_t from = row * batch->length, end = from + batch->length, tokens = 0;
        for (int64_t i = from; i < end; i++)
            tokens += batch->targets[i] >= 0;
        double share = dt_group_loss_share(&g->loss, tokens);
        for (int64_t i = from; i < end; i++) {
            if (batch->targets[i] < 0)
                continue;
            struct dt_group_token_loss l = token_loss(g, i, (double)losses[i], g->advantages[row]);
            losses[i] = (float)(share * l.loss);
            weights[i] = (float)(-share * l.slope); /* a loss is minus a log-probability */
            if (*g->padding)
                continue;
            add(&g->sums[DT_GROUP_METRIC_RATIO_DEVIATION], fabs(l.ratio - 1));
            add(&g->sums[DT_GROUP_METRIC_CLIPPED], l.clipped);
            add(&g->sums[DT_GROUP_METRIC_KL], l.divergence);
        }
        if (*g->padding)
            continue;
        add(&g->sums[DT_GROUP_METRIC_REWARD], g->rewards[row]);
        add(&g->sums[DT_GROUP_METRIC_TOKENS], (double)tokens);
        add(&g->sums[DT_GROUP_METRIC_ENDED], dt_rollout_completion(g->rollout, (long)row)->ended);
    }
}

/* --- a micro-batch ---------------------------------------------------------------------------- */

/* Prompt and completion of a row. */
static void put(struct dt_groups *g, struct dt_batch *batch, int64_t row,
                const struct dt_ids *prompt, const struct dt_completion *c)
{
    int32_t *inputs = batch->inputs + row * batch->length;
    int32_t *targets = batch->targets + row * batch->length;
    int64_t given = (int64_t)prompt->count;
    for (int64_t t = 0; t < batch->length; t++) {
        int64_t next = t + 1 - given; /* index in the completion of the token after t */
        bool learned = next >= 0 && next < c->count;
        inputs[t] = t < given              ? (int32_t)prompt->data[t]
                    : t - given < c->count ? (int32_t)c->ids[t - given]
                                           : 0;
        targets[t] = learned ? (int32_t)c->ids[next] : DT_NO_TARGET;
        g->sampled[row * batch->length + t] = learned ? c->losses[next] : 0;
    }
}

/* The text of a completion, without its end. */
static void add_text(const struct dt_groups *g, const struct dt_completion *c,
                     struct dt_buffer *text)
{
    struct dt_buffer bytes = DT_BUFFER_EMPTY;
    for (long i = 0; i < c->count - c->ended; i++)
        dt_tokenizer_add_token_text(g->tokenizer, c->ids[i], &bytes);
    dt_utf8_repair(bytes.data ? bytes.data : "", bytes.size, text);
    dt_buffer_release(&bytes);
}

/* A line for the reward program: the record of the prompt with the completion. */
static void add_line(struct dt_groups *g, const struct dt_prompt *prompt,
                     const struct dt_completion *c)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct json_object *ids = dt_json_new_array();
    for (long i = 0; i < c->count; i++)
        dt_json_array_add(ids, dt_json_new_int(c->ids[i]));
    dt_json_object_add(prompt->record, "completion_ids", ids);
    add_text(g, c, &text);
    dt_json_object_add(prompt->record, "completion",
                       dt_json_new_string_len(text.data ? text.data : "", text.size));
    dt_json_add_value(&g->lines, prompt->record, DT_JSON_COMPACT);
    dt_buffer_append(&g->lines, "\n", 1);
    dt_buffer_release(&text);
}

static int ask_rewards(struct dt_groups *g, const uint64_t *numbers, long count,
                       struct dt_error *err)
{
    dt_buffer_clear(&g->lines);
    for (long i = 0; i < count * g->group; i++)
        add_line(g, &g->prompts->items[numbers[i / g->group]],
                 dt_rollout_completion(g->rollout, i));
    return dt_reward_ask(&g->reward, g->lines.data, g->lines.size, (size_t)(count * g->group),
                         g->rewards, err);
}

static int complete(struct dt_groups *g, const uint64_t *numbers, uint64_t position, long count,
                    struct dt_error *err)
{
    const struct dt_ids **prompts = dt_alloc((size_t)count, sizeof *prompts);
    uint64_t *keys = dt_alloc((size_t)count, sizeof *keys);
    for (long i = 0; i < count; i++) {
        prompts[i] = &g->prompts->items[numbers[i]].ids;
        keys[i] = dt_random_key(g->seed, 'R', position + (uint64_t)i);
    }
    int rc = dt_rollout_run(g->rollout, prompts, keys, count, err);
    free(prompts);
    free(keys);
    return rc;
}

int dt_groups_fill(struct dt_groups *g, const uint64_t *numbers, uint64_t position, long count,
                   struct dt_batch *batch, int64_t *loss_count, struct dt_error *err)
{
    DT_TRY(complete(g, numbers, position, count, err));
    DT_TRY(ask_rewards(g, numbers, count, err));
    batch->count = count * g->group;
    batch->length = g->length;
    *loss_count = 0;
    for (long i = 0; i < count; i++) {
        long first = i * g->group;
        double deviation =
            dt_group_loss_advantages(g->rewards + first, g->group, g->scale, g->advantages + first);
        add(&g->sums[DT_GROUP_METRIC_REWARD_STD], deviation);
        for (long j = first; j < first + g->group; j++) {
            const struct dt_completion *c = dt_rollout_completion(g->rollout, j);
            put(g, batch, j, &g->prompts->items[numbers[i]].ids, c);
            *loss_count += dt_group_loss_count(&g->loss, c->count);
        }
    }
    if (g->reference)
        dt_model_score_at(g->reference, g->work, batch, g->temperature, g->referred);
    return 0;
}

int dt_groups_means(struct dt_groups *g, const struct dt_mesh *mesh, double completions,
                    double means[DT_GROUP_METRICS], struct dt_error *err)
{
    double sums[DT_GROUP_METRICS];
    for (int i = 0; i < DT_GROUP_METRICS; i++) {
        DT_TRY(dt_mesh_sum_exact(mesh->data.all, &g->sums[i], err));
        sums[i] = dt_exact_sum_round(&g->sums[i]);
        g->sums[i] = (struct dt_exact_sum){.limbs = {0}};
    }
    const double divisors[DT_GROUP_METRICS] = {
        [DT_GROUP_METRIC_REWARD] = completions,
        [DT_GROUP_METRIC_REWARD_STD] = completions / (double)g->group,
        [DT_GROUP_METRIC_TOKENS] = completions,
        [DT_GROUP_METRIC_ENDED] = completions,
        [DT_GROUP_METRIC_RATIO_DEVIATION] = sums[DT_GROUP_METRIC_TOKENS],
        [DT_GROUP_METRIC_CLIPPED] = sums[DT_GROUP_METRIC_TOKENS],
        [DT_GROUP_METRIC_KL] = sums[DT_GROUP_METRIC_TOKENS],
    };
    for (int i = 0; i < DT_GROUP_METRICS; i++)
        means[i] = sums[i] / divisors[i];
    return 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

static struct dt_workspace_shape reference_shape(const struct dt_settings *s)
{
    return (struct dt_workspace_shape){.batch = dt_settings_sequences(s),
                                       .length = s->training.sequence_length};
}

static struct dt_rollout_options rollout_options(const struct dt_settings *s)
{
    return (struct dt_rollout_options){.prompts = s->training.batch_size,
                                       .group = s->grpo.group,
                                       .length = s->training.sequence_length,
                                       .max_new_tokens = s->grpo.max_new_tokens,
                                       .temperature = s->grpo.temperature};
}

size_t dt_groups_bytes(const struct dt_model *m, const struct dt_settings *s)
{
    const struct dt_rollout_options how = rollout_options(s);
    const struct dt_workspace_shape shape = reference_shape(s);
    struct dt_model_config config = m->config;
    size_t bytes = dt_rollout_bytes(m, &how);
    if (s->grpo.beta == 0)
        return bytes;
    config.lora.rank = 0; /* the reference is the model without its adapter */
    struct dt_model *reference = dt_model_plan(m->device, &config, m->compute, NULL);
    struct dt_workspace *work = dt_workspace_plan(reference, &shape);
    bytes += dt_model_bytes(reference) + dt_workspace_bytes(work);
    dt_workspace_free(work);
    dt_model_free(reference);
    return bytes;
}

static int open_reference(struct dt_groups *g, const struct dt_settings *s,
                          const struct dt_groups_source *source, struct dt_error *err)
{
    const struct dt_workspace_shape shape = reference_shape(s);
    if (s->grpo.beta == 0)
        return 0;
    if (source->reference == NULL)
        return dt_fail(err, DT_EINVALID,
                       "grpo.beta above 0 needs --init-from or --reference, the model to compare "
                       "with");
    DT_TRY(dt_model_load_as(&g->reference, source->model->device,
                            (struct dt_model_use){source->model->compute}, source->reference, err));
    if (g->reference->config.vocab_size != source->model->config.vocab_size ||
        g->reference->config.max_seq_len < shape.length || g->reference->config.num_labels > 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: a reference model predicts the next of %ld tokens, in sequences of at "
                       "least %ld",
                       source->reference, source->model->config.vocab_size, (long)shape.length);
    return dt_workspace_new(&g->work, g->reference, &shape, err);
}

int dt_groups_open(struct dt_groups *g, const struct dt_settings *s,
                   const struct dt_groups_source *source, struct dt_error *err)
{
    struct dt_rollout_options how = rollout_options(s);
    how.vocabulary = dt_tokenizer_size(source->tokenizer);
    memcpy(how.ends, source->ends, sizeof how.ends);
    size_t sequences = (size_t)dt_settings_sequences(s);
    size_t tokens = sequences * (size_t)s->training.sequence_length;
    *g = (struct dt_groups){.loss = {(enum dt_grpo_loss)s->grpo.loss, s->grpo.beta,
                                     s->grpo.clip_low, s->grpo.clip_high, s->grpo.max_new_tokens},
                            .scale = s->grpo.scale_rewards,
                            .group = s->grpo.group,
                            .length = s->training.sequence_length,
                            .seed = (uint64_t)s->training.seed,
                            .temperature = (float)s->grpo.temperature,
                            .tokenizer = source->tokenizer,
                            .prompts = source->prompts,
                            .weights = {g, set_weights}};
    g->sampled = dt_alloc(tokens, sizeof *g->sampled);
    g->referred = dt_alloc(tokens, sizeof *g->referred);
    g->rewards = dt_alloc(sequences, sizeof *g->rewards);
    g->advantages = dt_alloc(sequences, sizeof *g->advantages);
    if (source->reward == NULL)
        return dt_fail(err, DT_EINVALID,
                       "training.objective grpo needs --reward, the program that rewards "
                       "completions");
    DT_TRY(dt_rollout_new(&g->rollout, source->model, &how, err));
    DT_TRY(open_reference(g, s, source, err));
    return dt_reward_open(&g->reward, source->reward, (double)s->grpo.reward_timeout, err);
}

void dt_groups_release(struct dt_groups *g)
{
    dt_reward_close(&g->reward);
    dt_rollout_free(g->rollout);
    dt_workspace_free(g->work);
    dt_model_free(g->reference);
    dt_buffer_release(&g->lines);
    free(g->sampled);
    free(g->referred);
    free(g->rewards);
    free(g->advantages);
    *g = (struct dt_groups){.group = 0};
}
