/* SPDX-License-Identifier: MIT */
#include "verify/replay.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/version.h"
#include "experiment/child.h"
#include "formats/adapter.h"
#include "formats/model-card.h"
#include "io/lineage.h"
#include "shard/shard.h"
#include "verify/replay-plan.h"

#define MANIFEST "trainer/manifest.json"

/* What is replayed. */
struct target {
    char *path;             /* a checkpoint of a run, or path as it is */
    char *name;             /* of the output in the new directory */
    const char *checkpoint; /* its name in the run; NULL: not a run. Points into path */
};

static void release_target(struct target *t)
{
    free(t->path);
    free(t->name);
}

/* 1, 0, or an error. */
static int has_file(const char *directory, const char *name, struct dt_error *err)
{
    char *path = dt_path_join(directory, name);
    int found = dt_file_probe(path, err);
    free(path);
    return found;
}

static int find_target(struct target *t, const char *path, struct dt_error *err)
{
    *t = (struct target){0};
    int is_run = has_file(path, "latest", err);
    DT_TRY(is_run);
    char *latest = dt_path_join(path, "latest");
    t->path = realpath(is_run ? latest : path, NULL);
    free(latest);
    if (t->path == NULL)
        return dt_fail_errno(err, "cannot find '%s'", path);
    char *base = strrchr(t->path, '/');
    int is_checkpoint = has_file(t->path, MANIFEST, err);
    DT_TRY(is_checkpoint);
    if (!is_checkpoint) {
        t->name = dt_strdup(*dt_path_base(t->path) ? dt_path_base(t->path) : "output");
        return 0;
    }
    *base = '\0';
    t->name = dt_strdup(*dt_path_base(t->path) ? dt_path_base(t->path) : "run");
    *base = '/';
    t->checkpoint = base + 1;
    return 0;
}

/* --- raw inputs ------------------------------------------------------------------------------- */

static const char *text_of(struct json_object *object, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(object, name, &value) ? dt_json_text(value) : "";
}

/* A raw input must be what it was. */
static int check_raw(const struct dt_replay_input *in, struct dt_error *err)
{
    char hex[DT_SHA256_HEX];
    uint64_t bytes;
    if (strcmp(in->source, "-") == 0)
        return dt_fail(err, DT_EMISSING,
                       "an input came from a pipe that dt did not write: --input -=FILE names a "
                       "file with it");
    char *path = in->file ? dt_path_join(in->source, in->file) : dt_strdup(in->source);
    int rc = dt_sha256_file(path, &bytes, hex, err);
    if (rc < 0)
        rc = dt_fail_context(err, "raw input; --input %s=NEW says where it is now", in->path);
    else if (strcmp(hex, text_of(in->record, "sha256")) != 0)
        rc = dt_fail(err, DT_EMISSING,
                     "%s: is not the recorded input: its SHA-256 differs; --input %s=NEW names "
                     "another file",
                     path, in->path);
    free(path);
    return rc;
}

/* A link in what another link leads to would replace a file of the user. */
static int check_parent(const char *link, const char *directory, struct dt_error *err)
{
    char real[PATH_MAX], outer[PATH_MAX];
    char *parent = dt_strndup(link, (size_t)(dt_path_base(link) - link));
    bool inside = false;
    if (realpath(parent, real) && realpath(directory, outer)) {
        size_t n = strlen(outer);
        inside = strncmp(real, outer, n) == 0 && (real[n] == '/' || real[n] == '\0');
    }
    free(parent);
    return inside ? 0 : dt_fail(err, DT_EINVALID, "'%s' would be outside of '%s'", link, directory);
}

static int link_raw(const struct dt_replay_input *in, const char *directory, struct dt_error *err)
{
    char target[PATH_MAX], *link = dt_path_join(directory, in->place);
    int rc = realpath(in->source, target) == NULL
                 ? dt_fail_errno(err, "cannot find '%s'", in->source)
                 : dt_file_make_parent(link, err);
    rc = rc < 0 ? rc : check_parent(link, directory, err);
    rc = rc < 0 ? rc : dt_file_replace_symlink(target, link, err);
    free(link);
    return rc;
}

