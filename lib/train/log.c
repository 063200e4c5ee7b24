/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "train/training-parts.h"

void dt_training_measure(const struct dt_training *t, struct dt_step_report *r)
{
    double seconds = r->seconds - t->logged_seconds;
    double flops =
        dt_model_flops_per_token(&t->settings.model, t->settings.training.sequence_length);
    r->tokens_per_second = (double)(r->tokens - t->logged_tokens) / (seconds > 0 ? seconds : 1e-9);
    r->mfu = t->peak > 0 ? r->tokens_per_second * flops / t->peak : 0;
    if (r->mfu > 1) /* the machine was slower while the peak was measured */
        r->mfu = NAN;
}

#define REAL_TEXT 48

static const char *mfu_member(double mfu, char text[REAL_TEXT])
{
    snprintf(text, REAL_TEXT, isfinite(mfu) ? ",\"mfu\":%.4f" : ",\"mfu\":null", mfu);
    return text;
}

/* ,"NAME":X as JSON, which has no word for what is not finite. */
static const char *member(const char *name, double x, char text[REAL_TEXT])
{
    snprintf(text, REAL_TEXT, isfinite(x) ? ",\"%s\":%.9g" : ",\"%s\":null", name, x);
    return text;
}

int dt_training_log_run(struct dt_training *t, struct dt_error *err)
{
    const char *const members[][2] = {{"run", t->settings.tracking.run_name},
                                      {"project", t->settings.tracking.project},
                                      {"tags", t->settings.tracking.tags}};
    struct json_object *line = json_object_new_object();
    for (int i = 0; i < 3; i++)
        if (*members[i][1])
            json_object_object_add(line, members[i][0], json_object_new_string(members[i][1]));
    int rc = 0;
    if (json_object_object_length(line) > 0 && ftell(t->metrics.file) == 0)
        rc = dt_metrics_write(&t->metrics, err, "%s",
                              json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN));
    json_object_put(line);
    return rc;
}

int dt_training_log_lost(struct dt_training *t, struct dt_error *err)
{
    if (t->unlogged_after == t->unlogged_until)
        return 0;
    return dt_metrics_write(&t->metrics, err, "{\"lost\":{\"after\":%ld,\"until\":%ld}}",
                            t->unlogged_after, t->unlogged_until);
}

int dt_training_log_step(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    char loss[REAL_TEXT], rate[REAL_TEXT], norm[REAL_TEXT], scale[REAL_TEXT] = "";
    char skipped[REAL_TEXT] = "", batch[REAL_TEXT] = "";
    char slowest[REAL_TEXT] = "", factor[REAL_TEXT] = "", sent[REAL_TEXT] = "", mfu[REAL_TEXT];
    if (t->settings.training.batch_ramp_tokens > 0)
        member("batch_tokens", (double)r->batch_tokens, batch);
    if (t->settings.training.precision == DT_F16)
        member("loss_scale", r->loss_scale, scale);
    if (r->skipped > 0)
        member("skipped", (double)r->skipped, skipped);
    if (dt_comm_size(t->comm) > 1)
        snprintf(sent, sizeof sent, ",\"bytes_sent\":%" PRIu64, dt_comm_bytes_sent(t->comm));
    if (r->slowest_factor > 0 && dt_comm_size(t->comm) > 1) {
        member("slowest_rank", r->slowest_rank, slowest);
        member("slowest_factor", r->slowest_factor, factor);
    }
    t->logged_seconds = r->seconds;
    t->logged_tokens = r->tokens;
    r->logged = true;
    t->state.logged_step = r->step;
    if (!t->leads)
        return 0;
    return dt_metrics_write(
        &t->metrics, err,
        "{\"step\":%ld,\"tokens\":%llu,\"time\":%.3f%s%s%s,\"tokens_per_second\":%.1f"
        "%s%s%s%s%s%s%s}",
        r->step, (unsigned long long)r->tokens, r->seconds, member("loss", r->loss, loss),
        member("lr", r->learning_rate, rate), member("grad_norm", r->gradient_norm, norm),
        r->tokens_per_second, mfu_member(r->mfu, mfu), batch, scale, skipped, sent, slowest,
        factor);
}

int dt_training_log_validation(struct dt_training *t, const struct dt_step_report *r,
                               struct dt_error *err)
{
    char loss[REAL_TEXT], average[REAL_TEXT] = "", accuracy[REAL_TEXT] = "";
    if (t->store.average)
        member("ema_val_loss", r->ema_val_loss, average);
    if (t->objective.validation)
        member("val_accuracy", r->val_accuracy, accuracy);
    t->state.logged_step = r->step;
    if (!t->leads)
        return 0;
    return dt_metrics_write(&t->metrics, err, "{\"step\":%ld,\"tokens\":%llu,\"time\":%.3f%s%s%s}",
                            r->step, (unsigned long long)r->tokens, r->seconds,
                            member("val_loss", r->val_loss, loss), accuracy, average);
}
