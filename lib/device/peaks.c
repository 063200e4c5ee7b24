/* SPDX-License-Identifier: MIT */
#include "device/peaks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/processor.h"
#include "base/program.h"
#include "base/system.h"
#include "base/version.h"
#include "json/json-number.h"

#define MOST_BYTES  ((size_t)1 << 20)
#define TOLD_DAYS   365 /* more is old */
#define GIGA        1e9
#define READ_MEMBER "read_gb_per_second"
#define REMEDY      "'dt-bench machine' measures it"

static const char *const gemm_members[DT_PEAK_TYPES] = {[DT_DTYPE_F32] = "fp32_gflops",
                                                        [DT_DTYPE_BF16] = "bf16_gflops",
                                                        [DT_DTYPE_F16] = "fp16_gflops"};

char *dt_peaks_path(void)
{
    return dt_path_configuration("DT_PEAKS", "peaks.jsonl");
}

/* --- lines of the file --------------------------------------------------------------------- */

/* Which speeds a line holds. */
struct key {
    const char *engine, *isa;
    char processor[DT_PROCESSOR_NAME];
    int64_t threads;
};

static struct key key_of(const struct dt_device *dev)
{
    struct key key = {dev->engine->name, dev->isa, "", dev->threads};
    dt_processor_find(key.processor);
    return key;
}

/* 1 if the line is of these, and sets *peaks; 0 if it is of others. */
static int read_line(const char *line, const char *subject, const struct key *key,
                     struct dt_machine_peaks *peaks, struct json_object **object,
                     struct dt_error *err)
{
    const char *engine, *isa, *processor, *measured, *version;
    int64_t threads;
    DT_TRY(dt_json_parse(line, strlen(line), subject, object, err));
    DT_TRY(dt_json_get_string(*object, "engine", subject, &engine, err));
    DT_TRY(dt_json_get_string(*object, "isa", subject, &isa, err));
    DT_TRY(dt_json_get_string(*object, "processor", subject, &processor, err));
    DT_TRY(dt_json_get_int(*object, "threads", subject, &threads, err));
    DT_TRY(dt_json_get_string(*object, "measured", subject, &measured, err));
    DT_TRY(dt_json_get_string(*object, "version", subject, &version, err));
    DT_TRY(dt_json_get_real(*object, "processor_share", subject, &peaks->share, err));
    DT_TRY(dt_json_get_real(*object, READ_MEMBER, subject, &peaks->read, err));
    bool positive = peaks->read > 0;
    peaks->read *= GIGA;
    for (int i = 0; i < DT_PEAK_TYPES; i++) {
        DT_TRY(dt_json_get_real(*object, gemm_members[i], subject, &peaks->gemm[i], err));
        positive = positive && peaks->gemm[i] > 0;
        peaks->gemm[i] *= GIGA;
    }
    if (!positive || strlen(measured) != strlen("2026-11-23T18:30:00Z"))
        return dt_fail(err, DT_EFORMAT, "%s: a speed is not above 0, or the time is not one",
                       subject);
    snprintf(peaks->measured, sizeof peaks->measured, "%s", measured);
    snprintf(peaks->version, sizeof peaks->version, "%s", version);
    return strcmp(engine, key->engine) == 0 && strcmp(isa, key->isa) == 0 &&
           strcmp(processor, key->processor) == 0 && threads == key->threads;
}

/* Reads the file; 1 if a line is of the key, which sets *found. others, unless NULL: all other
 * lines are appended to it. */
