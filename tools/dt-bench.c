/* SPDX-License-Identifier: MIT */
/* dt-bench: measures what a machine does with dt's kernels, steps and data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/program.h"
#include "shard/load-bench.h"
#include "token/encode-bench.h"
#include "train/bench.h"
#include "train/text-samples.h"

#define TEXT_LIMIT ((size_t)1 << 32)

static struct {
    const char *config, *device, *tokenizer;
    struct dt_string_list set;
    long steps, threads, memory;
    double seconds;
    bool json;
} opt = {.device = "cpu", .steps = 5, .memory = 1000000000, .seconds = 3};

static const struct dt_option options[] = {
    {"config", 'c', DT_OPT_STRING, &opt.config, "FILE",
     "step and load: read settings from FILE, as dt-train"},
    {"set", 0, DT_OPT_LIST, &opt.set, "KEY=VALUE", "step and load: change one setting"},
    {"steps", 'n', DT_OPT_INT, &opt.steps, "N", "step: measure N steps (default 5)", .min = 1,
     .max = 1e6},
    {"device", 0, DT_OPT_STRING, &opt.device, "NAME", "cpu (the default), cpu-avx512, ..."},
    {"threads", 'j', DT_OPT_INT, &opt.threads, "N",
     "use N threads (default: all processors; load: the caller; tokenize: 1)", .min = 1,
     .max = 4096},
    {"memory", 0, DT_OPT_INT, &opt.memory, "BYTES",
     "load: keep that many bytes of decoded tokens (default 1G)", .min = 1, .max = 1e15},
    {"tokenizer", 't', DT_OPT_STRING, &opt.tokenizer, "TOKENIZER",
     "tokenize, and load of text: the tokenizer"},
    {"seconds", 0, DT_OPT_REAL, &opt.seconds, "S",
     "load and tokenize: measure for S seconds (default 3)", .min = 0.01, .max = 1e6},
    {"json", 0, DT_OPT_FLAG, &opt.json, NULL, "print one JSON object"},
    {NULL},
};

static const struct dt_command command = {"dt-bench",
                                          "measure kernels, training steps and the reading of data",
                                          "gemm|step|load|tokenize [DATA]", options};

static void print_machine(const struct dt_device *dev, double peak)
{
    if (opt.json)
        printf("{\"engine\":\"%s\",\"isa\":\"%s\",\"threads\":%d,\"gemm_gflops\":%.1f",
               dev->engine->name, dev->engine->isa, dev->threads, peak * 1e-9);
    else
        printf("engine            %s, %s, %d threads\nGEMM peak         %.1f GFLOP/s\n",
               dev->engine->name, dev->engine->isa, dev->threads, peak * 1e-9);
}

static int print_step(struct dt_device *dev, double peak, const struct dt_settings *settings,
                      struct dt_error *err)
{
    struct dt_step_times t;
    DT_TRY(dt_bench_step(dev, settings, (int)opt.steps, &t, err));
    double rate = t.flops / t.total;
    if (opt.json)
        printf(",\"parameters\":%lld,\"tokens\":%lld,\"forward_backward_s\":%.6f,\"update_s\":%.6f,"
               "\"step_s\":%.6f,\"tokens_per_second\":%.1f,\"gflops\":%.1f,\"mfu\":%.4f,"
               "\"bytes\":%zu",
               (long long)t.parameters, (long long)t.tokens, t.forward_backward, t.update, t.total,
               (double)t.tokens / t.total, rate * 1e-9, rate / peak, t.memory);
    else
        printf("parameters        %.1f M, %.2f GiB in all\n"
               "tokens a step     %lld (batch %ld, length %ld)\n"
               "forward+backward  %.1f ms\n"
               "update            %.1f ms\n"
               "step              %.1f ms, %.0f tokens/s\n"
               "model arithmetic  %.1f GFLOP/s, %.1f%% of the GEMM peak\n",
               (double)t.parameters * 1e-6, (double)t.memory / (1 << 30), (long long)t.tokens,
               settings->training.batch_size, settings->training.sequence_length,
               t.forward_backward * 1e3, t.update * 1e3, t.total * 1e3, (double)t.tokens / t.total,
               rate * 1e-9, 100 * rate / peak);
    return 0;
}

static int read_settings(struct dt_settings *settings, struct dt_error *err)
{
    const char *path = opt.config ? opt.config : "settings";
    DT_TRY(dt_settings_read(settings, opt.config, opt.set.items, opt.set.count, err));
    if (settings->model.vocab_size == 0)
        return dt_fail(err, DT_EINVALID, "%s: model.vocab_size is needed: there are no data", path);
    return dt_settings_resolve(settings, 1, path, err);
}

static int bench(const char *what, struct dt_device *dev, struct dt_error *err)
{
    struct dt_settings settings;
    bool step = strcmp(what, "step") == 0;
    if (step)
        DT_TRY(read_settings(&settings, err));
    double peak = dt_device_peak(dev);
    print_machine(dev, peak);
    if (step)
        DT_TRY(print_step(dev, peak, &settings, err));
    if (opt.json)
        printf("}\n");
    return 0;
}

static int open_dataset(struct dt_dataset **dataset, const char *data,
                        const struct dt_settings *settings, bool shuffle, struct dt_error *err)
{
    if (!dt_text_is_named(data))
        return dt_dataset_open(dataset, data, settings->data.train_split, err);
    return dt_text_open(
        dataset, data,
        &(struct dt_text_options){.tokenizer_path = opt.tokenizer,
                                  .layout = (enum dt_text_layout)settings->data.layout,
                                  .length = (uint32_t)settings->training.sequence_length,
                                  .seed = (uint64_t)settings->training.seed,
                                  .shuffle = shuffle},
        err);
}

static int print_load(const char *name, const char *data, struct dt_settings *settings,
                      bool shuffle, struct dt_error *err)
{
    struct dt_load_speed s;
    const struct dt_loader_options o = {.length = (uint32_t)settings->training.sequence_length,
                                        .batch = (uint32_t)settings->training.batch_size,
                                        .seed = (uint64_t)settings->training.seed,
                                        .shuffle = shuffle,
                                        .workers = (int)opt.threads,
                                        .memory = (size_t)opt.memory};
    struct dt_dataset *dataset;
    DT_TRY(open_dataset(&dataset, data, settings, shuffle, err));
    int rc = dt_bench_load(dataset, &o, opt.seconds, &s, err);
    dt_dataset_close(dataset);
    DT_TRY(rc);
    double tokens = (double)s.tokens;
    if (opt.json)
        printf("%s\"%s\":{\"tokens_per_second\":%.1f,\"tokens_per_core_second\":%.1f,"
               "\"targets_per_second\":%.1f,\"bytes\":%zu}",
               shuffle ? "," : "{", name, tokens / s.seconds, tokens / s.processor_seconds,
               (double)s.targets / s.seconds, s.memory);
    else
        printf("%-17s %.1f M tokens/s, %.1f M a second of processor time, %.1f%% of them targets, "
               "memory up to %.1f MiB\n",
               name, tokens / s.seconds * 1e-6, tokens / s.processor_seconds * 1e-6,
               100 * (double)s.targets / tokens, (double)s.memory / (1 << 20));
    return 0;
}

static int bench_load(const char *data, struct dt_error *err)
{
    struct dt_settings settings;
    DT_TRY(dt_settings_read(&settings, opt.config, opt.set.items, opt.set.count, err));
    if (settings.training.sequence_length == 0)
        settings.training.sequence_length = settings.model.max_seq_len;
    DT_TRY(print_load("sequential", data, &settings, false, err));
    DT_TRY(print_load("shuffled", data, &settings, true, err));
    if (opt.json)
        printf("}\n");
    return 0;
}

static int print_encoding(const struct dt_tokenizer *t, const char *text, size_t size,
                          struct dt_error *err)
{
    struct dt_encode_speed s;
    int threads = opt.threads > 0 ? (int)opt.threads : 1;
    DT_TRY(dt_bench_encode(t, text, size, threads, opt.seconds, &s, err));
    double megabytes = (double)s.bytes * 1e-6;
    if (opt.json)
        printf("{\"threads\":%d,\"bytes\":%llu,\"tokens\":%llu,\"mb_per_second\":%.1f,"
               "\"mb_per_core_second\":%.1f}\n",
               threads, (unsigned long long)s.bytes, (unsigned long long)s.tokens,
               megabytes / s.seconds, megabytes / s.processor_seconds);
    else
        printf("tokenize          %.1f MB/s on %d thread%s, %.1f MB a second of processor time, "
               "%.2f bytes a token\n",
               megabytes / s.seconds, threads, dt_plural((uint64_t)threads),
               megabytes / s.processor_seconds, (double)s.bytes / (double)s.tokens);
    return 0;
}

static int bench_tokenize(const char *path, struct dt_error *err)
{
    struct dt_tokenizer *t;
    char *text;
    size_t size;
    DT_TRY(dt_tokenizer_load(&t, opt.tokenizer, err));
    int rc = dt_file_read(path, TEXT_LIMIT, &text, &size, err);
    if (rc == 0) {
        rc = size > 0 ? print_encoding(t, text, size, err)
                      : dt_fail(err, DT_EFORMAT, "%s: holds no text", path);
        free(text);
    }
    dt_tokenizer_free(t);
    return rc;
}

static int bench_device(const char *what, struct dt_error *err)
{
    struct dt_device *dev;
    DT_TRY(dt_device_open(&dev, opt.device, (int)opt.threads, err));
    int rc = bench(what, dev, err);
    dt_device_close(dev);
    return rc;
}

int main(int argc, char **argv)
{
    struct dt_error err;
    int first = dt_parse_options(&command, argc, argv);
    const char *what = argv[first];
    if (first == argc)
        dt_usage("one thing to measure is needed: gemm, step, load DATA or tokenize FILE");
    bool load = strcmp(what, "load") == 0, tokenize = strcmp(what, "tokenize") == 0;
    if (!load && !tokenize && strcmp(what, "gemm") != 0 && strcmp(what, "step") != 0)
        dt_usage("'%s' is nothing to measure: gemm, step, load DATA or tokenize FILE", what);
    if (argc - first != 1 + (load || tokenize))
        dt_usage(load       ? "load needs one data set"
                 : tokenize ? "tokenize needs one file"
                            : "%s takes no operand",
                 what);
    if (tokenize && opt.tokenizer == NULL)
        dt_usage("tokenize needs --tokenizer");
    int rc = load       ? bench_load(argv[first + 1], &err)
             : tokenize ? bench_tokenize(argv[first + 1], &err)
                        : bench_device(what, &err);
    if (rc < 0)
        return dt_report(&err);
    if (fflush(stdout) != 0) {
        dt_warn("cannot write to stdout");
        return 1;
    }
    return 0;
}
