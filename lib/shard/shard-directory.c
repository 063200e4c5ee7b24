/* SPDX-License-Identifier: MIT */
#include "shard/shard-directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/program.h"
#include "json/json.h"

#define SYNCED_ALONE 8 /* shards: a syncfs also waits for the data of other programs */

/* The file names of a manifest, as a set; owned by the caller. */
static struct json_object *names_of(const struct dt_manifest *m)
{
    struct json_object *names = dt_json_new_object();
    for (int i = 0; i < m->count; i++)
        for (int k = 0; k < m->splits[i].count; k++)
            dt_json_object_add(names, m->splits[i].shards[k].file, dt_json_new_boolean(true));
    return names;
}

static bool has_name(struct json_object *names, const char *name)
{
    return json_object_object_get_ex(names, name, NULL);
}

/* --- beginning -------------------------------------------------------------------------------- */

/* Two writers would remove each other's shards. The kernel releases the lock when the process
 * ends. */
static int lock(struct dt_shard_directory *d, struct dt_error *err)
{
    d->lock = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->lock < 0)
        return dt_fail_errno(err, "cannot open '%s'", d->path);
    if (flock(d->lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return dt_fail(err, DT_EINVALID, "another program is writing shards into '%s'", d->path);
    return 0; /* not every file system supports locks */
}

/* Chooses names that the old index.json does not list. */
static bool is_alternate(const struct dt_manifest *old, bool append)
{
    bool alternate = false;
    for (int i = 0; i < old->count; i++) {
        for (int k = 0; k < old->splits[i].count; k++) {
            const char *name = old->splits[i].shards[k].file;
            size_t n = strlen(name);
            alternate = append == (n > 6 && strcmp(name + n - 6, DT_ALTERNATE_SUFFIX) == 0);
        }
    }
    return alternate;
}

int dt_shard_directory_begin(struct dt_shard_directory *d, const char *path, bool append,
                             struct dt_error *err)
{
    struct dt_error why;
    *d = (struct dt_shard_directory){.path = dt_strdup(path), .lock = -1};
    d->made = access(path, F_OK) < 0;
    DT_TRY(dt_file_make_directories(path, err));
    DT_TRY(lock(d, err));
    if (dt_manifest_read(&d->old, path, &why) < 0) {
        dt_manifest_release(&d->old); /* an unreadable index.json is replaced */
        if (append) {
            *err = why;
            return why.code;
        }
    }
    d->alternate = is_alternate(&d->old, append);
    d->staging = dt_path_join(path, DT_SHARD_DIRECTORY_STAGING);
    DT_TRY(dt_file_remove_tree(d->staging, err));
    return dt_file_make_directories(d->staging, err);
}

char *dt_shard_directory_name(const struct dt_shard_directory *d, const char *split, int number)
{
    return dt_asprintf("%s-%05d%s", split, number, d->alternate ? DT_ALTERNATE_SUFFIX : ".dts");
}

char *dt_shard_directory_stage(const struct dt_shard_directory *d, const char *file)
{
    return dt_path_join(d->staging, file);
}

/* --- publishing ------------------------------------------------------------------------------- */

int dt_shard_directory_commit(struct dt_shard_directory *d, struct dt_output *out,
                              struct dt_error *err)
{
    d->committed++;
    if (d->committed <= SYNCED_ALONE || !dt_file_can_sync_all(d->lock))
        return dt_output_commit(out, err);
    d->unsynced = true;
    return dt_output_commit_unsynced(out, err);
}

static int move_shards(const struct dt_shard_directory *d, struct json_object *names,
                       struct json_object *old, struct dt_error *err)
{
    json_object_object_foreach(names, name, unused)
    {
        (void)unused;
        if (has_name(old, name))
            continue;
        char *from = dt_shard_directory_stage(d, name), *to = dt_path_join(d->path, name);
        int rc = rename(from, to) < 0 ? dt_fail_errno(err, "cannot rename to '%s'", to) : 0;
        free(from);
        free(to);
        DT_TRY(rc);
    }
    return dt_sync_directory(d->path, err);
}

/* Removes the shards of the directory that are among names, or that are not. */
static int remove_shards(const struct dt_shard_directory *d, struct json_object *names, bool among,
                         struct json_object *kept, struct dt_error *err)
{
    DIR *dir = opendir(d->path);
    if (dir == NULL)
        return dt_fail_errno(err, "cannot open directory '%s'", d->path);
    int rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;)
        if (dt_manifest_is_shard_name(e->d_name) && has_name(names, e->d_name) == among &&
            !has_name(kept, e->d_name) && unlinkat(dirfd(dir), e->d_name, 0) < 0 && errno != ENOENT)
            rc = dt_fail_errno(err, "cannot remove '%s' in '%s'", e->d_name, d->path);
    closedir(dir);
    return rc;
}

