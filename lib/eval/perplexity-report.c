/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "document/stream.h"
#include "eval/confidence.h"
#include "eval/perplexity.h"
#include "json/json-number.h"
#include "json/json.h"
#include "json/meta.h"

static double loss_of(const struct dt_perplexity *p)
{
    return p->nats / (double)p->tokens;
}

/* p-value of the difference from the first model, paired by document. */
static double p_value(const struct dt_perplexity *results, int i)
{
    return dt_confidence_paired_p(results[0].items, results[i].items, results[0].documents);
}

static void add_json(const struct dt_perplexity *p, struct dt_buffer *b)
{
    double loss = loss_of(p), floor = p->floor / (double)p->tokens;
    dt_buffer_printf(b, "\"documents\":%" PRIu64 ",\"tokens\":%" PRIu64 ",\"bytes\":%" PRIu64,
                     p->documents, p->tokens, p->bytes);
    dt_json_add_fixed(b, "loss", loss, 6);
    dt_json_add_fixed(b, "perplexity", exp(loss), 6);
    if (p->bytes) {
        dt_json_add_fixed(b, "byte_perplexity", exp(p->nats / (double)p->bytes), 6);
        dt_json_add_fixed(b, "bits_per_byte", p->nats / (double)p->bytes / M_LN2, 6);
    }
    if (p->words) {
        dt_buffer_printf(b, ",\"words\":%" PRIu64, p->words);
        dt_json_add_real(b, "word_perplexity", exp(p->nats / (double)p->words), 9);
    }
    if (p->has_floor) {
        dt_json_add_fixed(b, "floor", floor, 6);
        dt_json_add_fixed(b, "gap", loss - floor, 6);
    }
}

static void report_json(const struct dt_perplexity *results, int count, struct dt_buffer *b)
{
    for (int i = 0; i < count; i++) {
        dt_buffer_add_string(b, "{\"model\":");
        dt_json_add_string(b, results[i].directory, strlen(results[i].directory));
        dt_buffer_add_char(b, ',');
        add_json(&results[i], b);
        if (i > 0)
            dt_json_add_real(b, "p", p_value(results, i), 6);
        dt_buffer_add_string(b, "}\n");
    }
}

static void report_one(const struct dt_perplexity *p, struct dt_buffer *b)
{
    double loss = loss_of(p), floor = p->floor / (double)p->tokens;
    dt_buffer_printf(b,
                     "documents        %" PRIu64 "\n"
                     "tokens           %" PRIu64 "\n"
                     "loss             %.4f nats per token\n"
                     "perplexity       %.4f\n",
                     p->documents, p->tokens, loss, exp(loss));
    if (p->words)
        dt_buffer_printf(b, "  per word       %.6g\n", exp(p->nats / (double)p->words));
    if (p->bytes)
        dt_buffer_printf(b,
                         "  per byte       %.4f\n"
                         "bits per byte    %.4f\n",
                         exp(p->nats / (double)p->bytes), p->nats / (double)p->bytes / M_LN2);
    if (p->has_floor)
        dt_buffer_printf(b,
                         "floor            %.4f nats per token: the entropy of the text\n"
                         "gap              %.4f nats per token, %.1f%% of the floor\n",
                         floor, loss - floor, 100 * (loss - floor) / floor);
}

static void report_table(const struct dt_perplexity *results, int count, struct dt_buffer *b)
{
    dt_buffer_add_string(b, "    loss  perplexity  bits per byte         p  model\n");
    for (int i = 0; i < count; i++) {
        const struct dt_perplexity *p = &results[i];
        double loss = loss_of(p), bits = p->nats / (double)p->bytes / M_LN2;
        dt_buffer_printf(b, "%8.4f  %10.4f  ", loss, exp(loss));
        if (p->bytes)
            dt_buffer_printf(b, "%13.4f  ", bits);
        else
            dt_buffer_printf(b, "%13s  ", "-");
        if (i == 0)
            dt_buffer_printf(b, "%8s  %s\n", "", p->directory);
        else
            dt_buffer_printf(b, "%8.4f  %s\n", p_value(results, i), p->directory);
    }
}

void dt_perplexity_report(const struct dt_perplexity *results, int count, bool json,
                          struct dt_buffer *text)
{
    if (json)
        report_json(results, count, text);
    else if (count == 1)
        report_one(results, text);
    else
        report_table(results, count, text);
}

void dt_perplexity_items(const struct dt_perplexity *results, int count, struct dt_buffer *lines)
{
    for (int i = 0; i < count; i++)
        for (uint64_t d = 0; d < results[i].documents; d++) {
            dt_buffer_add_string(lines, "{\"model\":");
            dt_json_add_string(lines, results[i].directory, strlen(results[i].directory));
            dt_buffer_printf(lines, ",\"document\":%" PRIu64, d + 1);
            dt_json_add_real(lines, "nats", results[i].items[d], 9);
            dt_buffer_add_string(lines, "}\n");
        }
}

/* --- documents ---------------------------------------------------------------------------------*/

static int write_document(const struct dt_perplexity *p, uint64_t i, struct dt_document *doc,
                          struct dt_document_writer *to, struct dt_buffer *line,
                          struct dt_error *err)
{
    char value[32];
    if (i == p->documents || p->sizes[i] == 0)
        return dt_fail(err, DT_EFORMAT, "document %" PRIu64 " %s", i + 1,
                       i == p->documents ? "was not there when they were measured"
                                         : "has no token to score");
    double perplexity = exp(p->items[i] / (double)p->sizes[i]);
    if (isfinite(perplexity))
        snprintf(value, sizeof value, "%.6g", perplexity);
    else
        strcpy(value, "null");
    dt_meta_set(&doc->meta, "perplexity", value);
    return dt_document_writer_add(to, doc, line, err);
}

static int write_all(const struct dt_perplexity *p, char *data, struct dt_output *out,
                     struct dt_lineage *lineage, struct dt_error *err)
{
    struct dt_documents *docs;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_document_writer to = dt_document_writer_to(out, DT_DOCUMENT_OUTPUT_JSONL);
    struct dt_buffer line = DT_BUFFER_EMPTY;
    const struct dt_documents_options how = {DT_DOCUMENT_FORMAT_AUTO, .lineage = lineage};
    int rc = dt_documents_open(&docs, &data, 1, &how, err);
    to.lineage = lineage;
    for (uint64_t i = 0; rc == 0 && (rc = dt_documents_next(docs, &doc, err)) > 0; i++)
        rc = write_document(p, i, &doc, &to, &line, err);
    rc = rc == 0 ? dt_document_writer_end(&to, err) : rc;
    rc = rc == 0 ? dt_lineage_commit(lineage, out, err) : rc;
    dt_document_writer_release(&to);
    dt_documents_close(docs);
    dt_document_release(&doc);
    dt_buffer_release(&line);
    return rc < 0 ? dt_fail_context(err, "%s", data) : 0;
}

int dt_perplexity_write_documents(const struct dt_perplexity *p, char *data, const char *path,
                                  struct dt_error *err)
{
    struct dt_output out;
    DT_TRY(dt_output_open(&out, path, err));
    struct dt_lineage *lineage = dt_lineage_for(path);
    int rc = dt_lineage_add_path(lineage, p->directory, err);
    rc = rc == 0 ? write_all(p, data, &out, lineage, err) : rc;
    dt_output_abandon(&out);
    dt_lineage_free(lineage);
    return rc;
}