static int take_raw(const struct dt_replay_plan *p, const char *directory, struct dt_error *err)
{
    for (int i = 0; i < p->count; i++)
        for (int k = 0; k < p->stages[i].count; k++)
            if (p->stages[i].inputs[k].from < 0)
                DT_TRY(check_raw(&p->stages[i].inputs[k], err));
    for (int i = 0; i < p->count; i++)
        for (int k = 0; k < p->stages[i].count; k++)
            if (p->stages[i].inputs[k].from < 0 && !p->stages[i].inputs[k].linked)
                DT_TRY(link_raw(&p->stages[i].inputs[k], directory, err));
    return 0;
}

/* --- comparison ------------------------------------------------------------------------------- */

/* The hash that identifies the content of an input: "content" does not depend on the version of
 * dt that wrote it. */
static const char *content_of(struct json_object *input)
{
    const char *content = text_of(input, "content");
    return *content ? content : text_of(input, "sha256");
}

static struct json_object *input_of(struct json_object *records, int stage, int k)
{
    struct json_object *inputs;
    struct json_object *record = json_object_array_get_idx(records, (size_t)stage);
    if (!json_object_object_get_ex(record, "inputs", &inputs))
        return NULL;
    return json_object_array_get_idx(inputs, (size_t)k);
}

/* Compares what read the output of a stage, in both lineages. Returns the number of readers; 0:
 * none. */
static int compare_stage(const struct dt_replay_plan *p, struct json_object *again, int stage,
                         bool *same)
{
    int compared = 0;
    *same = true;
    for (int i = stage + 1; i < p->count; i++) {
        for (int k = 0; k < p->stages[i].count; k++) {
            const struct dt_replay_input *in = &p->stages[i].inputs[k];
            struct json_object *other = input_of(again, i, k);
            if (in->from != stage || *content_of(in->record) == '\0')
                continue;
            compared++;
            *same = *same && other && strcmp(content_of(in->record), content_of(other)) == 0;
        }
    }
    return compared;
}

static int report(struct dt_verify_report *r, bool same, char *line, struct dt_error *err)
{
    r->agree += same;
    return same ? dt_verify_report_say(r, line, err) : dt_verify_report_differ(r, line, err);
}

/* Whether the command line that a token stream has in its header is another one, since a path of an
 * input was replaced. */
static bool has_other_command(const struct dt_replay_stage *s)
{
    for (int k = 0; strcmp(s->program, "dt-tokenize") == 0 && k < s->count; k++)
        if (s->inputs[k].place && strcmp(s->inputs[k].path, s->inputs[k].place) != 0)
            return true;
    return false;
}

static int compare_stages(const struct dt_replay_plan *p, struct json_object *again,
                          struct dt_verify_report *r, struct dt_error *err)
{
    for (int i = 0; i + 1 < p->count; i++) {
        const struct dt_replay_stage *s = &p->stages[i];
        bool same;
        if (compare_stage(p, again, i, &same) == 0)
            continue;
        if (!same && has_other_command(s)) {
            DT_TRY(dt_verify_report_say(
                r,
                dt_asprintf("stage %d, %s: %s has a command line with another path, and is not "
                            "compared",
                            i + 1, s->program, s->recorded),
                err));
            continue;
        }
        DT_TRY(report(r, same,
                      dt_asprintf("stage %d, %s: %s %s", i + 1, s->program, s->recorded,
                                  same ? "is the recorded one" : "differs from the recorded one"),
                      err));
    }
    return 0;
}

/* Files of a checkpoint or an export that a replay reproduces: not times, versions and hashes of
 * these. */
static bool is_result(const char *name)
{
    return strcmp(name, "trainer/optimizer.safetensors") == 0 ||
           (strncmp(name, "trainer/", strlen("trainer/")) != 0 && strcmp(name, DT_MODEL_CARD) != 0);
}

/* Whether both are token streams of one content. The command line in their headers is not of it. */
static bool is_same_stream(const char *old, const char *new)
{
    struct dt_shard *a = NULL, *b = NULL;
    struct dt_error not_one;
    bool same = dt_shard_open(&a, old, &not_one) == 0 && dt_shard_open(&b, new, &not_one) == 0;
    const struct dt_shard_info *x = same ? dt_shard_get_info(a) : NULL;
    const struct dt_shard_info *y = same ? dt_shard_get_info(b) : NULL;
    same = same && x->hash == y->hash && x->tokenizer == y->tokenizer &&
           x->vocab_size == y->vocab_size && x->eot == y->eot && x->row == y->row &&
           x->padding_id == y->padding_id && x->masked == y->masked;
    dt_shard_close(a);
    dt_shard_close(b);
    return same;
}

