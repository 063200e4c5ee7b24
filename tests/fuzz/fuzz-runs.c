/* SPDX-License-Identifier: MIT */
/* What runs leave, and what reads it: the first byte chooses, the others are the file. Metrics,
 * rows of experiments, event files, timelines, the state of a checkpoint, its tensors, manifests,
 * the ledger of a job, norms of tensors. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/path.h"
#include "checkpoint/progress-state.h"
#include "experiment/readings.h"
#include "experiment/results.h"
#include "formats/tensor-file.h"
#include "fuzz.h"
#include "io/directory-manifest.h"
#include "io/run-metrics.h"
#include "io/sealed-json.h"
#include "parts/ledger.h"
#include "plot/inside.h"
#include "plot/timeline.h"
#include "report/report-internal.h"
#include "track/crc32c.h"
#include "track/event-file.h"
#include "track/follow.h"
#include "track/points.h"
#include "track/run-watch.h"
#include "train/metrics-file.h"

/* Writes the file, and returns its path. */
static const char *write_file(const char *name, const void *data, size_t size)
{
    static char path[256];
    struct dt_error err;
    snprintf(path, sizeof path, "%s/%s", fuzz_directory(), name);
    if (dt_file_write(path, data, size, &err) < 0)
        abort();
    return path;
}

static void read_metrics(const uint8_t *data, size_t size)
{
    const char *path = write_file("metrics.jsonl", data, size);
    struct dt_run_metrics metrics;
    struct dt_follower follower;
    struct dt_point *points;
    struct json_object *line;
    struct dt_error err;
    bool found = true;
    if (dt_run_metrics_read(&metrics, path, &err) == 0)
        dt_run_metrics_release(&metrics);
    struct json_object *values = dt_json_new_object();
    (void)!dt_readings_add_metrics(values, path, NULL, &err);
    json_object_put(values);
    dt_follow(&follower, path);
    while (dt_follow_next(&follower, &line, &found, &err) == 0 && found) {
        (void)dt_points_of(line, &points);
        free(points);
        json_object_put(line);
    }
    dt_follow_end(&follower);
}

/* As a resumed run does; every line that is left is JSON. */
static void continue_metrics(const uint8_t *data, size_t size)
{
    const char *path = write_file("metrics.jsonl", data, size);
    struct dt_metrics metrics;
    struct dt_error err;
    if (dt_metrics_open(&metrics, path, 5, &err) == 0)
        dt_metrics_close(&metrics);
}

static void read_rows(const uint8_t *data, size_t size)
{
    struct dt_results results;
    struct dt_error err;
    if (dt_results_read(&results, write_file("rows", data, size), &err) == 0)
        dt_results_release(&results);
}

/* Records with the checksums that they need; the first byte of each is its length. */
static void continue_events(const uint8_t *data, size_t size)
{
    struct dt_event_file *file;
    struct dt_buffer framed = DT_BUFFER_EMPTY;
    struct dt_error err;
    for (size_t at = 0, n; at < size; at += 1 + n) {
        n = data[at] < size - at - 1 ? data[at] : size - at - 1;
        uint64_t length = n;
        uint32_t head = dt_crc32c_masked((const unsigned char *)&length, sizeof length),
                 tail = dt_crc32c_masked(data + at + 1, n);
        dt_buffer_append(&framed, &length, sizeof length);
        dt_buffer_append(&framed, &head, sizeof head);
        dt_buffer_append(&framed, data + at + 1, n);
        dt_buffer_append(&framed, &tail, sizeof tail);
    }
    write_file("events.out.tfevents.0000000001.a.1.0.mark.dt-track", framed.data ? framed.data : "",
               framed.size);
    dt_buffer_release(&framed);
    if (dt_event_file_open(&file, fuzz_directory(), 1, "mark", &err) == 0 &&
        dt_event_file_close(file, &err) < 0)
        abort();
}

/* Without gnuplot(1) nothing is drawn. */
static void read_timeline(const uint8_t *data, size_t size)
{
    const char *path = write_file("trace", data, size);
    struct dt_buffer out = DT_BUFFER_EMPTY;
    struct dt_error err;
    setenv("PATH", "/nonexistent", 1);
    (void)!dt_plot_timeline(DT_PLOT_TEXT, "", path, &out, &err);
    dt_buffer_release(&out);
}

static void read_norms(const uint8_t *data, size_t size)
{
    struct dt_buffer out = DT_BUFFER_EMPTY;
    struct dt_error err;
    write_file("tensors.jsonl", data, size);
    setenv("PATH", "/nonexistent", 1);
    (void)!dt_plot_inside(DT_PLOT_TEXT, "", fuzz_directory(), NULL, &out, &err);
    dt_buffer_release(&out);
}

/* A run with an evaluation and a sample of these bytes. */
static void read_report(const uint8_t *data, size_t size)
{
    static const char metrics[] = "{\"step\":1,\"loss\":2}\n";
    static const enum dt_page_format formats[] = {DT_PAGE_HTML, DT_PAGE_MARKDOWN};
    char *paths[] = {(char *)fuzz_directory()};
    struct dt_reported runs;
    struct dt_error err;
    write_file("metrics.jsonl", metrics, sizeof metrics - 1);
    write_file("evaluation.json", data, size);
    write_file("sample.txt", data, size);
    if (dt_reported_read(&runs, paths, 1, &err) < 0)
        return;
    for (int i = 0; i < 2; i++) {
        struct dt_page page = {.format = formats[i]};
        (void)!dt_report_evaluations(&page, &runs, &err);
        (void)!dt_report_samples(&page, &runs, &err);
        dt_page_release(&page);
    }
    dt_reported_release(&runs);
}

static void read_state(const uint8_t *data, size_t size)
{
    const char *path = write_file("state.json", data, size);
    struct dt_progress_state state = {0};
    struct dt_error err;
    uint64_t hash;
    (void)!dt_sealed_json_check(path, &err);
    (void)!dt_progress_state_read(&state, &hash, path, &err);
    (void)!dt_progress_state_hash(path, &hash, &err);
    (void)dt_run_watch_state(fuzz_directory(), 1, path);
    (void)!dt_directory_manifest_verify(fuzz_directory(), "state.json", &err);
}

static void read_tensors(const uint8_t *data, size_t size)
{
    static const struct dt_named_tensor tensors[] = {{.name = "a", .rank = 2, .shape = {3, 2}},
                                                     {.name = "b", .rank = 1, .shape = {2}}};
    const char *path = write_file("tensors", data, size);
    struct dt_tensor_file file;
    struct dt_error err;
    float values[8];
    uint64_t hash;
    if (dt_tensor_file_open(&file, path, tensors, 2, false, &err) < 0)
        return;
    (void)!dt_tensor_file_read(&file, 0, 1, 5, values, &err);
    (void)!dt_tensor_file_read(&file, 1, 0, 2, values, &err);
    (void)!dt_tensor_file_hash(&file, &hash, &err);
    dt_tensor_file_close(&file);
}

static void read_ledger(const uint8_t *data, size_t size)
{
    struct json_object *stages;
    struct dt_error err;
    write_file("a-000000-of-000001.json", data, size);
    if (dt_ledger_read(&stages, fuzz_directory(), NULL, 0, &err) < 0)
        return;
    (void)dt_ledger_left(stages);
    json_object_put(stages);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void (*const readers[])(const uint8_t *, size_t) = {
        read_metrics, continue_metrics, read_rows,   continue_events, read_timeline,
        read_state,   read_tensors,     read_ledger, read_norms,      read_report};
    if (size > 0)
        readers[data[0] % 10](data + 1, size - 1);
    return 0;
}
