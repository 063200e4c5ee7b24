/* SPDX-License-Identifier: MIT */
/* Runs on several ranks, which are threads, and their results. */
#ifndef DT_TESTS_RANK_RUN_H
#define DT_TESTS_RANK_RUN_H

#include <math.h>

#include "../comm/threads.h"
#include "base/path.h"
#include "hash/hash.h"
#include "optim/learning-rate.h"
#include "train/small-run.h"

#define STEPS_KEPT 32

/* A run on several ranks, and its result. */
struct job {
    struct dt_settings settings;
    const char *name, *init_from;
    long most;                          /* steps */
    uint64_t hash;                      /* of the parameters, on all ranks */
    uint64_t model, optimizer, average; /* of the last checkpoint's files */
    uint64_t bytes[MOST_RANKS];         /* sent in the last step but one */
    size_t planned[MOST_RANKS], moments[MOST_RANKS], gradients[MOST_RANKS], state[MOST_RANKS];
    size_t activations[MOST_RANKS];
    double loss;                                  /* of the last step */
    double losses[STEPS_KEPT], norms[STEPS_KEPT]; /* of the first steps */
    char error[DT_ERROR_TEXT];                    /* that ended it, on the first rank */
};

/* Bytes of the device that a rank takes. */
static _Thread_local size_t taken;
static const struct dt_ops *sound_ops;

static inline void *count_allocate(struct dt_device *dev, size_t bytes)
{
    taken += bytes;
    return sound_ops->allocate(dev, bytes);
}

static inline struct dt_training *open_rank(const struct job *job, struct dt_comm *world,
                                            struct dt_device *dev)
{
    struct dt_training *t;
    struct dt_error error;
    char *run = dt_path_join(scratch, job->name);
    struct dt_training_options options = options_of(&job->settings, dev);
    options.run = run;
    options.resume = "auto";
    options.init_from = job->init_from;
    options.comm = world;
    if (dt_training_new(&t, &options, &error) < 0)
        fail_msg("%s", error.text);
    free(run);
    return t;
}

static inline void note_step(struct job *job, const struct dt_step_report *report)
{
    job->loss = report->loss;
    if (report->step <= STEPS_KEPT) {
        job->losses[report->step - 1] = report->loss;
        job->norms[report->step - 1] = report->gradient_norm;
    }
}

/* Up to the last step; false where an error has ended the run before. */
static inline bool take_steps(struct job *job, struct dt_training *t, struct dt_comm *world)
{
    struct dt_step_report report = {0};
    struct dt_error error;
    int rank = dt_comm_rank(world), rc = 1;
    while (rc > 0 && report.step < job->most) {
        uint64_t before = dt_comm_bytes_sent(world);
        rc = dt_training_step(t, &report, &error);
        if (rc > 0 && !report.saved)
            job->bytes[rank] = dt_comm_bytes_sent(world) - before;
        if (rc > 0 && rank == 0)
            note_step(job, &report);
    }
    if (rc < 0 && rank == 0)
        snprintf(job->error, sizeof job->error, "%s", error.text);
    return rc >= 0;
}

/* All ranks have the same. */
static inline void take_hash(struct job *job, struct dt_training *t, struct dt_comm *world)
{
    struct dt_error error;
    uint64_t hash;
    if (dt_training_hash(t, &hash, &error) < 0)
        fail_msg("%s", error.text);
    if (dt_comm_rank(world) == 0)
        job->hash = hash;
    assert_int_equal(dt_comm_barrier(world, &error), 0);
    assert_true(job->hash == hash);
}

static inline void run_one(struct dt_comm *world, void *context)
{
    struct job *job = context;
    struct dt_device *dev;
    struct dt_training_facts facts;
    struct dt_error error;
    int rank = dt_comm_rank(world);
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &error), 0);
    if (job->settings.training.arithmetic == DT_ARITHMETIC_CANONICAL)
        dt_device_set_canonical(dev);
    sound_ops = dev->ops; /* the same for all */
    struct dt_ops ops = *dev->ops;
    ops.allocate = count_allocate;
    dev->ops = &ops;
    taken = 0;
    struct dt_training *t = open_rank(job, world, dev);
    dt_training_facts(t, &facts);
    job->planned[rank] = facts.memory.device;
    job->moments[rank] = facts.memory.moments;
    job->activations[rank] = facts.memory.activations;
    job->gradients[rank] = facts.memory.gradients;
    job->state[rank] = facts.memory.parameters + facts.memory.weights;
    if (take_steps(job, t, world))
        take_hash(job, t, world);
    dt_training_free(t);
    assert_int_equal(taken, facts.memory.device);
    dt_device_close(dev);
}

