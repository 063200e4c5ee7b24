/* SPDX-License-Identifier: MIT */
#include "parts/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/path.h"
#include "experiment/child.h"
#include "io/lineage.h"
#include "io/sealed-json.h"
#include "parts/ledger-internal.h"
#include "shard/manifest.h"
#include "shard/shard.h"
#include "json/json-number.h"

int dt_ledger_check_stage(const char *stage, struct dt_error *err)
{
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t n = strlen(stage);
    if (n > 0 && n <= 64 && stage[0] != '-' && strspn(stage, letters) == n)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "'%s' is not a name of a stage: letters, digits, '-' and '_', at most 64",
                   stage);
}

char *dt_ledger_path(const char *ledger, const char *stage, long part, long parts,
                     const char *suffix)
{
    return dt_asprintf("%s/%s-%06ld-of-%06ld%s", ledger, stage, part, parts, suffix);
}

/* --- whether a command wrote it --------------------------------------------------------------- */

/* Identifies a version of a file: one that is renamed into place has another inode, and one that is
 * written again another time of change, whatever its time of modification. */
struct version {
    bool exists;
    dev_t device;
    ino_t inode;
    struct timespec changed;
};

/* Of a directory of shards, that of its index.json. */
static struct version version_of(const char *output)
{
    struct stat st;
    char *path =
        dt_file_is_directory(output) ? dt_path_join(output, DT_MANIFEST_NAME) : dt_strdup(output);
    struct version v = {.exists = stat(path, &st) == 0};
    if (v.exists)
        v = (struct version){true, st.st_dev, st.st_ino, st.st_ctim};
    free(path);
    return v;
}

/* Those of the outputs, then of the statistics. */
static struct version *versions_of(const struct dt_ledger_part *part)
{
    int count = 0;
    struct version *v = dt_alloc((size_t)(part->output_count + part->stats_count) + 1, sizeof *v);
    for (int i = 0; i < part->output_count; i++)
        v[count++] = version_of(part->outputs[i]);
    for (int i = 0; i < part->stats_count; i++)
        v[count++] = version_of(part->stats[i]);
    return v;
}

static bool is_as_before(const char *path, const struct version *before)
{
    struct version v = version_of(path);
    return before->exists && v.exists && v.device == before->device && v.inode == before->inode &&
           v.changed.tv_sec == before->changed.tv_sec &&
           v.changed.tv_nsec == before->changed.tv_nsec;
}

static int check_written(const char *path, const struct version *before, struct dt_error *err)
{
    if (is_as_before(path, before))
        return dt_fail(err, DT_EINVALID,
                       "%s: was there before, and the command did not write it: remove it, or name "
                       "what the command writes",
                       path);
    return 0;
}

/* before: as of versions_of(). */
static int check_all_written(const struct dt_ledger_part *part, const struct version *before,
                             struct dt_error *err)
{
    for (int i = 0; i < part->output_count; i++)
        DT_TRY(check_written(part->outputs[i], &before[i], err));
    for (int i = 0; i < part->stats_count; i++)
        DT_TRY(check_written(part->stats[i], &before[part->output_count + i], err));
    return 0;
}

/* --- what a command wrote --------------------------------------------------------------------- */

static void add_counts(struct json_object *o, uint64_t documents, uint64_t tokens, uint64_t bytes)
{
    dt_json_object_add(o, "documents", dt_json_new_uint(documents));
    dt_json_object_add(o, "tokens", dt_json_new_uint(tokens));
    dt_json_object_add(o, "text_bytes", dt_json_new_uint(bytes));
}

/* Describes a directory of shards by its index.json. */
static int describe_directory(struct json_object *o, const char *path, struct dt_error *err)
{
    struct dt_manifest m;
    char hex[DT_SHA256_HEX], *index = dt_path_join(path, DT_MANIFEST_NAME);
    uint64_t bytes, size = 0;
    int rc = dt_manifest_read(&m, path, err);
    rc = rc < 0 ? rc : dt_sha256_file(index, &bytes, hex, err);
    for (int i = 0; rc == 0 && i < m.count; i++)
        for (int k = 0; k < m.splits[i].count; k++)
            size += m.splits[i].shards[k].size;
    if (rc == 0) {
        add_counts(o, m.info.documents, m.info.tokens, m.info.text_bytes);
        dt_json_object_add(o, "file", dt_json_new_string(DT_MANIFEST_NAME));
        dt_json_object_add(o, "bytes", dt_json_new_uint(size));
        dt_json_object_add(o, "sha256", dt_json_new_string(hex));
    }
    dt_manifest_release(&m);
    free(index);
    return rc;
}

