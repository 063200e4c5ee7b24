/* SPDX-License-Identifier: MIT */
/* A small data set, and runs over it that take a fraction of a second. */
#ifndef DT_TESTS_SMALL_RUN_H
#define DT_TESTS_SMALL_RUN_H

#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "math/rng.h"
#include "shard/shard.h"
#include "train/training.h"

static struct dt_error err;
static char *data_path;

/* Tokens with something to learn: each is the last plus 1, 2 or 3, modulo 50. */
static inline int write_data(uint64_t key)
{
    struct dt_output out;
    struct dt_shard_writer *w;
    struct dt_rng rng;
    uint32_t ids[6000];
    const struct dt_shard_info info = {.token_bytes = 2,
                                       .vocab_size = 50,
                                       .eot = UINT32_MAX,
                                       .tokenizer = 7,
                                       .provenance = "test\n"};
    dt_rng_init(&rng, key);
    for (int i = 0; i < 6000; i++)
        ids[i] = ((i ? ids[i - 1] : 0) + 1 + dt_rng_below(&rng, 3)) % 50;
    DT_TRY(dt_output_open(&out, data_path, &err));
    DT_TRY(dt_shard_writer_new(&w, &out, &info, 1, &err));
    DT_TRY(dt_shard_write(w, ids, &(struct dt_shard_document){1, 6000, 9000}, &err));
    DT_TRY(dt_shard_writer_finish(w, &err));
    dt_shard_writer_free(w);
    return dt_output_commit(&out, &err);
}

static inline int set_up(void **state)
{
    if (make_scratch(state) < 0)
        return -1;
    data_path = dt_path_join(scratch, "data.dts");
    if (write_data(2) == 0)
        return 0;
    print_error("%s\n", err.text);
    return -1;
}

static inline int tear_down(void **state)
{
    free(data_path);
    return remove_scratch(state);
}

static inline struct dt_settings small_settings(void)
{
    struct dt_settings s;
    memset(&s, 0, sizeof s);
    dt_config_defaults(dt_settings_schema, &s);
    s.model.hidden_size = 16;
    s.model.num_layers = 2;
    s.model.num_heads = 2;
    s.model.max_seq_len = 24;
    s.training.batch_size = 4;
    s.training.gradient_accumulation_steps = 2;
    s.training.max_steps = 20;
    s.training.warmup_steps = 5;
    s.training.learning_rate = 1e-2;
    s.training.log_interval.count = 1;
    return s;
}

static inline struct dt_settings small_llama(void)
{
    struct dt_settings s = small_settings();
    s.model.family = DT_FAMILY_LLAMA;
    s.model.num_heads = 4;
    s.model.num_kv_heads = 2;
    s.model.tie_word_embeddings = false;
    return s;
}

/* Of a new run of one rank, without a directory. */
static inline struct dt_training_options options_of(const struct dt_settings *s,
                                                    struct dt_device *dev)
{
    return (struct dt_training_options){.settings = s,
                                        .settings_path = "small.yaml",
                                        .data = data_path,
                                        .resume = "none",
                                        .command_line = "test",
                                        .device = dev};
}

/* name NULL: of a run without a directory. */
static inline int open_run(struct dt_training **t, struct dt_device *dev,
                           const struct dt_settings *s, const char *name, const char *resume)
{
    char *run = name ? dt_path_join(scratch, name) : NULL;
    struct dt_training_options o = options_of(s, dev);
    o.run = run;
    o.resume = resume;
    int rc = dt_training_new(t, &o, &err);
    free(run);
    return rc;
}

static inline uint64_t hash_of(struct dt_training *t)
{
    uint64_t hash;
    assert_int_equal(dt_training_hash(t, &hash, &err), 0);
    return hash;
}

/* Runs until the end, or for some steps; returns the hash of the parameters. */
static inline uint64_t train(const char *engine, int threads, const char *name, const char *resume,
                             int most, double *losses, const struct dt_settings *settings)
{
    struct dt_settings s = settings ? *settings : small_settings();
    struct dt_device *dev;
    struct dt_training *t;
    struct dt_step_report report;
    assert_int_equal(dt_device_open(&dev, engine, threads, &err), 0);
    if (open_run(&t, dev, &s, name, resume) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < most && dt_training_step(t, &report, &err) > 0; i++)
        if (losses)
            losses[report.step - 1] = report.loss;
    uint64_t hash = hash_of(t);
    dt_training_free(t);
    dt_device_close(dev);
    return hash;
}

/* A run that is stopped and resumed ends with the same parameters as one that is not. */
static inline void check_resuming(struct dt_settings *s, const char *straight_name,
                                  const char *name)
{
    s->training.save_interval.count = 3;
    uint64_t straight = train("cpu", 2, straight_name, "auto", 99, NULL, s);
    train("cpu", 2, name, "auto", 8, NULL, s); /* dies two steps after step-6 */
    assert_true(straight == train("cpu", 2, name, "auto", 99, NULL, s));
}

#endif
