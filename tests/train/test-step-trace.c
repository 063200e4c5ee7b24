/* SPDX-License-Identifier: MIT */
/* Hashes of steps in metrics.jsonl and hashes.jsonl: every layout writes the same. */
#include "test.h"

#include "io/json-lines.h"
#include "train/rank-run.h"
#include "train/step-trace.h"

static struct dt_settings traced_settings(void)
{
    struct dt_settings s = small_llama();
    s.model.hidden_size = 32;
    s.training.batch_size = 1;
    s.training.gradient_accumulation_steps = 4;
    s.training.max_steps = 4;
    s.training.warmup_steps = 1;
    s.training.save_interval.count = 2;
    s.training.eval_interval.count = 2;
    s.training.ema_decay = 0.9;
    s.distributed.invariant = true;
    strcpy(s.training.trace_steps, "1:3");
    return s;
}

/* The members of hashes, a line for each line of the file that has them. */
struct hashes {
    struct dt_buffer text;
    const char *const *members;
};

static int take_line(void *context, struct json_object *line, const char *subject,
                     struct dt_error *error)
{
    struct hashes *h = context;
    struct json_object *member;
    (void)subject;
    (void)error;
    for (const char *const *m = h->members; *m; m++)
        if (json_object_object_get_ex(line, *m, &member))
            dt_buffer_printf(&h->text, "%s ", dt_json_text(member));
    dt_buffer_printf(&h->text, "\n");
    return 0;
}

/* Owned by the caller. */
static char *read_hashes(const char *file, const char *const *members)
{
    struct hashes h = {DT_BUFFER_EMPTY, members};
    char *path = dt_asprintf("%s/new/%s", scratch, file);
    if (dt_json_lines_read(path, take_line, &h, &err) < 0)
        fail_msg("%s", err.text);
    free(path);
    return h.text.data;
}

static const char *const of_metrics[] = {"step", "batch_hash", "parameter_hash", NULL};
static const char *const of_batches[] = {"step", "batch_hash", NULL};
static const char *const of_traces[] = {"step", "operation", "tensor", "hash", NULL};

struct layout {
    int ranks;
    long pp, tp, cp, zero_stage;
    bool sequence, invariant;
};

static void set_layout(struct dt_settings *s, const struct layout *l)
{
    s->distributed.pp = l->pp;
    s->distributed.tp = l->tp;
    s->distributed.cp = l->cp;
    s->distributed.zero_stage = l->zero_stage;
    s->distributed.sequence_parallel = l->sequence;
    s->distributed.invariant = l->invariant;
}

static void layouts_of_equal_bits_write_equal_hashes(void **state)
{
    static const struct layout layouts[] = {
        {2, 1, 1, 1, 0, false, true}, {3, 1, 1, 1, 3, false, true}, {4, 1, 1, 1, 2, false, true},
        {2, 2, 1, 1, 0, false, true}, {4, 2, 1, 1, 1, false, true},
    };
    (void)state;
    struct dt_settings s = traced_settings();
    run_new(1, &s);
    char *metrics = read_hashes("metrics.jsonl", of_metrics);
    char *traces = read_hashes("hashes.jsonl", of_traces);
    assert_non_null(strstr(traces, "3 forward layer.1.middle "));
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        set_layout(&s, &layouts[i]);
        run_new(layouts[i].ranks, &s);
        char *same = read_hashes("metrics.jsonl", of_metrics);
        char *traced = read_hashes("hashes.jsonl", of_traces);
        assert_string_equal(same, metrics);
        assert_string_equal(traced, traces);
        free(same);
        free(traced);
    }
    free(metrics);
    free(traces);
}

