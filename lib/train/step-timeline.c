/* SPDX-License-Identifier: MIT */
#include "train/step-timeline.h"

#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/file.h"
#include "device/recorded-ops.h"
#include "train/step-trace.h"
#include "json/json-number.h"

int dt_step_timeline_init(struct dt_step_timeline *t, const char *text, struct dt_device *device,
                          struct dt_error *err)
{
    *t = (struct dt_step_timeline){.device = device};
    dt_time_spans_init(&t->spans);
    return dt_step_trace_read_range(text, "training.timeline_steps", &t->first, &t->last, err);
}

static void stop(struct dt_step_timeline *t)
{
    if (t->begin > 0)
        dt_device_end_recording(t->device);
    dt_time_spans_of_thread = NULL;
    t->begin = 0;
}

void dt_step_timeline_release(struct dt_step_timeline *t)
{
    if (t->device == NULL)
        return;
    stop(t);
    dt_time_spans_release(&t->spans);
    *t = (struct dt_step_timeline){0};
}

void dt_step_timeline_begin(struct dt_step_timeline *t, long step)
{
    if (step < t->first || step > t->last || t->begin > 0)
        return;
    dt_device_record_ops(t->device);
    dt_time_spans_of_thread = &t->spans;
    t->begin = dt_time_spans_begin();
}

void dt_step_timeline_end(struct dt_step_timeline *t, long step)
{
    if (t->begin > 0)
        dt_time_spans_end(DT_TIME_LANE_STEP, "step", step, t->begin);
    stop(t);
}

static const char *const lanes[DT_TIME_LANE_LANES] = {
    [DT_TIME_LANE_STEP] = "step",         [DT_TIME_LANE_PHASE] = "phase",
    [DT_TIME_LANE_LAYER] = "layer",       [DT_TIME_LANE_OPERATION] = "operation",
    [DT_TIME_LANE_TRANSFER] = "transfer",
};

static void print_names(struct dt_buffer *json, int rank)
{
    dt_buffer_printf(json,
                     "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,"
                     "\"args\":{\"name\":\"rank %d\"}}",
                     rank, rank);
    for (int lane = 0; lane < DT_TIME_LANE_LANES; lane++)
        dt_buffer_printf(json,
                         ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                         "\"args\":{\"name\":\"%s\"}}",
                         rank, lane, lanes[lane]);
}

static void print_span(struct dt_buffer *json, const struct dt_time_span *s, int rank,
                       double origin)
{
    double seconds = s->end - s->begin;
    dt_buffer_printf(json, ",\n{\"name\":\"%s", s->name);
    if (s->number >= 0)
        dt_buffer_printf(json, " %ld", s->number);
    dt_buffer_printf(json, "\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d", lanes[s->lane],
                     rank, (int)s->lane);
    dt_json_add_fixed(json, "ts", (s->begin - origin) * 1e6, 3);
    dt_json_add_fixed(json, "dur", seconds * 1e6, 3);
    if (s->flops > 0 || s->bytes > 0) {
        dt_buffer_add_string(json, ",\"args\":{");
        dt_json_add_fixed(json, "operations", s->flops, 0);
        dt_json_add_fixed(json, "bytes", s->bytes, 0);
        dt_json_add_fixed(json, "gflops_per_second", seconds > 0 ? s->flops / seconds / 1e9 : 0, 3);
        dt_json_add_fixed(json, "gb_per_second", seconds > 0 ? s->bytes / seconds / 1e9 : 0, 3);
        dt_buffer_add_char(json, '}');
    }
    dt_buffer_add_char(json, '}');
}

int dt_step_timeline_write(const struct dt_step_timeline *t, const char *run, int rank,
                           struct dt_error *err)
{
    struct dt_buffer json = DT_BUFFER_EMPTY;
    double origin = INFINITY;
    for (size_t i = 0; i < t->spans.count; i++)
        origin = fmin(origin, t->spans.items[i].begin);
    dt_buffer_add_string(&json, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    print_names(&json, rank);
    for (size_t i = 0; i < t->spans.count; i++)
        print_span(&json, &t->spans.items[i], rank, origin);
    dt_buffer_add_string(&json, "\n]}\n");
    char *path = dt_asprintf("%s/timeline-%d.json", run, rank);
    int rc = dt_file_write(path, json.data, json.size, err);
    dt_buffer_release(&json);
    free(path);
    return rc;
}
