/* SPDX-License-Identifier: MIT */
#include "plan/report.h"

#include <math.h>
#include <stdio.h>

#include "model/block.h"
#include "parallel/data-parallel.h"
#include "parallel/gradient-compression.h"
#include "json/json-number.h"

#define GIB 1073741824.0

/* --- text ----------------------------------------------------------------------------------- */

static void print_model(struct dt_buffer *b, const struct dt_plan *p,
                        const struct dt_plan_request *r)
{
    const struct dt_part_sizes *n = &p->parts;
    const struct {
        const char *name;
        double count;
    } rows[] = {{"embedding", n->embedding}, {"attention", n->attention}, {"MLP", n->mlp},
                {"norms", n->norm},          {"head", n->head},           {"total", n->total}};
    dt_buffer_printf(b, "parameters                number   share\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        dt_buffer_printf(b, "  %-13s  %15.0f  %5.1f%%\n", rows[i].name, rows[i].count,
                         100 * rows[i].count / n->total);
    dt_buffer_printf(b, "\ncluster          %s, %ld of %ld %s (%s)\n", r->cluster->name,
                     dt_layout_ranks(&p->layout), dt_cluster_ranks(r->cluster),
                     r->cluster->device.ranks > 1 ? "ranks on shared devices" : "devices",
                     r->cluster->device.name);
}

static void print_layout(struct dt_buffer *b, const struct dt_plan *p,
                         const struct dt_plan_request *r)
{
    const struct dt_plan_layout *l = &p->layout;
    dt_buffer_printf(b, "layout           pp %ld x dp %ld", l->pp, l->dp);
    if (l->cp > 1)
        dt_buffer_printf(b, " x cp %ld", l->cp);
    dt_buffer_printf(b, " x tp %ld, ZeRO %ld", l->tp, l->zero_stage);
    if (dt_layout_shard_groups(l) > 1)
        dt_buffer_printf(b, " in groups of %ld", l->shard);
    if (l->pp > 1)
        dt_buffer_printf(b, ", %s", dt_pipeline_schedule_names[l->pipeline.schedule]);
    if (l->pipeline.chunks > 1)
        dt_buffer_printf(b, ", %d virtual stages", l->pipeline.chunks);
    dt_buffer_printf(
        b,
        "\nstep             %.0f tokens: %ld micro-batch%s of %ld x %ld per DP rank\n"
        "precision        %s, recompute: %s\n",
        p->tokens, l->batches, l->batches == 1 ? "" : "es",
        l->batch * dt_settings_sample_sequences(r->settings), r->settings->training.sequence_length,
        dt_dtype_names[r->settings->training.precision], dt_recompute_names[l->recompute]);
}

struct row {
    const char *name;
    double bytes;
    bool optional; /* not printed if it is 0 */
};

static void print_bytes(struct dt_buffer *b, const struct row *rows, int count)
{
    for (int i = 0; i < count; i++)
        if (rows[i].bytes > 0 || !rows[i].optional)
            dt_buffer_printf(b, "  %-13s  %15.0f  %9.3f\n", rows[i].name, rows[i].bytes,
                             rows[i].bytes / GIB);
}

#define MEMORY_ROWS 9

static void memory_rows(const struct dt_rank_sizes *s, struct row rows[MEMORY_ROWS])
{
    const struct row all[MEMORY_ROWS] = {
        {"parameters", s->parameters},   {"weights", s->weights},       {"gradients", s->gradients},
        {"moments", s->moments},         {"average", s->average},       {"scratch", s->scratch},
        {"activations", s->activations}, {"sampler", s->sampler, true}, {"total", s->total}};
    for (int i = 0; i < MEMORY_ROWS; i++)
        rows[i] = all[i];
}

static void print_memory(struct dt_buffer *b, const struct dt_plan *p)
{
    struct row rows[MEMORY_ROWS];
    const struct row most = {"largest rank", p->most};
    const struct row more[] = {{"available", p->available}, {"host snapshot", p->sizes.snapshot}};
    memory_rows(&p->sizes, rows);
    dt_buffer_printf(b, "\nmemory per rank            bytes        GiB");
    if (p->layout.pp > 1)
        dt_buffer_printf(b, "   (stage %ld, the largest)", p->stage);
    dt_buffer_add_char(b, '\n');
    print_bytes(b, rows, MEMORY_ROWS);
    print_bytes(b, &most, p->most > p->sizes.total ? 1 : 0);
    print_bytes(b, more, 2);
}

