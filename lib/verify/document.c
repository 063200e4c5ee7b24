/* SPDX-License-Identifier: MIT */
#include "verify/document.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "document/document.h"
#include "hash/hash.h"
#include "io/lineage.h"
#include "settings/batch-ramp.h"
#include "settings/settings.h"
#include "shard/dataset.h"
#include "shard/manifest.h"
#include "train/sample-order.h"
#include "json/json.h"

struct search {
    uint64_t hash; /* of the document's text */
    char *checkpoint, *data;
    struct dt_settings settings;
    uint64_t samples; /* that the run used up to the checkpoint */
    struct dt_verify_report *report;
    uint64_t found;
};

/* --- the document ----------------------------------------------------------------------------- */

static bool is_hash(const char *id)
{
    return strlen(id) == DT_HASH_HEX - 1 && strspn(id, "0123456789abcdef") == DT_HASH_HEX - 1;
}

static bool is_named(const struct dt_document *d, const char *id)
{
    struct json_object *meta, *url;
    struct dt_error none;
    if (d->id.size == strlen(id) && memcmp(d->id.data, id, d->id.size) == 0)
        return true;
    if (d->meta.size == 0 || dt_json_parse(d->meta.data, d->meta.size, "", &meta, &none) < 0)
        return false;
    bool same = json_object_is_type(meta, json_type_object) &&
                json_object_object_get_ex(meta, "url", &url) && url &&
                strcmp(dt_json_text(url), id) == 0;
    json_object_put(meta);
    return same;
}

static int find_text(struct search *s, struct dt_documents *documents, const char *file,
                     const char *id, struct dt_error *err)
{
    struct dt_document d = DT_DOCUMENT_EMPTY;
    bool found = false;
    int rc;
    while (!found && (rc = dt_documents_next(documents, &d, err)) > 0)
        found = is_named(&d, id);
    if (found)
        s->hash = dt_hash(d.text.size ? d.text.data : "", d.text.size);
    dt_document_release(&d);
    if (found || rc < 0)
        return found ? 0 : rc;
    return dt_fail(err, DT_EMISSING, "%s: has no document with the id or url '%s'", file, id);
}

static int find_hash(struct search *s, const struct dt_verify_document_options *o,
                     struct dt_error *err)
{
    struct dt_documents *documents;
    char *const files[] = {(char *)o->documents};
    if (o->documents == NULL && !is_hash(o->id))
        return dt_fail(err, DT_EINVALID,
                       "'%s' is not a hash of 16 hexadecimal digits, by which shards know a "
                       "document; --documents FILE finds the hash of an id or url",
                       o->id);
    if (o->documents == NULL) {
        s->hash = strtoull(o->id, NULL, 16);
        return 0;
    }
    DT_TRY(dt_documents_open(&documents, files, 1, &(struct dt_documents_options){0}, err));
    int rc = find_text(s, documents, o->documents, o->id, err);
    dt_documents_close(documents);
    return rc;
}

/* --- the run ---------------------------------------------------------------------------------- */

static const char *text_of(struct json_object *object, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(object, name, &value) ? dt_json_text(value) : "";
}

/* Whether an option of the recorded command names the path. */
static bool is_option(struct json_object *record, const char *path)
{
    static const char *const options[] = {"--config",      "--tokenizer", "--init-from",
                                          "--branch-from", "--reference", NULL};
    struct json_object *arguments;
    if (!json_object_object_get_ex(record, "arguments", &arguments))
        return false;
    for (size_t i = 1; i < json_object_array_length(arguments); i++) {
        const char *name = dt_json_text(json_object_array_get_idx(arguments, i - 1));
        const char *value = dt_json_text(json_object_array_get_idx(arguments, i));
        for (int k = 0; options[k]; k++)
            if (strcmp(name, options[k]) == 0 && strcmp(value, path) == 0)
                return true;
    }
    return false;
}

/* The input of that path; NULL: none. */
static struct json_object *find_path(struct json_object *inputs, const char *path)
{
    for (size_t k = 0; k < json_object_array_length(inputs); k++) {
        struct json_object *input = json_object_array_get_idx(inputs, k);
        if (strcmp(text_of(input, "path"), path) == 0)
            return input;
    }
    return NULL;
}

/* The data set among the inputs of dt-train: what the settings name, or what no option does. */
static struct json_object *find_data(const struct search *s, struct json_object *records)
{
    size_t count = json_object_array_length(records);
    struct json_object *record = count ? json_object_array_get_idx(records, count - 1) : NULL;
    struct json_object *inputs;
    if (record == NULL || strcmp(text_of(record, "program"), "dt-train") != 0 ||
        !json_object_object_get_ex(record, "inputs", &inputs))
        return NULL;
    struct json_object *named = find_path(inputs, s->settings.data.dataset);
    if (named)
        return named;
    for (size_t k = 0; k < json_object_array_length(inputs); k++) {
        struct json_object *input = json_object_array_get_idx(inputs, k);
        if (!is_option(record, text_of(input, "path")))
            return input;
    }
    return NULL;
}

