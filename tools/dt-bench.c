/* SPDX-License-Identifier: MIT */
/* dt-bench: measures kernels, training steps, data stages, and matrices of commands. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/program.h"
#include "base/progress.h"
#include "base/stop.h"
#include "bench/attention-bench.h"
#include "bench/collective-bench.h"
#include "bench/decode-bench.h"
#include "bench/encode-bench.h"
#include "bench/load-bench.h"
#include "bench/product-error.h"
#include "bench/step-bench.h"
#include "bench/write-bench.h"
#include "comm/launch.h"
#include "device/gpu-record.h"
#include "device/peaks.h"
#include "experiment/design.h"
#include "experiment/gpu-check.h"
#include "experiment/run.h"
#include "experiment/table.h"
#include "hub/hub.h"
#include "io/file-type.h"
#include "optim/optimizer.h"
#include "options/options.h"
#include "plan/roofline.h"
#include "pretokenize/pattern.h"
#include "tokenizer-files/tokenizer-files.h"
#include "train/sample-order.h"
#include "train/text-samples.h"
#include "json/json-number.h"

#define TEXT_LIMIT ((size_t)1 << 32)

static struct {
    const char *config, *device, *tokenizer;
    struct dt_string_list set;
    long steps, threads, memory, level;
    double seconds, least, limit;
    bool json, shell, quiet, adopt;
    long repeats, warmup, seed;
    const char *design, *output, *metrics;
    struct dt_string_list axes, baseline, targets, values, notes, machine;
    int format, pattern;
} opt = {.pattern = -1,
         .format = -1,
         .device = "cpu",
         .steps = 5,
         .memory = 1000000000,
         .level = 3,
         .seconds = 3,
         .repeats = -1, /* -1: from the design, or the default of dt_matrix_init */
         .warmup = -1,
         .seed = -1,
         .limit = -1,
         .least = 0.02};

static const char *const format_names[] = {"text", "markdown", "tsv", "json", NULL};

static const struct dt_option options[] = {
    {"config", 'c', DT_OPTION_STRING, &opt.config, "FILE",
     "attention, step, decode, roofline and load: read settings from FILE, as dt-train"},
    {"set", 0, DT_OPTION_LIST, &opt.set, "KEY=VALUE",
     "attention, step, decode, roofline and load: change one setting",
     .words = dt_settings_add_words},
    {"machine", 0, DT_OPTION_LIST, &opt.machine, "KEY=VALUE",
     "roofline: change one value of the device, such as device.bandwidth=4800",
     .words = dt_cluster_add_settings},
    {"steps", 'n', DT_OPTION_INT, &opt.steps, "N", "step and decode: measure N steps (default 5)",
     .min = 1, .max = 1e6},
    {"device", 0, DT_OPTION_STRING, &opt.device, "NAME",
     "cpu (the default), cpu-avx512, ...; roofline: that of a cluster, such as h100",
     .words = dt_device_add_names},
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N",
     "use N threads (default: all processors; load: the caller; tokenize and shard: 1)", .min = 1,
     .max = 4096},
    {"level", 0, DT_OPTION_INT, &opt.level, "N",
     "shard: compress at zstd level N, 0 stores (default 3)", .min = 0, .max = 19},
    {"memory", 0, DT_OPTION_INT, &opt.memory, "BYTES",
     "load: cache BYTES of decoded tokens (default 1G)", .min = 1, .max = 1e15},
    {"tokenizer", 't', DT_OPTION_STRING, &opt.tokenizer, "TOKENIZER",
     "tokenize, and load of text: use this tokenizer"},
    {"pattern", 0, DT_OPTION_CHOICE, &opt.pattern, "PATTERN", "tokenize: pretokenization pattern",
     .choices = dt_pattern_names},
    {"seconds", 0, DT_OPTION_REAL, &opt.seconds, "S",
     "attention, machine, tokenize, shard and load: measure for S seconds (default 3)", .min = 0.01,
     .max = 1e6},
    {"json", 0, DT_OPTION_FLAG, &opt.json, NULL, "print one JSON object"},
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