/* The names of splits of which the directory has shards, but m has none; *shards: their number. */
static struct json_object *lost_splits(const struct dt_shard_directory *d,
                                       const struct dt_manifest *m, int *shards)
{
    struct json_object *splits = dt_json_new_object();
    DIR *dir = opendir(d->path);
    *shards = 0;
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        if (!dt_manifest_is_shard_name(e->d_name))
            continue;
        char *split = dt_strndup(e->d_name, (size_t)(strrchr(e->d_name, '-') - e->d_name));
        bool is_lost = dt_manifest_find(m, split) == NULL;
        *shards += is_lost;
        if (is_lost && !has_name(splits, split))
            dt_json_object_add(splits, split, dt_json_new_boolean(true));
        free(split);
    }
    if (dir)
        closedir(dir);
    return splits;
}

/* Says that shards which no new one replaces are about to be removed. */
static void warn_lost(const struct dt_shard_directory *d, const struct dt_manifest *m)
{
    struct dt_buffer names = DT_BUFFER_EMPTY;
    int shards;
    struct json_object *splits = lost_splits(d, m, &shards);
    json_object_object_foreach(splits, name, unused)
    {
        (void)unused;
        dt_buffer_printf(&names, "%s%s", names.size > 0 ? ", " : "", name);
    }
    if (shards > 0)
        dt_program_warn("%s: %d shard%s of an earlier run removed, of splits that this one does "
                        "not have: %s",
                        d->path, shards, shards == 1 ? "" : "s", names.data);
    dt_buffer_release(&names);
    json_object_put(splits);
}

/* Gives the file its first name besides, and the entry that name. */
static int link_first_name(const struct dt_shard_directory *d, struct dt_manifest_shard *shard,
                           struct dt_error *err)
{
    size_t n = strlen(shard->file), suffix = strlen(DT_ALTERNATE_SUFFIX);
    if (n < suffix || strcmp(shard->file + n - suffix, DT_ALTERNATE_SUFFIX) != 0)
        return 0;
    char *name = dt_asprintf("%.*s.dts", (int)(n - suffix), shard->file);
    char *from = dt_path_join(d->path, shard->file), *to = dt_path_join(d->path, name);
    int rc = link(from, to) < 0 ? dt_fail_errno(err, "cannot link to '%s'", to) : 0;
    free(from);
    free(to);
    free(shard->file);
    shard->file = name;
    return rc;
}

/* Renames published shards, as the names of those that they replaced are free now: so a command
 * that is repeated leaves the same directory. At each moment index.json names files that exist. */
static int take_first_names(const struct dt_shard_directory *d, struct dt_manifest *m,
                            struct dt_error *err)
{
    for (int i = 0; i < m->count; i++)
        for (int k = 0; k < m->splits[i].count; k++)
            DT_TRY(link_first_name(d, &m->splits[i].shards[k], err));
    DT_TRY(dt_manifest_write(m, d->path, err));
    DT_TRY(dt_sync_directory(d->path, err));
    struct json_object *names = names_of(m);
    int rc = remove_shards(d, names, false, names, err);
    json_object_put(names);
    return rc;
}

int dt_shard_directory_publish(struct dt_shard_directory *d, struct dt_manifest *m,
                               struct dt_error *err)
{
    struct dt_error ignored;
    struct json_object *names = names_of(m), *old = names_of(&d->old);
    int rc = d->unsynced ? dt_file_sync_all(d->lock, d->path, err) : 0;
    rc = rc < 0 ? rc : move_shards(d, names, old, err);
    rc = rc < 0 ? rc : dt_manifest_write(m, d->path, err);
    if (rc < 0)
        (void)!remove_shards(d, names, true, old, &ignored);
    rc = rc < 0 ? rc : dt_sync_directory(d->path, err);
    if (rc == 0)
        warn_lost(d, m);
    rc = rc < 0 ? rc : remove_shards(d, names, false, names, err);
    json_object_put(names);
    json_object_put(old);
    return rc == 0 && d->alternate ? take_first_names(d, m, err) : rc;
}

void dt_shard_directory_release(struct dt_shard_directory *d)
{
    struct dt_error ignored;
    if (d->staging)
        (void)!dt_file_remove_tree(d->staging, &ignored);
    if (d->staging && d->made)
        (void)!rmdir(d->path); /* fails after success: it has shards */
    if (d->lock >= 0)
        close(d->lock);
    dt_manifest_release(&d->old);
    free(d->staging);
    free(d->path);
    *d = (struct dt_shard_directory){.lock = -1};
}

/* --- reading ---------------------------------------------------------------------------------- */

int dt_shard_directory_check(const char *directory, const char *file, struct dt_error *err)
{
    char *staging = dt_path_join(directory, DT_SHARD_DIRECTORY_STAGING);
    bool staged = strcmp(dt_path_base(directory), DT_SHARD_DIRECTORY_STAGING) == 0;
    bool incomplete = staged || dt_file_is_directory(staging);
    free(staging);
    return incomplete ? dt_fail(err, DT_EFORMAT,
                                "%s/%s: is of shards that are not complete: a dt-shard was stopped "
                                "or is still running; run it again",
                                directory, file)
                      : 0;
}
