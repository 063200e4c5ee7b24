/* SPDX-License-Identifier: MIT */
#include "settings/settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int check_elastic(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const long group = dt_settings_group(s);
    long least, most, batches = s->training.gradient_accumulation_steps;
    if (s->training.batch_ramp_tokens > 0)
        batches = s->training.batch_ramp_start;
    if (!*s->distributed.elastic)
        return 0;
    if (!dt_settings_elastic(s, &least, &most))
        return dt_fail(err, DT_EINVALID,
                       "%s: distributed.elastic is the least and the most ranks, as 2:8, up to %d, "
                       "not '%s'",
                       path, DT_ELASTIC_MOST, s->distributed.elastic);
    if (least % group != 0 || most % group != 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: distributed.elastic %s: both have to be multiples of distributed.pp "
                       "times distributed.cp times distributed.tp, which is %ld",
                       path, s->distributed.elastic, group);
    if (most / group > batches)
        return dt_fail(err, DT_EINVALID,
                       "%s: distributed.elastic %s: a step has %ld micro-batch%s, and each of %ld "
                       "%s needs one: raise %s",
                       path, s->distributed.elastic, batches, batches == 1 ? "" : "es",
                       most / group, group > 1 ? "groups of ranks" : "ranks",
                       s->training.batch_ramp_tokens > 0 ? "training.batch_ramp_start"
                                                         : "training.gradient_accumulation_steps");
    return 0;
}

/* A setting with a value that needs another setting. */
struct need {
    bool broken;
    const char *setting, *value, *needs;
};

#define CHECK_NEEDS(needs, path, err)                                                              \
    check_needs_of(needs, sizeof(needs) / sizeof *(needs), path, err)

static int check_needs_of(const struct need *needs, size_t count, const char *path,
                          struct dt_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (needs[i].broken)
            return dt_fail(err, DT_EINVALID, "%s: %s %s needs %s", path, needs[i].setting,
                           needs[i].value, needs[i].needs);
    return 0;
}

static bool has_whole_layers(const struct dt_settings *s)
{
    return s->distributed.pp * s->distributed.tp * s->distributed.cp == 1;
}

/* Whether an interval is due only after multiples of these steps. */
static bool is_multiple(const struct dt_config_amount *interval, long steps)
{
    return interval->count == 0 ||
           (interval->unit == DT_INTERVAL_UNIT_STEPS && fmod(interval->count, (double)steps) == 0);
}

