/* SPDX-License-Identifier: MIT */
/* The settings of a checkpoint against those of a run that continues it or branches from it. */
#include "changed.h"

#include <sys/stat.h>

#include "checkpoint/checkpoint-settings.h"

static struct dt_error err;

static void assign(struct dt_settings *s, const char *assignment)
{
    if (*assignment && dt_config_override(dt_settings_schema, s, assignment, "--set", &err) < 0)
        fail_msg("%s", err.text);
}

/* The settings of a small model with two changes, of which one or both may be "". */
static struct dt_settings with(const char *one, const char *two)
{
    struct dt_settings s;
    dt_config_defaults(dt_settings_schema, &s);
    assign(&s, "model.vocab_size=100");
    assign(&s, one);
    assign(&s, two);
    if (dt_model_config_check(&s.model, "model", &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

static void save(const struct dt_settings *s)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    mkdir("trainer", 0700);
    dt_config_print(dt_settings_schema, s, &text);
    write_bytes(DT_CHECKPOINT_SETTINGS, text.data, text.size);
    dt_buffer_release(&text);
}

typedef int check(const char *directory, const struct dt_settings *now, struct dt_error *err);

/* Saves with `saved`, checks with `now`; named: the setting that is refused, or NULL. */
static void expect(check *function, const char *both, const char *saved, const char *now,
                   const char *named)
{
    const struct dt_settings before = with(both, saved), after = with(both, now);
    save(&before);
    int rc = function(".", &after, &err);
    if (rc != (named ? DT_EINVALID : 0) || (named && strstr(err.text, named) == NULL))
        fail_msg("'%s', then '%s': %d %s", saved, now, rc, rc < 0 ? err.text : "");
}

static void a_resume_changes_only_free_settings(void **state)
{
    check *resume = dt_checkpoint_check_resume;
    (void)state;
    expect(resume, "", "", "", NULL);
    expect(resume, "", "training.log_interval=5", "training.log_interval=6", NULL);
    expect(resume, "", "training.seed=1", "training.seed=2",
           "./trainer/config.yaml: the run was started with training.seed: 1, which cannot change "
           "to 2 on a resume");
    expect(resume, "", "model.num_layers=2", "model.num_layers=3", "model.num_layers: 2");
    expect(resume, "", "distributed.pp=1", "distributed.pp=2", NULL);
    expect(resume, "distributed.compress=powersgd", "distributed.pp=1", "distributed.pp=2",
           "distributed.pp: 1");
    expect(resume, "", "distributed.sequence_parts=1", "distributed.sequence_parts=2", NULL);
    expect(resume, "distributed.invariant=true", "distributed.sequence_parts=1",
           "distributed.sequence_parts=2", "distributed.sequence_parts: 1");
    expect(resume, "", "branch.step=7", "",
           ".: belongs to a run that branched from another at step 7: give the same --branch-from");
    expect(resume, "branch.step=7", "", "", NULL);
}

static void a_branch_keeps_what_tensors_mean(void **state)
{
    check *branch = dt_checkpoint_check_branch;
    (void)state;
    expect(branch, "", "training.seed=1", "training.seed=2", NULL);
    expect(branch, "", "training.optimizer=adamw", "training.optimizer=muon", "in a branch");
    expect(branch, "", "model.num_layers=2", "model.num_layers=3", "model.num_layers: 2");
    expect(branch, "model.name=llama", "model.rope_theta=10000", "model.rope_theta=50000", NULL);
    expect(branch, "model.name=llama", "model.max_seq_len=64", "model.max_seq_len=128", NULL);
    expect(branch, "model.name=gpt2", "model.max_seq_len=64", "model.max_seq_len=128",
           "model.max_seq_len: 64");
    expect(branch, "", "training.ema_decay=0.9", "training.ema_decay=0.99", NULL);
    expect(branch, "", "training.ema_decay=0", "training.ema_decay=0.99", "training.ema_decay: 0");
    expect(branch, "lora.rank=4", "lora.dropout=0", "lora.dropout=0.1", NULL);
    expect(branch, "", "lora.rank=4", "lora.rank=8", "lora.rank: 4");
}

/* The error begins with the path of the file. */
/* What the user can do about it. */
static void a_refusal_has_a_hint(void **state)
{
    check *resume = dt_checkpoint_check_resume, *branch = dt_checkpoint_check_branch;
    (void)state;
    expect(resume, "", "model.vocab_size=100", "model.vocab_size=200",
           "model.vocab_size: 100, which cannot change to 200 on a resume: unless it is set, it is "
           "that of the data's tokenizer");
    expect(branch, "", "model.vocab_size=100", "model.vocab_size=200",
           "model.vocab_size: 100, which cannot change to 200 in a branch: unless it is set, it");
    expect(resume, "", "", "branch.step=7",
           "branch.step: 0, which cannot change to 7 on a resume: a branch begins in a directory "
           "without a run, so name another one");
    expect(resume, "", "training.seed=1", "training.seed=2",
           "on a resume; a branch can change it (--branch-from)");
    expect(resume, "", "model.num_layers=2", "model.num_layers=3", "to 3 on a resume");
    assert_null(strstr(err.text, "--branch-from"));
    expect(branch, "distributed.compress=powersgd", "distributed.pp=1", "distributed.pp=2",
           "distributed.pp: 1, which cannot change to 2 in a branch");
    expect(branch, "distributed.compress=powersgd", "training.seed=1", "training.seed=2", NULL);
    expect(branch, "", "distributed.pp=1", "distributed.pp=2", NULL);
}

static void malformed_settings_are_refused(void **state)
{
    const struct dt_settings now = with("", "");
    struct dt_settings saved;
    check *const both[] = {dt_checkpoint_check_resume, dt_checkpoint_check_branch};
    (void)state;
    write_bytes(DT_CHECKPOINT_SETTINGS, "model: 5\n", 9);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(both[i](".", &now, &err), DT_EFORMAT);
        assert_string_equal(err.text,
                            "./trainer/config.yaml:1:8: a section holds 'key: value' lines");
    }
    static const char odd[] = "model:\n  hidden_size: 30\n  num_heads: 4\n";
    write_bytes(DT_CHECKPOINT_SETTINGS, odd, strlen(odd));
    assert_true(dt_checkpoint_read_settings(".", &saved, &err) < 0);
    assert_string_equal(
        err.text, "./trainer/config.yaml: model.vocab_size must be from 1 to 16777216, not 0");
    remove(DT_CHECKPOINT_SETTINGS);
    assert_true(dt_checkpoint_read_settings(".", &saved, &err) < 0);
}

static void changes_are_listed_without_names_of_places(void **state)
{
    const struct dt_settings then = with("training.seed=1", "checkpoint.keep_last=2"),
                             now = with("training.seed=2", "checkpoint.keep_last=3");
    (void)state;
    struct json_object *changes = dt_checkpoint_changes(&then, &now);
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_json_add_value(&text, changes, DT_JSON_COMPACT);
    dt_buffer_add_string(&text, "");
    assert_string_equal(text.data, "{\"training.seed\":[\"1\",\"2\"]}");
    dt_buffer_release(&text);
    json_object_put(changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resume_changes_only_free_settings),
        cmocka_unit_test(a_branch_keeps_what_tensors_mean),
        cmocka_unit_test(a_refusal_has_a_hint),
        cmocka_unit_test(malformed_settings_are_refused),
        cmocka_unit_test(changes_are_listed_without_names_of_places),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
