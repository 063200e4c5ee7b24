/* SPDX-License-Identifier: MIT */
/* Settings that conflict: each conflict has an error. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "settings/settings.h"

static const struct {
    const char *set[3]; /* the last may be NULL */
    const char *fault;  /* NULL: none */
} cases[] = {
    {{"distributed.compress=topk", "distributed.sync=diloco"},
     "distributed.compress topk needs distributed.sync allreduce"},
    {{"distributed.compress=bf16", "distributed.zero_stage=2"},
     "distributed.compress bf16 needs distributed.zero_stage 0"},
    {{"distributed.compress=powersgd", "distributed.invariant=true"},
     "distributed.compress powersgd needs distributed.invariant false"},
    {{"distributed.compress=powersgd", "distributed.tp=2"},
     "distributed.compress powersgd needs distributed.tp 1"},
    {{"distributed.compress=bf16", "distributed.tp=2"}, NULL},
    {{"distributed.collectives=nccl", "distributed.backend=mpi"},
     "distributed.collectives nccl needs distributed.backend nccl"},
    {{"distributed.collectives=nccl_bf16", "distributed.backend=nccl"}, NULL},
    {{"distributed.collectives=nccl", "distributed.backend=nccl", "distributed.zero_stage=3"},
     NULL},
    {{"distributed.collectives=nccl", "distributed.backend=nccl", "distributed.invariant=true"},
     "distributed.collectives nccl needs distributed.invariant false: the order of NCCL's sums "
     "depends on the ranks"},
    {{"distributed.collectives=nccl_bf16", "distributed.backend=nccl", "distributed.sync=diloco"},
     "distributed.collectives nccl_bf16 needs distributed.sync allreduce"},
    {{"distributed.collectives=nccl", "distributed.backend=nccl", "distributed.compress=bf16"},
     "distributed.collectives nccl needs distributed.compress none"},
    {{"distributed.collectives=nccl", "distributed.backend=nccl", "distributed.shard_ranks=2"},
     "distributed.collectives nccl needs distributed.shard_ranks 0"},
    {{"distributed.sync=diloco", "distributed.zero_stage=1"},
     "distributed.sync diloco needs distributed.zero_stage 0"},
    {{"distributed.sync=local_sgd", "distributed.invariant=true"},
     "distributed.sync local_sgd needs distributed.invariant false"},
    {{"distributed.sync=local_sgd", "distributed.local_steps=3", "training.save_interval=10"},
     "distributed.sync local_sgd needs a training.save_interval of steps that "
     "distributed.local_steps divides"},
    {{"distributed.sync=local_sgd", "distributed.local_steps=3", "training.eval_interval=10"},
     "distributed.sync local_sgd needs a training.eval_interval of steps that "
     "distributed.local_steps divides"},
    {{"distributed.sync=diloco", "distributed.local_steps=4", "training.save_interval=1 epoch"},
     "distributed.sync diloco needs a training.save_interval of steps that "
     "distributed.local_steps divides"},
    {{"distributed.sync=streaming_diloco", "distributed.fragments=9"},
     "distributed.sync streaming_diloco needs a distributed.fragments of at most "
     "distributed.local_steps"},
    {{"distributed.sync=streaming_diloco", "distributed.outer_delay=3"},
     "distributed.sync streaming_diloco needs a distributed.outer_delay of at most "
     "distributed.local_steps / distributed.fragments"},
    {{"distributed.sync=diloco", "distributed.outer_precision=int8"},
     "distributed.outer_precision of one's own needs distributed.sync streaming_diloco"},
    {{"distributed.sync=streaming_diloco", "distributed.outer_delay=2"}, NULL},
    {{"distributed.sync=parameter_server", "distributed.local_steps=4"},
     "distributed.local_steps of one's own needs distributed.sync local_sgd, diloco or "
     "streaming_diloco"},
    {{"distributed.sync=local_sgd", "distributed.outer_learning_rate=0.5"},
     "distributed.outer_learning_rate of one's own needs distributed.sync diloco or "
     "streaming_diloco"},
    {{"distributed.sync=local_sgd", "distributed.outer_momentum=0.5"},
     "distributed.outer_momentum of one's own needs distributed.sync diloco or streaming_diloco"},
    {{"distributed.sync=diloco", "distributed.outer_momentum=0.5", "distributed.local_steps=4"},
     NULL},
    {{"distributed.compress=powersgd", "distributed.compress_share=0.1"},
     "distributed.compress_share of one's own needs distributed.compress topk"},
    {{"distributed.compress=topk", "distributed.compress_rank=2"},
     "distributed.compress_rank of one's own needs distributed.compress powersgd"},
    {{"distributed.compress=topk", "distributed.compress_share=0.1"}, NULL},
    {{"distributed.compress=powersgd", "distributed.compress_rank=2"}, NULL},
    {{"distributed.sync=async", "distributed.zero_stage=1"},
     "distributed.sync async needs distributed.zero_stage 0"},
    {{"distributed.sync=async", "distributed.tp=2"},
     "distributed.sync async needs distributed.pp, distributed.tp and distributed.cp 1"},
    {{"distributed.sync=async", "distributed.invariant=true"},
     "distributed.sync async needs distributed.invariant false: a run is repeated with "
     "distributed.replay"},
    {{"distributed.sync=async", "distributed.compress=bf16"},
     "distributed.compress bf16 needs distributed.sync allreduce"},
    {{"distributed.sync=async", "training.save_interval=1 minutes"},
     "distributed.sync async needs a training.save_interval that is not in minutes"},
    {{"distributed.sync=async", "training.precision=fp16"},
     "distributed.sync async needs training.precision fp32 or bf16"},
    {{"distributed.sync=async", "training.layer_metrics=activation_rms"},
     "distributed.sync async needs training.layer_metrics empty"},
    {{"distributed.sync=allreduce", "distributed.staleness=3"},
     "distributed.staleness of one's own needs distributed.sync async"},
    {{"distributed.sync=diloco", "distributed.replay=updates.jsonl"},
     "distributed.replay updates.jsonl needs distributed.sync async"},
    {{"optimizer.moments=int8", "training.optimizer=muon"},
     "optimizer.moments int8 needs training.optimizer adamw, lion or sgd"},
    {{"optimizer.moments=bf16", "distributed.tp=2"},
     "optimizer.moments bf16 needs distributed.tp 1"},
    {{"optimizer.moments=int8", "distributed.sync=diloco"},
     "optimizer.moments int8 needs distributed.sync allreduce or parameter_server"},
    {{"optimizer.offload_dir=/data", "optimizer.moments=bf16"},
     "optimizer.offload_dir /data needs optimizer.offload file"},
    {{"optimizer.offload=file", "training.optimizer=muon"}, NULL},
    {{"training.log_interval=0.5", "training.log_interval=0.5"},
     "training.log_interval has to be a whole number of steps, not 0.5"},
    {{"training.eval_interval=1.5 tokens", "training.log_interval=0.5 minutes"},
     "training.eval_interval has to be a whole number of tokens, not 1.5"},
    {{"training.save_interval=1 epoch", "training.log_interval=0.5minutes",
      "training.eval_interval=10M tokens"},
     NULL},
    {{"distributed.cp=2", "distributed.sync=local_sgd"},
     "distributed.sync local_sgd needs distributed.cp 1"},
    {{"distributed.cp=2", "distributed.invariant=true"},
     "distributed.cp above 1 with distributed.invariant needs a distributed.sequence_parts that is "
     "a multiple of 2 * distributed.cp, equal in all layouts"},
    {{"distributed.cp=2", "distributed.invariant=true", "distributed.sequence_parts=4"}, NULL},
    {{"distributed.cp=4", "distributed.sequence_parts=4"},
     "distributed.cp above 1 needs a distributed.sequence_parts that is 0 or a multiple of 2 * "
     "distributed.cp"},
    {{"distributed.sequence_parts=6", "distributed.cp=1"},
     "distributed.sequence_parts above 0 needs a power of two"},
    {{"distributed.cp=2", "training.sequence_length=22"},
     "distributed.cp above 1 needs a training.sequence_length that is a multiple of 2 * "
     "distributed.cp"},
    {{"distributed.cp=3", "training.sequence_length=24", "distributed.zero_stage=3"}, NULL},
    {{"distributed.sync=parameter_server", "distributed.zero_stage=3"}, NULL},
    {{"distributed.shard_ranks=2", "distributed.sync=parameter_server"},
     "distributed.shard_ranks above 0 needs distributed.sync allreduce"},
    {{"distributed.shard_ranks=2", "distributed.compress=bf16"},
     "distributed.shard_ranks above 0 needs distributed.compress none"},
    {{"training.optimizer=sgd", "training.beta1=0.8"},
     "training.beta1 of one's own needs training.optimizer adamw, lion or muon"},
    {{"training.optimizer=sgd", "training.beta2=0.8"},
     "training.beta2 of one's own needs training.optimizer adamw, lion or muon"},
    {{"training.optimizer=lion", "training.epsilon=1e-6"},
     "training.epsilon of one's own needs training.optimizer adamw or muon"},
    {{"training.optimizer=adamw", "training.momentum=0.8"},
     "training.momentum of one's own needs training.optimizer sgd or muon"},
    {{"training.optimizer=muon", "training.momentum=0.8", "training.beta1=0.8"}, NULL},
    {{"training.optimizer=lion", "training.beta2=0.99"}, NULL},
    {{"model.name=modernbert", "model.dropout=0.1"},
     "model.dropout must be 0 with modernbert, whose dropout is elsewhere than dt's"},
    {{"model.name=phi3", "model.dropout=0.1"},
     "model.dropout must be 0 with phi3, whose dropout is elsewhere than dt's"},
};