static int check_parallel_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const bool local = dt_settings_sync_is_local(s);
    const bool groups = s->distributed.shard_ranks > 0;
    const enum dt_compress compress = (enum dt_compress)s->distributed.compress;
    const int sync = s->distributed.sync;
    const bool compressed = compress != DT_COMPRESS_NONE, reduced = sync == DT_SYNC_ALL_REDUCE;
    const bool whole = s->distributed.zero_stage == 0, uncut = s->distributed.tp == 1;
    const bool contexts = s->distributed.cp > 1;
    const bool even = s->training.sequence_length % (2 * s->distributed.cp) == 0;
    const long parts = s->distributed.sequence_parts;
    const bool saves = is_multiple(&s->training.save_interval, s->distributed.local_steps);
    const bool scores = is_multiple(&s->training.eval_interval, s->distributed.local_steps);
    const bool streams = sync == DT_SYNC_STREAMING_DILOCO;
    const bool ramps = s->training.batch_ramp_tokens > 0;
    struct dt_settings plain;
    dt_config_defaults(dt_settings_schema, &plain);
    const bool labels = s->model.num_labels > 0, ranks_alike = has_whole_layers(s);
    const char *const which = dt_compress_names[compress], *const how = dt_sync_names[sync];
    const struct need needs[] = {
        {compressed && !reduced, "distributed.compress", which, "distributed.sync allreduce"},
        {compressed && !whole, "distributed.compress", which, "distributed.zero_stage 0"},
        {compressed && s->distributed.invariant, "distributed.compress", which,
         "distributed.invariant false"},
        {dt_compress_has_error_feedback(compress) && !uncut, "distributed.compress", which,
         "distributed.tp 1"},
        {local && !whole, "distributed.sync", how, "distributed.zero_stage 0"},
        {local && s->distributed.invariant, "distributed.sync", how, "distributed.invariant false"},
        {local && contexts, "distributed.sync", how, "distributed.cp 1"},
        {labels && !ranks_alike, "data.labels", "of a classifier",
         "distributed.pp, distributed.tp and distributed.cp 1"},
        {labels && s->data.document_mask, "data.labels", "of a classifier",
         "data.document_mask false"},
        {contexts && parts == 0 && !even, "distributed.cp", "above 1",
         "a training.sequence_length that is a multiple of 2 * distributed.cp"},
        {contexts && parts > 0 && parts % (2 * s->distributed.cp) != 0, "distributed.cp", "above 1",
         "a distributed.sequence_parts that is 0 or a multiple of 2 * distributed.cp"},
        {contexts && parts == 0 && s->distributed.invariant, "distributed.cp",
         "above 1 with distributed.invariant",
         "a distributed.sequence_parts that is a multiple of 2 * distributed.cp, equal in all "
         "layouts"},
        {parts > 0 && (parts & (parts - 1)) != 0, "distributed.sequence_parts", "above 0",
         "a power of two"},
        {parts > 0 && s->training.sequence_length % parts != 0, "distributed.sequence_parts",
         "above 0", "a training.sequence_length that is a multiple of it"},
        {local && !saves, "distributed.sync", how,
         "a training.save_interval of steps that distributed.local_steps divides"},
        {local && !scores, "distributed.sync", how,
         "a training.eval_interval of steps that distributed.local_steps divides"},
        {streams && s->distributed.fragments > s->distributed.local_steps, "distributed.sync", how,
         "a distributed.fragments of at most distributed.local_steps"},
        {streams &&
             s->distributed.outer_delay > s->distributed.local_steps / s->distributed.fragments,
         "distributed.sync", how,
         "a distributed.outer_delay of at most distributed.local_steps / distributed.fragments"},
        {!streams && s->distributed.fragments != plain.distributed.fragments,
         "distributed.fragments", "of one's own", "distributed.sync streaming_diloco"},
        {!streams && s->distributed.outer_delay != plain.distributed.outer_delay,
         "distributed.outer_delay", "of one's own", "distributed.sync streaming_diloco"},
        {!streams && s->distributed.outer_precision != plain.distributed.outer_precision,
         "distributed.outer_precision", "of one's own", "distributed.sync streaming_diloco"},
        {ramps && s->distributed.virtual_stages > 1, "training.batch_ramp_tokens", "above 0",
         "distributed.virtual_stages 1: interleaving needs multiples of distributed.pp "
         "micro-batches in every step"},
        {groups && !reduced, "distributed.shard_ranks", "above 0", "distributed.sync allreduce"},
        {groups && compressed, "distributed.shard_ranks", "above 0", "distributed.compress none"},
    };
    return CHECK_NEEDS(needs, path, err);
}

/* Of local steps, and of what gradients are compressed to. */
static int check_reduction_needs(const struct dt_settings *s, const char *path,
                                 struct dt_error *err)
{
    const bool local = dt_settings_sync_is_local(s);
    const bool outer = local && s->distributed.sync != DT_SYNC_LOCAL_SGD;
    const bool topk = s->distributed.compress == DT_COMPRESS_TOPK;
    const bool powersgd = s->distributed.compress == DT_COMPRESS_POWERSGD;
    struct dt_settings plain;
    dt_config_defaults(dt_settings_schema, &plain);
    const struct need needs[] = {
        {!local && s->distributed.local_steps != plain.distributed.local_steps,
         "distributed.local_steps", "of one's own",
         "distributed.sync local_sgd, diloco or streaming_diloco"},
        {!outer && s->distributed.outer_learning_rate != plain.distributed.outer_learning_rate,
         "distributed.outer_learning_rate", "of one's own",
         "distributed.sync diloco or streaming_diloco"},
        {!outer && s->distributed.outer_momentum != plain.distributed.outer_momentum,
         "distributed.outer_momentum", "of one's own",
         "distributed.sync diloco or streaming_diloco"},
        {!topk && s->distributed.compress_share != plain.distributed.compress_share,
         "distributed.compress_share", "of one's own", "distributed.compress topk"},
        {!powersgd && s->distributed.compress_rank != plain.distributed.compress_rank,
         "distributed.compress_rank", "of one's own", "distributed.compress powersgd"},
    };
    return CHECK_NEEDS(needs, path, err);
}

