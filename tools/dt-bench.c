/* SPDX-License-Identifier: MIT */
/* dt-bench: measures what a machine does with dt's kernels and steps. */
#include <stdio.h>
#include <string.h>

#include "base/program.h"
#include "train/bench.h"

static struct {
    const char *config, *device;
    struct dt_string_list set;
    long steps, threads;
    bool json;
} opt = {.device = "cpu", .steps = 5};

static const struct dt_option options[] = {
    {"config", 'c', DT_OPT_STRING, &opt.config, "FILE",
     "step: read settings from FILE, as dt-train"},
    {"set", 0, DT_OPT_LIST, &opt.set, "KEY=VALUE", "step: change one setting"},
    {"steps", 'n', DT_OPT_INT, &opt.steps, "N", "step: measure N steps (default 5)", .min = 1,
     .max = 1e6},
    {"device", 0, DT_OPT_STRING, &opt.device, "NAME", "cpu (the default), cpu-avx512, ..."},
    {"threads", 'j', DT_OPT_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 4096},
    {"json", 0, DT_OPT_FLAG, &opt.json, NULL, "print one JSON object"},
    {NULL},
};

static const struct dt_command command = {"dt-bench", "measure kernels and training steps",
                                          "gemm|step", options};

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

int main(int argc, char **argv)
{
    struct dt_error err;
    struct dt_device *dev;
    int first = dt_parse_options(&command, argc, argv);
    if (first + 1 != argc)
        dt_usage("one thing to measure is needed: gemm or step");
    if (strcmp(argv[first], "gemm") != 0 && strcmp(argv[first], "step") != 0)
        dt_usage("'%s' is nothing to measure: gemm or step", argv[first]);
    if (dt_device_open(&dev, opt.device, (int)opt.threads, &err) < 0)
        return dt_report(&err);
    int rc = bench(argv[first], dev, &err);
    dt_device_close(dev);
    if (rc < 0)
        return dt_report(&err);
    if (fflush(stdout) != 0) {
        dt_warn("cannot write to stdout");
        return 1;
    }
    return 0;
}
