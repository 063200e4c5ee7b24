/* SPDX-License-Identifier: MIT */
/* Task files of share/tasks against lm-evaluation-harness: tests/tasks/golden/harness.jsonl was
 * made by tests/oracles/tasks_golden.py. */
#include "test.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "scratch.h"
#include "tasks/filter.h"
#include "tasks/items.h"
#include "tasks/metric.h"
#include "tasks/python-random.h"

static char source[PATH_MAX];

static struct json_object *member(struct json_object *of, const char *name)
{
    return json_object_object_get(of, name);
}

static const char *text_of(struct json_object *of, const char *name)
{
    return dt_json_text(member(of, name));
}

/* Calls check for each line of a kind; returns their number. */
static int for_each(const char *kind, void (*check)(struct json_object *line))
{
    char *path = dt_asprintf("%s/tests/tasks/golden/harness.jsonl", source), *text;
    size_t size;
    int count = 0;
    struct dt_error err;
    assert_int_equal(dt_file_read(path, (size_t)1 << 24, &text, &size, &err), 0);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        struct json_object *value;
        assert_int_equal(dt_json_parse(line, strlen(line), path, &value, &err), 0);
        if (strcmp(text_of(value, "kind"), kind) == 0) {
            check(value);
            count++;
        }
        json_object_put(value);
    }
    free(text);
    free(path);
    return count;
}

/* --- prompts ----------------------------------------------------------------------------------*/

static void write_splits(struct json_object *splits)
{
    json_object_object_foreach(splits, name, rows)
    {
        struct dt_buffer b = DT_BUFFER_EMPTY;
        char *path = dt_asprintf("%s/%s.jsonl", scratch, name);
        for (size_t i = 0; i < json_object_array_length(rows); i++) {
            dt_json_add_value(&b, json_object_array_get_idx(rows, i), DT_JSON_COMPACT);
            dt_buffer_add_char(&b, '\n');
        }
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(b.data, 1, b.size, f), b.size);
        assert_int_equal(fclose(f), 0);
        dt_buffer_release(&b);
        free(path);
    }
}

static void check_requests(const char *task, const struct dt_task_item *item,
                           struct json_object *requests)
{
    bool generates = item->count == 0;
    assert_int_equal(json_object_array_length(requests), generates ? 1 : item->count);
    for (int k = 0; k < (generates ? 1 : item->count); k++) {
        struct json_object *request = json_object_array_get_idx(requests, (size_t)k);
        const char *first = dt_json_text(json_object_array_get_idx(request, 0));
        bool rolling = !generates && json_object_array_length(request) == 1;
        const char *context = item->contexts[item->has_contexts ? k : 0];
        if (strcmp(rolling ? item->answers[k] : context, first) != 0)
            fail_msg("%s: %s\nand not\n%s", task, rolling ? item->answers[k] : context, first);
        if (!rolling && !generates)
            assert_string_equal(item->answers[k],
                                dt_json_text(json_object_array_get_idx(request, 1)));
    }
}

static void check_gold(const struct dt_task_item *item, struct json_object *gold)
{
    if (item->right_count > 0 && json_object_is_type(gold, json_type_array)) {
        assert_int_equal(item->right_count, json_object_array_length(gold));
        for (int i = 0; i < item->right_count; i++)
            assert_string_equal(item->right[i],
                                dt_json_text(json_object_array_get_idx(gold, (size_t)i)));
    } else if (item->right_count > 0) {
        assert_string_equal(item->right[0], dt_json_text(gold));
    } else if (json_object_is_type(gold, json_type_int)) {
        assert_int_equal(item->gold[0], json_object_get_int(gold));
    } else if (item->choices) {
        assert_string_equal(item->choices[item->gold[0]], dt_json_text(gold));
    }
}

/* The items of a line are by group; those of a task in the order of documents. */
static void check_items(const struct dt_task_items *all, struct json_object *items)
{
    size_t count = json_object_array_length(items), found = 0;
    assert_int_equal(all->count, count);
    for (size_t g = 0; g < all->group_count; g++)
        for (size_t i = 0, nth = 0; i < all->count; i++) {
            if (all->items[i].group != g)
                continue;
            for (size_t k = 0, same = 0; k < count; k++) {
                struct json_object *item = json_object_array_get_idx(items, k);
                if (strcmp(text_of(item, "group"), all->groups[g]) != 0 || same++ != nth)
                    continue;
                check_requests(all->task->name, &all->items[i], member(item, "requests"));
                check_gold(&all->items[i], member(item, "gold"));
                found++;
            }
            nth++;
        }
    assert_int_equal(found, count);
}

