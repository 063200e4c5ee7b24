/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <string.h>

#include "base/buffer.h"
#include "report/report-internal.h"

static void write_text(const char *path, const char *text)
{
    struct dt_error err;
    assert_int_equal(dt_file_make_parent(path, &err), 0);
    assert_int_equal(dt_file_write(path, text, strlen(text), &err), 0);
}

/* A run with a checkpoint of these settings, and losses that end at the last one. */
static void make_run(const char *name, const char *settings, double loss)
{
    char *path = dt_asprintf("%s/metrics.jsonl", name),
         *config = dt_asprintf("%s/latest/trainer/config.yaml", name),
         *lines = dt_asprintf("{\"step\":1,\"loss\":9}\n{\"step\":2,\"loss\":%g}\n"
                              "{\"step\":2,\"val_loss\":%g}\n",
                              loss, loss);
    write_text(path, lines);
    write_text(config, settings);
    free(path);
    free(config);
    free(lines);
}

static struct dt_reported read_runs(char *const *paths, int count)
{
    struct dt_reported r;
    struct dt_error err;
    if (dt_reported_read(&r, paths, count, &err) < 0)
        fail_msg("%s", err.text);
    return r;
}

static void seeds_and_names_do_not_make_a_configuration(void **state)
{
    (void)state;
    char *const paths[] = {"a", "b", "c", "d"};
    make_run("a", "training:\n  seed: 1\n  max_steps: 2\n  batch_size: 8\n", 3);
    make_run("b", "training:\n  seed: 1\n  max_steps: 2\n  batch_size: 16\n", 2);
    make_run("c",
             "training:\n  seed: 2\n  max_steps: 2\n  batch_size: 8\ntracking:\n  run_name: 'x'\n",
             3);
    make_run("d", "training:\n  seed: 2\n  max_steps: 2\n  batch_size: 16\n", 2);
    struct dt_reported r = read_runs(paths, 4);
    assert_int_equal(r.configuration_count, 2);
    assert_int_equal(r.configurations[0].count, 2);
    assert_int_equal(r.configurations[0].runs[1], 2);
    assert_string_equal(r.configurations[0].label, "A: batch_size=8");
    assert_string_equal(r.configurations[1].label, "B: batch_size=16");
    assert_int_equal(json_object_array_length(r.different), 1);
    assert_string_equal(dt_json_text(json_object_array_get_idx(r.different, 0)),
                        "training.batch_size");
    assert_string_equal(dt_reported_fact(&r.runs[3], "training.seed"), "2");
    assert_string_equal(dt_reported_fact(&r.runs[3], "none"), "");
    dt_reported_release(&r);
}

static void places_do_not_make_a_configuration(void **state)
{
    (void)state;
    make_run("a",
             "training:\n  seed: 1\noptimizer:\n  offload_dir: /fast/1\n"
             "distributed:\n  rendezvous: meet-1\n  interface: eth0\n",
             3);
    make_run("b",
             "training:\n  seed: 2\noptimizer:\n  offload_dir: /fast/2\n"
             "distributed:\n  rendezvous: meet-2\n  interface: eth1\n",
             3);
    struct dt_reported r = read_runs((char *[]){"a", "b"}, 2);
    assert_int_equal(r.configuration_count, 1);
    dt_reported_release(&r);
}

static void a_setting_that_one_lacks_is_a_difference(void **state)
{
    (void)state;
    char *const paths[] = {"a", "b"};
    make_run("a", "training:\n  seed: 1\n", 3);
    make_run("b", "training:\n  seed: 1\n  beta1: 0.9\n", 3);
    struct dt_reported r = read_runs(paths, 2);
    assert_int_equal(r.configuration_count, 2);
    assert_int_equal(json_object_array_length(r.different), 1);
    dt_reported_release(&r);
}

static void runs_with_unknown_settings_are_not_repetitions(void **state)
{
    (void)state;
    char *const paths[] = {"a/metrics.jsonl", "b/metrics.jsonl"};
    make_run("a", "training:\n  seed: 1\n", 3);
    make_run("b", "training:\n  seed: 1\n", 3);
    struct dt_reported r = read_runs(paths, 2);
    assert_int_equal(r.configuration_count, 2);
    assert_null(r.runs[0].facts);
    assert_string_equal(r.configurations[1].label, "B: b");
    dt_reported_release(&r);
}

static void one_run_twice_is_refused(void **state)
{
    (void)state;
    struct dt_reported r;
    struct dt_error err;
    make_run("a", "training:\n  seed: 1\n", 3);
    make_run("b", "training:\n  seed: 1\n", 3);
    assert_int_equal(dt_reported_read(&r, (char *[]){"a", "b"}, 2, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "'a' and 'b' have the same settings and the same seed"));
}

