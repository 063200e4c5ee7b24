/* SPDX-License-Identifier: MIT */
/* Shared by the files of a training run; training.h is the public interface. */
#ifndef DT_TRAIN_TRAINING_INTERNAL_H
#define DT_TRAIN_TRAINING_INTERNAL_H

#include <signal.h>

#include "checkpoint/checkpoint-writer.h"
#include "checkpoint/state-copy.h"
#include "comm/bulk.h"
#include "device/thread-choice.h"
#include "elastic/membership.h"
#include "formats/labels.h"
#include "model/forward-backward.h"
#include "parallel/local-sgd.h"
#include "parallel/pipeline-executor.h"
#include "parallel/update-order.h"
#include "parallel/watchdog.h"
#include "prefer/pairs.h"
#include "shard/loader.h"
#include "train/interval.h"
#include "train/layer-metrics.h"
#include "train/memory-plan.h"
#include "train/metrics-file.h"
#include "train/objective.h"
#include "train/step-timeline.h"
#include "train/step-trace.h"
#include "train/tensor-norms.h"
#include "train/training.h"
#include "train/update-record.h"

/* The micro-batches that this rank's loader reads, step by step. */
struct dt_batch_order {
    const struct dt_settings *settings;
    const struct dt_data_parallel *dp;
    uint64_t samples;  /* consumed before the step */
    int64_t batches;   /* micro-batches of the step, of all ranks */
    int64_t next, end; /* of this rank's micro-batches */
};

/* What all ranks of a run must have in common. */
#define DT_ENGINE_NAME 128
struct dt_training_profile {
    struct dt_settings settings; /* without paths */
    uint64_t data, validation;
    uint64_t plan_only;
    char engine[DT_ENGINE_NAME];
};

/* A further validation set, and its last loss and accuracy. */
struct dt_validation_set {
    char *name;
    struct dt_dataset *data;
    double loss, accuracy; /* NAN: no target; not computed */
};

/* A rank's shard after the update of a step. */
struct dt_shard_copy {
    long step; /* -1: none */
    float *values;
    struct dt_progress_state progress; /* after the update, of this rank's own */
    struct dt_step_report report;
};

/* Numbers of shards. */
struct dt_shard_numbers {
    int own, other, count; /* of this rank, of which it has a copy (-1: none), of all */
};

/* shard-copies.c: this rank's shard and that of the rank before, after the last two updates. */
struct dt_shard_copies {
    long generation;  /* whose ranks have these shards; 0: there are none */
    bool replicated;  /* other ranks hold the same shard: no copies are sent */
    int next, before; /* ranks of the data-parallel group */
    struct dt_shard_numbers numbers;
    struct dt_state_shard own_shard, other_shard;
    struct dt_shard_copy own[2], other[2]; /* of even and odd steps */
    struct dt_bulk messages;
    long last; /* step of the last copies */
    enum { DT_COPIES_EXCHANGED, DT_COPIES_TAKEN, DT_COPIES_SENT } stage;
};

/* Which copies a rank has. */
struct dt_shard_standing {
    long generation;
    struct dt_shard_numbers numbers;
    long own[2], other[2]; /* steps */
    bool updated[2];       /* own is the result of an update, not from disk */
};

/* async.c: what a worker receives: a batch, and the parameters with which it computes the
 * gradient, or DT_ASYNC_END. */
struct dt_async_work {
    int64_t batch;
    uint64_t samples; /* consumed by the batches before */
    int64_t stop;     /* with the end: because a rank was asked to stop */
};

/* What it sends: the gradients of all buckets, and the sums of the batch. */
struct dt_async_gradient {
    struct dt_token_sums sums;
    struct dt_sum_hash batch;
    int64_t stop;   /* this rank was asked to stop */
    int64_t failed; /* the code of its error, in place of a gradient; or 0 */
    float values[];
};

/* A worker as its server sees it. */
struct dt_async_worker {
    bool computes;
    struct dt_async_work work;
    struct dt_async_gradient *gradient; /* that it sends, or has sent; borrowed */
    struct dt_bulk sent, received;
};

/* Asynchronous updates (distributed.sync=async). Rank 0 is the server, and its own worker if it is
 * alone. */
struct dt_async {
    bool active, serves, ended;
    struct dt_update_order order;
    struct dt_update_record record;  /* distributed.replay */
    struct dt_metrics file;          /* RUN/updates.jsonl */
    struct dt_async_worker *workers; /* rank 1 is the first */
    struct dt_message **arriving;    /* of each worker, or NULL */
    int worker_count;
    struct dt_async_gradient **spares; /* buffers that no batch uses */
    size_t spare_count, spare_capacity;
    float *parameters; /* of a version, for workers; of a worker: those received */
    long version;      /* -1: none */
    bool closed; /* no batch begins until all are applied: a validation or checkpoint is due, */
    bool stops;  /* or a rank was asked to stop */
    bool worker_failed;
};

