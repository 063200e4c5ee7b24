/* SPDX-License-Identifier: MIT */
/* All that a configuration file of dt-train can say; dt-config(5) explains each
 * key. The schema in settings.c gives defaults and ranges. */
#ifndef DT_SETTINGS_SETTINGS_H
#define DT_SETTINGS_SETTINGS_H

#include <stdbool.h>

#include "settings/choices.h"
#include "settings/model-config.h"
#include "json/config.h"

#define DT_CONTEXT_PARALLEL_MOST 4096
#define DT_TRAIN_SPLIT           "train" /* where none is named */
#define DT_VAL_SPLIT             "val"

struct dt_settings {
    struct dt_model_config model; /* vocab_size 0: the data's */
    struct {
        long batch_size; /* sequences of one forward and backward pass */
        long gradient_accumulation_steps;
        long batch_ramp_tokens; /* over which accumulation grows to that; 0: no ramp */
        long batch_ramp_start;  /* accumulation at its beginning */
        long sequence_length;   /* 0: model.max_seq_len */
        long max_steps;
        long max_tokens;   /* 0: no limit */
        double max_epochs; /* 0: no limit */
        long patience;     /* validations without a better loss before the end; 0: no matter */
        int precision;     /* enum dt_dtype: of weights and activations */
        int recompute;     /* enum dt_recompute */
        int optimizer;     /* enum dt_optimizer_kind */
        int schedule;      /* enum dt_lr_schedule */
        long warmup_steps;
        double decay_fraction; /* of max_steps, with DT_LR_SCHEDULE_WSD */
        double learning_rate, min_learning_rate_ratio;
        double weight_decay, beta1, beta2, epsilon, momentum;
        double grad_clip;               /* 0: none */
        double label_smoothing, z_loss; /* as in struct dt_pass */
        double ema_decay;               /* of the average of the parameters; 0: no average */
        double spike_threshold;         /* standard deviations; 0: no loss is a spike */
        long max_skipped; /* updates in a row, for a loss or gradient that is not finite, or a spike
                           */
        long seed;
        long log_interval, eval_interval, eval_batches; /* eval_interval 0: never */
        long save_interval;                             /* 0: only at the end */
    } training;
    struct {
        int backend;                             /* place in dt_comm_backend_names */
        char rendezvous[DT_SETTING_STRING_SIZE]; /* where ranks that no MPI has started meet; or ""
                                                  */
        char interface[DT_SETTING_STRING_SIZE];  /* on which they listen; or "" */
        long pp, tp;                             /* pipeline stages, and slices of each layer; */
        long cp; /* contexts, which share out every sequence; replicas are the rest */
        bool sequence_parallel; /* slices share out the rows of the stream */
        int schedule;           /* enum dt_pipeline_schedule */
        long virtual_stages;    /* chunks of layers that a stage holds, when interleaved */
        bool invariant;         /* the same bits whatever the number of ranks */
        bool overlap;           /* ranks exchange while they compute */
        long timeout;           /* seconds that a rank waits for another */
        int sync;               /* enum dt_sync */
        long local_steps;       /* between synchronisations of replicas that train alone */
        double outer_learning_rate, outer_momentum; /* of diloco */
        int compress;                               /* enum dt_compress */
        double compress_share;                      /* of the numbers of a bucket that topk sends */
        long compress_rank;                         /* of powersgd's products */
        long check_interval; /* steps between comparisons of replicas; 0: none */
        long zero_stage;     /* what ranks share out: moments; gradients too; parameters too */
        long shard_ranks;    /* replicas that share it out among them; 0: all */
    } distributed;
    struct {
        char dataset[DT_SETTING_STRING_SIZE]; /* the data, if the command line names none */
        char train_split[DT_SETTING_STRING_SIZE], val_split[DT_SETTING_STRING_SIZE];
        bool shuffle, document_mask;
        int layout;       /* of text that is tokenized while training: enum dt_text_layout */
        double mask_rate; /* of tokens, with masked models */
        bool mask_whole_words;
        long num_workers; /* threads that read ahead; 0: reading waits until it is asked for */
    } data;
    struct {
        long keep_last;  /* newest checkpoints that stay; 0: all */
        long keep_every; /* steps whose multiples stay besides; 0: none */
        bool background; /* written on a thread */
        char dir[DT_SETTING_STRING_SIZE],
            resume_from[DT_SETTING_STRING_SIZE]; /* as --output, --resume */
    } checkpoint;
    struct {
        char project[DT_SETTING_STRING_SIZE], run_name[DT_SETTING_STRING_SIZE],
            tags[DT_SETTING_STRING_SIZE];
    } tracking; /* what metrics.jsonl begins with */
};

extern const struct dt_setting dt_settings_schema[];

/* Defaults, then the file at path (NULL: none), then "section.key=value" overrides:
 * those in the environment's DT_SET, with white space between them, then these. Where one is wrong,
 * the others are read all the same: the ranks may be met, and told.
 *
 * init_from: the directory of a model to begin with (NULL: none), whose shape takes the place of
 * the defaults. A setting that says otherwise is DT_EINVALID, except those that the model's
 * weights allow: rates of dropout, and with rotary positions max_seq_len and rope_theta. */
int dt_settings_read(struct dt_settings *settings, const char *init_from, const char *path,
                     const char *const *overrides, int count, struct dt_error *err) DT_MUST_CHECK;

/* Settles what is derived from others or from the data, and checks the whole.
 * path names the configuration in errors. */
int dt_settings_resolve(struct dt_settings *settings, uint32_t vocab_size, const char *path,
                        struct dt_error *err) DT_MUST_CHECK;

/* Whether data-parallel ranks train alone between synchronizations: local SGD and DiLoCo. */
bool dt_settings_sync_is_local(const struct dt_settings *settings);

/* Lowers max_steps to the first step that reaches max_tokens or max_epochs, of
 * samples > 0 each, and checks the warm-up against it. */
int dt_settings_limit_steps(struct dt_settings *settings, uint64_t samples, const char *path,
                            struct dt_error *err) DT_MUST_CHECK;

#endif