static int read_file(const char *path, const struct key *key, struct dt_machine_peaks *found,
                     struct dt_buffer *others, struct dt_error *err)
{
    char *text, *rest, *line;
    size_t size;
    int number = 0, rc = dt_file_probe(path, err), matched = 0;
    if (rc <= 0)
        return rc;
    DT_TRY(dt_file_read(path, MOST_BYTES, &text, &size, err));
    for (rest = text; rc >= 0 && *rest && (line = strsep(&rest, "\n")) != NULL;) {
        struct json_object *object = NULL;
        struct dt_machine_peaks peaks;
        char *subject = dt_asprintf("%s:%d", path, ++number);
        rc = read_line(line, subject, key, &peaks, &object, err);
        json_object_put(object);
        free(subject);
        if (rc > 0)
            *found = peaks, matched = 1;
        else if (rc == 0 && others)
            dt_buffer_printf(others, "%s\n", line);
        if (rest == NULL)
            break;
    }
    free(text);
    return rc < 0 ? rc : matched;
}

void dt_peaks_print(const struct dt_device *dev, const struct dt_machine_peaks *peaks,
                    struct dt_buffer *line)
{
    const struct key key = key_of(dev);
    const char *const texts[][2] = {
        {"engine", key.engine}, {"isa", key.isa}, {"processor", key.processor}};
    dt_buffer_add_char(line, '{');
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        dt_buffer_printf(line, "%s\"%s\":", i > 0 ? "," : "", texts[i][0]);
        dt_json_add_string(line, texts[i][1], strlen(texts[i][1]));
    }
    dt_buffer_printf(line, ",\"threads\":%d", dev->threads);
    for (int i = 0; i < DT_PEAK_TYPES; i++)
        dt_json_add_fixed(line, gemm_members[i], peaks->gemm[i] / GIGA, 1);
    dt_json_add_fixed(line, READ_MEMBER, peaks->read / GIGA, 2);
    dt_json_add_fixed(line, "processor_share", peaks->share, 3);
    dt_buffer_printf(line, ",\"measured\":\"%s\",\"version\":\"%s\"}\n", peaks->measured,
                     peaks->version);
}

int dt_peaks_store(const struct dt_device *dev, const struct dt_machine_peaks *peaks,
                   struct dt_error *err)
{
    const struct key key = key_of(dev);
    struct dt_machine_peaks replaced;
    struct dt_buffer lines = DT_BUFFER_EMPTY;
    char *path = dt_peaks_path();
    int rc = read_file(path, &key, &replaced, &lines, err);
    if (rc >= 0) {
        dt_peaks_print(dev, peaks, &lines);
        rc = dt_file_make_parent(path, err);
    }
    rc = rc < 0 ? rc : dt_file_write(path, lines.data, lines.size, err);
    dt_buffer_release(&lines);
    free(path);
    return rc;
}

/* --- measuring ----------------------------------------------------------------------------- */

