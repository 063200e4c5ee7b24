/* SPDX-License-Identifier: MIT */
#include "shard/join.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/pool.h"
#include "options/command-line.h"
#include "shard/shard-directory.h"

struct joiner {
    struct dt_shard_directory out;
    struct dt_manifest manifest; /* of the output */
    char **paths;                /* of the inputs, without links */
    struct dt_manifest *inputs;
    int count;
    const struct dt_join_options *options;
};

void dt_shard_add_provenance(struct dt_buffer *lines, struct json_object *seen, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = dt_strndup(text, n);
        if (!json_object_object_get_ex(seen, line, NULL)) {
            dt_json_object_add(seen, line, NULL);
            dt_buffer_printf(lines, "%s\n", line);
        }
        free(line);
        text += n + (text[n] == '\n');
    }
}

int dt_shard_check_same(const struct dt_shard_info *a, const struct dt_shard_info *b,
                        const char *path, struct dt_error *err)
{
    if (a->tokenizer != b->tokenizer || a->vocab_size != b->vocab_size || a->eot != b->eot)
        return dt_fail(err, DT_EFORMAT,
                       "%s: was made with another tokenizer than the input before it", path);
    if (a->masked != b->masked)
        return dt_fail(err, DT_EFORMAT, "%s: %s a loss mask, unlike the input before it", path,
                       b->masked ? "has" : "lacks");
    return 0;
}

/* --- the inputs ------------------------------------------------------------------------------- */

