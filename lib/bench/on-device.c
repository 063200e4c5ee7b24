/* SPDX-License-Identifier: MIT */
/* Matrix products, attention, a training step and decoding on one device. */
#include "bench/bench.h"

#include <math.h>
#include <stdio.h>

#include "base/progress.h"
#include "bench/attention-bench.h"
#include "bench/decode-bench.h"
#include "bench/step-bench.h"
#include "comm/launch.h"
#include "device/peaks.h"
#include "optim/optimizer.h"
#include "json/json-number.h"

#define SHARE_TEXT 96

int dt_bench_check_settings(const char *what, const struct dt_settings *settings, bool uses_layout,
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

static int read_settings(const struct dt_bench *b, const char *what, struct dt_settings *settings,
                         struct dt_error *err)
{
    const char *path = b->config ? b->config : "settings";
    DT_TRY(dt_settings_read(settings, NULL, b->config, b->set.items, b->set.count, err));
    if (settings->model.vocab_size == 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: model.vocab_size is needed, because no data set gives it", path);
    DT_TRY(dt_settings_resolve(settings, 1, path, err));
    DT_TRY(dt_optimizer_check(settings, path, err));
    DT_TRY(dt_bench_check_settings(what, settings, false, err));
    int objective = settings->training.objective;
    bool own_batches =
        objective == DT_TRAINING_OBJECTIVE_DPO || objective == DT_TRAINING_OBJECTIVE_GRPO;
    return own_batches ? dt_fail(err, DT_EINVALID,
                                 "%s does not use training.objective %s: remove "
                                 "that setting",
                                 what, dt_training_objective_names[objective])
                       : 0;
}

static void print_device(struct dt_bench *b, const struct dt_device *dev,
                         const struct dt_peak *peak, const char *type)
{
    if (*peak->doubt)
        b->warn("%s", peak->doubt);
    if (b->json) {
        dt_buffer_printf(&b->object, "{\"engine\":\"%s\",\"isa\":\"%s\",\"threads\":%d",
                         dev->engine->name, dev->isa, dev->threads);
        dt_json_add_fixed(&b->object, "gemm_gflops", peak->speed * 1e-9, 1);
        dt_buffer_printf(&b->object, ",\"gemm_type\":\"%s\",\"gemm_origin\":\"%s\"", type,
                         peak->origin);
    } else
        b->print(
            "engine            %s, %s, %d thread%s\nGEMM peak         %.1f GFLOP/s of %s, %s\n",
            dev->engine->name, dev->isa, dev->threads, dt_plural((uint64_t)dev->threads),
            peak->speed * 1e-9, type, peak->origin);
}

/* Prints what is measured on a device with this peak, FLOP/s, or adds it to the object. */
typedef int print_results(struct dt_bench *b, struct dt_device *dev, double peak,
                          const struct dt_settings *settings, struct dt_error *err);

/* print NULL: only the peak, which is measured now. */
static int on_device(struct dt_bench *b, enum dt_dtype type, print_results *print,
                     const struct dt_settings *settings, struct dt_error *err)
{
    struct dt_device *dev;
    struct dt_peak peak = {.origin = "measured now"};
    DT_TRY(dt_launch_check_alone(DT_LAUNCH_ONCE, err));
    DT_TRY(dt_device_open(&dev, b->device, (int)b->threads, err));
    dev->chooses_threads = false; /* what is printed is measured with one number of threads */
    int rc = print ? dt_peak_find(dev, type, &peak, err) : 0;
    if (!print)
        peak.speed = dt_device_peak(dev, type, 1);
    if (rc == 0)
        print_device(b, dev, &peak, dt_dtype_names[type]);
    if (rc == 0 && print)
        rc = print(b, dev, peak.speed, settings, err);
    if (b->json)
        dt_buffer_add_string(&b->object, "}\n");
    dt_device_close(dev);
    return rc;
}

int dt_bench_gemm(struct dt_bench *b, const char *operand, struct dt_error *err)
{
    (void)operand;
    return on_device(b, DT_DTYPE_F32, NULL, NULL, err);
}

/* rate as a fraction of the GEMM peak. Above 1, the machine was slower while the peak was measured.
 */
static const char *share_text(double rate, double peak, char text[SHARE_TEXT])
{
    if (rate <= peak)
        snprintf(text, SHARE_TEXT, "%.1f%% of the GEMM peak", 100 * rate / peak);
    else
        snprintf(text, SHARE_TEXT,
                 "above the GEMM peak: the machine was slower while that was measured");
    return text;
}

/* --- attention ------------------------------------------------------------------------------ */

static struct dt_attention_size attention_size(const struct dt_settings *settings)
{
    const struct dt_model_config *m = &settings->model;
    return (struct dt_attention_size){
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
}

static int print_attention(struct dt_bench *b, struct dt_device *dev, double peak,
                           const struct dt_settings *settings, struct dt_error *err)
{
    const struct dt_attention_size size = attention_size(settings);
    struct dt_attention_speed s;
    char forward_share[SHARE_TEXT], backward_share[SHARE_TEXT];
    struct dt_peak reading;
    DT_TRY(dt_attention_bench(dev, &size, b->seconds, &s, err));
    DT_TRY(dt_peak_find_read(dev, &reading, err));
    double forward = s.forward_flops / s.forward, backward = s.backward_flops / s.backward;
    if (b->json) {
        dt_json_add_fixed(&b->object, "forward_s", s.forward, 9);
        dt_json_add_fixed(&b->object, "backward_s", s.backward, 9);
        dt_json_add_fixed(&b->object, "gflops", forward * 1e-9, 1);
        dt_json_add_fixed(&b->object, "backward_gflops", backward * 1e-9, 1);
        dt_json_add_fixed(&b->object, "flops_per_byte", s.forward_flops / s.bytes, 2);
        dt_json_add_fixed(&b->object, "memory_gb_per_second", reading.speed * 1e-9, 2);
    } else
        b->print("forward           %.3f ms, %.1f GFLOP/s, %s\n"
                 "backward          %.3f ms, %.1f GFLOP/s, %s\n"
                 "FLOP per byte     %.1f of forward; memory is read at %.1f GB/s\n",
                 s.forward * 1e3, forward * 1e-9, share_text(forward, peak, forward_share),
                 s.backward * 1e3, backward * 1e-9, share_text(backward, peak, backward_share),
                 s.forward_flops / s.bytes, reading.speed * 1e-9);
    return 0;
}

int dt_bench_attention(struct dt_bench *b, const char *operand, struct dt_error *err)
{
    struct dt_settings settings;
    (void)operand;
    DT_TRY(read_settings(b, "attention", &settings, err));
    return on_device(b, (enum dt_dtype)settings.training.precision, print_attention, &settings,
                     err);
}

/* --- a training step ------------------------------------------------------------------------ */

static void add_step(struct dt_buffer *object, const struct dt_step_times *t, double peak)
{
    double rate = t->flops / t->total;
    dt_buffer_printf(object, ",\"parameters\":%lld,\"tokens\":%lld", (long long)t->parameters,
                     (long long)t->tokens);
    dt_json_add_fixed(object, "forward_backward_s", t->forward_backward, 6);
    dt_json_add_fixed(object, "update_s", t->update, 6);
    dt_json_add_fixed(object, "step_s", t->total, 6);
    dt_json_add_fixed(object, "processor_s", t->processor, 6);
    dt_json_add_fixed(object, "tokens_per_second", (double)t->tokens / t->total, 1);
    dt_json_add_fixed(object, "gflops", rate * 1e-9, 1);
    dt_json_add_fixed(object, "mfu", rate <= peak ? rate / peak : NAN, 4);
    dt_buffer_printf(object, ",\"bytes\":%zu", t->memory);
}

static int print_step(struct dt_bench *b, struct dt_device *dev, double peak,
                      const struct dt_settings *settings, struct dt_error *err)
{
    struct dt_step_times t;
    char memory[DT_PROGRESS_BYTES], share[SHARE_TEXT];
    DT_TRY(dt_step_bench(dev, settings, (int)b->steps, &t, err));
    double rate = t.flops / t.total;
    if (b->json)
        add_step(&b->object, &t, peak);
    else
        b->print("parameters        %.1f M, %s in all\n"
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

int dt_bench_step(struct dt_bench *b, const char *operand, struct dt_error *err)
{
    struct dt_settings settings;
    (void)operand;
    DT_TRY(read_settings(b, "step", &settings, err));
    return on_device(b, (enum dt_dtype)settings.training.precision, print_step, &settings, err);
}

/* --- decoding ------------------------------------------------------------------------------- */

static int print_streams(struct dt_bench *b, struct dt_model *m, int streams, double read_speed,
                         struct dt_error *err)
{
    struct dt_decode_speed s;
    long positions = m->config.max_seq_len, past = positions < 8 ? 1 : positions / 8;
    int steps = (int)(b->steps < positions - past ? b->steps : positions - past);
    DT_TRY(dt_decode_bench(m, streams, past, steps, &s, err));
    double speed = s.bytes / s.step_s, fastest = s.bytes / s.least_s;
    if (b->json) {
        dt_buffer_printf(&b->object, ",\"streams_%d\":{", streams);
        dt_json_add_fixed(&b->object, "tokens_per_second", streams / s.step_s, 2);
        dt_json_add_fixed(&b->object, "prefill_tokens_per_second", (double)s.prompt / s.prefill_s,
                          2);
        dt_json_add_fixed(&b->object, "fastest_tokens_per_second", streams / s.least_s, 2);
        dt_json_add_fixed(&b->object, "bytes_a_step", s.bytes, 0);
        dt_json_add_fixed(&b->object, "read_share", speed / read_speed, 4);
        dt_json_add_fixed(&b->object, "fastest_read_share", fastest / read_speed, 4);
        dt_buffer_add_char(&b->object, '}');
        return 0;
    }
    b->print("%2d stream%-8s  %.1f tokens/s, %.1f in the fastest step; %.1f and %.1f GB/s, "
             "%.0f and %.0f%%\n",
             streams, dt_plural((uint64_t)streams), streams / s.step_s, streams / s.least_s,
             speed * 1e-9, fastest * 1e-9, 100 * speed / read_speed, 100 * fastest / read_speed);
    if (streams == 1)
        b->print("prompt            %.1f tokens/s, of %lld tokens\n",
                 (double)s.prompt / s.prefill_s, (long long)s.prompt);
    return 0;
}

/* Random weights of the magnitude of a model's, generated on the device. */
static int fill_weights(struct dt_model *m, struct dt_error *err)
{
    struct dt_tensor all = dt_matrix(m->parameters, 1, m->table.elements);
    DT_TRY(dt_device_fill(m->device, &all, 1, err));
    m->device->ops->combine(m->device, &all, 0, &all, 0.02f);
    dt_model_refresh(m);
    return 0;
}

static int print_decoding(struct dt_bench *b, struct dt_device *dev, double peak,
                          const struct dt_settings *settings, struct dt_error *err)
{
    (void)peak;
    struct dt_model *m;
    struct dt_peak reading;
    enum dt_dtype type = (enum dt_dtype)settings->training.precision;
    DT_TRY(dt_peak_find_read(dev, &reading, err));
    if (b->json)
        dt_json_add_fixed(&b->object, "read_gb_per_second", reading.speed * 1e-9, 2);
    else
        b->print("reading memory    %.1f GB/s, %s\n", reading.speed * 1e-9, reading.origin);
    DT_TRY(dt_model_new(&m, dev, &settings->model, type, err));
    int rc = fill_weights(m, err);
    if (rc == 0)
        dt_model_arrange_for_decoding(m);
    rc = rc < 0 ? rc : print_streams(b, m, 1, reading.speed, err);
    rc = rc < 0 ? rc : print_streams(b, m, 16, reading.speed, err);
    dt_model_free(m);
    return rc;
}

int dt_bench_decode(struct dt_bench *b, const char *operand, struct dt_error *err)
{
    struct dt_settings settings;
    (void)operand;
    DT_TRY(read_settings(b, "decode", &settings, err));
    if (settings.model.max_seq_len < 2)
        return dt_fail(err, DT_EINVALID,
                       "model.max_seq_len must be at least 2, not %ld: a token of a prompt, and "
                       "one that is measured",
                       settings.model.max_seq_len);
    return on_device(b, DT_DTYPE_F32, print_decoding, &settings, err);
}
