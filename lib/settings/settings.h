/* SPDX-License-Identifier: MIT */
/* Settings of dt-train's configuration file; dt-config(5) documents each key, the schema in
 * settings.c has defaults and ranges. */
#ifndef DT_SETTINGS_SETTINGS_H
#define DT_SETTINGS_SETTINGS_H

#include <stdbool.h>

#include "settings/choices.h"
#include "settings/model-config.h"
#include "json/config.h"

#define DT_CONTEXT_PARALLEL_MOST 4096
#define DT_SEQUENCE_PARTS_MOST   128
#define DT_TRAIN_SPLIT           "train" /* where none is named */
#define DT_VAL_SPLIT             "val"
#define DT_BEST_MOST             16 /* checkpoint.keep_best */

struct dt_settings {
    struct dt_model_config model; /* vocab_size 0: the data's */
    struct {
        int objective;   /* enum dt_training_objective */
        long batch_size; /* sequences of a micro-batch; with dpo pairs of them,
                          * with grpo prompts */
        long gradient_accumulation_steps;
        long batch_ramp_tokens; /* over which accumulation grows to that; 0: no ramp */
        long batch_ramp_start;  /* accumulation at its beginning */
        long sequence_length;   /* 0: model.max_seq_len */
        long max_steps;
        long max_tokens;   /* 0: no limit */
        double max_epochs; /* 0: no limit */
        long patience;     /* validations without a better loss before the run ends; 0: unlimited */
        int precision;     /* enum dt_dtype: of weights and activations */
        int arithmetic;    /* enum dt_arithmetic: of 16-bit products */
        int recompute;     /* enum dt_recompute */
        int optimizer;     /* enum dt_optimizer_kind */
        int schedule;      /* enum dt_lr_schedule */
        long warmup_steps;
        double decay_fraction; /* of max_steps, with DT_LR_SCHEDULE_WSD */
        long schedule_start;   /* the step at which the schedule begins, with its warm-up */
        double learning_rate, min_learning_rate_ratio;
        double weight_decay, beta1, beta2, epsilon, momentum;
        double grad_clip;               /* 0: none */
        double label_smoothing, z_loss; /* as in struct dt_pass */
        double ema_decay;               /* of the moving average of the parameters; 0: none */
        double spike_threshold;         /* in standard deviations; 0: off */
        long max_skipped; /* consecutive updates, for a loss or gradient that is not finite, or a
                           * spike
                           */
        long seed;
        struct dt_config_amount log_interval;  /* units: enum dt_interval_unit */
        struct dt_config_amount eval_interval; /* 0: never */
        struct dt_config_amount save_interval; /* 0: only at the end */
        long eval_batches;
        char trace_steps[DT_SETTING_STRING_SIZE];    /* "A:B" or "A"; "": none */
        bool eval_accuracy;                          /* of the next token, too */
        bool tensor_metrics;                         /* norms of each tensor */
        char layer_metrics[DT_SETTING_STRING_SIZE];  /* dt_layer_metric_names, with commas */
        char timeline_steps[DT_SETTING_STRING_SIZE]; /* as trace_steps */
    } training;
    struct {
        int moments;                              /* enum dt_moment_type */
        int offload;                              /* enum dt_offload */
        char offload_dir[DT_SETTING_STRING_SIZE]; /* "": TMPDIR or /var/tmp */
    } optimizer;
    struct {
        int backend;                             /* index in dt_comm_backend_names */
        char rendezvous[DT_SETTING_STRING_SIZE]; /* of ranks not started by MPI; or "" */
        char interface[DT_SETTING_STRING_SIZE];  /* network interface they listen on; or "" */
        bool encrypt;                            /* messages between them */
        long pp, tp;                             /* pipeline stages, tensor-parallel ranks */
        long cp;                /* context-parallel ranks; data-parallel ranks follow */
        long sequence_parts;    /* chunks of a sequence; 0: 1, or twice cp */
        bool sequence_parallel; /* tensor-parallel ranks shard the hidden states */
        int schedule;           /* enum dt_pipeline_schedule */
        long virtual_stages;    /* virtual stages of a stage, if interleaved */
        bool invariant;         /* the same bits for any number of ranks */
        bool overlap;           /* communication overlaps with computation */
        long timeout;           /* seconds that a rank waits for another */
        char elastic[DT_SETTING_STRING_SIZE]; /* "MIN:MAX" ranks that come and go; or "" */
        long join_timeout; /* seconds that an elastic run waits for the least number of ranks */
        int sync;          /* enum dt_sync */
        long staleness;    /* of updates with async, at most */
        char replay[DT_SETTING_STRING_SIZE]; /* updates.jsonl of a run that is repeated; or "" */
        long local_steps;                    /* between synchronizations of local SGD and DiLoCo */
        double outer_learning_rate, outer_momentum; /* of diloco */
        long fragments, outer_delay;                /* of streaming_diloco; steps */
        int outer_precision;                        /* enum dt_outer_precision */
        int collectives;                            /* enum dt_collectives */
        int compress;                               /* enum dt_compress */
        double compress_share;                      /* fraction of a bucket that topk sends */
        long compress_rank;                         /* rank of powersgd's matrices */
        long check_interval; /* steps between comparisons of data-parallel ranks; 0: none */
        long zero_stage;     /* ZeRO: shards moments; gradients too; parameters too */
        long shard_ranks;    /* data-parallel ranks of a sharding group; 0: all */
    } distributed;
    struct {
        char dataset[DT_SETTING_STRING_SIZE]; /* if the command line names no data */
        char stages[DT_SETTING_STRING_SIZE]; /* "DATA:TOKENS,DATA" in its place (shard/dataset.h) */
        char validation[DT_SETTING_STRING_SIZE]; /* "NAME=DATA,NAME=DATA": more validation sets */
        char train_split[DT_SETTING_STRING_SIZE], val_split[DT_SETTING_STRING_SIZE];
        bool shuffle, document_mask;
        long shuffle_block;  /* tokens that stay neighbours; 0: all are shuffled at once */
        long shuffle_window; /* blocks whose samples are mixed */
        int layout;          /* of text that is tokenized while training: enum dt_text_layout */
        double mask_rate;    /* of tokens, with masked models */
        bool mask_whole_words;
        char labels[DT_SETTING_STRING_SIZE]; /* names, separated by commas; of a classifier */
        long num_workers;                    /* prefetch threads; 0: no prefetch */
    } data;
    struct {
        long keep_last;  /* newest checkpoints to keep; 0: all */
        long keep_every; /* also keep multiples of this step; 0: none */
        long keep_best;  /* also write and keep those of the lowest validation losses; 0: none */
        bool background; /* written by a thread */
        char dir[DT_SETTING_STRING_SIZE],
            resume_from[DT_SETTING_STRING_SIZE]; /* as --output, --resume */
    } checkpoint;
    struct {
        int loss; /* enum dt_dpo_loss */
        double beta, label_smoothing;
    } dpo;
    struct {
        long group; /* completions of a prompt */
        long max_new_tokens;
        double temperature;
        int loss;                         /* enum dt_grpo_loss */
        double beta, clip_low, clip_high; /* beta: of the divergence from the reference */
        bool scale_rewards;               /* advantages are divided by the standard deviation */
        long reward_timeout;              /* seconds */
    } grpo;
    struct {
        char project[DT_SETTING_STRING_SIZE], run_name[DT_SETTING_STRING_SIZE],
            tags[DT_SETTING_STRING_SIZE];
    } tracking; /* written at the beginning of metrics.jsonl */
    struct {
        long step;       /* at which the run branched from another; 0: it did not */
        long samples;    /* sequences consumed until then, of this run's length */
        long data_start; /* and before its data began */
    } branch;            /* set by --branch-from alone */
};