/* Of sums by NCCL. */
static int check_collectives(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const bool library = s->distributed.collectives != DT_COLLECTIVES_ORDERED;
    const bool linked = strcmp(dt_comm_backend_names[s->distributed.backend], "nccl") == 0;
    const bool reduced = s->distributed.sync == DT_SYNC_ALL_REDUCE;
    const char *const which = dt_collectives_names[s->distributed.collectives];
    const struct need needs[] = {
        {library && s->distributed.invariant, "distributed.collectives", which,
         "distributed.invariant false: the order of NCCL's sums depends on the ranks"},
        {library && !linked, "distributed.collectives", which, "distributed.backend nccl"},
        {library && !reduced, "distributed.collectives", which, "distributed.sync allreduce"},
        {library && s->distributed.compress != DT_COMPRESS_NONE, "distributed.collectives", which,
         "distributed.compress none"},
        {library && s->distributed.shard_ranks > 0, "distributed.collectives", which,
         "distributed.shard_ranks 0"},
    };
    return CHECK_NEEDS(needs, path, err);
}

static bool is_in_minutes(const struct dt_config_amount *interval)
{
    return interval->count > 0 && interval->unit == DT_INTERVAL_UNIT_MINUTES;
}

/* Of asynchronous updates. */
static int check_async_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const bool async = s->distributed.sync == DT_SYNC_ASYNC, ranks_alike = has_whole_layers(s);
    const bool objective = s->training.objective != DT_TRAINING_OBJECTIVE_AUTO;
    struct dt_settings plain;
    dt_config_defaults(dt_settings_schema, &plain);
    const struct need needs[] = {
        {!async && s->distributed.staleness != plain.distributed.staleness, "distributed.staleness",
         "of one's own", "distributed.sync async"},
        {!async && *s->distributed.replay, "distributed.replay", s->distributed.replay,
         "distributed.sync async"},
        {async && !ranks_alike, "distributed.sync", "async",
         "distributed.pp, distributed.tp and distributed.cp 1"},
        {async && s->distributed.zero_stage > 0, "distributed.sync", "async",
         "distributed.zero_stage 0"},
        {async && s->distributed.invariant, "distributed.sync", "async",
         "distributed.invariant false: a run is repeated with distributed.replay"},
        {async && s->distributed.check_interval > 0, "distributed.sync", "async",
         "distributed.check_interval 0"},
        {async && strcmp(dt_dtype_names[s->training.precision], "fp16") == 0, "distributed.sync",
         "async", "training.precision fp32 or bf16"},
        {async && objective, "distributed.sync", "async", "training.objective auto"},
        {async && s->training.batch_ramp_tokens > 0, "distributed.sync", "async",
         "training.batch_ramp_tokens 0"},
        {async && is_in_minutes(&s->training.eval_interval), "distributed.sync", "async",
         "a training.eval_interval that is not in minutes"},
        {async && is_in_minutes(&s->training.save_interval), "distributed.sync", "async",
         "a training.save_interval that is not in minutes"},
        {async && *s->training.trace_steps, "distributed.sync", "async",
         "training.trace_steps empty"},
        {async && *s->training.timeline_steps, "distributed.sync", "async",
         "training.timeline_steps empty"},
        {async && *s->training.layer_metrics, "distributed.sync", "async",
         "training.layer_metrics empty"},
    };
    return CHECK_NEEDS(needs, path, err);
}

static int check_elastic_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const char *const elastic = s->distributed.elastic;
    const bool groups = s->distributed.shard_ranks > 0;
    const bool reduced = s->distributed.sync == DT_SYNC_ALL_REDUCE;
    const struct need needs[] = {
        {!s->distributed.invariant, "distributed.elastic", elastic, "distributed.invariant true"},
        {groups, "distributed.elastic", elastic, "distributed.shard_ranks 0"},
        {!reduced, "distributed.elastic", elastic, "distributed.sync allreduce"},
        {s->distributed.backend != 0, "distributed.elastic", elastic, "distributed.backend auto"},
        {*s->training.trace_steps, "distributed.elastic", elastic, "training.trace_steps empty"},
        {*s->training.timeline_steps, "distributed.elastic", elastic,
         "training.timeline_steps empty"},
    };
    return *elastic ? CHECK_NEEDS(needs, path, err) : 0;
}