static struct dt_buffer json; /* the object of --json so far */

static void add_real(const char *name, double x, int decimals)
{
    dt_json_add_fixed(&json, name, x, decimals);
}

static void print_json(void)
{
    if (!opt.json)
        return;
    dt_buffer_add_string(&json, "}\n");
    fwrite(json.data, 1, json.size, stdout);
    dt_buffer_release(&json);
}

static void print_machine(const struct dt_device *dev, const struct dt_peak *peak, const char *type)
{
    if (*peak->doubt)
        dt_program_warn("%s", peak->doubt);
    if (opt.json) {
        dt_buffer_printf(&json, "{\"engine\":\"%s\",\"isa\":\"%s\",\"threads\":%d",
                         dev->engine->name, dev->isa, dev->threads);
        add_real("gemm_gflops", peak->speed * 1e-9, 1);
        dt_buffer_printf(&json, ",\"gemm_type\":\"%s\",\"gemm_origin\":\"%s\"", type, peak->origin);
    } else
        printf("engine            %s, %s, %d thread%s\nGEMM peak         %.1f GFLOP/s of %s, %s\n",
               dev->engine->name, dev->isa, dev->threads, dt_plural((uint64_t)dev->threads),
               peak->speed * 1e-9, type, peak->origin);
}

#define SHARE_TEXT 96

/* rate as a fraction of the GEMM peak. Above 1, the machine was slower while the peak was measured.
 */
static const char *share_text(double rate, double peak, char text[SHARE_TEXT])
{
    if (rate <= peak)
        snprintf(text, SHARE_TEXT, "%.1f%% of the GEMM peak", 100 * rate / peak);
    else
        snprintf(text, SHARE_TEXT,
                 "above the GEMM peak: the machine was slower while that was "
                 "measured");
    return text;
}

static void add_step(const struct dt_step_times *t, double peak)
{
    double rate = t->flops / t->total;
    dt_buffer_printf(&json, ",\"parameters\":%lld,\"tokens\":%lld", (long long)t->parameters,
                     (long long)t->tokens);
    add_real("forward_backward_s", t->forward_backward, 6);
    add_real("update_s", t->update, 6);
    add_real("step_s", t->total, 6);
    add_real("processor_s", t->processor, 6);
    add_real("tokens_per_second", (double)t->tokens / t->total, 1);
    add_real("gflops", rate * 1e-9, 1);
    add_real("mfu", rate <= peak ? rate / peak : NAN, 4);
    dt_buffer_printf(&json, ",\"bytes\":%zu", t->memory);
}

static int print_step(struct dt_device *dev, double peak, const struct dt_settings *settings,
                      struct dt_error *err)
{
    struct dt_step_times t;
    char memory[DT_PROGRESS_BYTES], share[SHARE_TEXT];
    DT_TRY(dt_step_bench(dev, settings, (int)opt.steps, &t, err));
    double rate = t.flops / t.total;
    if (opt.json)
        add_step(&t, peak);
    else
        printf("parameters        %.1f M, %s in all\n"
               "tokens per step   %lld (batch %ld, length %ld)\n"
               "forward+backward  %.1f ms\n"
               "update            %.1f ms\n"
               "step              %.1f ms, %.0f tokens/s\n"
               "model arithmetic  %.1f GFLOP/s, %s\n",
               (double)t.parameters * 1e-6, dt_progress_bytes((double)t.memory, memory),
               (long long)t.tokens, settings->training.batch_size,
               settings->training.sequence_length, t.forward_backward * 1e3, t.update * 1e3,
               t.total * 1e3, (double)t.tokens / t.total, rate * 1e-9,
               share_text(rate, peak, share));
    return 0;
}