/* Shards that were written again have other documents. */
static int check_data(struct search *s, struct json_object *input, struct dt_error *err)
{
    char hex[DT_SHA256_HEX];
    uint64_t bytes;
    const char *file = text_of(input, "file");
    char *path = *file ? dt_path_join(s->data, file) : dt_strdup(s->data);
    int rc = dt_sha256_file(path, &bytes, hex, err);
    if (rc == 0 && strcmp(hex, text_of(input, "sha256")) != 0)
        rc = dt_fail(err, DT_EFORMAT,
                     "%s: is not what the run read: its SHA-256 differs; --data names the shards "
                     "of the run",
                     path);
    free(path);
    return rc;
}

static int find_shards(struct search *s, const char *moved, struct dt_error *err)
{
    struct json_object *records;
    DT_TRY(dt_lineage_read_restored(s->checkpoint, &records, err));
    struct json_object *input = find_data(s, records);
    int rc = input ? 0
                   : dt_fail(err, DT_EFORMAT, "%s: its lineage does not name the data of the run",
                             s->checkpoint);
    if (rc == 0) {
        s->data = dt_strdup(moved ? moved : text_of(input, "path"));
        rc = check_data(s, input, err);
    }
    json_object_put(records);
    return rc;
}

static int read_samples(struct search *s, struct dt_error *err)
{
    struct json_object *state = NULL;
    int64_t samples = 0;
    char *path = dt_path_join(s->checkpoint, "trainer/state.json");
    int rc = dt_json_read(path, &state, err);
    rc = rc < 0 ? rc : dt_json_get_int(state, "samples", path, &samples, err);
    s->samples = samples > 0 ? (uint64_t)samples : 0;
    json_object_put(state);
    free(path);
    return rc;
}

static int find_run(struct search *s, const struct dt_verify_document_options *o,
                    struct dt_error *err)
{
    char *latest = dt_path_join(o->run, "latest");
    bool is_run = dt_file_is_directory(latest);
    s->checkpoint = is_run ? latest : dt_strdup(o->run);
    if (!is_run)
        free(latest);
    char *config = dt_path_join(s->checkpoint, "trainer/config.yaml");
    int rc = dt_settings_read(&s->settings, NULL, config, NULL, 0, err);
    free(config);
    if (rc == 0 && *s->settings.data.stages)
        rc = dt_fail(err, DT_EINVALID,
                     "%s: was trained on data.stages, whose samples are not looked up",
                     s->checkpoint);
    rc = rc < 0 ? rc : find_shards(s, o->data, err);
    return rc < 0 ? rc : read_samples(s, err);
}

/* --- samples and steps ------------------------------------------------------------------------ */

/* The samples of one step that have tokens of the document, which is from token first to last. */
static int report_step(struct search *s, const struct dt_dataset *d, long step, uint64_t from,
                       uint64_t count, uint64_t first, uint64_t last, struct dt_error *err)
{
    uint32_t length = (uint32_t)s->settings.training.sequence_length;
    const struct dt_sample_order order = dt_sample_order_get(&s->settings);
    struct dt_buffer line = DT_BUFFER_EMPTY;
    int rc = 0;
    uint64_t start = (uint64_t)s->settings.branch.data_start;
    for (uint64_t position = from; position < from + count; position++) {
        uint64_t k = dt_dataset_order(d, length, &order, position - start);
        uint64_t begin = dt_dataset_sample_first(d, length, k);
        if (begin <= last && first <= begin + length)
            dt_buffer_printf(&line, "%s %" PRIu64, line.size ? "," : "", k);
    }
    if (line.size > 0)
        rc = dt_verify_report_say(s->report, dt_asprintf("  step %ld: samples%s", step, line.data),
                                  err);
    dt_buffer_release(&line);
    return rc;
}

static int report_steps(struct search *s, const struct dt_dataset *d, uint64_t first, uint64_t last,
                        struct dt_error *err)
{
    long step = s->settings.branch.step + 1;
    if (step > 1)
        DT_TRY(dt_verify_report_say(
            s->report,
            dt_asprintf("  steps 1 to %ld are those of the run that it branched from", step - 1),
            err));
    for (uint64_t from = (uint64_t)s->settings.branch.samples, count; from < s->samples;
         from += count, step++) {
        count = (uint64_t)(dt_batch_passes(&s->settings, from) * s->settings.training.batch_size);
        if (count == 0)
            return dt_fail(err, DT_EFORMAT, "%s: a step without samples", s->checkpoint);
        DT_TRY(report_step(s, d, step, from, count, first, last, err));
    }
    return 0;
}