struct dt_training {
    struct dt_settings settings;
    struct dt_training_options options;
    struct dt_run_identity identity;
    char *run, *lineage, *tokenizer_path;
    char *parent;               /* the checkpoint that the run branches from; NULL: none */
    bool parent_is_scaled;      /* it has a loss scale */
    struct json_object *branch; /* what the branch changes, for lineage and metrics; or NULL */
    char *first_stage;          /* of data.stages; NULL: none */
    char *resumed;              /* the checkpoint that this process began from; NULL: none */
    struct dt_buffer damaged;   /* why newer checkpoints were passed over, a line each */
    int lock;                   /* file descriptor of the run directory, with flock */
    uint64_t origin;            /* hash of the parameters of --init-from; 0: none */
    struct dt_device *device;
    struct dt_thread_choice threads;
    double peak;          /* operations a second, of all ranks' devices */
    struct dt_comm *comm; /* all ranks of the run */
    struct dt_comm *self; /* the communicator, if it was opened here */
    struct dt_mesh mesh;
    bool leads; /* rank 0, which writes metrics and checkpoints */
    const volatile sig_atomic_t *stop;
    struct dt_labels labels;        /* of a classifier */
    struct dt_dataset *train, *val; /* val NULL: no validation */
    struct dt_validation_set *sets; /* of data.validation */
    int set_count, set_capacity;
    uint64_t validation; /* hash of both */
    uint64_t samples;    /* of one epoch */
    struct dt_loader *loader;
    enum dt_scope scope;         /* of attention: row, document, or row without padding */
    struct dt_batch_order order; /* the loader's position */
    struct dt_model *model;
    struct dt_train_state state;
    struct dt_local_sgd local;
    struct dt_async async;
    struct dt_pipeline_executor executor;
    struct dt_snapshot snapshot;
    struct dt_memory_plan memory;
    struct dt_checkpoint_writer *writer;
    struct dt_objective objective;
    struct dt_preferences preferences; /* with dpo */
    struct dt_groups groups;           /* with grpo, as are these: */
    struct dt_prompts prompts;
    struct dt_chat *chat;
    struct dt_tokenizer *tokenizer;
    struct dt_step_trace trace;
    struct dt_step_timeline timeline;
    struct dt_tensor_norms norms;   /* with training.tensor_metrics */
    bool has_norms;                 /* of the last update */
    struct dt_layer_metrics layers; /* with training.layer_metrics */
    bool has_layers;                /* of the last step, as has */
    struct dt_gradient_noise noise;
    /* metrics.jsonl, hashes.jsonl, tensors.jsonl; not open without a run. */
    struct dt_metrics metrics, hashes, tensors;
    struct dt_buffer line; /* of metrics; reused, so that a logged step allocates nothing */
    long lost_lines;       /* as in struct dt_training_facts */
    struct dt_progress_state progress;
    long first_step;
    /* Of an elastic run: */
    struct dt_membership *members; /* NULL: the ranks do not change */
    struct dt_training_profile profile;
    char *run_path; /* identifies the job */
    int trains;     /* ranks of self that do, in whole groups: those above are spares, which wait */
    bool regroups;  /* after this step, because newcomers have come or */
    bool saves;     /* a checkpoint is due: ranks leave, or one was abandoned */
    bool has_state; /* this rank has been one of the run */
    bool is_whole;  /* it has the whole state of the last step, in copy or, if loaded, in state */
    bool loaded;
    struct dt_state_copy copy;
    struct dt_shard_copies copies;
    struct dt_step_report report;     /* of the last update, */
    struct dt_progress_state updated; /* and the progress after it */
    bool returned;                    /* this process was left out of a generation */
    bool has_led;                     /* this process was rank 0 of the last generation */
    double started;                   /* of this step, by dt_clock_now */
    bool unfinished;      /* what follows an update is not done: comparisons, metrics, checkpoint */
    double busy_seconds;  /* of computing, without waiting, since the last search for stragglers */
    int64_t busy_batches; /* micro-batches computed in these */
    bool crowded;         /* this machine has fewer processors than ranks */
    double logged_seconds; /* progress.seconds and tokens at the last logged step */
    uint64_t logged_tokens;
    double logged_waited;  /* dt_comm_waited at that step */
    double loader_seconds; /* that this rank has waited for its loader since that step */
    /* Validation: one batch. */
    struct dt_batch batch;
    uint32_t *val_ids;                        /* sequences x (T + 1) */
    int32_t *val_span_begins, *val_span_ends; /* sequences x T */
    float *val_losses, *val_hits;             /* sequences x T */
};