/* Intervals of 0 are compatible with any number of local steps. */
static int resolve(const char *const set[3], struct dt_error *err)
{
    const char *all[] = {"training.save_interval=0", "training.eval_interval=0", set[0], set[1],
                         set[2]};
    struct dt_settings s;
    assert_int_equal(dt_settings_read(&s, NULL, NULL, all, set[2] ? 5 : 4, err), 0);
    return dt_settings_resolve(&s, 50, "run.yaml", err);
}

static void each_conflict_has_an_error(void **state)
{
    char line[DT_ERROR_TEXT];
    struct dt_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int rc = resolve(cases[i].set, &err);
        assert_int_equal(rc, cases[i].fault ? DT_EINVALID : 0);
        snprintf(line, sizeof line, "run.yaml: %s", cases[i].fault ? cases[i].fault : "");
        if (rc < 0)
            assert_string_equal(err.text, line);
    }
}

/* What the error for a key suggests, or NULL; memory is the caller's. */
static char *suggested(const char *key)
{
    struct dt_settings s;
    struct dt_error err;
    char *assignment = dt_asprintf("%s=1", key);
    const char *const all[] = {assignment};
    assert_int_equal(dt_settings_read(&s, NULL, NULL, all, 1, &err), DT_EINVALID);
    free(assignment);
    const char *found = strstr(err.text, "did you mean '");
    return found ? dt_strndup(found + 14, strcspn(found + 14, "'")) : NULL;
}

