/* SPDX-License-Identifier: MIT */
/*
 * A training run: opens or resumes it, and runs it step by step.
 *
 *     struct dt_training *t;
 *     struct dt_step_report report;
 *     DT_TRY(dt_training_new(&t, &options, err));
 *     while ((rc = dt_training_step(t, &report, err)) > 0)
 *         show(&report);
 *     dt_training_free(t);
 *
 * dt_training_step is one optimizer step:
 *
 *     loader --micro-batches--> pipeline executor --gradients--> train state --weights--> next step
 *                               forward, backward    reduce-scatter, norm,       |
 *                                                    clip, update                +--> validation,
 *                                                                                     metrics,
 *                                                                                     checkpoint
 *
 * A step allocates nothing. Its result depends on the settings, the data and the step's number
 * alone: not on the number of threads, nor on how often the run was stopped and resumed.
 */
#ifndef DT_TRAIN_TRAINING_H
#define DT_TRAIN_TRAINING_H

#include <signal.h>
#include <stdbool.h>

#include "comm/comm.h"
#include "comm/meeting-place.h"
#include "hash/sum-hash.h"
#include "io/lineage.h"
#include "settings/settings.h"
#include "train/groups.h"
#include "train/memory-plan.h"
#include "train/preferences.h"

/* A hash of one tensor of a step (step-trace.h). */
struct dt_trace_line {
    long step;
    const char *operation, *tensor;
    struct dt_sum_hash hash;
};
/* Receives the lines of traced steps, on every rank, in the order of computation. */
struct dt_trace_sink {
    void *context;
    int (*write)(void *context, const struct dt_trace_line *line, struct dt_error *err);
};

struct dt_training_options {
    const struct dt_settings *settings;
    const char *settings_path; /* names the configuration in errors */
    const char *data;          /* a directory of shards, or one .dts; not with data.stages */
    const char *run;           /* directory of metrics.jsonl and checkpoints; created if absent;
                                * NULL: nothing is written, and resume is "none" or a checkpoint */
    const char *resume;    /* "auto": RUN/latest if it exists; "none"; or a checkpoint; or a run, of
                            * which it is the latest */
    const char *init_from; /* model directory with the initial parameters of a new run, of the shape
                            * in settings (dt_settings_read); NULL: random */
    const char *adapter;   /* is merged into those; NULL: none */
    const char *reference; /* directory of the reference model of dpo and grpo; NULL: init_from */
    const char *reward;    /* command of the program that rewards completions, with grpo */
    const char *branch_from; /* checkpoint, or run, whose state and settings a new run begins with,
                              * as dt_settings_read_branch has read them; NULL: none */
    const char *tokenizer_path;        /* copied into checkpoints; NULL: none */
    uint64_t tokenizer;                /* its fingerprint, compared with the data's */
    const char *command_line;          /* for lineage.txt */
    struct dt_lineage *lineage;        /* with the inputs; borrowed, NULL: none is written */
    struct dt_device *device;          /* borrowed */
    double peak;                       /* operations a second of the device; 0: not measured */
    struct dt_comm *comm;              /* all ranks of the run, borrowed; NULL: one rank */
    const volatile sig_atomic_t *stop; /* nonzero: stop after this step; NULL: never */
    const struct dt_trace_sink *sink;  /* of traced steps; NULL: RUN/hashes.jsonl */
    bool elastic;   /* ranks meet here, as distributed.elastic says, and may change; comm is NULL */
    bool plan_only; /* allocates and writes nothing: for dt_training_facts alone */
};

struct dt_training_facts {
    int64_t parameters, trained; /* of the model; those that are not frozen */
    struct dt_memory_plan memory;
    size_t available;                  /* free bytes of the device */
    uint64_t train_tokens, val_tokens; /* val_tokens 0: no validation */
    uint64_t samples;                  /* sequences of one epoch */
    uint64_t tokens_per_step;          /* of the largest step, with a batch ramp */
    double tokens;                     /* of the whole run, which may exceed 64 bits */
    long first_step, max_steps;        /* first_step > 0: resumed */
    bool has_tokenizer;                /* checkpoints have one */
    long lost_lines; /* lines of metrics.jsonl up to first_step that were written and are missing */
    const char *resumed;  /* the checkpoint that training goes on from; or "" */
    const char *damaged;  /* why newer checkpoints were passed over, a line each; or "" */
    long damaged_metrics; /* lines of metrics.jsonl that were not JSON and were removed */
};

/* Why an update was skipped. */
enum dt_skip {
    DT_SKIP_NONE,
    DT_SKIP_NOT_FINITE,
    DT_SKIP_OVERFLOW, /* of scaled fp16 gradients: the loss scale was halved */
    DT_SKIP_SPIKE
};

/* What follows a step because its interval has ended. */
enum dt_due { DT_DUE_LOG = 1, DT_DUE_VALIDATION = 2, DT_DUE_CHECKPOINT = 4 };

