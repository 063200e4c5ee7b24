/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>

#include "train/training-parts.h"

void dt_training_measure(const struct dt_training *t, struct dt_step_report *r)
{
    double seconds = r->seconds - t->logged_seconds;
    double flops =
        dt_model_flops_per_token(&t->settings.model, t->settings.training.sequence_length);
    r->tokens_per_second = (double)(r->tokens - t->logged_tokens) / (seconds > 0 ? seconds : 1e-9);
    r->mfu = t->peak > 0 ? r->tokens_per_second * flops / t->peak : 0;
}

#define REAL_TEXT 32

/* As JSON, which has no word for what is not finite. */
static const char *real_text(double x, char text[REAL_TEXT])
{
    snprintf(text, REAL_TEXT, isfinite(x) ? "%.9g" : "null", x);
    return text;
}

int dt_training_log_step(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    char loss[REAL_TEXT], norm[REAL_TEXT], skipped[REAL_TEXT + 16] = "";
    if (r->skipped > 0)
        snprintf(skipped, sizeof skipped, ",\"skipped\":%ld", r->skipped);
    t->logged_seconds = r->seconds;
    t->logged_tokens = r->tokens;
    r->logged = true;
    return dt_metrics_write(
        &t->metrics, err,
        "{\"step\":%ld,\"tokens\":%llu,\"time\":%.3f,\"loss\":%s,"
        "\"lr\":%.9g,\"grad_norm\":%s,\"tokens_per_second\":%.1f,"
        "\"mfu\":%.4f%s}",
        r->step, (unsigned long long)r->tokens, r->seconds, real_text(r->loss, loss),
        r->learning_rate, real_text(r->gradient_norm, norm), r->tokens_per_second, r->mfu, skipped);
}

int dt_training_log_validation(struct dt_training *t, const struct dt_step_report *r,
                               struct dt_error *err)
{
    char text[REAL_TEXT];
    return dt_metrics_write(
        &t->metrics, err, "{\"step\":%ld,\"tokens\":%llu,\"time\":%.3f,\"val_loss\":%s}", r->step,
        (unsigned long long)r->tokens, r->seconds, real_text(r->val_loss, text));
}