/* The counts of a token stream; none of other files. */
static void describe_stream(struct json_object *o, const char *path)
{
    struct dt_shard *s;
    struct dt_error other;
    size_t n = strlen(path);
    if (n < 4 || strcmp(path + n - 4, ".dts") != 0 || dt_shard_open(&s, path, &other) < 0)
        return;
    const struct dt_shard_info *info = dt_shard_get_info(s);
    add_counts(o, info->documents, info->tokens, info->text_bytes);
    dt_shard_close(s);
}

static int describe_file(struct json_object *o, const char *path, struct dt_error *err)
{
    char hex[DT_SHA256_HEX];
    uint64_t size;
    describe_stream(o, path);
    DT_TRY(dt_sha256_file(path, &size, hex, err));
    dt_json_object_add(o, "bytes", dt_json_new_uint(size));
    dt_json_object_add(o, "sha256", dt_json_new_string(hex));
    return 0;
}

static struct json_object *find_record(struct json_object *records, const char *id)
{
    struct json_object *own;
    for (size_t i = 0; i < json_object_array_length(records); i++) {
        struct json_object *record = json_object_array_get_idx(records, i);
        if (json_object_object_get_ex(record, "id", &own) && strcmp(dt_json_text(own), id) == 0)
            return record;
    }
    return NULL;
}

/* Adds the inputs of a command that have a hash; those of the commands before it in its pipe. */
static void add_inputs_of(struct json_object *inputs, struct json_object *records,
                          struct json_object *record)
{
    struct json_object *list, *from;
    if (record == NULL || !json_object_object_get_ex(record, "inputs", &list))
        return;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *input = json_object_array_get_idx(list, i);
        if (json_object_object_get_ex(input, "sha256", NULL))
            dt_json_array_add(inputs, json_object_get(input));
        else if (json_object_object_get_ex(input, "from", &from)) /* names an earlier record */
            add_inputs_of(inputs, records, find_record(records, dt_json_text(from)));
    }
}

/* The inputs of the command that wrote the output last. */
static void add_inputs(struct json_object *inputs, const char *path)
{
    struct json_object *records;
    struct dt_error none;
    if (dt_lineage_read(path, &records, &none) < 0)
        return;
    size_t count = json_object_array_length(records);
    add_inputs_of(inputs, records, json_object_array_get_idx(records, count - 1));
    json_object_put(records);
}

static int describe_output(struct json_object *outputs, struct json_object *inputs,
                           const char *path, struct dt_error *err)
{
    struct json_object *o = dt_json_new_object();
    dt_json_object_add(o, "path", dt_json_new_string(path));
    int rc =
        dt_file_is_directory(path) ? describe_directory(o, path, err) : describe_file(o, path, err);
    add_inputs(inputs, path);
    dt_json_array_add(outputs, o);
    return rc;
}

/* One object, or an array of several. */
static int add_stats(struct json_object *record, const struct dt_ledger_part *part,
                     struct dt_error *err)
{
    struct json_object *all = part->stats_count > 1 ? dt_json_new_array() : NULL, *stats;
    if (all)
        dt_json_object_add(record, "stats", all);
    for (int i = 0; i < part->stats_count; i++) {
        DT_TRY(dt_json_read(part->stats[i], &stats, err));
        if (all)
            dt_json_array_add(all, stats);
        else
            dt_json_object_add(record, "stats", stats);
    }
    return 0;
}

static int describe_outputs(struct json_object *record, const struct dt_ledger_part *part,
                            struct dt_error *err)
{
    struct json_object *outputs = dt_json_new_array(), *inputs = dt_json_new_array();
    dt_json_object_add(record, "inputs", inputs);
    dt_json_object_add(record, "outputs", outputs);
    for (int i = 0; i < part->output_count; i++)
        DT_TRY(describe_output(outputs, inputs, part->outputs[i], err));
    return add_stats(record, part, err);
}

/* --- records ---------------------------------------------------------------------------------- */

/* The number of attempts in an earlier record of the part; 0: none. */
static int64_t attempts_of(const char *path)
{
    struct json_object *old = NULL;
    struct dt_error none;
    int64_t attempt = 0;
    if (dt_json_read(path, &old, &none) == 0 &&
        dt_json_get_int(old, "attempt", path, &attempt, &none) < 0)
        attempt = 0;
    json_object_put(old);
    return attempt;
}