static int largest(const struct row *rows)
{
    int most = 0;
    for (int i = 0; i < MEMORY_ROWS - 1; i++)
        most = rows[i].bytes > rows[most].bytes ? i : most;
    return most;
}

static void print_fit(struct dt_buffer *b, const struct dt_plan *p)
{
    struct row rows[MEMORY_ROWS];
    double left = p->available - p->most;
    memory_rows(&p->sizes, rows);
    const struct row *most = &rows[largest(rows)];
    if (p->fits)
        dt_buffer_printf(b, "fits             %.3f GiB of each device remain free\n", left / GIB);
    else
        dt_buffer_printf(b,
                         "does not fit     stage %ld exceeds device memory by %.0f bytes\n"
                         "                 (%.3f GiB); the largest part is %s, %.3f GiB\n",
                         p->stage, -left, -left / GIB, most->name, most->bytes / GIB);
}

static void print_traffic(struct dt_buffer *b, const struct dt_traffic *t)
{
    const struct row rows[] = {{"data", t->data},
                               {"context", t->context},
                               {"tensor", t->tensor},
                               {"pipeline", t->pipeline},
                               {"total", t->total}};
    dt_buffer_printf(b, "\nsent per rank and step     bytes        GiB\n");
    print_bytes(b, rows, 5);
}

static void print_seconds(struct dt_buffer *b, const char *name, double seconds, double of,
                          const char *note)
{
    dt_buffer_printf(b, "  %-13s  %12.3f ms  %5.1f%%%s%s\n", name, seconds * 1e3,
                     100 * seconds / of, *note ? "  " : "", note);
}

static void print_untimed(struct dt_buffer *b, const struct dt_plan_request *r)
{
    if (r->settings->distributed.sync != DT_SYNC_ALL_REDUCE ||
        r->settings->distributed.compress != DT_COMPRESS_NONE)
        dt_buffer_printf(b,
                         "not timed        distributed.sync and distributed.compress: predicted as "
                         "allreduce\n");
}

static void print_time(struct dt_buffer *b, const struct dt_plan *p,
                       const struct dt_plan_request *r)
{
    const struct dt_step_simulation *s = &p->step;
    char bubble[80];
    snprintf(bubble, sizeof bubble, "bubble %.1f%%, by formula %.1f%%", 100 * s->bubble,
             100 * p->ideal_bubble);
    dt_buffer_printf(b, "\ntime per step                          share\n");
    print_seconds(b, "computing", s->computing, s->seconds, "");
    print_seconds(b, "tensor", s->tensor, s->seconds, "transfers inside layers");
    print_seconds(b, "pipeline", s->pipeline_wait, s->seconds, p->layout.pp > 1 ? bubble : "");
    print_seconds(b, "data", s->data_wait, s->seconds, "exposed all-gathers and reductions");
    print_seconds(b, "update", s->update, s->seconds, "");
    print_seconds(b, "total", s->seconds, s->seconds, "");
    print_untimed(b, r);
    dt_buffer_printf(b, "speed            %.0f tokens/s, %.1f per device, MFU %.1f%% (6N + 6LCT)\n",
                     p->tokens_per_second, p->tokens_per_device, 100 * p->mfu);
}

static void print_goodput(struct dt_buffer *b, const struct dt_plan *p,
                          const struct dt_plan_request *r)
{
    const struct dt_goodput *g = &p->goodput;
    double progress = (double)r->settings->training.max_steps * p->step.seconds;
    if (g->mtbf == 0)
        return;
    dt_buffer_printf(b,
                     "\nfailures         one in %.1f hours; a checkpoint takes %.1f s, a restart "
                     "%.0f s\n"
                     "checkpoints      optimal every %.1f min (Young %.1f): %.0f steps\n"
                     "goodput          %.2f%% expected; %.2f%% in one simulated run of %ld steps\n",
                     g->mtbf / 3600, g->checkpoint, g->restart, g->daly / 60, g->young / 60,
                     ceil(g->daly / p->step.seconds), 100 * g->share,
                     100 * dt_goodput_simulated(g, g->daly, progress, r->simulation.seed),
                     r->settings->training.max_steps);
}

void dt_report_plan(struct dt_buffer *b, const struct dt_plan *p, const struct dt_plan_request *r)
{
    print_model(b, p, r);
    print_layout(b, p, r);
    print_memory(b, p);
    print_fit(b, p);
    print_traffic(b, &p->traffic);
    print_time(b, p, r);
    print_goodput(b, p, r);
}

