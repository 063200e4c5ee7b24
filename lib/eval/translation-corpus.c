/* SPDX-License-Identifier: MIT */
#include "eval/translation-corpus.h"

#include <stdlib.h>
#include <string.h>

#include "io/input.h"
#include "json/json-number.h"
#include "json/json.h"

struct lines {
    struct dt_ids *items; /* [line]: code points */
    size_t count, capacity;
};

struct translations {
    const char *path;
    struct dt_segment_counts *counts[DT_TRANSLATION_METRIC_COUNT]; /* [metric][segment] */
    struct dt_segment_counts sum[DT_TRANSLATION_METRIC_COUNT];
};

struct dt_translation_corpus {
    struct dt_translation_metric metrics[DT_TRANSLATION_METRIC_COUNT];
    struct dt_ids *references; /* [segment][reference] */
    int reference_count;
    const char *reference_path; /* the first */
    size_t segments;
    struct translations *systems;
    int system_count, system_capacity;
};

static void release_lines(struct lines *l)
{
    for (size_t i = 0; i < l->count; i++)
        dt_ids_release(&l->items[i]);
    free(l->items);
    *l = (struct lines){0};
}

/* Refuses files that are recognizably not lines of plain text. */
static int need_plain_lines(struct dt_input *in, struct dt_error *err)
{
    const char *head;
    size_t size;
    DT_TRY(dt_input_peek(in, &head, &size, err));
    const struct dt_file_type *what = dt_file_type_recognize(head, size);
    return what ? dt_input_refuse(in, what, err) : 0;
}

static int read_lines(struct lines *l, const char *path, struct dt_error *err)
{
    struct dt_input *in;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    bool found = true;
    *l = (struct lines){0};
    DT_TRY(dt_input_open(&in, path, err));
    int rc = need_plain_lines(in, err);
    while (rc == 0 && (rc = dt_input_read_until(in, '\n', &line, &found, err)) == 0) {
        if (!found && line.size == 0)
            break;
        DT_GROW(l->items, l->count, l->capacity);
        l->items[l->count] = (struct dt_ids)DT_IDS_EMPTY;
        rc = dt_code_points(line.data, line.size, &l->items[l->count++], err);
        if (rc < 0)
            dt_fail_context(err, "%s:%zu", dt_input_name(in), l->count);
    }
    dt_input_close(in);
    dt_buffer_release(&line);
    if (rc < 0)
        release_lines(l);
    return rc;
}

/* Moves the lines of reference file which into references. */
static int take_references(struct dt_translation_corpus *c, struct lines *l, int which,
                           const char *path, struct dt_error *err)
{
    if (which == 0) {
        if (l->count == 0)
            return dt_fail(err, DT_EFORMAT, "%s: is empty", path);
        c->segments = l->count;
        c->references = dt_alloc(l->count * (size_t)c->reference_count, sizeof *c->references);
    }
    if (l->count != c->segments)
        return dt_fail(err, DT_EFORMAT, "%s: has %zu lines, %s has %zu", path, l->count,
                       c->reference_path, c->segments);
    for (size_t i = 0; i < l->count; i++) {
        c->references[i * (size_t)c->reference_count + (size_t)which] = l->items[i];
        l->items[i] = (struct dt_ids)DT_IDS_EMPTY;
    }
    return 0;
}

int dt_translation_corpus_open(struct dt_translation_corpus **result, const char *const *references,
                               int count, enum dt_translation_words_kind words,
                               struct dt_error *err)
{
    struct dt_translation_corpus *c = dt_alloc(1, sizeof *c);
    int rc = 0;
    *result = c;
    for (int i = 0; i < DT_TRANSLATION_METRIC_COUNT; i++)
        c->metrics[i] = (struct dt_translation_metric){(enum dt_translation_metric_kind)i, words};
    c->reference_count = count;
    c->reference_path = references[0];
    for (int i = 0; rc == 0 && i < count; i++) {
        struct lines lines;
        rc = read_lines(&lines, references[i], err);
        rc = rc < 0 ? rc : take_references(c, &lines, i, references[i], err);
        release_lines(&lines);
    }
    if (rc < 0) {
        dt_translation_corpus_free(c);
        *result = NULL;
    }
    return rc;
}

static void score_lines(const struct dt_translation_corpus *c, struct translations *t,
                        const struct lines *l)
{
    for (int m = 0; m < DT_TRANSLATION_METRIC_COUNT; m++) {
        t->counts[m] = dt_alloc(c->segments, sizeof *t->counts[m]);
        for (size_t i = 0; i < c->segments; i++) {
            dt_translation_score_counts(&c->metrics[m], &l->items[i],
                                        &c->references[i * (size_t)c->reference_count],
                                        c->reference_count, &t->counts[m][i]);
            dt_segment_counts_add(&t->sum[m], &t->counts[m][i]);
        }
    }
}

int dt_translation_corpus_add(struct dt_translation_corpus *c, const char *path,
                              struct dt_error *err)
{
    struct lines lines;
    DT_TRY(read_lines(&lines, path, err));
    if (lines.count != c->segments) {
        int rc = dt_fail(err, DT_EFORMAT, "%s: has %zu lines, %s has %zu", path, lines.count,
                         c->reference_path, c->segments);
        release_lines(&lines);
        return rc;
    }
    DT_GROW(c->systems, c->system_count, c->system_capacity);
    struct translations *t = &c->systems[c->system_count++];
    *t = (struct translations){.path = path};
    score_lines(c, t, &lines);
    release_lines(&lines);
    return 0;
}

/* --- reports ----------------------------------------------------------------------------------*/