static struct json_object *new_record(const struct dt_ledger_part *part, const char *path)
{
    struct json_object *r = dt_json_new_object(), *command = dt_json_new_array();
    char host[DT_LEDGER_HOST], text[DT_LEDGER_TIME];
    dt_ledger_host(host);
    dt_ledger_now(text);
    for (char *const *word = part->command; *word; word++)
        dt_json_array_add(command, dt_json_new_string(*word));
    dt_json_object_add(r, "stage", dt_json_new_string(part->stage));
    dt_json_object_add(r, "part", dt_json_new_int(part->part.index));
    dt_json_object_add(r, "parts", dt_json_new_int(part->part.count));
    dt_json_object_add(r, "state", dt_json_new_string(DT_LEDGER_STARTED));
    dt_json_object_add(r, "attempt", dt_json_new_int(attempts_of(path) + 1));
    dt_json_object_add(r, "host", dt_json_new_string(host));
    dt_json_object_add(r, "started", dt_json_new_string(text));
    dt_json_object_add(r, "command", command);
    return r;
}

static struct json_object *to_milliseconds(double seconds)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.3f", seconds);
    return dt_json_new_double_s(seconds, digits);
}

static void add_usage(struct json_object *record, const struct dt_child_result *result)
{
    dt_json_object_add(record, "seconds", to_milliseconds(result->wall));
    dt_json_object_add(record, "cpu_seconds", to_milliseconds(result->user + result->system));
    dt_json_object_add(record, "peak_bytes", dt_json_number(result->peak_bytes));
    dt_json_object_add(record, "status", dt_json_new_int(result->status));
}

/* Replaces the record by its next state. */
static int write_state(struct json_object *record, const char *path, const char *state,
                       const char *why, struct dt_error *err)
{
    json_object_object_del(record, "seal");
    dt_json_object_add(record, "state", dt_json_new_string(state));
    if (*why)
        dt_json_object_add(record, "error", dt_json_new_string(why));
    return dt_sealed_json_write(path, record, err);
}

/* --- running ---------------------------------------------------------------------------------- */

/* Runs the command of a record that says that it started. before: its outputs until now. */
static int run(struct json_object *record, const char *path, const struct dt_ledger_part *part,
               const struct version *before, struct dt_child_result *result, struct dt_error *err)
{
    struct dt_error ignored;
    int rc = dt_child_run(part->command, 0, part->stop, result, err);
    if (rc == 0)
        add_usage(record, result);
    if (rc == 0 && result->status != 0)
        return write_state(record, path, DT_LEDGER_FAILED, result->complaint, err);
    rc = rc < 0 ? rc : check_all_written(part, before, err);
    rc = rc < 0 ? rc : describe_outputs(record, part, err);
    if (rc < 0) {
        (void)!write_state(record, path, DT_LEDGER_FAILED, err->text, &ignored);
        return rc;
    }
    return write_state(record, path, DT_LEDGER_DONE, "", err);
}

static char *path_of(const char *ledger, const struct dt_ledger_part *part, const char *suffix)
{
    return dt_ledger_path(ledger, part->stage, part->part.index, part->part.count, suffix);
}

static int record_run(const char *ledger, const struct dt_ledger_part *part, int *status,
                      char complaint[256], struct dt_error *err)
{
    struct dt_child_result result = {0};
    char *path = path_of(ledger, part, ".json");
    struct json_object *record = new_record(part, path);
    struct version *before = versions_of(part);
    int rc = dt_sealed_json_write(path, record, err);
    rc = rc < 0 ? rc : run(record, path, part, before, &result, err);
    *status = result.status;
    snprintf(complaint, 256, "%s", result.complaint);
    if (result.output.size > 0 && fwrite(result.output.data, 1, result.output.size, stdout) == 0)
        rc = rc < 0 ? rc : dt_fail_errno(err, "cannot write to stdout");
    dt_child_release(&result);
    json_object_put(record);
    free(before);
    free(path);
    return rc;
}

int dt_ledger_run(const char *ledger, const struct dt_ledger_part *part, int *status,
                  char complaint[256], struct dt_error *err)
{
    struct dt_ledger_lock lock;
    DT_TRY(dt_file_make_directories(ledger, err));
    char *path = path_of(ledger, part, ".lock");
    int taken = dt_ledger_lock_take(&lock, path, err);
    int rc = taken == 0 ? record_run(ledger, part, status, complaint, err)
                        : dt_fail_context(err, "%s %ld/%ld", part->stage, part->part.index,
                                          part->part.count);
    dt_ledger_lock_release(&lock, taken == 0);
    free(path);
    return rc;
}