void dt_peaks_measure(struct dt_device *dev, double seconds, struct dt_machine_peaks *peaks)
{
    time_t now = time(NULL);
    struct tm utc;
    double wall = dt_clock_now(), processor = dt_clock_processor_now();
    *peaks = (struct dt_machine_peaks){.share = 1};
    strftime(peaks->measured, sizeof peaks->measured, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    snprintf(peaks->version, sizeof peaks->version, "%s", dt_version);
    for (int type = 0; type < DT_PEAK_TYPES; type++)
        for (double begin = dt_clock_now(), left = seconds; left > 0;
             left = seconds - (dt_clock_now() - begin)) {
            double speed = dt_device_peak(dev, (enum dt_dtype)type, left);
            peaks->gemm[type] = fmax(speed, peaks->gemm[type]);
        }
    wall = dt_clock_now() - wall, processor = dt_clock_processor_now() - processor;
    if (!dev->engine->own_memory)
        peaks->share = fmin(1, processor / (wall * dev->threads));
    peaks->read = dt_device_read_speed(dev, seconds);
}

/* --- finding ------------------------------------------------------------------------------- */

/* The number of a release: "0.2.0" of "0.2.0+c6ed965". */
static bool is_release(const char *version)
{
    size_t length = strcspn(version, "+-");
    return length == strcspn(dt_version, "+-") && strncmp(version, dt_version, length) == 0;
}

static double days_since(const char *measured)
{
    struct tm then = {0};
    if (sscanf(measured, "%4d-%2d-%2d", &then.tm_year, &then.tm_mon, &then.tm_mday) != 3)
        return INFINITY;
    then.tm_year -= 1900, then.tm_mon -= 1;
    return difftime(time(NULL), timegm(&then)) / 86400;
}

/* Why stored speeds may be wrong. */
static void doubt(struct dt_peak *peak, const char *path, const struct dt_machine_peaks *stored)
{
    if (!is_release(stored->version))
        snprintf(peak->doubt, sizeof peak->doubt,
                 "the peak in '%s' was measured by dt %s, this is %s: " REMEDY " again", path,
                 stored->version, dt_version);
    else if (days_since(stored->measured) > TOLD_DAYS)
        snprintf(peak->doubt, sizeof peak->doubt,
                 "the peak in '%s' was measured on %.10s: " REMEDY " again", path,
                 stored->measured);
    else if (stored->share < DT_PEAKS_BUSY)
        snprintf(peak->doubt, sizeof peak->doubt,
                 "the peak in '%s' was measured while other programs ran (its threads had %.0f%% "
                 "of their time): " REMEDY " again",
                 path, 100 * stored->share);
}

/* 1 if the file has the speeds of this machine. */
static int find_stored(const struct dt_device *dev, struct dt_machine_peaks *stored,
                       struct dt_peak *peak)
{
    const struct key key = key_of(dev);
    struct dt_error err;
    char *path = dt_peaks_path();
    struct dt_error ignored;
    int rc = read_file(path, &key, stored, NULL, &err);
    if (rc < 0)
        snprintf(peak->doubt, sizeof peak->doubt, "%s; the peak is measured now", err.text);
    else if (rc == 0 && dt_file_probe(path, &ignored) > 0)
        snprintf(peak->doubt, sizeof peak->doubt,
                 "'%s' has no peak of %s with %s and %d thread%s: " REMEDY
                 "; until then it is measured at each start",
                 path, key.processor, key.isa, dev->threads, dt_plural((uint64_t)dev->threads));
    else if (rc > 0)
        doubt(peak, path, stored);
    free(path);
    return rc > 0;
}

/* 1 and the speed if the environment gives it in 10^9 a second; 0 if it does not. */
static int find_given(const char *variable, const char *unit, struct dt_peak *peak,
                      struct dt_error *err)
{
    const char *given = getenv(variable);
    *peak = (struct dt_peak){.origin = "given"};
    if (given == NULL)
        return 0;
    if (dt_program_parse_real(given, &peak->speed) < 0 || !(peak->speed > 0))
        return dt_fail(err, DT_EINVALID, "%s must be a number of %s above 0, not '%s'", variable,
                       unit, given);
    peak->speed *= GIGA;
    return 1;
}

/* what: an element type of products, or READ. */
#define READ DT_PEAK_TYPES

static int find(struct dt_device *dev, int what, struct dt_peak *peak, struct dt_error *err)
{
    struct dt_machine_peaks stored;
    int rc = what == READ ? find_given(DT_READ_VARIABLE, "GB/s", peak, err)
                          : find_given(DT_PEAK_VARIABLE, "GFLOP/s", peak, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (find_stored(dev, &stored, peak)) {
        snprintf(peak->origin, sizeof peak->origin, "stored %.10s", stored.measured);
        peak->speed = what == READ ? stored.read : stored.gemm[what];
    } else {
        snprintf(peak->origin, sizeof peak->origin, "measured now");
        peak->speed = what == READ ? dt_device_read_speed(dev, 1)
                                   : dt_device_peak(dev, (enum dt_dtype)what, 1);
    }
    return 0;
}

int dt_peak_find(struct dt_device *dev, enum dt_dtype type, struct dt_peak *peak,
                 struct dt_error *err)
{
    return find(dev, (int)type, peak, err);
}

int dt_peak_find_read(struct dt_device *dev, struct dt_peak *peak, struct dt_error *err)
{
    return find(dev, READ, peak, err);
}