static void keys_of_other_programs_are_named_with_their_counterpart_or_none(void **state)
{
    static const char *const expected[][2] = {
        {"model.block_size", "model.max_seq_len"},
        {"training.block_size", "training.sequence_length"},
        {"block_size", "model.max_seq_len"},
        {"model.n_layer", "model.num_layers"},
        {"model.n_embd", "model.hidden_size"},
        {"model.hidden", "model.hidden_size"},
        {"training.min_lr", "training.min_learning_rate_ratio"},
        {"training.dtype", "training.precision"},
        {"training.batch", "training.batch_size"},
        {"training.eval_iters", "training.eval_batches"},
        {"training.lr", "training.learning_rate"},
        {"training.num_workers", "data.num_workers"},
        {"training.laerning_rate", "training.learning_rate"},
        {"optimizer.name", "training.optimizer"},
        {"model.bias", NULL},
        {"training.compile", NULL},
        {"training.grad", NULL}, /* begins two */
        {"training.device", NULL},
        {"distributed.dp", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char *name = suggested(expected[i][0]);
        assert_string_equal(name ? name : "none", expected[i][1] ? expected[i][1] : "none");
        free(name);
    }
}

static void each_key_of_other_programs_is_unknown_and_its_counterpart_is_not(void **state)
{
    const struct dt_setting *end = dt_settings_schema;
    (void)state;
    while (end->name)
        end++;
    assert_non_null(end->elsewhere);
    for (const char *const *other = end->elsewhere; *other; other += 2) {
        assert_null(dt_config_assigned(dt_settings_schema, other[0]));
        assert_non_null(dt_config_assigned(dt_settings_schema, other[1]));
        char *name = suggested(other[0]);
        assert_string_equal(name, other[1]);
        free(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_conflict_has_an_error),
        cmocka_unit_test(keys_of_other_programs_are_named_with_their_counterpart_or_none),
        cmocka_unit_test(each_key_of_other_programs_is_unknown_and_its_counterpart_is_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
