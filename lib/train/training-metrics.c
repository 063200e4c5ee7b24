/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/training-internal.h"
#include "json/json-number.h"
#include "json/json.h"

void dt_training_measure(const struct dt_training *t, struct dt_step_report *r)
{
    double seconds = r->seconds - t->logged_seconds;
    double flops = dt_model_flops_per_token(
        &t->settings.model, t->settings.training.sequence_length, t->settings.data.mask_rate);
    r->tokens_per_second = (double)(r->tokens - t->logged_tokens) / (seconds > 0 ? seconds : 1e-9);
    r->mfu = t->peak > 0 ? r->tokens_per_second * flops / t->peak : 0;
    if (r->mfu > 1) /* the machine was slower when the peak was measured */
        r->mfu = NAN;
}

/* Begins a line with the members that all lines have. */
static struct dt_buffer *begin_line(struct dt_training *t, const struct dt_step_report *r)
{
    struct dt_buffer *line = &t->line;
    dt_buffer_clear(line);
    dt_buffer_printf(line, "{\"step\":%ld,\"tokens\":%" PRIu64, r->step, r->tokens);
    dt_json_add_fixed(line, "time", r->seconds, 3);
    return line;
}

/* Ends the line; rank 0 writes it. */
static int write_line(struct dt_training *t, struct dt_error *err)
{
    return t->metrics.file ? dt_metrics_write(&t->metrics, err, "%s}", t->line.data) : 0;
}

int dt_training_log_hash(void *training, const struct dt_trace_line *line, struct dt_error *err)
{
    struct dt_training *t = training;
    char hex[DT_SUM_HASH_HEX];
    if (t->hashes.file == NULL)
        return 0;
    return dt_metrics_write(
        &t->hashes, err, "{\"step\":%ld,\"operation\":\"%s\",\"tensor\":\"%s\",\"hash\":\"%s\"}",
        line->step, line->operation, line->tensor, dt_sum_hash_hex(&line->hash, hex));
}

/* The line with what a branch changes. */
static int log_branch(struct dt_training *t, struct dt_error *err)
{
    struct json_object *line = dt_json_new_object(), *branch = dt_json_new_object();
    dt_json_object_add(branch, "from", dt_json_new_string(t->parent));
    json_object_object_foreach(t->branch, name, value)
    {
        dt_json_object_add(branch, name, json_object_get(value));
    }
    dt_json_object_add(line, "branch", branch);
    int rc = dt_metrics_write(&t->metrics, err, "%s", dt_json_text(line));
    json_object_put(line);
    return rc;
}

int dt_training_log_run(struct dt_training *t, struct dt_error *err)
{
    const char *const members[][2] = {{"run", t->settings.tracking.run_name},
                                      {"project", t->settings.tracking.project},
                                      {"tags", t->settings.tracking.tags}};
    struct json_object *line = dt_json_new_object();
    for (int i = 0; i < 3; i++)
        if (*members[i][1])
            dt_json_object_add(line, members[i][0], dt_json_new_string(members[i][1]));
    int rc = 0;
    const bool is_new = ftell(t->metrics.file) == 0;
    if (json_object_object_length(line) > 0 && is_new)
        rc = dt_metrics_write(&t->metrics, err, "%s", dt_json_text(line));
    json_object_put(line);
    if (rc == 0 && t->branch && is_new)
        rc = log_branch(t, err);
    return rc;
}

int dt_training_log_damaged(struct dt_training *t, struct dt_error *err)
{
    char *copy = dt_strdup(t->damaged.data ? t->damaged.data : ""), *rest = copy;
    int rc = 0;
    for (char *reason; rc == 0 && (reason = strsep(&rest, "\n")) != NULL;) {
        if (*reason == '\0')
            continue;
        struct json_object *line = dt_json_new_object(), *damaged = dt_json_new_object();
        dt_json_object_add(damaged, "reason", dt_json_new_string(reason));
        dt_json_object_add(damaged, "resumed", dt_json_new_int(t->progress.step));
        dt_json_object_add(line, "damaged", damaged);
        rc = dt_metrics_write(&t->metrics, err, "%s", dt_json_text(line));
        json_object_put(line);
    }
    free(copy);
    return rc;
}

int dt_training_log_lost(struct dt_training *t, struct dt_error *err)
{
    if (t->lost_lines == 0)
        return 0;
    return dt_metrics_write(&t->metrics, err, "{\"lost\":{\"lines\":%ld,\"until\":%ld}}",
                            t->lost_lines, t->progress.step);
}

int dt_training_log_ranks(struct dt_training *t, struct dt_error *err)
{
    const struct dt_seat *seat = dt_membership_seat(t->members);
    const long step = t->progress.step - t->unfinished;
    const struct dt_step_report now = {
        .step = step,
        .tokens = t->progress.samples * (uint64_t)dt_settings_sample_tokens(&t->settings) -
                  (t->unfinished ? t->report.batch_tokens : 0),
        .seconds = t->progress.seconds};
    struct dt_buffer *line = begin_line(t, &now);
    dt_buffer_printf(line, ",\"ranks\":%d,\"generation\":%ld", dt_comm_size(t->comm),
                     seat->generation);
    dt_json_add_fixed(line, "waited", seat->waited, 3);
    t->progress.logged_lines += step > 0;
    return write_line(t, err);
}