static struct dt_paired_bootstrap resample(const struct dt_translation_corpus *c, int system,
                                           int metric, long resamples, uint64_t seed)
{
    return dt_paired_bootstrap(&c->metrics[metric], system ? c->systems[0].counts[metric] : NULL,
                               c->systems[system].counts[metric], c->segments, resamples, seed);
}

static void add_bleu_parts(const struct dt_translation_corpus *c, int system,
                           struct dt_buffer *text)
{
    const struct dt_segment_counts *sum = &c->systems[system].sum[DT_TRANSLATION_METRIC_BLEU];
    struct dt_translation_result r =
        dt_translation_score(&c->metrics[DT_TRANSLATION_METRIC_BLEU], sum);
    dt_buffer_add_string(text, ",\"precisions\":[");
    for (int n = 0; n < 4; n++) {
        dt_buffer_add_string(text, n ? "," : "");
        dt_json_add_number(text, r.precisions[n]);
    }
    dt_buffer_add_string(text, "],\"brevity_penalty\":");
    dt_json_add_number(text, r.brevity_penalty);
    dt_json_add_fixed(text, "words", sum->of[0], 0);
    dt_json_add_fixed(text, "reference_words", sum->of[1], 0);
}

static void add_json_score(const struct dt_translation_corpus *c, int system, int metric,
                           long resamples, uint64_t seed, struct dt_buffer *text)
{
    dt_buffer_printf(text, ",\"%s\":{\"score\":", dt_translation_metric_names[metric]);
    dt_json_add_number(
        text, dt_translation_score(&c->metrics[metric], &c->systems[system].sum[metric]).score);
    dt_buffer_add_string(text, ",\"signature\":\"");
    dt_translation_score_signature(&c->metrics[metric], c->reference_count, text);
    dt_buffer_add_char(text, '"');
    if (metric == DT_TRANSLATION_METRIC_BLEU)
        add_bleu_parts(c, system, text);
    if (resamples > 0) {
        struct dt_paired_bootstrap b = resample(c, system, metric, resamples, seed);
        dt_json_add_real(text, "mean", b.mean, 9);
        dt_json_add_real(text, "interval", b.interval, 9);
        if (system > 0)
            dt_json_add_real(text, "p", b.p, 9);
    }
    dt_buffer_add_char(text, '}');
}

static void report_json(const struct dt_translation_corpus *c, long resamples, uint64_t seed,
                        struct dt_buffer *text)
{
    dt_buffer_printf(text, "{\"segments\":%zu,\"systems\":[", c->segments);
    for (int s = 0; s < c->system_count; s++) {
        dt_buffer_add_string(text, s ? ",{\"file\":" : "{\"file\":");
        dt_json_add_string(text, c->systems[s].path, strlen(c->systems[s].path));
        for (int m = 0; m < DT_TRANSLATION_METRIC_COUNT; m++)
            add_json_score(c, s, m, resamples, seed, text);
        dt_buffer_add_char(text, '}');
    }
    dt_buffer_add_string(text, "]}\n");
}

static void report_text(const struct dt_translation_corpus *c, long resamples, uint64_t seed,
                        struct dt_buffer *text)
{
    for (int m = 0; m < DT_TRANSLATION_METRIC_COUNT; m++) {
        dt_buffer_printf(text, "%s  ", dt_translation_metric_names[m]);
        dt_translation_score_signature(&c->metrics[m], c->reference_count, text);
        dt_buffer_add_char(text, '\n');
        for (int s = 0; s < c->system_count; s++) {
            const struct translations *t = &c->systems[s];
            double score = dt_translation_score(&c->metrics[m], &t->sum[m]).score;
            dt_buffer_printf(text, "  %6.2f", score);
            if (resamples > 0) {
                struct dt_paired_bootstrap b = resample(c, s, m, resamples, seed);
                dt_buffer_printf(text, "  %6.2f ± %.2f", b.mean, b.interval);
                if (s > 0)
                    dt_buffer_printf(text, "  p = %.4f%s", b.p, b.p < 0.05 ? " *" : "  ");
                else
                    dt_buffer_add_string(text, "  baseline    ");
            }
            dt_buffer_printf(text, "  %s\n", t->path);
        }
    }
}

void dt_translation_corpus_report(const struct dt_translation_corpus *c, long resamples,
                                  uint64_t seed, bool json, struct dt_buffer *text)
{
    (json ? report_json : report_text)(c, resamples, seed, text);
}

void dt_translation_corpus_items(const struct dt_translation_corpus *c, struct dt_buffer *lines)
{
    for (int s = 0; s < c->system_count; s++)
        for (size_t i = 0; i < c->segments; i++) {
            dt_buffer_add_string(lines, "{\"file\":");
            dt_json_add_string(lines, c->systems[s].path, strlen(c->systems[s].path));
            dt_buffer_printf(lines, ",\"line\":%zu", i + 1);
            for (int m = 0; m < DT_TRANSLATION_METRIC_COUNT; m++) {
                dt_buffer_printf(lines, ",\"%s\":", dt_translation_metric_names[m]);
                dt_json_add_number(
                    lines, dt_translation_score(&c->metrics[m], &c->systems[s].counts[m][i]).score);
            }
            dt_buffer_add_string(lines, "}\n");
        }
}

void dt_translation_corpus_free(struct dt_translation_corpus *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; c->references && i < c->segments * (size_t)c->reference_count; i++)
        dt_ids_release(&c->references[i]);
    for (int s = 0; s < c->system_count; s++)
        for (int m = 0; m < DT_TRANSLATION_METRIC_COUNT; m++)
            free(c->systems[s].counts[m]);
    free(c->references);
    free(c->systems);
    free(c);
}
