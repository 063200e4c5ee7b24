/* SPDX-License-Identifier: MIT */
#include "plan/roofline.h"

#include <string.h>

#include "json/json-number.h"
#include "json/json.h"

int dt_roofline_make(struct dt_step_work *work, const struct dt_plan_request *r,
                     const struct dt_plan_layout *layout, struct dt_error *err)
{
    const struct dt_settings settings = dt_plan_settings(r->settings, layout);
    struct dt_base base;
    DT_TRY(dt_base_init(&base, &settings, layout, err));
    dt_costs_step_work(work, &base, &settings, layout, r->cluster);
    dt_base_release(&base);
    return 0;
}

static struct dt_work sum_of(const struct dt_step_work *w)
{
    struct dt_work sum = w->update;
    for (int i = 0; i < DT_WORK_PARTS; i++)
        for (int backward = 0; backward < 2; backward++) {
            const struct dt_work *part = backward ? &w->backward[i] : &w->forward[i];
            sum.flops += part->flops;
            sum.bytes += part->bytes;
            sum.launches += part->launches;
            sum.seconds += part->seconds;
            sum.least += part->least;
        }
    return sum;
}

/* --- text ------------------------------------------------------------------------------------- */

static void print_row(struct dt_buffer *text, const char *pass, const char *name,
                      const struct dt_work *w)
{
    dt_buffer_printf(text, "%-8s  %-9s  %9.1f  %7.2f  %9.1f  %8.0f  %9.3f  %9.3f\n", pass, name,
                     w->flops * 1e-9, w->bytes * 1e-9, w->flops / w->bytes, w->launches,
                     w->least * 1e3, w->seconds * 1e3);
}

void dt_roofline_print(struct dt_buffer *text, const struct dt_step_work *work,
                       const struct dt_plan_request *r, const struct dt_plan_layout *l)
{
    const struct dt_cluster *c = r->cluster;
    const struct dt_work all = sum_of(work);
    const double tokens = dt_layout_tokens(l, r->settings) * (double)l->batches;
    const bool halves = r->settings->training.precision != DT_DTYPE_F32;
    const double peak = halves ? c->device.tflops_16 : c->device.tflops_32;
    dt_buffer_printf(text,
                     "%s: %.1f TFLOP/s and %.0f GB/s at most; products reach %.0f%%, attention "
                     "%.0f%%, memory %.0f%%\n"
                     "%.0f tokens in %ld micro-batch%s\n\n"
                     "pass      part           GFLOP       GB     FLOP/B  launches   least ms  "
                     "likely ms\n",
                     c->device.name, peak, c->device.bandwidth, 100 * c->device.gemm_efficiency,
                     100 * c->device.attention_efficiency, 100 * c->device.bandwidth_efficiency,
                     tokens, l->batches, l->batches == 1 ? "" : "es");
    for (int backward = 0; backward < 2; backward++)
        for (int i = 0; i < DT_WORK_PARTS; i++) {
            const struct dt_work *part = backward ? &work->backward[i] : &work->forward[i];
            if (part->bytes > 0)
                print_row(text, backward ? "backward" : "forward", dt_work_names[i], part);
        }
    print_row(text, "update", "", &work->update);
    print_row(text, "step", "", &all);
    dt_buffer_printf(text,
                     "\nlikely: %.0f tokens/s; %.1f%% of the peak, %.1f%% of memory's bandwidth\n",
                     tokens / all.seconds, 100 * all.flops / all.seconds / (peak * 1e12),
                     100 * all.bytes / all.seconds / (c->device.bandwidth * 1e9));
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void add_work(struct dt_buffer *text, const char *pass, const char *name,
                     const struct dt_work *w, bool first)
{
    dt_buffer_printf(text, "%s{\"pass\":\"%s\",\"part\":\"%s\"", first ? "" : ",", pass, name);
    dt_json_add_fixed(text, "flops", w->flops, 0);
    dt_json_add_fixed(text, "bytes", w->bytes, 0);
    dt_json_add_fixed(text, "launches", w->launches, 1);
    dt_json_add_fixed(text, "least_s", w->least, 9);
    dt_json_add_fixed(text, "likely_s", w->seconds, 9);
    dt_buffer_add_char(text, '}');
}

void dt_roofline_print_json(struct dt_buffer *text, const struct dt_step_work *work,
                            const struct dt_plan_request *r, const struct dt_plan_layout *l)
{
    const struct dt_work all = sum_of(work);
    dt_buffer_add_string(text, "{\"device\":");
    dt_json_add_string(text, r->cluster->device.name, strlen(r->cluster->device.name));
    dt_json_add_fixed(text, "tokens", dt_layout_tokens(l, r->settings) * (double)l->batches, 0);
    dt_buffer_add_string(text, ",\"parts\":[");
    for (int backward = 0; backward < 2; backward++)
        for (int i = 0; i < DT_WORK_PARTS; i++)
            add_work(text, backward ? "backward" : "forward", dt_work_names[i],
                     backward ? &work->backward[i] : &work->forward[i], i + backward == 0);
    add_work(text, "update", "", &work->update, false);
    add_work(text, "step", "", &all, false);
    dt_buffer_add_string(text, "]}\n");
}