static int compare_file(const char *old, const char *new, struct dt_verify_report *r,
                        struct dt_error *err)
{
    char a[DT_SHA256_HEX], b[DT_SHA256_HEX];
    struct dt_error reason;
    uint64_t bytes;
    DT_TRY(dt_sha256_file(old, &bytes, a, err));
    if (dt_sha256_file(new, &bytes, b, &reason) < 0)
        return dt_verify_report_differ(r, dt_strdup(reason.text), err);
    bool same = strcmp(a, b) == 0;
    if (!same && is_same_stream(old, new))
        return report(r, true,
                      dt_asprintf("%s: has the content of %s, and another command line", new, old),
                      err);
    return report(r, same, dt_asprintf("%s: %s %s", new, same ? "is" : "differs from", old), err);
}

/* The member of a file that is the absolute path of an adapter's model, which a replay has at
 * another place; NULL: none. */
static const char *path_in(const char *name)
{
    return strcmp(name, DT_ADAPTER_CONFIG_FILE) == 0 ? "base_model_name_or_path"
           : strcmp(name, DT_ADAPTER_BASE_FILE) == 0 ? "path"
                                                     : NULL;
}

/* Compares the values of two JSON files but for a member. */
static int compare_but(const char *member, const char *old, const char *new,
                       struct dt_verify_report *r, struct dt_error *err)
{
    struct json_object *a = NULL, *b = NULL;
    struct dt_error reason;
    int rc = dt_json_read(old, &a, err);
    if (rc == 0 && dt_json_read(new, &b, &reason) < 0) {
        rc = dt_verify_report_differ(r, dt_strdup(reason.text), err);
    } else if (rc == 0) {
        json_object_object_del(a, member);
        json_object_object_del(b, member);
        bool same = json_object_equal(a, b);
        rc = report(
            r, same,
            dt_asprintf("%s: %s %s, but for '%s'", new, same ? "is" : "differs from", old, member),
            err);
    }
    json_object_put(a);
    json_object_put(b);
    return rc;
}

/* The files that the manifest lists. */
static int compare_list(const struct target *t, const char *name_of_list, const char *again,
                        struct dt_verify_report *r, struct dt_error *err)
{
    struct json_object *manifest = NULL, *files;
    char *path = dt_path_join(t->path, name_of_list);
    int rc = dt_json_read(path, &manifest, err);
    rc = rc < 0 ? rc : dt_json_get(manifest, "files", json_type_object, path, &files, err);
    if (rc == 0) {
        json_object_object_foreach(files, name, entry)
        {
            (void)entry;
            char *old = dt_path_join(t->path, name), *new = dt_path_join(again, name);
            rc = rc < 0 ? rc : dt_path_check_inside(name, path, err);
            if (rc == 0 && path_in(name))
                rc = compare_but(path_in(name), old, new, r, err);
            else if (rc == 0 && is_result(name))
                rc = compare_file(old, new, r, err);
            free(old);
            free(new);
        }
    }
    json_object_put(manifest);
    free(path);
    return rc;
}

/* Two directories by their files or by their identifying content, or two files. */
static int compare_output(const struct target *t, const char *again, struct dt_verify_report *r,
                          struct dt_error *err)
{
    char *old = NULL, *new = NULL;
    if (t->checkpoint)
        return compare_list(t, MANIFEST, again, r, err);
    if (!dt_file_is_directory(t->path))
        return compare_file(t->path, again, r, err);
    int has_list = has_file(t->path, DT_LINEAGE_FILE, err);
    DT_TRY(has_list);
    if (has_list)
        return compare_list(t, DT_LINEAGE_FILE, again, r, err);
    int rc = dt_lineage_content(t->path, &old, err);
    rc = rc < 0 ? rc : dt_lineage_content(again, &new, err);
    if (rc == 0) {
        bool same = strcmp(old, new) == 0;
        rc = report(
            r, same,
            dt_asprintf("%s: %s %s", again, same ? "has the content of" : "differs from", t->path),
            err);
    }
    free(old);
    free(new);
    return rc;
}