static int print_streams(struct dt_model *m, int streams, double read_speed, struct dt_error *err)
{
    struct dt_decode_speed s;
    int64_t past = m->config.max_seq_len < 8 ? 1 : m->config.max_seq_len / 8;
    int steps =
        (int)(opt.steps < m->config.max_seq_len - past ? opt.steps : m->config.max_seq_len - past);
    DT_TRY(dt_decode_bench(m, streams, past, steps, &s, err));
    double speed = s.bytes / s.step_s, fastest = s.bytes / s.least_s;
    if (opt.json) {
        dt_buffer_printf(&json, ",\"streams_%d\":{", streams);
        add_real("tokens_per_second", streams / s.step_s, 2);
        add_real("prefill_tokens_per_second", (double)s.prompt / s.prefill_s, 2);
        add_real("fastest_tokens_per_second", streams / s.least_s, 2);
        add_real("bytes_a_step", s.bytes, 0);
        add_real("read_share", speed / read_speed, 4);
        add_real("fastest_read_share", fastest / read_speed, 4);
        dt_buffer_add_char(&json, '}');
    } else
        printf("%2d stream%-8s  %.1f tokens/s, %.1f in the fastest step; %.1f and %.1f GB/s, "
               "%.0f and %.0f%%\n",
               streams, dt_plural((uint64_t)streams), streams / s.step_s, streams / s.least_s,
               speed * 1e-9, fastest * 1e-9, 100 * speed / read_speed, 100 * fastest / read_speed);
    if (!opt.json && streams == 1)
        printf("prompt            %.1f tokens/s, of %lld tokens\n", (double)s.prompt / s.prefill_s,
               (long long)s.prompt);
    return 0;
}

/* Random weights as small as those of a model, in a moment. */
static int fill_weights(struct dt_model *m, struct dt_error *err)
{
    struct dt_tensor all = dt_matrix(m->parameters, 1, m->table.elements);
    DT_TRY(dt_device_fill(m->device, &all, 1, err));
    m->device->ops->combine(m->device, &all, 0, &all, 0.02f);
    dt_model_refresh(m);
    return 0;
}

static int print_decoding(struct dt_device *dev, const struct dt_settings *settings,
                          struct dt_error *err)
{
    struct dt_model *m;
    struct dt_peak reading;
    DT_TRY(dt_peak_find_read(dev, &reading, err));
    if (opt.json)
        add_real("read_gb_per_second", reading.speed * 1e-9, 2);
    else
        printf("reading memory    %.1f GB/s, %s\n", reading.speed * 1e-9, reading.origin);
    DT_TRY(
        dt_model_new(&m, dev, &settings->model, (enum dt_dtype)settings->training.precision, err));
    int rc = fill_weights(m, err);
    if (rc == 0)
        dt_model_arrange_for_decoding(m);
    rc = rc < 0 ? rc : print_streams(m, 1, reading.speed, err);
    rc = rc < 0 ? rc : print_streams(m, 16, reading.speed, err);
    dt_model_free(m);
    return rc;
}

static int print_attention(struct dt_device *dev, double peak, const struct dt_settings *settings,
                           struct dt_error *err)
{
    const struct dt_model_config *m = &settings->model;
    const struct dt_attention_size size = {
        .batch = settings->training.batch_size,
        .length = settings->training.sequence_length,
        .width = dt_model_query_width(m),
        .heads = m->num_heads,
        .kv_heads = m->num_kv_heads,
        .type = (enum dt_dtype)settings->training.precision,
        .bidirectional = dt_model_is_masked(m),
        .window = dt_model_window(m, 0),
        .scale = (float)m->attention_scale,
        .softcap = (float)m->attention_softcap,
        .keys = dt_model_keys_seen(m, 0, settings->training.sequence_length)};
    struct dt_attention_speed s;
    char forward_share[SHARE_TEXT], backward_share[SHARE_TEXT];
    struct dt_peak reading;
    DT_TRY(dt_attention_bench(dev, &size, opt.seconds, &s, err));
    DT_TRY(dt_peak_find_read(dev, &reading, err));
    double forward = s.forward_flops / s.forward, backward = s.backward_flops / s.backward;
    if (opt.json) {
        add_real("forward_s", s.forward, 9);
        add_real("backward_s", s.backward, 9);
        add_real("gflops", forward * 1e-9, 1);
        add_real("backward_gflops", backward * 1e-9, 1);
        add_real("flops_per_byte", s.forward_flops / s.bytes, 2);
        add_real("memory_gb_per_second", reading.speed * 1e-9, 2);
    } else
        printf("forward           %.3f ms, %.1f GFLOP/s, %s\n"
               "backward          %.3f ms, %.1f GFLOP/s, %s\n"
               "FLOP per byte     %.1f of forward; memory is read at %.1f GB/s\n",
               s.forward * 1e3, forward * 1e-9, share_text(forward, peak, forward_share),
               s.backward * 1e3, backward * 1e-9, share_text(backward, peak, backward_share),
               s.forward_flops / s.bytes, reading.speed * 1e-9);
    return 0;
}

