/* SPDX-License-Identifier: MIT */
/*
 * A training run: data, model, optimizer and checkpoints of one run, step by step.
 *
 *     struct dt_training *t;
 *     struct dt_step_report report;
 *     DT_TRY(dt_training_new(&t, &options, err));
 *     while ((rc = dt_training_step(t, &report, err)) > 0)
 *         show(&report);
 *     dt_training_free(t);
 *
 * A step allocates nothing. Its result is a pure function of the settings, the
 * data and the step's number: not of the number of threads, nor of how often
 * the run was stopped.
 */
#ifndef DT_TRAIN_TRAINING_H
#define DT_TRAIN_TRAINING_H

#include <signal.h>
#include <stdbool.h>

#include "comm/comm.h"
#include "settings/settings.h"
#include "train/memory-plan.h"

struct dt_training_options {
    const struct dt_settings *settings;
    const char *settings_path; /* names the configuration in errors */
    const char *data;          /* a directory of shards, or one .dts */
    const char *run;           /* directory of metrics.jsonl and checkpoints; made if absent */
    const char *resume;    /* "auto": from RUN/latest if there is one; "none"; or a checkpoint, or a
                            * run, of which it is the latest */
    const char *init_from; /* a model's directory, with whose parameters a new run begins, of the
                            * shape of settings (dt_settings_read); NULL: random ones */
    const char *tokenizer_path; /* copied into checkpoints; NULL: none */
    uint64_t tokenizer;         /* its fingerprint, checked against the data's */
    const char *command_line;   /* for the lineage */
    struct dt_device *device;   /* borrowed */
    double peak;                /* of the device, operations a second; 0: not measured */
    struct dt_comm *comm;       /* the ranks that train together, borrowed; NULL: this one alone */
    const volatile sig_atomic_t *stop; /* not 0: this rank is asked to stop; NULL: never */
    bool plan_only; /* takes no memory and writes nothing: for dt_training_facts alone */
};

struct dt_training_facts {
    int64_t parameters;
    struct dt_memory_plan memory;
    size_t available;                  /* bytes that the device could still give */
    uint64_t train_tokens, val_tokens; /* val_tokens 0: no validation */
    uint64_t samples;                  /* sequences of one epoch */
    uint64_t tokens_per_step;          /* the largest, with a batch ramp */
    uint64_t tokens;                   /* that the whole run uses */
    long first_step, max_steps;        /* first_step > 0: resumed; max_steps: the last at most */
    long lost_lines; /* of metrics.jsonl, up to first_step: fewer are there than were written */
    long damaged_metrics; /* lines of metrics.jsonl that were not JSON, and are removed */
};

/* Why there was no update. */
enum dt_skip {
    DT_SKIP_NONE,
    DT_SKIP_NOT_FINITE,
    DT_SKIP_OVERFLOW, /* of scaled fp16 gradients: the scale was halved */
    DT_SKIP_SPIKE
};

struct dt_step_report {
    long step;             /* updates done, this one included */
    uint64_t tokens;       /* used so far */
    uint64_t batch_tokens; /* of this step */
    double seconds;        /* of training so far, without validation and checkpoints */
    double loss, learning_rate, gradient_norm;
    double tokens_per_second, mfu; /* since the last logged step; mfu 0: no peak is known, NaN:
                                    * above 1, so the peak was measured while the machine was
                                    * slower */
    double loss_scale;             /* of this step; 1: none */
    enum dt_skip skip;
    long skipped; /* updates of the run so far, if this step's was; otherwise 0 */
    bool logged;
    double val_loss, ema_val_loss; /* NaN where none was computed */
    double val_accuracy;           /* share of targets that were the likeliest token; likewise */
    int slowest_rank;              /* of logged steps, the rank that has computed longest lately, */
    double slowest_factor;         /* and its time over the median of all; 0: not measured */
    bool stop;                     /* some rank is asked to stop: this is to be the last step */
    bool stopped_early; /* this is the last step: validation has not improved for too long */
    long best_step;     /* whose validation loss is the lowest, with training.patience; 0: none */
    double best_loss;
    bool saved;
    struct dt_error save_error; /* why a checkpoint that was due is not there; DT_OK: nothing */
};

struct dt_training;

/* *training is owned by the caller. DT_EINVALID names a setting that does not
 * fit the data, the model or the run being resumed. */
int dt_training_new(struct dt_training **training, const struct dt_training_options *options,
                    struct dt_error *err) DT_MUST_CHECK;
void dt_training_facts(const struct dt_training *training, struct dt_training_facts *facts);

/* One update, and the validation and checkpoint that are due after it. Returns
 * 1, or 0 when the run was at its end before: max_steps, or training.patience.
 * A step whose loss or gradient is not finite, or whose loss is a spike, leaves the
 * parameters as they are; after training.max_skipped of them in a row, the next is
 * DT_EINVALID, and the last checkpoint stays as it is. Overflows that a smaller loss
 * scale may mend are not among these. A checkpoint that cannot be written is an error
 * after the last step only: before that, it is in the report, the one before it
 * stays, and the next is tried when it is due. */
int dt_training_step(struct dt_training *training, struct dt_step_report *report,
                     struct dt_error *err) DT_MUST_CHECK;
/* A checkpoint now, unless the last step made one. */
int dt_training_save(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
/* Hash of the parameters; of a run whose ranks hold parts of the model, those of its newest
 * checkpoint. Every rank asks. */
int dt_training_hash(struct dt_training *training, uint64_t *hash,
                     struct dt_error *err) DT_MUST_CHECK;
void dt_training_free(struct dt_training *training); /* NULL is fine */

#endif