static void print_candidate(struct dt_buffer *b, int rank, const struct dt_plan *p)
{
    const struct dt_plan_layout *l = &p->layout;
    char zero[48];
    snprintf(zero, sizeof zero, dt_layout_shard_groups(l) > 1 ? "%ld/%ld" : "%ld", l->zero_stage,
             l->shard);
    dt_buffer_printf(b, "%3d %3ld %5ld %3ld %3ld %4s %6d %3ldx%-4ld %-9s %6.2f %8.2f %6.0f %4.1f\n",
                     rank, l->pp, l->dp, l->cp, l->tp, zero, l->pipeline.chunks, l->batch,
                     l->batches, dt_recompute_names[l->recompute], p->sizes.total / GIB,
                     p->step.seconds * 1e3, p->tokens_per_device, 100 * p->mfu);
}

void dt_report_search(struct dt_buffer *b, const struct dt_search *s,
                      const struct dt_plan_request *r, long devices)
{
    dt_buffer_printf(
        b,
        "%ld layout%s on %ld device%s of %s, %ld fit, %ld simulated\n"
        "tok/s is that of one device\n\n"
        "     pp    dp  cp  tp ZeRO chunks batches  recompute    GiB  ms/step  tok/s  MFU\n",
        s->tried, s->tried == 1 ? "" : "s", devices, devices == 1 ? "" : "s", r->cluster->name,
        s->fitting, s->simulated);
    for (int i = 0; i < s->count; i++)
        print_candidate(b, i + 1, &s->best[i]);
    if (s->count == 0)
        dt_buffer_add_string(b, "  no layout fits\n");
    print_untimed(b, r);
    if (s->failure_count > 0)
        dt_buffer_add_string(b, "\nrejected layouts\n");
    for (int i = 0; i < s->failure_count; i++) {
        const struct dt_search_failure *f = &s->failures[i];
        dt_buffer_printf(b, "%8ld  %s\n", f->layouts, f->reason);
        if (f->nearest.available > 0)
            dt_buffer_printf(
                b,
                "          nearest: pp %ld dp %ld cp %ld tp %ld ZeRO %ld recompute %s, "
                "%.2f GiB too large\n",
                f->nearest.layout.pp, f->nearest.layout.dp, f->nearest.layout.cp,
                f->nearest.layout.tp, f->nearest.layout.zero_stage,
                dt_recompute_names[f->nearest.layout.recompute],
                (f->nearest.most - f->nearest.available) / GIB);
    }
}

/* --- JSON ----------------------------------------------------------------------------------- */

static void put(struct json_object *o, const char *name, double x)
{
    dt_json_object_add(o, name, dt_json_number(x));
}

static void put_int(struct json_object *o, const char *name, double x)
{
    bool fits = fabs(x) < 0x1p63; /* not if x is infinite or NaN */
    dt_json_object_add(o, name, fits ? dt_json_new_int((int64_t)llround(x)) : dt_json_number(x));
}

static void put_string(struct json_object *o, const char *name, const char *text)
{
    dt_json_object_add(o, name, dt_json_new_string(text));
}

static struct json_object *layout_json(const struct dt_plan_layout *l)
{
    struct json_object *o = dt_json_new_object();
    put_int(o, "pp", (double)l->pp);
    put_int(o, "dp", (double)l->dp);
    put_int(o, "cp", (double)l->cp);
    put_int(o, "tp", (double)l->tp);
    put_int(o, "zero_stage", (double)l->zero_stage);
    put_int(o, "shard_ranks", (double)dt_layout_shard_size(l));
    put_string(o, "schedule", dt_pipeline_schedule_names[l->pipeline.schedule]);
    put_int(o, "virtual_stages", (double)l->pipeline.chunks);
    put_int(o, "batch_size", (double)l->batch);
    put_int(o, "micro_batches", (double)l->batches);
    put_string(o, "recompute", dt_recompute_names[l->recompute]);
    return o;
}

static struct json_object *memory_json(const struct dt_plan *p)
{
    struct json_object *o = dt_json_new_object();
    struct row rows[MEMORY_ROWS];
    memory_rows(&p->sizes, rows);
    for (int i = 0; i < MEMORY_ROWS; i++)
        put_int(o, rows[i].name, rows[i].bytes);
    put_int(o, "largest_slice", p->most);
    put_int(o, "room", p->available);
    put_int(o, "snapshot", p->sizes.snapshot);
    put_int(o, "stage", (double)p->stage);
    dt_json_object_add(o, "fits", dt_json_new_boolean(p->fits));
    return o;
}

