/* SPDX-License-Identifier: MIT */
/* dt-bench: measures kernels, training steps, data stages, and matrices of commands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "base/stop.h"
#include "bench/bench.h"
#include "comm/comm.h"
#include "device/gpu-record.h"
#include "experiment/design.h"
#include "experiment/gpu-check.h"
#include "experiment/run.h"
#include "experiment/table.h"
#include "hub/hub.h"
#include "options/options.h"
#include "plan/roofline.h"
#include "pretokenize/pattern.h"
#include "train/text-samples.h"

static struct {
    struct dt_bench bench;
    double least, limit;
    bool shell, quiet, adopt;
    long repeats, warmup, seed;
    const char *design, *output, *metrics;
    struct dt_string_list axes, baseline, targets, values, notes, machine;
    int format, pattern;
} opt = {.pattern = -1,
         .format = -1,
         .bench = {.device = "cpu",
                   .steps = 5,
                   .memory = 1000000000,
                   .level = 3,
                   .seconds = 3,
                   .print = printf,
                   .warn = dt_program_warn},
         .repeats = -1, /* -1: from the design, or the default of dt_matrix_init */
         .warmup = -1,
         .seed = -1,
         .limit = -1,
         .least = 0.02};

static const char *const format_names[] = {"text", "markdown", "tsv", "json", NULL};

static const struct dt_option options[] = {
    {"config", 'c', DT_OPTION_STRING, &opt.bench.config, "FILE",
     "attention, step, decode, roofline and load: read settings from FILE, as dt-train"},
    {"set", 0, DT_OPTION_LIST, &opt.bench.set, "KEY=VALUE",
     "attention, step, decode, roofline and load: change one setting",
     .words = dt_settings_add_words},
    {"machine", 0, DT_OPTION_LIST, &opt.machine, "KEY=VALUE",
     "roofline: change one value of the device, such as device.bandwidth=4800",
     .words = dt_cluster_add_settings},
    {"steps", 'n', DT_OPTION_INT, &opt.bench.steps, "N",
     "step and decode: measure N steps (default 5)", .min = 1, .max = 1e6},
    {"device", 0, DT_OPTION_STRING, &opt.bench.device, "NAME",
     "cpu (the default), cpu-avx512, ...; roofline: that of a cluster, such as h100",
     .words = dt_device_add_names},
    {"threads", 'j', DT_OPTION_INT, &opt.bench.threads, "N",
     "use N threads (default: all processors; load: the caller; tokenize and shard: 1)", .min = 1,
     .max = 4096},
    {"level", 0, DT_OPTION_INT, &opt.bench.level, "N",
     "shard: compress at zstd level N, 0 stores (default 3)", .min = 0, .max = 19},
    {"memory", 0, DT_OPTION_INT, &opt.bench.memory, "BYTES",
     "load: cache BYTES of decoded tokens (default 1G)", .min = 1, .max = 1e15},
    {"tokenizer", 't', DT_OPTION_STRING, &opt.bench.tokenizer, "TOKENIZER",
     "tokenize, and load of text: use this tokenizer"},
    {"pattern", 0, DT_OPTION_CHOICE, &opt.pattern, "PATTERN", "tokenize: pretokenization pattern",
     .choices = dt_pattern_names},
    {"seconds", 0, DT_OPTION_REAL, &opt.bench.seconds, "S",
     "attention, machine, tokenize, shard and load: measure for S seconds (default 3)", .min = 0.01,
     .max = 1e6},
    {"json", 0, DT_OPTION_FLAG, &opt.bench.json, NULL, "print one JSON object"},
    {"design", 'd', DT_OPTION_STRING, &opt.design, "FILE",
     "matrix: read the design from FILE (YAML)", .reads = true},
    {"axis", 'a', DT_OPTION_LIST, &opt.axes, "NAME=V,...",
     "matrix: replace {NAME} in the command by each of the values"},
    {"output", 'o', DT_OPTION_STRING, &opt.output, "ROWS",
     "matrix: append a JSON line per run to ROWS; runs that it holds are not repeated",
     .writes = "", .in_place = ""},
    {"repeats", 'r', DT_OPTION_INT, &opt.repeats, "N", "matrix: run each cell N times (default 7)",
     .min = 1, .max = 1e6},
    {"warmup", 'w', DT_OPTION_INT, &opt.warmup, "N",
     "matrix: N warm-up runs of each cell, not recorded (default 1)", .min = 0, .max = 1e6},
    {"seed", 0, DT_OPTION_INT, &opt.seed, "N",
     "matrix: {seed} is N in the first round, N + 1 in the second, ... (default 1)", .min = 0,
     .max = 1e9},
    {"limit", 0, DT_OPTION_REAL, &opt.limit, "S", "matrix: end a run after S seconds", .min = 0,
     .max = 1e9},
    {"shell", 0, DT_OPTION_FLAG, &opt.shell, NULL, "matrix: run the command by sh -c"},
    {"metrics", 0, DT_OPTION_STRING, &opt.metrics, "FILE",
     "matrix: also read values from the last lines of FILE, as dt-train writes it", .reads = true},
    {"target", 0, DT_OPTION_LIST, &opt.targets, "NAME=LEVEL",
     "matrix: record when NAME in the metrics first reaches LEVEL or less"},
    {"note", 0, DT_OPTION_LIST, &opt.notes, "NAME=TEXT", "matrix: store a note with the rows"},
    {"baseline", 'b', DT_OPTION_LIST, &opt.baseline, "NAME=V",
     "matrix, report: ratios to the cells with this value"},
    {"value", 'v', DT_OPTION_LIST, &opt.values, "NAME", "matrix, report, compare: show this value"},
    {"format", 0, DT_OPTION_CHOICE, &opt.format, "FORMAT",
     "matrix, report, compare: text, markdown, tsv or json", .choices = format_names},
    {"least", 0, DT_OPTION_REAL, &opt.least, "SHARE",
     "compare: ignore changes below SHARE (default 0.02)", .min = 0, .max = 1},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "matrix: no progress"},
    {"adopt", 0, DT_OPTION_FLAG, &opt.adopt, NULL,
     "gpu: the cuda engine uses from now on what is proven"},
    {NULL},
};