/* Of an adapter. */
static int check_lora_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const struct dt_lora *l = &s->model.lora;
    const bool trains = l->rank > 0, whole = has_whole_layers(s);
    struct dt_settings plain;
    dt_config_defaults(dt_settings_schema, &plain);
    const struct dt_lora *unset = &plain.model.lora;
    const struct need needs[] = {
        {!trains && l->alpha != unset->alpha, "lora.alpha", "of one's own", "lora.rank above 0"},
        {!trains && l->dropout > 0, "lora.dropout", "above 0", "lora.rank above 0"},
        {!trains && l->rslora, "lora.rslora", "true", "lora.rank above 0"},
        {!trains && strcmp(l->targets, unset->targets) != 0, "lora.targets", l->targets,
         "lora.rank above 0"},
        {trains && !whole, "lora.rank", "above 0",
         "distributed.pp, distributed.tp and distributed.cp 1"},
        {trains && s->distributed.sequence_parts > 0, "lora.rank", "above 0",
         "distributed.sequence_parts 0"},
        {trains && s->model.num_labels > 0, "lora.rank", "above 0",
         "data.labels empty: the head of a new classifier would stay untrained"},
    };
    DT_TRY(CHECK_NEEDS(needs, path, err));
    return trains ? dt_lora_check(&s->model, path, err) : 0;
}

/* Of the data, the masks and the optimizer. */
static int check_training_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const bool masked = dt_model_is_masked(&s->model) && s->model.num_labels == 0;
    const bool sgd = s->training.optimizer == DT_OPTIMIZER_KIND_SGD;
    const bool adamw = s->training.optimizer == DT_OPTIMIZER_KIND_ADAMW;
    const bool lion = s->training.optimizer == DT_OPTIMIZER_KIND_LION;
    const bool muon = s->training.optimizer == DT_OPTIMIZER_KIND_MUON;
    const bool coded = s->optimizer.moments != DT_MOMENT_TYPE_FP32;
    const char *const moments = dt_moment_type_names[s->optimizer.moments];
    struct dt_settings plain;
    dt_config_defaults(dt_settings_schema, &plain);
    const struct need needs[] = {
        {coded && muon, "optimizer.moments", moments, "training.optimizer adamw, lion or sgd"},
        {coded && s->distributed.tp > 1, "optimizer.moments", moments, "distributed.tp 1"},
        {coded && dt_settings_sync_is_local(s), "optimizer.moments", moments,
         "distributed.sync allreduce or parameter_server"},
        {*s->optimizer.offload_dir && s->optimizer.offload == DT_OFFLOAD_NONE,
         "optimizer.offload_dir", s->optimizer.offload_dir, "optimizer.offload file"},
        {s->data.shuffle_block > 0 && !s->data.shuffle, "data.shuffle_block", "above 0",
         "data.shuffle true"},
        {s->data.shuffle_window != plain.data.shuffle_window && s->data.shuffle_block == 0,
         "data.shuffle_window", "of one's own", "data.shuffle_block above 0"},
        {s->data.mask_whole_words && !masked, "data.mask_whole_words", "true",
         "a model that fills in masked tokens: model.name bert or distilbert"},
        {s->data.mask_rate != plain.data.mask_rate && !masked, "data.mask_rate", "of one's own",
         "a model that fills in masked tokens: model.name bert or distilbert"},
        {s->training.beta1 != plain.training.beta1 && sgd, "training.beta1", "of one's own",
         "training.optimizer adamw, lion or muon"},
        {s->training.beta2 != plain.training.beta2 && sgd, "training.beta2", "of one's own",
         "training.optimizer adamw, lion or muon"},
        {s->training.epsilon != plain.training.epsilon && (sgd || lion), "training.epsilon",
         "of one's own", "training.optimizer adamw or muon"},
        {s->training.momentum != plain.training.momentum && (adamw || lion), "training.momentum",
         "of one's own", "training.optimizer sgd or muon"},
        {s->training.tensor_metrics && dt_settings_sync_is_local(s), "training.tensor_metrics",
         "true", "distributed.sync allreduce, parameter_server or async: ranks have other tensors"},
        {*s->data.stages && s->training.max_epochs > 0, "data.stages", s->data.stages,
         "training.max_epochs 0: a stage has a number of tokens"},
        {s->training.batch_ramp_start > 1 && s->training.batch_ramp_tokens == 0,
         "training.batch_ramp_start", "above 1", "training.batch_ramp_tokens above 0"},
    };
    return CHECK_NEEDS(needs, path, err);
}