static struct json_object *parts_json(const struct dt_part_sizes *n)
{
    struct json_object *o = dt_json_new_object();
    put_int(o, "embedding", n->embedding);
    put_int(o, "attention", n->attention);
    put_int(o, "mlp", n->mlp);
    put_int(o, "norm", n->norm);
    put_int(o, "head", n->head);
    put_int(o, "total", n->total);
    return o;
}

static struct json_object *traffic_json(const struct dt_traffic *t)
{
    struct json_object *o = dt_json_new_object();
    put_int(o, "data", t->data);
    put_int(o, "context", t->context);
    put_int(o, "tensor", t->tensor);
    put_int(o, "pipeline", t->pipeline);
    put_int(o, "total", t->total);
    return o;
}

/* Settings that the predicted time ignores. */
static struct json_object *untimed_json(const struct dt_plan_request *r)
{
    struct json_object *names = dt_json_new_array();
    if (r->settings->distributed.sync != DT_SYNC_ALL_REDUCE)
        dt_json_array_add(names, dt_json_new_string("distributed.sync"));
    if (r->settings->distributed.compress != DT_COMPRESS_NONE)
        dt_json_array_add(names, dt_json_new_string("distributed.compress"));
    return names;
}

static struct json_object *step_json(const struct dt_plan *p, const struct dt_plan_request *r)
{
    struct json_object *o = dt_json_new_object();
    put(o, "seconds", p->step.seconds);
    put(o, "computing", p->step.computing);
    put(o, "tensor", p->step.tensor);
    put(o, "pipeline_wait", p->step.pipeline_wait);
    put(o, "data_wait", p->step.data_wait);
    put(o, "update", p->step.update);
    put(o, "bubble", p->step.bubble);
    put(o, "bubble_by_formula", p->ideal_bubble);
    put_int(o, "in_flight", (double)p->step.in_flight);
    put_int(o, "tokens", p->tokens);
    put(o, "tokens_per_second", p->tokens_per_second);
    put(o, "tokens_per_second_per_device", p->tokens_per_device);
    put(o, "mfu", p->mfu);
    dt_json_object_add(o, "not_timed", untimed_json(r));
    return o;
}

static struct json_object *goodput_json(const struct dt_plan *p)
{
    const struct dt_goodput *g = &p->goodput;
    struct json_object *o = dt_json_new_object();
    put(o, "mtbf_s", g->mtbf);
    put(o, "checkpoint_s", g->checkpoint);
    put(o, "restart_s", g->restart);
    put(o, "young_interval_s", g->young);
    put(o, "daly_interval_s", g->daly);
    put(o, "share", g->share);
    return o;
}

struct json_object *dt_report_plan_json(const struct dt_plan *p, const struct dt_plan_request *r)
{
    struct json_object *o = dt_json_new_object();
    put_string(o, "cluster", r->cluster->name);
    put_int(o, "devices", (double)dt_layout_ranks(&p->layout));
    dt_json_object_add(o, "layout", layout_json(&p->layout));
    dt_json_object_add(o, "parameters", parts_json(&p->parts));
    dt_json_object_add(o, "memory", memory_json(p));
    dt_json_object_add(o, "traffic", traffic_json(&p->traffic));
    dt_json_object_add(o, "step", step_json(p, r));
    dt_json_object_add(o, "goodput", goodput_json(p));
    return o;
}

struct json_object *dt_report_search_json(const struct dt_search *s,
                                          const struct dt_plan_request *r)
{
    struct json_object *o = dt_json_new_object(), *best = dt_json_new_array(),
                       *failures = dt_json_new_array();
    for (int i = 0; i < s->count; i++)
        dt_json_array_add(best, dt_report_plan_json(&s->best[i], r));
    for (int i = 0; i < s->failure_count; i++) {
        struct json_object *failure = dt_json_new_object();
        put_string(failure, "reason", s->failures[i].reason);
        put_int(failure, "layouts", (double)s->failures[i].layouts);
        dt_json_array_add(failures, failure);
    }
    put_int(o, "tried", (double)s->tried);
    put_int(o, "fitting", (double)s->fitting);
    put_int(o, "simulated", (double)s->simulated);
    dt_json_object_add(o, "best", best);
    dt_json_object_add(o, "failures", failures);
    return o;
}