static const struct dt_use uses[] = {
    {"gemm", "", NULL, "device threads json"},
    {"machine", "", NULL, "device threads seconds json"},
    {"error", "", NULL, "device threads json"},
    {"attention", "", NULL, "config set device threads seconds json"},
    {"step", "", NULL, "config set steps device threads json"},
    {"decode", "", NULL, "config set steps device threads json"},
    {"collective", "", NULL, "json"},
    {"roofline", "", "device", "config set machine json"},
    {"tokenize", "FILE", "tokenizer", "threads pattern seconds json"},
    {"shard", "STREAM", NULL, "threads level seconds json"},
    {"load", "DATA", NULL, "config set threads memory tokenizer seconds json"},
    {"matrix", "[COMMAND ...]", "output",
     "json design axis repeats warmup seed limit shell metrics target note baseline value format "
     "quiet"},
    {"report", "ROWS", NULL, "json baseline value format"},
    {"compare", "BEFORE AFTER", NULL, "json value format least"},
    {"gpu", "RESULTS", NULL, "adopt"},
    {NULL},
};

static const struct dt_command command = {
    "dt-bench", "measure kernels, stages, steps and matrices of commands", "", options, uses};

/* The roofline of a step on a device that this machine need not have. */
static int count_roofline(char **operands, int count, struct dt_error *err)
{
    struct dt_settings settings;
    struct dt_cluster cluster;
    struct dt_plan_layout layout;
    struct dt_plan_request request;
    struct dt_step_work work;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    const struct dt_plan_source source = {.config = opt.bench.config,
                                          .cluster = opt.bench.device,
                                          .set = opt.bench.set.items,
                                          .machine = opt.machine.items,
                                          .set_count = opt.bench.set.count,
                                          .machine_count = opt.machine.count};
    (void)count;
    DT_TRY(dt_plan_request_read(&request, &settings, &cluster, &layout, &source, err));
    DT_TRY(dt_bench_check_settings(operands[0], &settings, false, err));
    DT_TRY(dt_roofline_make(&work, &request, &layout, err));
    if (opt.bench.json)
        dt_roofline_print_json(&text, &work, &request, &layout);
    else
        dt_roofline_print(&text, &work, &request, &layout);
    fwrite(text.data, 1, text.size, stdout);
    dt_buffer_release(&text);
    return 0;
}

/* --- matrices of commands ------------------------------------------------------------------ */