/* All samples that have tokens of the document, used or not. */
static int report_samples(struct search *s, const struct dt_dataset *d, uint64_t samples,
                          uint64_t first, uint64_t last, struct dt_error *err)
{
    uint32_t length = (uint32_t)s->settings.training.sequence_length;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    for (uint64_t k = 0; k < samples; k++) {
        uint64_t begin = dt_dataset_sample_first(d, length, k);
        if (begin <= last && first <= begin + length)
            dt_buffer_printf(&line, " %" PRIu64, k);
    }
    int rc = dt_verify_report_say(
        s->report,
        dt_asprintf("  samples%s, of %" PRIu64, line.size ? line.data : " none", samples), err);
    dt_buffer_release(&line);
    return rc;
}

/* The shard that holds document i of a split; *i and *first become positions in it. */
static const char *find_shard(const struct dt_manifest_split *split, uint64_t *i, uint64_t *first)
{
    for (int k = 0; split && k < split->count; k++) {
        const struct dt_manifest_shard *shard = &split->shards[k];
        if (*i < shard->documents)
            return shard->file;
        *i -= shard->documents;
        *first -= shard->tokens;
    }
    return NULL;
}

static int report_place(struct search *s, const struct dt_dataset *d,
                        const struct dt_manifest_split *split, uint64_t samples, uint64_t i,
                        uint64_t first, const struct dt_shard_document *document,
                        struct dt_error *err)
{
    uint64_t last = first + document->tokens - 1, begin = first;
    const char *file = find_shard(split, &i, &begin);
    char tokens[64] = "no tokens";
    s->found++;
    if (document->tokens > 0)
        snprintf(tokens, sizeof tokens, "tokens %" PRIu64 " to %" PRIu64, begin,
                 begin + document->tokens - 1);
    DT_TRY(dt_verify_report_say(s->report,
                                dt_asprintf("%s%s%s: document %" PRIu64 ", %s%s", s->data,
                                            file ? "/" : "", file ? file : "", i, tokens,
                                            samples ? "" : "; its split is not trained on"),
                                err));
    if (samples == 0 || document->tokens == 0)
        return 0;
    DT_TRY(report_samples(s, d, samples, first, last, err));
    return report_steps(s, d, first, last, err);
}

/* listed: NULL for data without splits. */
static int search_split(struct search *s, const char *split, const struct dt_manifest_split *listed,
                        struct dt_error *err)
{
    struct dt_dataset *d;
    uint64_t samples = 0, first;
    struct dt_shard_document document;
    uint32_t length = (uint32_t)s->settings.training.sequence_length;
    if (s->settings.training.objective != DT_TRAINING_OBJECTIVE_AUTO)
        return dt_fail(err, DT_EINVALID,
                       "%s: was trained with training.objective %s, whose samples are not looked "
                       "up",
                       s->checkpoint, dt_training_objective_names[s->settings.training.objective]);
    DT_TRY(dt_dataset_open(&d, s->data, split, err));
    int rc = dt_dataset_info(d)->row > 0
                 ? dt_fail(err, DT_EINVALID,
                           "%s: has rows (dt-shard --layout), whose documents have no positions",
                           s->data)
                 : 0;
    bool trained = strcmp(split, s->settings.data.train_split) == 0;
    if (rc == 0 && trained)
        rc = dt_dataset_samples(d, length, &samples, err);
    for (uint64_t i = 0; rc == 0 && i < dt_dataset_info(d)->documents; i++) {
        rc = dt_dataset_document(d, i, &first, &document, err);
        if (rc == 0 && document.hash == s->hash)
            rc = report_place(s, d, listed, samples, i, first, &document, err);
    }
    dt_dataset_close(d);
    return rc;
}

static int search_all(struct search *s, struct dt_error *err)
{
    struct dt_manifest m = {0};
    if (!dt_file_is_directory(s->data))
        return search_split(s, s->settings.data.train_split, NULL, err);
    int rc = dt_manifest_read(&m, s->data, err);
    for (int i = 0; rc == 0 && i < m.count; i++)
        rc = search_split(s, m.splits[i].name, &m.splits[i], err);
    dt_manifest_release(&m);
    return rc;
}

int dt_verify_document(const struct dt_verify_document_options *o, struct dt_verify_report *r,
                       struct dt_error *err)
{
    struct search s = {.report = r};
    char hex[DT_HASH_HEX];
    int rc = find_hash(&s, o, err);
    rc = rc < 0 ? rc : find_run(&s, o, err);
    rc = rc < 0 ? rc : search_all(&s, err);
    if (rc == 0 && s.found == 0)
        rc = dt_fail(err, DT_EMISSING, "%s: has no document of hash %s", s.data,
                     dt_hash_hex(s.hash, hex));
    free(s.checkpoint);
    free(s.data);
    return rc;
}