static void what_is_no_run_is_refused(void **state)
{
    (void)state;
    struct dt_reported r;
    struct dt_error err;
    write_text("text/notes", "x");
    write_text("empty/metrics.jsonl", "");
    write_text("nan/metrics.jsonl", "{\"step\":1,\"loss\":null}\n");
    make_run("good", "training:\n  seed: 1\n", 3);
    assert_int_equal(dt_reported_read(&r, (char *[]){"good", "text"}, 2, &err), DT_EMISSING);
    assert_int_equal(dt_reported_read(&r, (char *[]){"empty"}, 1, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "holds no loss"));
    assert_int_equal(dt_reported_read(&r, (char *[]){"nan"}, 1, &err), DT_EFORMAT);
    assert_int_equal(dt_reported_read(&r, (char *[]){"absent"}, 1, &err), DT_EIO);
}

/* Runs of spaces count as one. */
static void assert_there(const struct dt_page *page, const char *text)
{
    struct dt_buffer squeezed = DT_BUFFER_EMPTY;
    for (const char *c = page->text.data; *c; c++)
        if (*c != ' ' || c[1] != ' ')
            dt_buffer_add_char(&squeezed, *c);
    if (strstr(squeezed.data, text) == NULL)
        fail_msg("no '%s' in: %s", text, strstr(squeezed.data, "\n|"));
    dt_buffer_release(&squeezed);
}

/* A report of values of count pairs; the second configuration is lower by these differences. */
static struct dt_page compare(const double *differences, int count)
{
    char *paths[32];
    struct dt_page page = {.format = DT_PAGE_MARKDOWN};
    for (int i = 0; i < 2 * count; i++) {
        char *settings = dt_asprintf("training:\n  seed: %d\n  batch_size: %d\n", i % count + 1,
                                     i < count ? 8 : 16);
        paths[i] = dt_asprintf("r%d", i);
        make_run(paths[i], settings, 4 + i % count - (i < count ? 0 : differences[i % count]));
        free(settings);
    }
    struct dt_reported r = read_runs(paths, 2 * count);
    dt_report_values(&page, &r);
    dt_reported_release(&r);
    for (int i = 0; i < 2 * count; i++)
        free(paths[i]);
    return page;
}

static void pairs_of_seeds_decide(void **state)
{
    (void)state;
    struct dt_page page = compare((double[]){0.1, 0.2, 0.3, 0.15, 0.25, 0.12, 0.18, 0.22}, 8);
    /* p = 2 / 2^8. The interval is scipy's. */
    assert_there(&page, "| A: batch_size=8 | 8 | 7.5 \302\261 2 |");
    assert_there(&page, "| B: batch_size=16 | last validation loss | 8 | -0.19 \302\261 "
                        "0.056 | 0.0078 | lower |");
    assert_there(&page, "| 0.0078 | the same numbers as the last validation loss |");
    dt_page_release(&page);
}

/* Nothing of the same numbers, and no correction, makes six pairs of one sign too few. */
static void six_pairs_of_one_sign_decide(void **state)
{
    (void)state;
    struct dt_page page = compare((double[]){0.1, 0.2, 0.3, 0.15, 0.25, 0.12}, 6);
    assert_there(&page, "| last validation loss | 6 | -0.1867 \302\261 0.082 | 0.031 | lower |");
    dt_page_release(&page);
}

/* A report of six pairs whose best and last losses, and losses of training, differ; validations of
 * the second configuration may end with a loss that is not finite. */
static struct dt_page compare_losses(bool diverge)
{
    char *paths[12];
    struct dt_page page = {.format = DT_PAGE_MARKDOWN};
    for (int i = 0; i < 12; i++) {
        double loss = 4 + i % 6 - (i < 6 ? 0 : 0.1 + 0.01 * (i % 6));
        char *settings = dt_asprintf("training:\n  seed: %d\n  batch_size: %d\n", i % 6 + 1,
                                     i < 6 ? 8 : 16),
             *path = dt_asprintf("r%d/metrics.jsonl", i),
             *lines = dt_asprintf("{\"step\":1,\"val_loss\":%g}\n{\"step\":2,\"val_loss\":%g}\n"
                                  "{\"step\":2,\"loss\":%g}\n"
                                  "{\"step\":2,\"loss\":%g,\"tokens_per_second\":%g}\n%s",
                                  0.9 * loss, loss, loss, 0.8 * loss, 100 + loss,
                                  diverge && i >= 6 ? "{\"step\":3,\"val_loss\":null}\n" : "");
        paths[i] = dt_asprintf("r%d", i);
        make_run(paths[i], settings, 1);
        write_text(path, lines);
        free(settings);
        free(path);
        free(lines);
    }
    struct dt_reported r = read_runs(paths, 12);
    dt_report_values(&page, &r);
    dt_reported_release(&r);
    for (int i = 0; i < 12; i++)
        free(paths[i]);
    return page;
}