static void add_lists(struct json_object *design)
{
    const struct {
        const char *key, *option;
        const struct dt_string_list *list;
        bool several;
    } lists[] = {{"axes", "--axis", &opt.axes, true},
                 {"targets", "--target", &opt.targets, false},
                 {"notes", "--note", &opt.notes, false},
                 {"baseline", "--baseline", &opt.baseline, false}};
    struct dt_error err;
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (int i = 0; i < lists[l].list->count; i++)
            if (dt_design_add(design, lists[l].key, lists[l].list->items[i], lists[l].several,
                              lists[l].option, &err) < 0)
                dt_program_usage("%s", err.text);
}

static void set_numbers(struct json_object *design)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"repeats", (double)opt.repeats},
                   {"warmup", (double)opt.warmup},
                   {"seed", (double)opt.seed},
                   {"limit", opt.limit}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.15g", numbers[i].value);
        if (numbers[i].value >= 0)
            dt_design_set(design, numbers[i].key, text);
    }
}

/* The design of --design, changed by the options. */
static int open_design(struct dt_matrix *m, char **words, int count, struct dt_error *err)
{
    struct json_object *design;
    DT_TRY(dt_design_open(&design, opt.design, err));
    set_numbers(design);
    if (opt.metrics)
        dt_design_set(design, "metrics", opt.metrics);
    if (opt.shell)
        dt_design_set(design, "shell", "true");
    if (count > 0)
        dt_design_set_list(design, "command", (const char *const *)words, count);
    if (opt.values.count > 0)
        dt_design_set_list(design, "values", opt.values.items, opt.values.count);
    add_lists(design);
    return dt_matrix_init(m, design, opt.design ? opt.design : "matrix", err);
}

/* Whether the design is valid without the options, so that an error is theirs. */
static bool options_are_wrong(void)
{
    struct json_object *design;
    struct dt_matrix m;
    struct dt_error ignored;
    if (opt.design == NULL)
        return true;
    if (dt_design_open(&design, opt.design, &ignored) < 0 ||
        dt_matrix_init(&m, design, "", &ignored) < 0)
        return false;
    dt_matrix_release(&m);
    return true;
}

static struct dt_table_options table_options(void)
{
    enum dt_table_format format = opt.bench.json    ? DT_TABLE_JSON
                                  : opt.format >= 0 ? (enum dt_table_format)opt.format
                                                    : DT_TABLE_TEXT;
    return (struct dt_table_options){format, opt.values.items, opt.values.count, opt.least};
}

static int print_table(const char *path, struct dt_error *err)
{
    struct dt_results r;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    const struct dt_table_options o = table_options();
    DT_TRY(dt_results_read(&r, path, err));
    add_lists(r.matrix.design);
    int rc = opt.baseline.count > 0 ? dt_results_renew(&r, err) : 0;
    if (rc == 0)
        rc = dt_results_table(&r, &o, &text, err);
    if (rc == 0)
        fwrite(text.data, 1, text.size, stdout);
    dt_buffer_release(&text);
    dt_results_release(&r);
    return rc;
}

static void warn_of_failure(const char *cell, int status, const char *complaint)
{
    dt_program_warn("%s: exit status %d: %s", cell, status,
                    *complaint ? complaint : "without a message");
}

static int measure_matrix(char **operands, int count, struct dt_error *err)
{
    struct dt_matrix m;
    int failed = 0;
    const struct dt_matrix_run_options o = {opt.quiet, dt_stop_watch(), warn_of_failure};
    if (opt.output && strcmp(opt.output, "-") == 0)
        dt_program_usage("matrix needs a file as --output, because it reads it back");
    int rc = open_design(&m, operands + 1, count - 1, err);
    if (rc < 0 && options_are_wrong())
        dt_program_usage("%s", err->text);
    DT_TRY(rc);
    int cells = m.cell_count;
    rc = dt_matrix_run(&m, opt.output, &o, &failed, err);
    dt_matrix_release(&m);
    if (rc == DT_ESTOP)
        dt_stop_now(*o.stop);
    DT_TRY(rc);
    DT_TRY(print_table(opt.output, err));
    return failed == 0 ? 0
                       : dt_fail(err, DT_EINVALID,
                                 "%d of %d cells failed: see \"error\" in the rows of '%s'", failed,
                                 cells, opt.output);
}

static int measure_report(char **operands, int count, struct dt_error *err)
{
    (void)count;
    return print_table(operands[1], err);
}

static int measure_compare(char **operands, int count, struct dt_error *err)
{
    struct dt_results a, b;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    const struct dt_table_options o = table_options();
    int rc;
    (void)count;
    DT_TRY(dt_results_read(&a, operands[1], err));
    if ((rc = dt_results_read(&b, operands[2], err)) == 0) {
        rc = dt_results_compare(&a, &b, &o, &text, err);
        dt_results_release(&b);
    }
    if (rc == 0)
        fwrite(text.data, 1, text.size, stdout);
    dt_buffer_release(&text);
    dt_results_release(&a);
    return rc;
}