/* Of an objective other than auto. */
static int check_objective_needs(const struct dt_settings *s, const char *path,
                                 struct dt_error *err)
{
    const char *const which = dt_training_objective_names[s->training.objective];
    const bool ranks_alike = has_whole_layers(s), labels = s->model.num_labels > 0;
    const bool plain = s->training.label_smoothing == 0 && s->training.z_loss == 0;
    const struct need needs[] = {
        {dt_model_is_masked(&s->model), "training.objective", which,
         "a model that predicts the next token"},
        {labels, "training.objective", which, "data.labels empty"},
        {!ranks_alike, "training.objective", which,
         "distributed.pp, distributed.tp and distributed.cp 1"},
        {s->distributed.sequence_parts > 1, "training.objective", which,
         "distributed.sequence_parts 0"},
        {*s->distributed.elastic, "training.objective", which, "distributed.elastic empty"},
        {!plain, "training.objective", which,
         "training.label_smoothing and training.z_loss 0: dpo.label_smoothing is another"},
        {s->data.document_mask, "training.objective", which, "data.document_mask false"},
        {s->data.shuffle_block > 0, "training.objective", which, "data.shuffle_block 0"},
        {s->data.layout != DT_TEXT_LAYOUT_LIST, "training.objective", which, "data.layout list"},
        {*s->data.stages, "training.objective", which, "data.stages empty"},
        {*s->data.validation, "training.objective", which, "data.validation empty"},
        {s->training.eval_accuracy, "training.objective", which, "training.eval_accuracy false"},
    };
    return s->training.objective == DT_TRAINING_OBJECTIVE_AUTO ? 0 : CHECK_NEEDS(needs, path, err);
}

static int check_grpo_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const bool grpo = s->training.objective == DT_TRAINING_OBJECTIVE_GRPO;
    const bool maps = s->model.logit_scale != 0 || s->model.logit_softcap != 0;
    const bool warm = s->grpo.temperature != 1;
    struct dt_settings plain, other = *s;
    dt_config_defaults(dt_settings_schema, &plain);
    other.grpo = plain.grpo;
    const struct dt_setting *own = dt_config_difference(dt_settings_schema, s, &other);
    const struct need needs[] = {
        {own && !grpo, own ? own->name : "", "of one's own", "training.objective grpo"},
        {grpo && s->distributed.zero_stage > 0, "training.objective", "grpo",
         "distributed.zero_stage 0"},
        {grpo && dt_settings_sync_is_local(s), "training.objective", "grpo",
         "distributed.sync allreduce"},
        {grpo && s->model.dropout + s->model.attention_dropout > 0, "training.objective", "grpo",
         "model.dropout and model.attention_dropout 0"},
        {grpo && warm && maps, "grpo.temperature", "of one's own",
         "a model without model.logit_scale and model.logit_softcap"},
        {grpo && s->grpo.max_new_tokens > s->training.sequence_length, "grpo.max_new_tokens",
         "of that size", "a training.sequence_length that is at least as high"},
    };
    return CHECK_NEEDS(needs, path, err);
}

static int check_dpo_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const bool dpo = s->training.objective == DT_TRAINING_OBJECTIVE_DPO;
    const bool sigmoid = s->dpo.loss == DT_DPO_LOSS_SIGMOID;
    struct dt_settings plain;
    dt_config_defaults(dt_settings_schema, &plain);
    const struct need needs[] = {
        {!sigmoid && !dpo, "dpo.loss", dt_dpo_loss_names[s->dpo.loss], "training.objective dpo"},
        {s->dpo.beta != plain.dpo.beta && !dpo, "dpo.beta", "of one's own",
         "training.objective dpo"},
        {s->dpo.label_smoothing > 0 && !(dpo && sigmoid), "dpo.label_smoothing", "above 0",
         "training.objective dpo with dpo.loss sigmoid"},
    };
    return CHECK_NEEDS(needs, path, err);
}

static bool is_named(const char *name, const char *at, size_t n)
{
    return strlen(name) == n && memcmp(name, at, n) == 0;
}