/* 7 are the fewest of two. */
static void other_losses_are_corrected(void **state)
{
    (void)state;
    struct dt_page page = compare_losses(false);
    assert_there(&page, "| last validation loss | 6 | -0.125 \302\261 0.02 | 0.031 | lower |");
    assert_there(&page, "| best validation loss | 6 | -0.1125 \302\261 0.018 | 0.062 | ~ not "
                        "decided; about 7 pairs would be needed |");
    assert_there(&page, "| last training loss | 6 | -0.1 \302\261 0.016 | 0.062 | ~ not decided; "
                        "about 7 pairs would be needed |");
    assert_there(&page, "| tokens per second | 6 | -0.125 \302\261 0.02 | 0.031 | lower |");
    dt_page_release(&page);
}

static void the_best_loss_is_not_the_main_comparison_without_a_last_one(void **state)
{
    (void)state;
    struct dt_page page = compare_losses(true);
    assert_there(&page, "| best validation loss | 6 | -0.1125 \302\261 0.018 | 0.062 | ~ not ");
    assert_there(&page, "| last training loss | 6 | -0.1 \302\261 0.016 | 0.062 | ~ not decided; ");
    dt_page_release(&page);
}

/* The signed rank test says that these are lower, and the mean of one outlier that they are higher.
 */
static void the_verdict_is_that_of_the_test(void **state)
{
    double differences[16];
    (void)state;
    for (int i = 0; i < 16; i++)
        differences[i] = i == 7 ? -5 : 0.1 + 0.01 * i;
    struct dt_page page = compare(differences, 16);
    assert_there(&page, "| lower, but not the mean: few pairs differ much |");
    dt_page_release(&page);
}

static void what_is_not_decided_says_how_many_pairs_would_do(void **state)
{
    (void)state;
    struct dt_page page = compare((double[]){0.5, -0.25, 0.25}, 3);
    assert_there(&page, "~ not decided; about 46 pairs would be needed");
    dt_page_release(&page);
    page = compare((double[]){0.5, -0.5}, 2);
    assert_there(&page, "~ not decided; no number of pairs would do: the mean difference is 0");
    dt_page_release(&page);
    page = compare((double[]){0.5}, 1);
    assert_there(&page, "~ not decided; at least 6 pairs are needed");
    dt_page_release(&page);
    page = compare((double[]){0, 0}, 2);
    assert_there(&page, "no difference in any pair");
    dt_page_release(&page);
}

static void a_run_that_ended_in_nan_has_no_final_value(void **state)
{
    (void)state;
    char *const paths[] = {"a", "b"};
    struct dt_page page = {.format = DT_PAGE_MARKDOWN};
    make_run("a", "training:\n  seed: 1\n", 3);
    make_run("b", "training:\n  seed: 2\n", 2);
    write_text("b/metrics.jsonl", "{\"step\":1,\"loss\":2}\n{\"step\":1,\"val_loss\":2}\n"
                                  "{\"step\":2,\"loss\":null}\n{\"step\":2,\"val_loss\":null}\n");
    struct dt_reported r = read_runs(paths, 2);
    dt_report_values(&page, &r);
    assert_there(&page,
                 "| A: 2 seeds | 2 | 3 (1 of 2 runs) | 2.5 \302\261 6.4 | 3 (1 of 2 runs) |");
    dt_reported_release(&r);
    dt_page_release(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, enter_scratch, remove_scratch)
        CASE(seeds_and_names_do_not_make_a_configuration),
        CASE(places_do_not_make_a_configuration),
        CASE(a_setting_that_one_lacks_is_a_difference),
        CASE(runs_with_unknown_settings_are_not_repetitions),
        CASE(one_run_twice_is_refused),
        CASE(what_is_no_run_is_refused),
        CASE(pairs_of_seeds_decide),
        CASE(six_pairs_of_one_sign_decide),
        CASE(other_losses_are_corrected),
        CASE(the_best_loss_is_not_the_main_comparison_without_a_last_one),
        CASE(the_verdict_is_that_of_the_test),
        CASE(what_is_not_decided_says_how_many_pairs_would_do),
        CASE(a_run_that_ended_in_nan_has_no_final_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