static inline uint64_t hash_of_file(const char *run, const char *name)
{
    char *path = dt_asprintf("%s/%s/latest/%s", scratch, run, name), *data;
    size_t size;
    if (dt_file_probe(path, &err) == 0) {
        free(path);
        return 0;
    }
    assert_int_equal(dt_file_read(path, SIZE_MAX - 1, &data, &size, &err), 0);
    uint64_t hash = dt_hash(data, size);
    free(data);
    free(path);
    return hash;
}

static inline struct job run_job(int ranks, const struct dt_settings *settings, const char *name,
                                 long most)
{
    struct job job = {.settings = *settings, .name = name, .most = most};
    run_ranks(ranks, run_one, &job);
    job.model = hash_of_file(name, "model.safetensors");
    job.optimizer = hash_of_file(name, "trainer/optimizer.safetensors");
    job.average = hash_of_file(name, "ema/model.safetensors");
    return job;
}

static inline struct job run_new(int ranks, const struct dt_settings *settings)
{
    char *run = dt_path_join(scratch, "new");
    assert_int_equal(dt_file_remove_tree(run, &err), 0);
    free(run);
    return run_job(ranks, settings, "new", 1000);
}

/* On one of the ranks that a run cannot begin on. */
static inline void check_refused(struct dt_comm *world, const struct dt_settings *s,
                                 const char *why)
{
    struct dt_device *dev;
    struct dt_training *t;
    struct dt_error error;
    assert_int_equal(dt_device_open(&dev, "cpu", 1, &error), 0);
    struct dt_training_options options = options_of(s, dev);
    options.comm = world;
    options.plan_only = true;
    assert_int_equal(dt_training_new(&t, &options, &error), DT_EINVALID);
    if (strstr(error.text, why) == NULL)
        fail_msg("%s", error.text);
    dt_device_close(dev);
}

struct refusal {
    struct dt_settings settings;
    const char *why;
};

static inline void refuse(struct dt_comm *world, void *context)
{
    const struct refusal *r = context;
    check_refused(world, &r->settings, r->why);
}

/* Losses and norms of every step agree, to what rounding has grown to. */
static inline void check_close(int steps, const struct job *a, const struct job *b)
{
    for (int i = 0; i < steps; i++) {
        double loss = fabs(a->losses[i] - b->losses[i]) / a->losses[i];
        double norm = fabs(a->norms[i] - b->norms[i]) / a->norms[i];
        if (!(loss < 1e-5 && norm < 1e-4))
            fail_msg("step %d: loss %g, norm %g", i + 1, loss, norm);
    }
}

/* Stopped in 4 parts, of which each rank has one, resumed in 3, and so on: moments go with their
 * parameters. parts: the setting that says how many. */
static inline void check_going_on(int steps, struct dt_settings *s, long *parts)
{
    s->training.schedule = DT_LR_SCHEDULE_CONSTANT;
    struct job straight = run_new(1, s), pieces = straight;
    char *run = dt_path_join(scratch, "new");
    assert_int_equal(dt_file_remove_tree(run, &err), 0);
    for (*parts = 4; *parts >= 1; --*parts) {
        s->training.max_steps = (5 - *parts) * steps / 4;
        struct job job = run_job((int)*parts, s, "new", 1000);
        for (long i = s->training.max_steps - steps / 4; i < s->training.max_steps; i++) {
            pieces.losses[i] = job.losses[i];
            pieces.norms[i] = job.norms[i];
        }
    }
    check_close(steps, &straight, &pieces);
    free(run);
}

static inline void check_same(const struct job *a, const struct job *b)
{
    assert_true(a->hash == b->hash);
    assert_true(a->model == b->model);
    assert_true(a->optimizer == b->optimizer && a->optimizer != 0);
    assert_true(a->average == b->average);
}

#endif