static int read_input(struct joiner *j, const char *path, struct dt_error *err)
{
    struct dt_manifest *m = &j->inputs[j->count];
    j->paths[j->count++] = dt_path_real(path);
    DT_TRY(dt_manifest_read(m, path, err));
    const struct dt_shard_info *a = &j->inputs[0].info, *b = &m->info;
    DT_TRY(dt_shard_check_same(a, b, path, err));
    if (a->row != b->row || a->padding_id != b->padding_id)
        return dt_fail(err, DT_EFORMAT, "%s: has another layout than the input before it", path);
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int check_distinct(const struct joiner *j, const char *output, struct dt_error *err)
{
    char **sorted = dt_alloc((size_t)j->count + 1, sizeof *sorted), *out = dt_path_real(output);
    memcpy(sorted, j->paths, (size_t)j->count * sizeof *sorted);
    sorted[j->count] = out;
    qsort(sorted, (size_t)j->count + 1, sizeof *sorted, by_path);
    int rc = 0;
    for (int i = 0; rc == 0 && i < j->count; i++)
        if (strcmp(sorted[i], sorted[i + 1]) == 0)
            rc = dt_fail(err, DT_EINVALID, "%s: is named twice, as an input or the output",
                         sorted[i]);
    free(sorted);
    free(out);
    return rc;
}

/* A shard of an input. */
struct member {
    const char *directory;
    const struct dt_manifest_shard *listed;
};

static int by_content(const void *a, const void *b)
{
    const struct dt_manifest_shard *x = ((const struct member *)a)->listed;
    const struct dt_manifest_shard *y = ((const struct member *)b)->listed;
    return strcmp(x->sha256, y->sha256);
}

/* Refuses two shards that are one file, or copies of it; without a hash they are not compared, and
 * those without documents may be equal. */
static int check_contents(const struct joiner *j, struct dt_error *err)
{
    struct member *all = NULL;
    size_t count = 0, capacity = 0;
    int rc = 0;
    for (int i = 0; i < j->count; i++)
        for (int s = 0; s < j->inputs[i].count; s++)
            for (int k = 0; k < j->inputs[i].splits[s].count; k++) {
                const struct dt_manifest_shard *listed = &j->inputs[i].splits[s].shards[k];
                if (listed->documents == 0 || *listed->sha256 == '\0')
                    continue;
                DT_GROW(all, count, capacity);
                all[count++] = (struct member){j->paths[i], listed};
            }
    if (count > 0)
        qsort(all, count, sizeof *all, by_content);
    for (size_t i = 1; rc == 0 && i < count; i++)
        if (by_content(&all[i - 1], &all[i]) == 0)
            rc = dt_fail(err, DT_EINVALID,
                         "%s/%s: has the same content as %s/%s, which would duplicate its "
                         "documents: join each part once",
                         all[i].directory, all[i].listed->file, all[i - 1].directory,
                         all[i - 1].listed->file);
    free(all);
    return rc;
}

/* --- checks of files -------------------------------------------------------------------------- */

/* A shard to compare with its entry. */
struct check {
    char *path;
    const struct dt_manifest *manifest;
    const struct dt_manifest_shard *listed;
    int rc;
    struct dt_error err;
};

static int compare(const struct check *c, struct dt_error *err)
{
    struct dt_shard *shard;
    char hex[DT_SHA256_HEX];
    uint64_t bytes;
    DT_TRY(dt_shard_open(&shard, c->path, err));
    int rc = dt_manifest_check(c->manifest, c->listed, shard, c->path, err);
    dt_shard_close(shard);
    if (rc < 0 || *c->listed->sha256 == '\0')
        return rc;
    DT_TRY(dt_sha256_file(c->path, &bytes, hex, err));
    return strcmp(hex, c->listed->sha256) == 0
               ? 0
               : dt_fail(err, DT_EFORMAT, "%s: differs from %s in its SHA-256", c->path,
                         DT_MANIFEST_NAME);
}

static void check_on_thread(void *job, void *context)
{
    struct check *c = job;
    (void)context;
    c->rc = compare(c, &c->err);
}

/* Takes the result of the oldest check; false if none is left. */
static bool take_check(struct dt_pool *pool, int *rc, struct dt_error *err)
{
    struct check *c = dt_pool_next(pool);
    if (c == NULL)
        return false;
    if (*rc == 0 && c->rc < 0) {
        *rc = c->rc;
        *err = c->err;
    }
    free(c->path);
    free(c);
    return true;
}

static void submit_split(const struct joiner *j, int input, const struct dt_manifest_split *split,
                         struct dt_pool *pool, int *rc, struct dt_error *err)
{
    for (int k = 0; k < split->count && *rc == 0; k++) {
        struct check *c = dt_alloc(1, sizeof *c);
        c->manifest = &j->inputs[input];
        c->listed = &split->shards[k];
        c->path = dt_path_join(j->paths[input], c->listed->file);
        if (dt_pool_full(pool))
            take_check(pool, rc, err);
        dt_pool_submit(pool, c);
    }
}

static int check_files(const struct joiner *j, struct dt_error *err)
{
    struct dt_pool *pool = dt_pool_new(j->options->threads, check_on_thread, NULL);
    int rc = 0;
    for (int i = 0; i < j->count; i++)
        for (int s = 0; s < j->inputs[i].count; s++)
            submit_split(j, i, &j->inputs[i].splits[s], pool, &rc, err);
    while (take_check(pool, &rc, err))
        ;
    dt_pool_free(pool);
    return rc;
}

/* --- the output ------------------------------------------------------------------------------- */

/* The path of file relative to directory; both without links. */
static char *relative_path(const char *directory, const char *file)
{
    struct dt_buffer path = DT_BUFFER_EMPTY;
    size_t common = 0;
    for (size_t i = 0; directory[i] == file[i] || (directory[i] == '\0' && file[i] == '/'); i++) {
        if (file[i] == '/')
            common = i;
        if (directory[i] == '\0')
            break;
    }
    for (const char *rest = directory + common; (rest = strchr(rest, '/')) && rest[1]; rest++)
        dt_buffer_add_string(&path, "../");
    dt_buffer_add_string(&path, file + common + 1);
    return path.data;
}

static int link_shard(const struct joiner *j, const char *from, const char *to,
                      struct dt_error *err)
{
    if (!j->options->symbolic) {
        if (linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0)
            return 0;
        return errno == EXDEV ? dt_fail(err, DT_EIO,
                                        "%s: is on another file system than the output: use "
                                        "--symbolic for symbolic links",
                                        from)
                              : dt_fail_errno(err, "cannot link '%s'", from);
    }
    char *directory = dt_path_real(j->out.path), *target = relative_path(directory, from);
    int rc = symlink(target, to) < 0 ? dt_fail_errno(err, "cannot create the link '%s'", to) : 0;
    free(directory);
    free(target);
    return rc;
}

static int add_shard(struct joiner *j, struct dt_manifest_split *split, const char *directory,
                     const struct dt_manifest_shard *listed, struct dt_error *err)
{
    char *name = dt_shard_directory_name(&j->out, split->name, split->count);
    char *from = dt_path_join(directory, listed->file),
         *to = dt_shard_directory_stage(&j->out, name);
    struct dt_manifest_shard *shard = dt_manifest_add_shard(split, name);
    char *file = shard->file;
    *shard = *listed;
    shard->file = file;
    int rc = link_shard(j, from, to, err);
    free(name);
    free(from);
    free(to);
    return rc;
}

static int add_split(struct joiner *j, const char *name, struct dt_error *err)
{
    struct dt_manifest_split *split = dt_manifest_add_split(&j->manifest, name);
    for (int i = 0; i < j->count; i++) {
        const struct dt_manifest_split *from = dt_manifest_find(&j->inputs[i], name);
        for (int k = 0; from && k < from->count; k++)
            DT_TRY(add_shard(j, split, j->paths[i], &from->shards[k], err));
    }
    return split->count > 0 ? 0
                            : dt_fail(err, DT_EINVALID, "split '%s' is empty in all inputs", name);
}

static int add_splits(struct joiner *j, struct dt_error *err)
{
    for (int i = 0; i < j->count; i++)
        for (int s = 0; s < j->inputs[i].count; s++)
            if (dt_manifest_find(&j->manifest, j->inputs[i].splits[s].name) == NULL)
                DT_TRY(add_split(j, j->inputs[i].splits[s].name, err));
    return 0;
}

static int publish(struct joiner *j, struct dt_error *err)
{
    struct dt_buffer lines = DT_BUFFER_EMPTY;
    struct json_object *seen = dt_json_new_object();
    for (int i = 0; i < j->count; i++)
        dt_shard_add_provenance(&lines, seen, j->inputs[i].info.provenance);
    dt_buffer_printf(&lines, "%s\n", dt_command_line());
    j->manifest.info = j->inputs[0].info;
    j->manifest.info.provenance = lines.data;
    j->manifest.lineage = json_object_get(dt_lineage_records(j->options->lineage));
    int rc = dt_shard_directory_publish(&j->out, &j->manifest, err);
    dt_buffer_release(&lines);
    json_object_put(seen);
    return rc;
}

int dt_shard_join(const char *directory, char *const *inputs, int count,
                  const struct dt_join_options *options, struct dt_error *err)
{
    struct joiner j = {.out.lock = -1, .options = options};
    int rc = 0;
    j.paths = dt_alloc((size_t)count, sizeof *j.paths);
    j.inputs = dt_alloc((size_t)count, sizeof *j.inputs);
    for (int i = 0; rc == 0 && i < count; i++)
        rc = read_input(&j, inputs[i], err);
    rc = rc < 0 ? rc : check_distinct(&j, directory, err);
    rc = rc < 0 ? rc : check_contents(&j, err);
    rc = rc < 0 ? rc : check_files(&j, err);
    rc = rc < 0 ? rc : dt_shard_directory_begin(&j.out, directory, false, err);
    rc = rc < 0 ? rc : add_splits(&j, err);
    rc = rc < 0 ? rc : publish(&j, err);
    dt_shard_directory_release(&j.out);
    dt_manifest_release(&j.manifest);
    for (int i = 0; i < j.count; i++) {
        dt_manifest_release(&j.inputs[i]);
        free(j.paths[i]);
    }
    free(j.inputs);
    free(j.paths);
    return rc;
}
