/* SPDX-License-Identifier: MIT */
#include "plan/timeline.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "base/file.h"
#include "json/json-number.h"

static const char *const lanes[] = {"computing", "data", "pipeline"};

void dt_timeline_add(struct dt_timeline *t, const struct dt_timeline_span *span)
{
    if (t == NULL)
        return;
    DT_GROW(t->spans, t->count, t->capacity);
    t->spans[t->count++] = *span;
}

void dt_timeline_release(struct dt_timeline *t)
{
    free(t->spans);
    *t = (struct dt_timeline){0};
}

static void print_names(struct dt_buffer *json, int stage)
{
    dt_buffer_printf(json,
                     "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,"
                     "\"args\":{\"name\":\"stage %d\"}},\n",
                     stage, stage);
    for (int lane = 0; lane < (int)(sizeof lanes / sizeof *lanes); lane++)
        dt_buffer_printf(json,
                         "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                         "\"args\":{\"name\":\"%s\"}},\n",
                         stage, lane, lanes[lane]);
}

static void print_span(struct dt_buffer *json, const struct dt_timeline_span *s,
                       const char *separator)
{
    dt_buffer_printf(json, "{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d", s->name, s->stage,
                     (int)s->lane);
    dt_json_add_fixed(json, "ts", s->start * 1e6, 3);
    dt_json_add_fixed(json, "dur", (s->end - s->start) * 1e6, 3);
    dt_buffer_printf(json, ",\"args\":{\"chunk\":%ld", s->chunk);
    if (s->batch >= 0)
        dt_buffer_printf(json, ",\"micro_batch\":%ld", s->batch);
    dt_buffer_printf(json, "}}%s\n", separator);
}

static void print(const struct dt_timeline *t, struct dt_buffer *json)
{
    int stages = 0;
    dt_buffer_add_string(json, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    for (long i = 0; i < t->count; i++)
        stages = t->spans[i].stage >= stages ? t->spans[i].stage + 1 : stages;
    for (int stage = 0; stage < stages; stage++)
        print_names(json, stage);
    for (long i = 0; i < t->count; i++)
        print_span(json, &t->spans[i], i + 1 < t->count ? "," : "");
    dt_buffer_add_string(json, "],\"otherData\":{");
    dt_json_add_real(json, "gemm_flops_per_second", t->rates.gemm, 9);
    dt_json_add_real(json, "attention_flops_per_second", t->rates.attention, 9);
    dt_json_add_real(json, "bytes_per_second", t->rates.memory, 9);
    dt_json_add_real(json, "launch_seconds", t->rates.launch, 9);
    dt_buffer_add_string(json, "}}\n");
}

int dt_timeline_write(const struct dt_timeline *t, const char *path, struct dt_error *err)
{
    struct dt_buffer json = DT_BUFFER_EMPTY;
    struct dt_output out;
    print(t, &json);
    int rc = dt_output_open(&out, path, err);
    if (rc == 0) {
        rc = dt_output_write(&out, json.data, json.size, err);
        rc = rc == 0 ? dt_output_commit(&out, err) : rc;
        if (rc < 0)
            dt_output_abandon(&out);
    }
    dt_buffer_release(&json);
    return rc;
}