static int compare(const struct target *t, const struct dt_replay_plan *p, const char *directory,
                   struct dt_verify_report *r, struct dt_error *err)
{
    struct json_object *again = NULL;
    char *output = dt_path_join(directory, p->stages[p->count - 1].place);
    char *checkpoint = t->checkpoint ? dt_path_join(output, t->checkpoint) : dt_strdup(output);
    struct dt_error reason;
    int rc = dt_lineage_read(checkpoint, &again, &reason);
    if (rc < 0)
        rc = dt_verify_report_differ(
            r, dt_asprintf("the replay has no such output: %s", reason.text), err);
    else
        rc = compare_stages(p, again, r, err);
    if (rc == 0 && again)
        rc = compare_output(t, checkpoint, r, err);
    json_object_put(again);
    free(checkpoint);
    free(output);
    return rc;
}

/* --- the replay ------------------------------------------------------------------------------- */

static int say_versions(const struct dt_replay_plan *p, struct dt_verify_report *r,
                        struct dt_error *err)
{
    for (int i = 0; i < p->count; i++) {
        const char *version = text_of(p->stages[i].record, "version");
        if (strcmp(version, dt_version) != 0)
            DT_TRY(
                dt_verify_report_say(r,
                                     dt_asprintf("stage %d, %s: was run by version %s, and is "
                                                 "replayed by %s",
                                                 i + 1, p->stages[i].program, version, dt_version),
                                     err));
    }
    return 0;
}

static int write_makefile(const struct dt_replay_plan *p, const struct dt_verify_replay_options *o,
                          struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    char *path = dt_path_join(o->directory, DT_REPLAY_MAKEFILE);
    dt_replay_plan_print(p, o->programs, &text);
    int rc = dt_file_write(path, text.data, text.size, err);
    dt_buffer_release(&text);
    free(path);
    return rc;
}

static int run_make(const char *directory, const volatile sig_atomic_t *stop, struct dt_error *err)
{
    char *const words[] = {"make", "-C", (char *)directory, "-f", DT_REPLAY_MAKEFILE, NULL};
    struct dt_child_result result;
    DT_TRY(dt_child_run(words, 0, stop, &result, err));
    int rc = result.status == 0
                 ? 0
                 : dt_fail(err, DT_EIO, "make -C %s -f %s failed with status %d: %s", directory,
                           DT_REPLAY_MAKEFILE, result.status, result.complaint);
    dt_child_release(&result);
    return rc;
}

/* The directory is new, or that of a replay that was interrupted. */
static int open_directory(const char *directory, struct dt_error *err)
{
    struct dt_error ignored;
    if (rmdir(directory) < 0 && errno != ENOENT &&
        has_file(directory, DT_REPLAY_MAKEFILE, &ignored) <= 0)
        return dt_fail(err, DT_EINVALID, "'%s' is not empty: name a new directory with -o",
                       directory);
    return dt_file_make_directories(directory, err);
}

static int replay(const struct target *t, const struct dt_replay_plan *p,
                  const struct dt_verify_replay_options *o, struct dt_verify_report *r,
                  struct dt_error *err)
{
    if (o->plan_only) {
        struct dt_buffer text = DT_BUFFER_EMPTY;
        dt_replay_plan_print(p, o->programs, &text);
        int rc = dt_output_write(r->out, text.data, text.size, err);
        dt_buffer_release(&text);
        return rc;
    }
    DT_TRY(say_versions(p, r, err));
    DT_TRY(open_directory(o->directory, err));
    DT_TRY(take_raw(p, o->directory, err));
    DT_TRY(write_makefile(p, o, err));
    DT_TRY(run_make(o->directory, o->stop, err));
    return compare(t, p, o->directory, r, err);
}

int dt_verify_replay(const struct dt_verify_replay_options *o, struct dt_verify_report *r,
                     struct dt_error *err)
{
    struct target t;
    struct dt_replay_plan p = {0};
    struct json_object *records = NULL;
    int rc = find_target(&t, o->path, err);
    rc = rc < 0 ? rc : dt_lineage_read_restored(t.path, &records, err);
    rc = rc < 0 ? rc : dt_replay_plan_make(&p, records, t.name, o, err);
    rc = rc < 0 ? rc : replay(&t, &p, o, r, err);
    dt_replay_plan_release(&p);
    json_object_put(records);
    release_target(&t);
    return rc;
}