/* What tests/gpu/check has proven; with --adopt the engine uses it. */
static int show_gpu(char **operands, int count, struct dt_error *err)
{
    struct dt_gpu_check check;
    struct dt_gpu_option_result results[DT_GPU_OPTIONS] = {{.name = NULL}};
    struct dt_gpu_record record = {.gpu = ""};
    struct dt_buffer text = DT_BUFFER_EMPTY;
    (void)count;
    for (int i = 0; i < DT_GPU_OPTIONS; i++)
        results[i].name = dt_gpu_option_names[i];
    DT_TRY(dt_gpu_check_read(&check, operands[1], results, DT_GPU_OPTIONS, err));
    dt_gpu_check_print(&check, results, DT_GPU_OPTIONS, &text);
    fwrite(text.data, 1, text.size, stdout);
    dt_buffer_release(&text);
    if (!opt.adopt)
        return 0;
    memcpy(record.gpu, check.gpu, sizeof record.gpu);
    memcpy(record.driver, check.driver, sizeof record.driver);
    memcpy(record.engine, check.engine, sizeof record.engine);
    for (int i = 0; i < DT_GPU_OPTIONS; i++)
        record.proven[i] = results[i].proven;
    DT_TRY(dt_gpu_record_store(&record, err));
    char *path = dt_gpu_record_path();
    printf("recorded in %s\n", path);
    free(path);
    return 0;
}

/* --- commands ------------------------------------------------------------------------------- */

/* In the order of uses[]. */
static const struct measurement {
    const char *operands; /* description of the operands after the name */
    int count;            /* their number; -1: any */
    dt_bench_measure *measure;
    int (*run)(char **operands, int count, struct dt_error *err); /* where measure is NULL */
} measurements[] = {
    {"no operand", 0, dt_bench_gemm},
    {"no operand", 0, dt_bench_machine},
    {"no operand", 0, dt_bench_error},
    {"no operand", 0, dt_bench_attention},
    {"no operand", 0, dt_bench_step},
    {"no operand", 0, dt_bench_decode},
    {"no operand", 0, dt_bench_collective},
    {"no operand", 0, NULL, count_roofline},
    {"one file", 1, dt_bench_tokenize},
    {"one shard", 1, dt_bench_shard},
    {"one data set", 1, dt_bench_load},
    {"a command", -1, NULL, measure_matrix},
    {"one file of rows", 1, NULL, measure_report},
    {"two files of rows", 2, NULL, measure_compare},
    {"one file of results", 1, NULL, show_gpu},
};
_Static_assert(sizeof measurements / sizeof *measurements + 1 == sizeof uses / sizeof *uses,
               "one each");

/* Only a measurement that has succeeded prints its object. */
static int run_measurement(dt_bench_measure *measure, const char *operand, struct dt_error *err)
{
    struct dt_bench *b = &opt.bench;
    if (measure == dt_bench_load && b->tokenizer && !dt_text_samples_has_name(operand))
        dt_program_usage("load of '%s' takes no --tokenizer: it holds tokens", operand);
    if (opt.pattern >= 0)
        b->pattern = dt_pattern_names[opt.pattern];
    int rc = measure(b, operand, err);
    if (rc >= 0)
        fwrite(b->object.data, 1, b->object.size, stdout);
    dt_buffer_release(&b->object);
    return rc;
}

int main(int argc, char **argv)
{
    struct dt_error err;
    if (!dt_comm_launched_first())
        dt_program_delay_usage(DT_COMM_FIRST_RANK_REPORTS);
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv), count = argc - first;
    int use = dt_options_find_use(&command, count > 0 ? argv[first] : NULL);
    const struct measurement *s = &measurements[use];
    dt_options_check_use(&command, &uses[use]);
    if (opt.bench.json && opt.format >= 0)
        dt_program_usage("--json and --format exclude each other");
    if (s->count >= 0 && count - 1 != s->count)
        dt_program_usage("%s takes %s", uses[use].name, s->operands);
    int rc = s->measure ? run_measurement(s->measure, argv[first + 1], &err)
                        : s->run(argv + first, count, &err);
    if (rc < 0) {
        fflush(stdout);
        return dt_program_report(&err);
    }
    return dt_finish_stdout();
}