static void check_prompts(struct json_object *line)
{
    char *path = dt_asprintf("%s/share/tasks/%s.yaml", source, text_of(line, "task"));
    const char *const named[] = {scratch};
    const struct dt_task_sources from = {named, 1, NULL};
    const struct dt_task_ask how = {&from, json_object_get_int(member(line, "shots")), 0,
                                    DT_TASK_FEWSHOT_SEED};
    struct dt_task *task;
    struct dt_task_items items;
    struct dt_error err = {.text = ""};
    write_splits(member(line, "splits"));
    if (dt_task_read(&task, path, &err) < 0 || dt_task_items_make(&items, task, &how, &err) < 0)
        fail_msg("%s: %s", path, err.text);
    check_items(&items, member(line, "items"));
    dt_task_items_release(&items);
    dt_task_free(task);
    free(path);
}

static void prompts_of_20_tasks_are_those_of_the_harness(void **state)
{
    (void)state;
    assert_int_equal(for_each("prompts", check_prompts), 20);
}

/* --- numbers ----------------------------------------------------------------------------------*/

static void check_numbers(struct json_object *numbers, const size_t *chosen, size_t count)
{
    assert_int_equal(json_object_array_length(numbers), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(json_object_get_int(json_object_array_get_idx(numbers, i)), chosen[i]);
}

static void check_random(struct json_object *line)
{
    size_t n = (size_t)json_object_get_int(member(line, "n")), chosen[2000];
    size_t k = (size_t)json_object_get_int(member(line, "k"));
    struct dt_python_random r;
    dt_python_random_seed(&r, (uint64_t)json_object_get_int64(member(line, "seed")));
    for (size_t i = 0; i < 3; i++) {
        dt_python_random_sample(&r, n, k, chosen);
        check_numbers(json_object_array_get_idx(member(line, "samples"), i), chosen, k);
    }
    dt_python_random_choices(&r, n, chosen);
    check_numbers(member(line, "choices"), chosen, n);
    assert_true(dt_python_random_real(&r) == json_object_get_double(member(line, "real")));
}

static void random_numbers_are_those_of_python(void **state)
{
    (void)state;
    assert_int_equal(for_each("random", check_random), 5);
}

static enum dt_task_aggregation aggregation_of(const char *name)
{
    static const char *const names[] = {"mean", "perplexity", "weighted_perplexity",
                                        "bits_per_byte", "f1"};
    for (int i = 0; i < 5; i++)
        if (strcmp(names[i], name) == 0)
            return (enum dt_task_aggregation)i;
    fail_msg("%s", name);
    return DT_TASK_AGGREGATION_MEAN;
}

static void check_metric(struct json_object *line)
{
    struct dt_task_score scores[100];
    struct json_object *list = member(line, "scores");
    size_t n = json_object_array_length(list);
    for (size_t i = 0; i < n; i++) {
        struct json_object *pair = json_object_array_get_idx(list, i);
        scores[i].value = json_object_get_double(json_object_array_get_idx(pair, 0));
        scores[i].other = json_object_get_double(json_object_array_get_idx(pair, 1));
    }
    struct dt_task_estimate e =
        dt_task_estimate(scores, n, aggregation_of(text_of(line, "aggregation")), 2,
                         json_object_get_int(member(line, "resamples")));
    double value = json_object_get_double(member(line, "value"));
    double error = json_object_get_double(member(line, "error"));
    assert_true(fabs(e.value - value) <= 1e-9 * fabs(value));
    assert_true(e.low <= e.value && e.value <= e.high);
    if (member(line, "error") && fabs(e.error - error) > 1e-9 * error)
        fail_msg("%s: %g and not %g", text_of(line, "aggregation"), e.error, error);
}

static void metrics_and_their_errors_are_those_of_the_harness(void **state)
{
    (void)state;
    assert_int_equal(for_each("metric", check_metric), 5);
}

/* The mean of all documents has no error from a single one. */
static void one_document_has_no_error(void **state)
{
    (void)state;
    const struct dt_task_score score = {1, 1};
    struct dt_task_estimate e = dt_task_estimate(&score, 1, DT_TASK_AGGREGATION_MEAN, 2, 10);
    assert_true(e.value == 1 && isnan(e.error) && isnan(e.low) && isnan(e.high));
}

/* Groups of 3 and 5 documents; by pooled_sample_stderr() of the harness. */
static void errors_of_groups_are_pooled(void **state)
{
    (void)state;
    const double errors[] = {0.2, 0.1};
    const size_t counts[] = {3, 5};
    double expected = sqrt((2 * 0.04 * 3 + 4 * 0.01 * 5) / 6 / 8);
    assert_true(fabs(dt_task_pooled_error(errors, counts, 2) - expected) < 1e-12);
}

/* --- filters ----------------------------------------------------------------------------------*/

static void check_filter(struct json_object *line)
{
    char *path = dt_asprintf("%s/share/tasks/%s.yaml", source, text_of(line, "task"));
    struct dt_task *task;
    struct dt_error err;
    struct dt_buffer out = DT_BUFFER_EMPTY;
    const char *text = text_of(line, "text");
    bool right = false;
    size_t f = 0;
    assert_int_equal(dt_task_read(&task, path, &err), 0);
    while (strcmp(task->filters[f].name, text_of(line, "filter")) != 0)
        f++;
    dt_task_filter_apply(&task->filters[f], text, strlen(text), &out);
    struct json_object *rights = member(line, "right");
    for (size_t i = 0; i < json_object_array_length(rights); i++)
        right |= dt_task_matches(&task->metrics[0], out.size ? out.data : "", out.size,
                                 dt_json_text(json_object_array_get_idx(rights, i)));
    dt_buffer_add_char(&out, 0);
    assert_string_equal(out.data, text_of(line, "answer"));
    if (right != json_object_get_boolean(member(line, "matches")))
        fail_msg("%s: %d", text, right);
    dt_buffer_release(&out);
    dt_task_free(task);
    free(path);
}

static void filters_and_matches_are_those_of_the_harness(void **state)
{
    (void)state;
    assert_int_equal(for_each("filter", check_filter), 16);
}

/* As str.lower() of Python. */
static void small_letters_may_be_several_or_depend_on_their_place(void **state)
{
    static const char *const texts[][2] = {
        {"\xce\x9f\xce\x94\xce\x9f\xce\xa3", "\xce\xbf\xce\xb4\xce\xbf\xcf\x82"}, /* at the end */
        {"\xce\xa3\xce\x9f\xce\xa3.", "\xcf\x83\xce\xbf\xcf\x82."},
        {"\xce\x9f\xce\xa3'\xce\x9f", "\xce\xbf\xcf\x83'\xce\xbf"},
        {"\xce\xa3 \xce\xa3", "\xcf\x83 \xcf\x83"},
        {"1\xce\xa3", "1\xcf\x83"},
        {"\xce\x9f\xcc\x81\xce\xa3\xcc\x81", "\xce\xbf\xcc\x81\xcf\x82\xcc\x81"},
        {"\xc4\xb0z", "i\xcc\x87z"},
    };
    struct dt_task_step step = {.kind = DT_TASK_STEP_LOWERCASE};
    const struct dt_task_filter filter = {.steps = &step, .count = 1};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct dt_buffer out = DT_BUFFER_EMPTY;
        dt_task_filter_apply(&filter, texts[i][0], strlen(texts[i][0]), &out);
        dt_buffer_add_char(&out, '\0');
        assert_string_equal(out.data, texts[i][1]);
        dt_buffer_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(prompts_of_20_tasks_are_those_of_the_harness, make_scratch,
                                        remove_scratch),
        cmocka_unit_test(random_numbers_are_those_of_python),
        cmocka_unit_test(metrics_and_their_errors_are_those_of_the_harness),
        cmocka_unit_test(one_document_has_no_error),
        cmocka_unit_test(small_letters_may_be_several_or_depend_on_their_place),
        cmocka_unit_test(errors_of_groups_are_pooled),
        cmocka_unit_test(filters_and_matches_are_those_of_the_harness),
    };
    if (getcwd(source, sizeof source) == NULL)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