/* The end of the first line that begins with this. */
static const char *line_of(const char *text, const char *begins)
{
    static char line[128];
    const char *at = strstr(text, begins);
    assert_non_null(at);
    at += strlen(begins);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

/* Shards of tensors and of sequences have their elements' indices in the whole: the batches, the
 * embeddings of the first step, and initial parameters, which are element-wise, agree. */
static void shards_are_hashed_as_parts_of_the_whole(void **state)
{
    static const struct layout layouts[] = {
        {2, 1, 2, 1, 0, false, false}, {2, 1, 2, 1, 1, true, false}, {4, 2, 2, 1, 0, true, false},
        {2, 1, 1, 2, 0, false, false}, {4, 1, 2, 2, 3, true, false},
    };
    static const char input[] = "1 forward layer.0.input ",
                      norm[] = "1 parameter model.norm.weight ";
    (void)state;
    struct dt_settings s = traced_settings();
    s.training.learning_rate = 0; /* so that parameters stay the initial ones */
    s.training.weight_decay = 0;
    run_new(1, &s);
    char *batches = read_hashes("metrics.jsonl", of_metrics);
    char *traces = read_hashes("hashes.jsonl", of_traces);
    char *embeddings = dt_strdup(line_of(traces, input));
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        set_layout(&s, &layouts[i]);
        run_new(layouts[i].ranks, &s);
        char *same = read_hashes("metrics.jsonl", of_metrics);
        char *traced = read_hashes("hashes.jsonl", of_traces);
        assert_string_equal(same, batches);
        assert_string_equal(line_of(traced, input), embeddings);
        assert_string_equal(line_of(traced, norm), line_of(traces, norm));
        free(same);
        free(traced);
    }
    free(batches);
    free(embeddings);
    free(traces);
}

static void another_seed_or_rate_changes_what_it_should(void **state)
{
    (void)state;
    struct dt_settings s = traced_settings();
    run_new(1, &s);
    char *batches = read_hashes("metrics.jsonl", of_batches);
    char *all = read_hashes("metrics.jsonl", of_metrics);
    s.training.learning_rate *= 1 + 1e-6;
    run_new(1, &s);
    char *faster = read_hashes("metrics.jsonl", of_batches);
    char *learned = read_hashes("metrics.jsonl", of_metrics);
    s.training.seed++;
    run_new(1, &s);
    char *shuffled = read_hashes("metrics.jsonl", of_batches);
    assert_string_equal(faster, batches);
    assert_string_not_equal(learned, all);
    assert_string_not_equal(shuffled, batches);
    free(batches);
    free(all);
    free(faster);
    free(learned);
    free(shuffled);
}

/* A run that dies and resumes writes the traces of the steps that it repeats once. */
static void a_resumed_run_writes_the_same_hashes(void **state)
{
    (void)state;
    struct dt_settings s = traced_settings();
    run_new(1, &s);
    char *metrics = read_hashes("metrics.jsonl", of_metrics);
    char *traces = read_hashes("hashes.jsonl", of_traces);
    char *run = dt_path_join(scratch, "new");
    assert_int_equal(dt_file_remove_tree(run, &err), 0);
    run_job(1, &s, "new", 3);
    run_job(2, &s, "new", 1000);
    char *same = read_hashes("metrics.jsonl", of_metrics);
    char *traced = read_hashes("hashes.jsonl", of_traces);
    assert_string_equal(same, metrics);
    assert_string_equal(traced, traces);
    free(run);
    free(metrics);
    free(traces);
    free(same);
    free(traced);
}

static void a_range_is_a_step_or_two(void **state)
{
    static const char *const wrong[] = {"0", "x", "5:4", "0:2", "3:", ":3", "3:4:5", "-1", "2 "};
    long first, last;
    (void)state;
    assert_int_equal(dt_step_trace_read_range("", "x", &first, &last, &err), 0);
    assert_int_equal(last, 0);
    assert_int_equal(dt_step_trace_read_range("7", "x", &first, &last, &err), 0);
    assert_true(first == 7 && last == 7);
    assert_int_equal(dt_step_trace_read_range("7:9", "x", &first, &last, &err), 0);
    assert_true(first == 7 && last == 9);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(dt_step_trace_read_range(wrong[i], "x", &first, &last, &err), DT_EINVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_of_equal_bits_write_equal_hashes),
        cmocka_unit_test(shards_are_hashed_as_parts_of_the_whole),
        cmocka_unit_test(another_seed_or_rate_changes_what_it_should),
        cmocka_unit_test(a_resumed_run_writes_the_same_hashes),
        cmocka_unit_test(a_range_is_a_step_or_two),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