struct dt_step_report {
    long step;             /* this step, counted from 1 */
    uint64_t tokens;       /* consumed so far */
    uint64_t batch_tokens; /* of this step */
    double seconds;        /* of training so far, without validation and checkpoints */
    int threads;           /* of the device in this step */
    double loss, learning_rate, gradient_norm;
    double tokens_per_second, mfu; /* since the last logged step; mfu 0: peak unknown; NaN: above 1,
                                    * because the machine was slower when the peak was measured */
    double loss_scale;             /* of this step; 1: none */
    unsigned due;                  /* bits of enum dt_due */
    double timed; /* seconds of training when this rank compared them with intervals in minutes */
    enum dt_skip skip;
    long skipped; /* updates skipped so far, if this one was; otherwise 0 */
    bool logged;
    struct dt_sum_hash batch_hash;     /* of a logged step: of its token ids and targets, */
    struct dt_sum_hash parameter_hash; /* and of the parameters after it */
    double val_loss, ema_val_loss;     /* NaN: not computed */
    double
        val_accuracy; /* fraction of targets that were the most likely token; NaN: not computed */
    bool regrouped;   /* an elastic run: the ranks have changed before this step, */
    bool returned;    /* and this rank was left out of an earlier one */
    int slowest_rank; /* at logged steps: the straggler (parallel/watchdog.h), */
    double slowest_factor; /* and its time over the median; 0: not measured */
    bool crowded;          /* this machine has fewer processors than ranks, which take turns */
    bool stop;             /* a rank was asked to stop: do not run another step */
    bool leaves; /* this rank leaves an elastic run, which goes on; its checkpoint is written */
    bool stopped_early;                        /* the last step: training.patience is exhausted */
    double preferences[DT_PREFERENCE_METRICS]; /* with dpo: means over the pairs of the step */
    double groups[DT_GROUP_METRICS];           /* with grpo */
    long best_step; /* of the lowest validation loss; 0: none, or not followed */
    double best_loss;
    bool saved;
    struct dt_error save_error; /* why a due checkpoint was not written; DT_OK: none failed */
};

struct dt_training;

/* *training is owned by the caller. DT_EINVALID names the setting that does not fit the data, the
 * model or the resumed run. Collective, as are those below except dt_training_facts. */
int dt_training_new(struct dt_training **training, const struct dt_training_options *options,
                    struct dt_error *err) DT_MUST_CHECK;
void dt_training_facts(const struct dt_training *training, struct dt_training_facts *facts);

/* One step, with the validation and the checkpoint that are due after it. Returns 1, or 0 if the
 * run had already ended: max_steps, or training.patience. The update is skipped if the loss or the
 * gradient norm is not finite, or the loss is a spike. After training.max_skipped skipped updates
 * in a row the next one is DT_EINVALID, and the last checkpoint stays; overflows that lower the
 * loss scale do not count. A checkpoint that cannot be written is an error after the last step.
 * Before that it is reported (save_error), the previous one stays, and the next is written when it
 * is due. */
int dt_training_step(struct dt_training *training, struct dt_step_report *report,
                     struct dt_error *err) DT_MUST_CHECK;
/* Writes a checkpoint, unless the last step did. */
int dt_training_save(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
/* Hash of the parameters; with pipeline or tensor parallelism, of those in the newest checkpoint.
 */
int dt_training_hash(struct dt_training *training, uint64_t *hash,
                     struct dt_error *err) DT_MUST_CHECK;
/* The parameter_hash of the current step. */
int dt_training_parameter_hash(struct dt_training *training, struct dt_sum_hash *hash,
                               struct dt_error *err) DT_MUST_CHECK;
/* Compares parameters, optimizer state, EMA and outer momentum with those of a checkpoint. tensor:
 * becomes the name of the first one that differs; empty: all are equal. */
int dt_training_compare(struct dt_training *training, const char *checkpoint,
                        char tensor[DT_TENSOR_NAME], struct dt_error *err) DT_MUST_CHECK;
/* Adds the data of data.validation, "NAME=DATA,NAME=DATA"; what is not as that is left out, for
 * dt_training_new to refuse. */
int dt_training_add_validation(const char *sets, struct dt_lineage *lineage,
                               struct dt_error *err) DT_MUST_CHECK;
/* What the last validation found on a set of data.validation; NAN: not computed. */
struct dt_training_set {
    const char *name; /* borrowed */
    double loss, accuracy;
};
/* Set number i; false after the last. Not collective. */
bool dt_training_find_set(const struct dt_training *training, int i, struct dt_training_set *set);
/* All ranks of the run, until the next step. */
struct dt_comm *dt_training_comm(const struct dt_training *training);
/* Of an elastic run; otherwise NULL. */
const struct dt_seat *dt_training_seat(const struct dt_training *training);
void dt_training_free(struct dt_training *training); /* NULL is allowed */

#endif