/* training-open.c: opens data, model and run directory, and loads the checkpoint. */
int dt_training_open(struct dt_training *training, const struct dt_training_options *options,
                     struct dt_error *err) DT_MUST_CHECK;

/* training-start.c: finds what the run branches from, if it does, and sets settings.branch. */
int dt_training_begin_branch(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
/* Of a run that may go on: its settings are those of its checkpoint, unless that is not found. */
int dt_training_check_settings(const struct dt_training *training,
                               struct dt_error *err) DT_MUST_CHECK;
/* The base model of an adapter, if one is trained. */
int dt_training_take_base(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
/* Takes the state of a checkpoint, or the initial one. Collective, as is the next. */
int dt_training_start(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
/* The state is of other ranks, or of this one. */
int dt_training_go_on(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
/* Unlocks the run directory. */
void dt_training_unlock_run(struct dt_training *training);
/* Whether an elastic run has begun before these ranks met. */
bool dt_training_goes_on(const struct dt_training *training);

/* Releases what depends on the ranks. */
void dt_training_disassemble(struct dt_training *training);
/* Of an elastic run: ends this generation of ranks and begins the next. */
int dt_training_regroup(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;

/* profile.c. Fails if two profiles differ. whose: names the other, as in "rank 0". */
void dt_training_profile(const struct dt_training *training, struct dt_training_profile *profile);
int dt_training_compare_profiles(const struct dt_training *training,
                                 const struct dt_training_profile *other, const char *whose,
                                 struct dt_error *err) DT_MUST_CHECK;

/* shard-copies.c: for new ranks; does nothing unless the run is elastic and its state is sharded.
 * Collective. */
int dt_shard_copies_open(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
/* Bytes that dt_shard_copies_open takes; before memory is allocated. Collective. */
int dt_shard_copies_plan(struct dt_training *training, size_t *bytes,
                         struct dt_error *err) DT_MUST_CHECK;
void dt_shard_copies_release(struct dt_shard_copies *copies);
/* After an update: copies this rank's shard. */
void dt_shard_copies_begin(struct dt_training *training);
/* Begins to exchange the copies, if that is not done. */
void dt_shard_copies_send(struct dt_training *training);
/* Until they are exchanged. */
int dt_shard_copies_wait(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
struct dt_shard_standing dt_shard_copies_standing(const struct dt_shard_copies *copies);
/* The newest step of which size ranks have all shards; -1: none. *generation: of these; *shards:
 * their number. */
long dt_shard_copies_newest(const struct dt_shard_standing *all, int size, long *generation,
                            int *shards);
/* Puts the state of that step together in training->copy. Collective. */
int dt_shard_copies_gather(struct dt_training *training, const struct dt_shard_standing *all,
                           long step, struct dt_error *err) DT_MUST_CHECK;

/* async.c: lays out nothing before the model; the mesh is then of this rank alone. */
void dt_async_plan(struct dt_training *training);
/* Bytes of host memory for parameters and gradients, at most. */
size_t dt_async_bytes(const struct dt_training *training);
/* Reads the order to replay, and opens the record of this run's. */
int dt_async_open(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
void dt_async_close(struct dt_training *training);
/* The server: puts the gradients that are to be applied next into training->state. */
int dt_async_take_gradient(struct dt_training *training, struct dt_token_sums *sums,
                           struct dt_error *err) DT_MUST_CHECK;
/* Whether no worker computes: the state is that of the first batches, each applied. */
bool dt_async_is_even(const struct dt_training *training);
/* DT_EINVALID if a validation or checkpoint is due, and the order that is replayed has no pause. */
int dt_async_check_due(const struct dt_training *training, const struct dt_step_report *report,
                       struct dt_error *err) DT_MUST_CHECK;
/* The server: no more updates, because all are done, a rank was asked to stop, or of rc < 0, the
 * error *err. Then, or if a worker had one, all ranks that still communicate return the same error.
 * Returns rc without effect on workers, after an earlier call, and if communication has failed. */
int dt_async_end(struct dt_training *training, bool stop, int rc,
                 struct dt_error *err) DT_MUST_CHECK;
/* A worker: computes gradients until the server ends. Returns as dt_training_step. */
int dt_async_work(struct dt_training *training, struct dt_step_report *report,
                  struct dt_error *err) DT_MUST_CHECK;

/* elastic.c: ranks that come and go. */
int dt_elastic_open(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
void dt_elastic_close(struct dt_training *training);
/* The communicator of the ranks that have met. */
int dt_elastic_open_world(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
/* Whether this rank waits for others that make a group whole. */
static inline bool dt_elastic_is_spare(const struct dt_training *t)
{
    return t->self && dt_comm_rank(t->self) >= t->trains;
}

/* Whether a rank holds a part of the state only. */
static inline bool dt_elastic_is_sharded(const struct dt_training *t)
{
    return t->state.dp.zero_stage > 0 || t->mesh.part.stages > 1 || t->mesh.part.tp_size > 1;
}

/* Takes the newest state of all ranks; *found false: no rank has one. Spares give what they have,
 * and keep nothing. Collective, with them. */
int dt_elastic_take_state(struct dt_training *training, bool *found,
                          struct dt_error *err) DT_MUST_CHECK;
/* Whether newcomers wait, as far as this rank knows. */
bool dt_elastic_is_joined(struct dt_training *training);
/* Ranks that were asked to stop (stops) leave if enough remain. Returns whether that is so. */
bool dt_elastic_let_go(struct dt_training *training, const unsigned char *flags, unsigned stops);
/* Whether an error is the loss of a rank, which this one then suspects: the others regroup. */
bool dt_elastic_can_go_on(struct dt_training *training);

/* Whether the samples are pairs of sequences. */
static inline bool dt_training_has_pairs(const struct dt_training *t)
{
    return t->settings.training.objective == DT_TRAINING_OBJECTIVE_DPO;
}
/* Whether the samples are prompts. */
static inline bool dt_training_has_prompts(const struct dt_training *t)
{
    return t->settings.training.objective == DT_TRAINING_OBJECTIVE_GRPO;
}
/* The length of samples, as the data set counts it. */
static inline uint32_t dt_training_row(const struct dt_training *t)
{
    uint32_t length = (uint32_t)t->settings.training.sequence_length;
    return dt_training_has_pairs(t) ? dt_pairs_row(length) : length;
}

/* training-step.c: forward and backward of a step's micro-batches, and the update, unless it is
 * skipped. */
int dt_training_update(struct dt_training *training, struct dt_step_report *report,
                       struct dt_error *err) DT_MUST_CHECK;

/* step-gradients.c: forward and backward of this rank's micro-batches of a step. *sums: over those
 * of all ranks of the mesh. The gradients are of the mean loss times loss_scale, but for positions
 * without targets. */
int dt_training_gradients(struct dt_training *training, long batches, double loss_scale,
                          struct dt_token_sums *sums, struct dt_error *err) DT_MUST_CHECK;

/* interval.c: which intervals end with the step from before to after, bits of enum dt_due; of those
 * in minutes, or of the others. */
unsigned dt_training_due(const struct dt_training *training, bool minutes,
                         const struct dt_interval_position *before,
                         const struct dt_interval_position *after);

/* sample-order.c: starts after that number of samples. dt_batch_order_next returns the position of
 * the next micro-batch, for dt_loader_options.next_position. */
void dt_batch_order_begin(struct dt_batch_order *order, const struct dt_settings *settings,
                          const struct dt_data_parallel *dp, uint64_t samples);
uint64_t dt_batch_order_next(void *order);

/* validation-sets.c: the sets of data.validation. */
int dt_validation_sets_open(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
void dt_validation_sets_release(struct dt_training *training);

/* Whether validation counts the targets that were the most likely token. */
bool dt_training_scores_accuracy(const struct dt_training *training);
/* validation.c: the loss on the validation split and the sets, and whether the first is the best so
 * far. */
int dt_training_validate(struct dt_training *training, struct dt_step_report *report,
                         struct dt_error *err) DT_MUST_CHECK;
/* Whether the current step is among the best of checkpoint.keep_best, or the best one with
 * training.patience. */
bool dt_training_is_best(const struct dt_training *training);
bool dt_training_stopped_early(const struct dt_training *training);

/* training-metrics.c: throughput since the last logged step, and lines of metrics.jsonl
 * (dt-metrics(5)). */
void dt_training_measure(const struct dt_training *training, struct dt_step_report *report);
/* The lines with the run's name and with its branch, if it has them and the file is new. */
int dt_training_log_run(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
/* The line with the number of lines that a resumed run has lost, if any. */
int dt_training_log_lost(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
/* A line for each damaged checkpoint that was passed over. */
int dt_training_log_damaged(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
int dt_training_log_step(struct dt_training *training, struct dt_step_report *report,
                         struct dt_error *err) DT_MUST_CHECK;
/* The line with the ranks of an elastic run. */
int dt_training_log_ranks(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
/* The sink of traced steps: RUN/hashes.jsonl. */
int dt_training_log_hash(void *training, const struct dt_trace_line *line,
                         struct dt_error *err) DT_MUST_CHECK;
/* Lines of tensors.jsonl: what layers, and the norms of what tensors were in the current step. */
int dt_training_log_layers(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
int dt_training_log_norms(struct dt_training *training, struct dt_error *err) DT_MUST_CHECK;
int dt_training_log_validation(struct dt_training *training, const struct dt_step_report *report,
                               struct dt_error *err) DT_MUST_CHECK;

#endif