static int read_settings(struct dt_settings *settings, struct dt_error *err)
{
    const char *path = opt.config ? opt.config : "settings";
    DT_TRY(dt_settings_read(settings, NULL, opt.config, opt.set.items, opt.set.count, err));
    if (settings->model.vocab_size == 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: model.vocab_size is needed, because no data set gives it", path);
    DT_TRY(dt_settings_resolve(settings, 1, path, err));
    return dt_optimizer_check(settings, path, err);
}

/* Settings that a measurement in one process cannot obey are refused. */
static int check_unused(const char *what, const struct dt_settings *settings, bool uses_layout,
                        struct dt_error *err)
{
    struct dt_settings obeyed = *settings, defaults;
    dt_config_defaults(dt_settings_schema, &defaults);
    obeyed.distributed = defaults.distributed;
    if (!uses_layout)
        obeyed.data.layout = defaults.data.layout;
    const struct dt_setting *s = dt_config_difference(dt_settings_schema, &obeyed, settings);
    return s == NULL ? 0
                     : dt_fail(err, DT_EINVALID, "%s does not use %s: remove that setting", what,
                               s->name);
}

static int bench(const char *what, struct dt_device *dev, struct dt_error *err)
{
    struct dt_settings settings;
    bool step = strcmp(what, "step") == 0, decode = strcmp(what, "decode") == 0;
    bool attention = strcmp(what, "attention") == 0;
    if (step || decode || attention)
        DT_TRY(read_settings(&settings, err));
    if (step || decode || attention)
        DT_TRY(check_unused(what, &settings, false, err));
    if (decode && settings.model.max_seq_len < 2)
        return dt_fail(err, DT_EINVALID,
                       "model.max_seq_len must be at least 2: a token of a prompt, and one that is "
                       "measured");
    enum dt_dtype type =
        step || attention ? (enum dt_dtype)settings.training.precision : DT_DTYPE_F32;
    struct dt_peak peak = {.origin = "measured now"};
    if (strcmp(what, "gemm") == 0)
        peak.speed = dt_device_peak(dev, type, 1);
    else
        DT_TRY(dt_peak_find(dev, type, &peak, err));
    print_machine(dev, &peak, dt_dtype_names[type]);
    if (step)
        DT_TRY(print_step(dev, peak.speed, &settings, err));
    if (attention)
        DT_TRY(print_attention(dev, peak.speed, &settings, err));
    if (decode)
        DT_TRY(print_decoding(dev, &settings, err));
    print_json();
    return 0;
}

/* dt-shard determines the layout of shards. Closes the dataset on error. */
static int check_layout(struct dt_dataset *dataset, const char *data,
                        const struct dt_settings *settings, struct dt_error *err)
{
    if (settings->data.layout != DT_TEXT_LAYOUT_PADDED || dt_dataset_info(dataset)->row > 0)
        return 0;
    dt_dataset_close(dataset);
    return dt_fail(err, DT_EINVALID,
                   "data.layout is padded, but the shards of '%s' are not: remove that setting",
                   data);
}

static int open_dataset(struct dt_dataset **dataset, const char *data,
                        const struct dt_settings *settings, struct dt_error *err)
{
    if (!dt_text_samples_has_name(data)) {
        DT_TRY(dt_dataset_open(dataset, data, settings->data.train_split, err));
        return check_layout(*dataset, data, settings, err);
    }
    return dt_text_samples_open(
        dataset, data,
        &(struct dt_text_samples_options){.tokenizer_path = opt.tokenizer,
                                          .layout = (enum dt_text_layout)settings->data.layout,
                                          .length = (uint32_t)settings->training.sequence_length,
                                          .seed = (uint64_t)settings->training.seed,
                                          .shuffle = settings->data.shuffle},
        err);
}

static int print_load(const char *name, const char *data, const struct dt_settings *settings,
                      struct dt_error *err)
{
    struct dt_load_speed s;
    const struct dt_loader_options o = {.length = (uint32_t)settings->training.sequence_length,
                                        .batch = (uint32_t)settings->training.batch_size,
                                        .order = dt_sample_order_get(settings),
                                        .workers = (int)opt.threads,
                                        .memory = (size_t)opt.memory};
    struct dt_dataset *dataset;
    DT_TRY(open_dataset(&dataset, data, settings, err));
    int rc = dt_load_bench(dataset, &o, opt.seconds, &s, err);
    dt_dataset_close(dataset);
    DT_TRY(rc);
    double tokens = (double)s.tokens;
    if (opt.json) {
        dt_buffer_printf(&json, "%s\"%s\":{", settings->data.shuffle ? "," : "{", name);
        add_real("tokens_per_second", tokens / s.seconds, 1);
        add_real("tokens_per_core_second", tokens / s.processor_seconds, 1);
        add_real("targets_per_second", (double)s.targets / s.seconds, 1);
        dt_buffer_printf(&json, ",\"bytes\":%zu}", s.memory);
    } else
        printf(
            "%-17s %.1f M tokens/s, %.1f M per second of processor time, %.1f%% of them targets, "
            "memory up to %s\n",
            name, tokens / s.seconds * 1e-6, tokens / s.processor_seconds * 1e-6,
            100 * (double)s.targets / tokens,
            dt_progress_bytes((double)s.memory, (char[DT_PROGRESS_BYTES]){""}));
    return 0;
}

static int measure_load(char **operands, int count, struct dt_error *err)
{
    struct dt_settings settings;
    (void)count;
    if (opt.tokenizer && !dt_text_samples_has_name(operands[1]))
        dt_program_usage("load of '%s' takes no --tokenizer: it holds tokens", operands[1]);
    DT_TRY(dt_settings_read(&settings, NULL, opt.config, opt.set.items, opt.set.count, err));
    DT_TRY(check_unused("load", &settings, true, err));
    if (settings.training.sequence_length == 0)
        settings.training.sequence_length = settings.model.max_seq_len;
    long block = settings.data.shuffle_block;
    settings.data.shuffle = false;
    settings.data.shuffle_block = 0;
    DT_TRY(print_load("sequential", operands[1], &settings, err));
    settings.data.shuffle = true;
    DT_TRY(print_load("shuffled", operands[1], &settings, err));
    settings.data.shuffle_block = block;
    if (block > 0)
        DT_TRY(print_load("blocks", operands[1], &settings, err));
    print_json();
    return 0;
}

static int print_encoding(const struct dt_tokenizer *t, const char *text, size_t size,
                          struct dt_error *err)
{
    struct dt_encode_speed s;
    int threads = opt.threads > 0 ? (int)opt.threads : 1;
    DT_TRY(dt_encode_bench(t, text, size, threads, opt.seconds, &s, err));
    double megabytes = (double)s.bytes * 1e-6;
    if (opt.json) {
        dt_buffer_printf(&json, "{\"threads\":%d,\"bytes\":%llu,\"tokens\":%llu", threads,
                         (unsigned long long)s.bytes, (unsigned long long)s.tokens);
        add_real("mb_per_second", megabytes / s.seconds, 1);
        add_real("mb_per_core_second", megabytes / s.processor_seconds, 1);
        add_real("first_mb_per_second", megabytes / s.first_seconds, 1);
        add_real("first_mb_per_core_second", megabytes / s.first_processor_seconds, 1);
        print_json();
    } else
        printf("tokenize          %.1f MB/s on %d thread%s, %.1f MB per second of processor time, "
               "%.2f bytes per token\n",
               megabytes / s.seconds, threads, dt_plural((uint64_t)threads),
               megabytes / s.processor_seconds, (double)s.bytes / (double)s.tokens);
    return 0;
}

/* Refuses files other than text, whose speed would not be that of text. */
static int need_text(const char *path, const char *text, size_t size, struct dt_error *err)
{
    size_t head = size < DT_FILE_TYPE_HEAD ? size : DT_FILE_TYPE_HEAD;
    const struct dt_file_type *what = dt_file_type_recognize(text, head);
    if (size == 0)
        return dt_fail(err, DT_EFORMAT, "%s: contains no text", path);
    bool is_text = what == NULL || what->kind == DT_FILE_JSONL || what->kind == DT_FILE_AMBIGUOUS;
    return is_text ? 0 : dt_file_type_refuse(what, path, NULL, err);
}

static int measure_tokenize(char **operands, int count, struct dt_error *err)
{
    const char *path = operands[1];
    struct dt_tokenizer *t;
    char *text;
    size_t size;
    (void)count;
    DT_TRY(dt_tokenizer_load_with(&t, opt.tokenizer,
                                  opt.pattern < 0 ? NULL : dt_pattern_names[opt.pattern], err));
    int rc = dt_file_read(path, TEXT_LIMIT, &text, &size, err);
    if (rc == 0) {
        rc = need_text(path, text, size, err);
        rc = rc < 0 ? rc : print_encoding(t, text, size, err);
        free(text);
    }
    dt_tokenizer_free(t);
    return rc;
}

static void print_writing(const struct dt_write_speed *s, int threads)
{
    double tokens = (double)s->tokens, megabytes = (double)s->text_bytes * 1e-6;
    if (opt.json) {
        dt_buffer_printf(
            &json,
            "{\"threads\":%d,\"level\":%ld,\"tokens\":%llu,\"bytes\":%llu,\"shard_bytes\":%llu",
            threads, opt.level, (unsigned long long)s->tokens, (unsigned long long)s->text_bytes,
            (unsigned long long)s->shard_bytes);
        add_real("tokens_per_second", tokens / s->seconds, 1);
        add_real("tokens_per_core_second", tokens / s->processor_seconds, 1);
        add_real("mb_per_second", megabytes / s->seconds, 1);
        print_json();
    } else
        printf(
            "shard             %.1f M tokens/s on %d thread%s at level %ld, %.1f M per second of "
            "processor time, %.1f MB/s of text, %.2f bytes per token\n",
            tokens / s->seconds * 1e-6, threads, dt_plural((uint64_t)threads), opt.level,
            tokens / s->processor_seconds * 1e-6, megabytes / s->seconds,
            (double)s->shard_bytes / tokens);
}

static int measure_shard(char **operands, int count, struct dt_error *err)
{
    struct dt_write_speed speed;
    int threads = opt.threads > 0 ? (int)opt.threads : 1;
    (void)count;
    DT_TRY(dt_write_bench(operands[1], (int)opt.level, threads, opt.seconds, &speed, err));
    print_writing(&speed, threads);
    return 0;
}

static int measure_on_device(char **operands, int count, struct dt_error *err)
{
    struct dt_device *dev;
    (void)count;
    DT_TRY(dt_launch_check_alone(DT_LAUNCH_ONCE, err));
    DT_TRY(dt_device_open(&dev, opt.device, (int)opt.threads, err));
    int rc = bench(operands[0], dev, err);
    dt_device_close(dev);
    return rc;
}

/* --- the peaks of this machine ------------------------------------------------------------- */

static void print_peaks(const struct dt_device *dev, const struct dt_machine_peaks *p)
{
    if (opt.json)
        dt_peaks_print(dev, p, &json);
    else
        printf("%2d thread%-2s  fp32 %.1f, bf16 %.1f, fp16 %.1f GFLOP/s; memory is read at %.1f "
               "GB/s\n",
               dev->threads, dt_plural((uint64_t)dev->threads), p->gemm[DT_DTYPE_F32] * 1e-9,
               p->gemm[DT_DTYPE_BF16] * 1e-9, p->gemm[DT_DTYPE_F16] * 1e-9, p->read * 1e-9);
    if (p->share < DT_PEAKS_BUSY)
        dt_program_warn("%d thread%s had %.0f%% of their time, because other programs ran: measure "
                        "again when they have ended",
                        dev->threads, dt_plural((uint64_t)dev->threads), 100 * p->share);
}

/* Opens the device, measures and stores its peaks; *used: its threads. */
static int measure_threads(int threads, int *used, struct dt_error *err)
{
    struct dt_device *dev;
    struct dt_machine_peaks peaks;
    DT_TRY(dt_device_open(&dev, opt.device, threads, err));
    *used = dev->threads;
    dt_peaks_measure(dev, opt.seconds, &peaks);
    int rc = dt_peaks_store(dev, &peaks, err);
    if (rc >= 0)
        print_peaks(dev, &peaks);
    dt_device_close(dev);
    return rc;
}

/* All threads, then 1, 2, 4 ... of them; or those of --threads. */
static int measure_machine(char **operands, int count, struct dt_error *err)
{
    int all, ignored;
    (void)operands, (void)count;
    DT_TRY(dt_launch_check_alone(DT_LAUNCH_ONCE, err));
    DT_TRY(measure_threads((int)opt.threads, &all, err));
    for (int threads = 1; opt.threads == 0 && threads < all; threads *= 2)
        DT_TRY(measure_threads(threads, &ignored, err));
    char *path = dt_peaks_path();
    if (opt.json)
        fwrite(json.data, 1, json.size, stdout);
    else
        printf("stored in %s\n", path);
    dt_buffer_release(&json);
    free(path);
    return 0;
}

static void print_product_error(const struct dt_product_error *e, bool first, bool last)
{
    const char *type = dt_dtype_names[e->type];
    if (opt.json) {
        dt_buffer_printf(&json, "%s{\"type\":\"%s\",\"k\":%lld", first ? "{\"products\":[" : ",",
                         type, (long long)e->k);
        add_real("canonical", e->canonical, 11);
        add_real("fast", e->fast, 11);
        dt_buffer_add_string(&json, last ? "}]" : "}");
    } else
        printf("%s, sums of %-4lld  canonical %.2e, fast %.2e: %.2f times\n", type, (long long)e->k,
               e->canonical, e->fast, e->canonical / e->fast);
}

static int measure_error(char **operands, int count, struct dt_error *err)
{
    struct dt_product_error errors[DT_PRODUCT_ERRORS];
    struct dt_device *dev;
    (void)operands, (void)count;
    DT_TRY(dt_device_open(&dev, opt.device, (int)opt.threads, err));
    int rc = dt_product_error_measure(dev, errors, err);
    dt_device_close(dev);
    DT_TRY(rc);
    for (int i = 0; i < DT_PRODUCT_ERRORS; i++)
        print_product_error(&errors[i], i == 0, i == DT_PRODUCT_ERRORS - 1);
    print_json();
    return 0;
}

/* What a step asks of a device that need not be here. */
static int count_roofline(char **operands, int count, struct dt_error *err)
{
    struct dt_settings settings;
    struct dt_cluster cluster;
    struct dt_plan_layout layout;
    struct dt_plan_request request;
    struct dt_step_work work;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    const struct dt_plan_source source = {.config = opt.config,
                                          .cluster = opt.device,
                                          .set = opt.set.items,
                                          .machine = opt.machine.items,
                                          .set_count = opt.set.count,
                                          .machine_count = opt.machine.count};
    (void)count;
    DT_TRY(dt_plan_request_read(&request, &settings, &cluster, &layout, &source, err));
    DT_TRY(check_unused(operands[0], &settings, false, err));
    DT_TRY(dt_roofline_make(&work, &request, &layout, err));
    if (opt.json)
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
    enum dt_table_format format = opt.json          ? DT_TABLE_JSON
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

/* --- several ranks ------------------------------------------------------------------------- */

/* Array sizes in floats, from cache-sized to a large layer. */
static const size_t collective_sizes[] = {1 << 10, 1 << 18, 1 << 24};

static void print_collective(enum dt_collective what, size_t floats,
                             const struct dt_collective_speed *s, bool first)
{
    size_t bytes = floats * sizeof(float);
    double rate = (double)s->sent / s->seconds;
    if (opt.json) {
        dt_buffer_printf(&json, "%s{\"operation\":\"%s\",\"bytes\":%zu,\"sent\":%llu",
                         first ? "" : ",", dt_collective_names[what], bytes,
                         (unsigned long long)s->sent);
        add_real("seconds", s->seconds, 9);
        add_real("sent_per_second", rate, 0);
        dt_buffer_add_char(&json, '}');
    } else
        printf("%-16s  %9.1f KiB  %9.3f ms, the first rank sends %.2f GB/s\n",
               dt_collective_names[what], (double)bytes / 1024, s->seconds * 1e3, rate * 1e-9);
}

static int bench_collectives(struct dt_comm *world, struct dt_error *err)
{
    bool leads = dt_comm_rank(world) == 0;
    if (leads && opt.json)
        dt_buffer_printf(&json, "{\"ranks\":%d,\"collectives\":[", dt_comm_size(world));
    else if (leads)
        printf("ranks             %d\n", dt_comm_size(world));
    for (int what = 0; what < DT_COLLECTIVE_COUNT; what++)
        for (size_t i = 0; i < sizeof collective_sizes / sizeof *collective_sizes; i++) {
            struct dt_collective_speed s;
            DT_TRY(
                dt_collective_bench(world, (enum dt_collective)what, collective_sizes[i], &s, err));
            if (leads)
                print_collective((enum dt_collective)what, collective_sizes[i], &s,
                                 what == 0 && i == 0);
        }
    if (leads && opt.json) {
        dt_buffer_add_char(&json, ']');
        print_json();
    }
    return 0;
}

#define PATIENCE 60 /* timeout of the ranks' messages, seconds */

static int measure_collective(char **operands, int count, struct dt_error *err)
{
    struct dt_comm *world;
    (void)operands, (void)count;
    DT_TRY(dt_comm_open(&world, "auto", &(struct dt_opening){.patience = PATIENCE}, err));
    int rc = dt_comm_size(world) > 1
                 ? bench_collectives(world, err)
                 : dt_fail(err, DT_EINVALID,
                           "collective needs several ranks: start it with mpirun "
                           "or srun");
    dt_comm_close(world);
    return rc;
}

/* --- commands ------------------------------------------------------------------------------- */

/* In the order of uses[]. */
static const struct measurement {
    const char *operands; /* description of the operands after the name */
    int count;            /* their number; -1: any */
    int (*measure)(char **operands, int count, struct dt_error *err);
} measurements[] = {
    {"no operand", 0, measure_on_device},    {"no operand", 0, measure_machine},
    {"no operand", 0, measure_error},        {"no operand", 0, measure_on_device},
    {"no operand", 0, measure_on_device},    {"no operand", 0, measure_on_device},
    {"no operand", 0, measure_collective},   {"no operand", 0, count_roofline},
    {"one file", 1, measure_tokenize},       {"one shard", 1, measure_shard},
    {"one data set", 1, measure_load},       {"a command", -1, measure_matrix},
    {"one file of rows", 1, measure_report}, {"two files of rows", 2, measure_compare},
    {"one file of results", 1, show_gpu},
};
_Static_assert(sizeof measurements / sizeof *measurements + 1 == sizeof uses / sizeof *uses,
               "one each");

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
    if (opt.json && opt.format >= 0)
        dt_program_usage("--json and --format exclude each other");
    if (s->count >= 0 && count - 1 != s->count)
        dt_program_usage("%s takes %s", uses[use].name, s->operands);
    int rc = s->measure(argv + first, count, &err);
    if (rc < 0) {
        fflush(stdout);
        return dt_program_report(&err);
    }
    return dt_finish_stdout();
}