/* The number of a line "NAME:   N kB" of /proc/self/status, in bytes; 0: there is none. */
static uint64_t find_bytes(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    return line ? (uint64_t)strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

/* It reads the file without stdio, since a step allocates nothing. */
static void add_memory(const struct dt_training *t, struct dt_buffer *line)
{
    char status[4096];
    const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file >= 0 ? read(file, status, sizeof status - 1) : -1;
    if (file >= 0)
        close(file);
    status[bytes > 0 ? bytes : 0] = '\0';
    dt_buffer_printf(line, ",\"device_memory\":%zu", t->memory.total);
    if (bytes > 0)
        dt_buffer_printf(line, ",\"resident_memory\":%" PRIu64 ",\"peak_memory\":%" PRIu64,
                         find_bytes(status, "\nVmRSS:"), find_bytes(status, "\nVmHWM:"));
}

/* Members that differ between runs of the same bits. */
static void add_use(struct dt_training *t, const struct dt_step_report *r, struct dt_buffer *line)
{
    const double sample = (double)dt_settings_sample_tokens(&t->settings);
    const double waited = dt_comm_waited(t->comm);
    dt_json_add_fixed(line, "tokens_per_second", r->tokens_per_second, 1);
    dt_json_add_fixed(line, "samples_per_second", r->tokens_per_second / sample, 3);
    dt_json_add_fixed(line, "mfu", r->mfu, 4);
    if (t->peak > 0)
        dt_json_add_fixed(line, "peak_gflops", t->peak * 1e-9, 1);
    add_memory(t, line);
    dt_buffer_printf(line, ",\"threads\":%d,\"ranks\":%d", r->threads, dt_comm_size(t->comm));
    if (dt_comm_size(t->comm) > 1)
        dt_json_add_fixed(line, "waited_seconds", waited - t->logged_waited, 3);
    t->logged_waited = waited;
    dt_json_add_fixed(line, "loader_seconds", t->loader_seconds, 6);
    t->loader_seconds = 0;
}

/* Of training.layer_metrics, what is not of a layer. */
static void add_layers(const struct dt_training *t, struct dt_buffer *line)
{
    if (t->has_layers && dt_settings_measures(&t->settings, DT_LAYER_METRIC_LOGITS)) {
        dt_json_add_real(line, "logit_rms", dt_layer_metrics_logit_rms(&t->layers), 9);
        dt_json_add_real(line, "logit_max", dt_layer_metrics_logit_max(&t->layers), 9);
    }
    if (t->has_layers && dt_settings_measures(&t->settings, DT_LAYER_METRIC_NOISE)) {
        dt_json_add_real(line, "gradient_signal", t->noise.signal, 9);
        dt_json_add_real(line, "gradient_noise", t->noise.noise, 9);
    }
}

int dt_training_log_step(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    char hex[DT_SUM_HASH_HEX];
    DT_TRY(dt_state_hash_total(&t->trace.parameters, t->mesh.world, &r->parameter_hash, err));
    struct dt_buffer *line = begin_line(t, r);
    dt_json_add_real(line, "loss", r->loss, 9);
    dt_json_add_real(line, "lr", r->learning_rate, 9);
    dt_json_add_real(line, "grad_norm", r->gradient_norm, 9);
    for (int i = 0; i < DT_PREFERENCE_METRICS && dt_training_has_pairs(t); i++)
        dt_json_add_real(line, dt_preference_metric_names[i], r->preferences[i], 9);
    for (int i = 0; i < DT_GROUP_METRICS && dt_training_has_prompts(t); i++)
        dt_json_add_real(line, dt_group_metric_names[i], r->groups[i], 9);
    add_layers(t, line);
    const uint64_t seen = t->progress.samples - (uint64_t)t->settings.branch.data_start;
    dt_json_add_real(line, "epoch", (double)seen / (double)t->samples, 9);
    add_use(t, r, line);
    dt_buffer_printf(line, ",\"batch_hash\":\"%s\"", dt_sum_hash_hex(&r->batch_hash, hex));
    dt_buffer_printf(line, ",\"parameter_hash\":\"%s\"", dt_sum_hash_hex(&r->parameter_hash, hex));
    if (t->settings.training.batch_ramp_tokens > 0)
        dt_buffer_printf(line, ",\"batch_tokens\":%" PRIu64, r->batch_tokens);
    if (t->settings.training.precision == DT_DTYPE_F16)
        dt_json_add_real(line, "loss_scale", r->loss_scale, 9);
    if (r->skipped > 0)
        dt_buffer_printf(line, ",\"skipped\":%ld", r->skipped);
    if (dt_comm_size(t->comm) > 1)
        dt_buffer_printf(line, ",\"bytes_sent\":%" PRIu64, dt_comm_bytes_sent(t->comm));
    if (r->slowest_factor > 0 && dt_comm_size(t->mesh.world) > 1) {
        dt_buffer_printf(line, ",\"slowest_rank\":%d", r->slowest_rank);
        dt_json_add_real(line, "slowest_factor", r->slowest_factor, 9);
    }
    t->logged_seconds = r->seconds;
    t->logged_tokens = r->tokens;
    r->logged = true;
    t->progress.logged_lines++;
    return write_line(t, err);
}

static void add_of_set(struct dt_buffer *line, const char *what,
                       const struct dt_validation_set *set, double value)
{
    char *name = dt_asprintf("%s%s", what, set->name);
    dt_json_add_real(line, name, value, 9);
    free(name);
}

/* Members of a line about layer 0 .. L; L is the final norm. */
static void add_layer(const struct dt_training *t, int layer, bool is_final, struct dt_buffer *line)
{
    const struct dt_layer_metrics *m = &t->layers;
    const bool states = dt_settings_measures(&t->settings, DT_LAYER_METRIC_RMS);
    if (states)
        dt_json_add_real(line, "input_rms", dt_layer_metrics_rms(m, layer, DT_TRACE_POINT_INPUT),
                         9);
    if (states)
        dt_json_add_real(line, is_final ? "output_rms" : "middle_rms",
                         dt_layer_metrics_rms(
                             m, layer, is_final ? DT_TRACE_POINT_OUTPUT : DT_TRACE_POINT_MIDDLE),
                         9);
    if (!is_final && dt_settings_measures(&t->settings, DT_LAYER_METRIC_DEAD_UNITS))
        dt_json_add_real(line, "dead_units", dt_layer_metrics_dead_units(m, layer), 9);
    if (is_final || !dt_settings_measures(&t->settings, DT_LAYER_METRIC_ENTROPY))
        return;
    dt_json_add_real(line, "attention_entropy", dt_layer_metrics_entropy(m, layer, -1), 9);
    dt_buffer_add_string(line, ",\"head_entropies\":[");
    for (int head = 0; head < t->model->config.num_heads; head++) {
        dt_buffer_add_string(line, head > 0 ? "," : "");
        dt_json_add_number(line, dt_layer_metrics_entropy(m, layer, head));
    }
    dt_buffer_add_char(line, ']');
}

int dt_training_log_layers(struct dt_training *t, struct dt_error *err)
{
    const int layers = t->model->table.layers;
    for (int layer = 0; t->tensors.file && layer <= layers; layer++) {
        dt_buffer_clear(&t->line);
        dt_buffer_printf(&t->line, "{\"step\":%ld,\"layer\":%d", t->progress.step, layer);
        add_layer(t, layer, layer == layers, &t->line);
        DT_TRY(dt_metrics_write(&t->tensors, err, "%s}", t->line.data));
    }
    return 0;
}

int dt_training_log_norms(struct dt_training *t, struct dt_error *err)
{
    const struct dt_state_hash *owned = t->norms.owned;
    for (int i = 0; t->tensors.file && i < owned->count; i++) {
        const struct dt_tensor_norm *n = &t->norms.norms[i];
        dt_buffer_clear(&t->line);
        dt_buffer_printf(&t->line, "{\"step\":%ld,\"tensor\":\"%s\"", t->progress.step,
                         owned->tensors[i].name);
        dt_json_add_real(&t->line, "parameter_norm", n->parameter, 9);
        dt_json_add_real(&t->line, "gradient_norm", n->gradient, 9);
        dt_json_add_real(&t->line, "update_norm", n->update, 9);
        dt_json_add_real(&t->line, "update_ratio",
                         n->parameter > 0 ? n->update / n->parameter : NAN, 9);
        DT_TRY(dt_metrics_write(&t->tensors, err, "%s}", t->line.data));
    }
    return 0;
}

int dt_training_log_validation(struct dt_training *t, const struct dt_step_report *r,
                               struct dt_error *err)
{
    struct dt_buffer *line = begin_line(t, r);
    if (t->val)
        dt_json_add_real(line, "val_loss", r->val_loss, 9);
    if (t->val && dt_training_scores_accuracy(t))
        dt_json_add_real(line, "val_accuracy", r->val_accuracy, 9);
    if (t->val && t->state.ema)
        dt_json_add_real(line, "ema_val_loss", r->ema_val_loss, 9);
    for (int i = 0; i < t->set_count; i++) {
        add_of_set(line, "val_loss_", &t->sets[i], t->sets[i].loss);
        if (dt_training_scores_accuracy(t))
            add_of_set(line, "val_accuracy_", &t->sets[i], t->sets[i].accuracy);
    }
    t->progress.logged_lines++;
    return write_line(t, err);
}