extern const struct dt_setting dt_settings_schema[];
/* dt_config_add_words of it. */
void dt_settings_add_words(struct dt_buffer *words);

/* Reads defaults, the file at path (NULL: none), and "section.key=value" overrides: those in the
 * environment variable DT_SET, separated by white space, then these. After an error the others are
 * still read, so that ranks can meet and all report it.
 *
 * initial: the initial model (NULL: none), whose configuration replaces the defaults.
 * A setting that contradicts it is DT_EINVALID, except dropout rates and, with RoPE, max_seq_len
 * and rope_theta. */
struct dt_initial_model {
    const char *path; /* for errors */
    struct dt_model_config config;
    const char *labels; /* of a classifier: data.labels */
};
/* As initial in dt_settings_read: the settings of a run that this one branches from. They replace
 * the defaults; its directories and names do not. */
int dt_settings_read_branch(struct dt_settings *settings, const struct dt_settings *parent,
                            const char *path, const char *const *overrides, int count,
                            struct dt_error *err) DT_MUST_CHECK;
int dt_settings_read(struct dt_settings *settings, const struct dt_initial_model *initial,
                     const char *path, const char *const *overrides, int count,
                     struct dt_error *err) DT_MUST_CHECK;

/* Derives settings from others and from the data, and checks all. path begins errors. */
int dt_settings_resolve(struct dt_settings *settings, uint32_t vocab_size, const char *path,
                        struct dt_error *err) DT_MUST_CHECK;

/* Sequences of a sample: 2 of a pair, grpo.group of a prompt, otherwise 1. */
static inline long dt_settings_sample_sequences(const struct dt_settings *s)
{
    return s->training.objective == DT_TRAINING_OBJECTIVE_DPO    ? 2
           : s->training.objective == DT_TRAINING_OBJECTIVE_GRPO ? s->grpo.group
                                                                 : 1;
}
/* Sequences of a micro-batch. */
static inline long dt_settings_sequences(const struct dt_settings *s)
{
    return s->training.batch_size * dt_settings_sample_sequences(s);
}
/* Tokens of a sample. */
static inline long dt_settings_sample_tokens(const struct dt_settings *s)
{
    return s->training.sequence_length * dt_settings_sample_sequences(s);
}

/* Whether data-parallel ranks train alone between synchronizations: local SGD and DiLoCo. */
bool dt_settings_sync_is_local(const struct dt_settings *settings);
/* Whether training.layer_metrics names the metric. */
bool dt_settings_measures(const struct dt_settings *settings, enum dt_layer_metric metric);

/* Ranks of an elastic run that compute the same micro-batches: distributed.pp x cp x tp. */
long dt_settings_group(const struct dt_settings *settings);
/* Reads distributed.elastic; false: it is empty or malformed. */
#define DT_ELASTIC_MOST 1024 /* ranks */
bool dt_settings_elastic(const struct dt_settings *settings, long *least, long *most);

/* Lowers max_steps to the first step that reaches max_tokens or max_epochs, of
 * samples > 0 each, and checks the warm-up against it. */
int dt_settings_limit_steps(struct dt_settings *settings, uint64_t samples, const char *path,
                            struct dt_error *err) DT_MUST_CHECK;

#endif