bool dt_settings_measures(const struct dt_settings *s, enum dt_layer_metric metric)
{
    const char *at = s->training.layer_metrics;
    while (*at && !is_named(dt_layer_metric_names[metric], at, strcspn(at, ","))) {
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return *at;
}

static bool is_layer_metric(const char *at, size_t n)
{
    int i = 0;
    while (dt_layer_metric_names[i] && !is_named(dt_layer_metric_names[i], at, n))
        i++;
    return dt_layer_metric_names[i];
}

/* Of training.layer_metrics. */
static int check_layer_metrics(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    static const char setting[] = "training.layer_metrics";
    const bool entropy = dt_settings_measures(s, DT_LAYER_METRIC_ENTROPY);
    const bool noise = dt_settings_measures(s, DT_LAYER_METRIC_NOISE);
    const bool apart = s->distributed.pp > 1 || s->distributed.invariant;
    for (const char *at = s->training.layer_metrics; *at;) {
        size_t n = strcspn(at, ",");
        if (!is_layer_metric(at, n))
            return dt_fail(err, DT_EINVALID,
                           "%s: %s: '%.*s' is not one of activation_rms, attention_entropy, "
                           "dead_units, logits and gradient_noise",
                           path, setting, (int)n, at);
        at += n;
        if (*at == ',' && *++at == '\0')
            return dt_fail(err, DT_EINVALID, "%s: %s ends with a comma", path, setting);
    }
    const struct need needs[] = {
        {*s->training.layer_metrics && s->training.log_interval.unit == DT_INTERVAL_UNIT_MINUTES,
         setting, s->training.layer_metrics, "a training.log_interval that is not in minutes"},
        {entropy && s->model.attention_softcap > 0, setting, "attention_entropy",
         "model.attention_softcap 0"},
        {noise && s->training.gradient_accumulation_steps < 2, setting, "gradient_noise",
         "a training.gradient_accumulation_steps of 2 or more"},
        {noise && s->distributed.cp > 1, setting, "gradient_noise", "distributed.cp 1"},
        {noise && apart && s->model.tie_word_embeddings, setting, "gradient_noise",
         "distributed.pp 1 and distributed.invariant false, or model.tie_word_embeddings false"},
        {noise && dt_settings_sync_is_local(s), setting, "gradient_noise",
         "distributed.sync allreduce or parameter_server"},
        {noise && s->distributed.compress != 0, setting, "gradient_noise",
         "distributed.compress none"},
    };
    return CHECK_NEEDS(needs, path, err);
}

/* Settings that need others, for any number of ranks. */
static int check_needs(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    DT_TRY(check_parallel_needs(s, path, err));
    DT_TRY(check_reduction_needs(s, path, err));
    DT_TRY(check_collectives(s, path, err));
    DT_TRY(check_async_needs(s, path, err));
    DT_TRY(check_elastic_needs(s, path, err));
    DT_TRY(check_lora_needs(s, path, err));
    DT_TRY(check_layer_metrics(s, path, err));
    DT_TRY(check_objective_needs(s, path, err));
    DT_TRY(check_dpo_needs(s, path, err));
    DT_TRY(check_grpo_needs(s, path, err));
    return check_training_needs(s, path, err);
}

/* Only epochs and minutes have fractions. */
static int check_intervals(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const struct {
        const char *name;
        const struct dt_config_amount *interval;
    } rows[] = {{"log_interval", &s->training.log_interval},
                {"eval_interval", &s->training.eval_interval},
                {"save_interval", &s->training.save_interval}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].interval->unit < DT_INTERVAL_UNIT_EPOCHS &&
            rows[i].interval->count != floor(rows[i].interval->count))
            return dt_fail(err, DT_EINVALID,
                           "%s: training.%s has to be a whole number of %s, not %g", path,
                           rows[i].name, dt_interval_unit_names[rows[i].interval->unit],
                           rows[i].interval->count);
    return 0;
}

int dt_settings_resolve(struct dt_settings *s, uint32_t vocab_size, const char *path,
                        struct dt_error *err)
{
    if (s->model.vocab_size == 0)
        s->model.vocab_size = vocab_size;
    if (s->training.sequence_length == 0)
        s->training.sequence_length = s->model.max_seq_len;
    if (dt_model_config_check(&s->model, "model", err) < 0)
        return dt_fail_context(err, "%s", path);
    if ((uint32_t)s->model.vocab_size < vocab_size)
        return dt_fail(err, DT_EINVALID,
                       "%s: model.vocab_size is %ld, but the data's tokenizer has %u tokens", path,
                       s->model.vocab_size, vocab_size);
    if (s->training.sequence_length > s->model.max_seq_len)
        return dt_fail(err, DT_EINVALID,
                       "%s: training.sequence_length %ld is beyond model.max_seq_len %ld", path,
                       s->training.sequence_length, s->model.max_seq_len);
    if (s->training.batch_ramp_start > s->training.gradient_accumulation_steps)
        return dt_fail(err, DT_EINVALID,
                       "%s: training.batch_ramp_start %ld is beyond "
                       "training.gradient_accumulation_steps %ld",
                       path, s->training.batch_ramp_start, s->training.gradient_accumulation_steps);
    DT_TRY(check_intervals(s, path, err));
    DT_TRY(check_elastic(s, path, err));
    return check_needs(s, path, err);
}
