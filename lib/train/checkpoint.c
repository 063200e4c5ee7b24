/* SPDX-License-Identifier: MIT */
#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/inventory.h"
#include "model/directory.h"

#define STATE_FILE     "trainer/state.json"
#define OPTIMIZER_FILE "trainer/optimizer.safetensors.zst"
#define AVERAGE_DIR    "ema"
#define SETTINGS_FILE  "trainer/config.yaml"
#define LINEAGE_FILE   "trainer/lineage.txt"
#define TEMPORARY      ".step-"
#define LATEST         "latest"
#define BEST           "best"
#define MOST_TOKENIZER ((size_t)1 << 30)

/* --- tensors -----------------------------------------------------------------------------------
 */

/* The list is the optimizer's state over moments, a host copy of both of its arenas. */
static struct dt_named_tensor *list_moments(const struct dt_store *s, float *moments, int *count)
{
    return dt_optimizer_named_tensors(&s->optimizer, moments,
                                      dt_optimizer_second_moments(&s->optimizer, moments), count);
}

static int save_moments(struct dt_snapshot *snapshot, const char *path, struct dt_error *err)
{
    int count;
    float *moments = dt_snapshot_part(snapshot, DT_PART_MOMENTS);
    struct dt_named_tensor *list = list_moments(snapshot->store, moments, &count);
    int rc = dt_safetensors_write(path, list, count, true, err);
    free(list);
    return rc;
}

static int load_moments(struct dt_store *s, const char *path, struct dt_error *err)
{
    struct dt_device *dev = s->model->device;
    int count;
    float *moments = dt_alloc(1, s->bytes.moments);
    struct dt_named_tensor *list = list_moments(s, moments, &count);
    int rc = dt_safetensors_read(path, list, count, NULL, err);
    if (rc == 0)
        dev->ops->upload(dev, s->optimizer.first, moments, s->bytes.moments);
    free(list);
    free(moments);
    return rc;
}

static int load_average(struct dt_store *s, const char *path, struct dt_error *err)
{
    struct dt_device *dev = s->model->device;
    if (s->average == NULL)
        return 0;
    float *average = dt_alloc(1, s->bytes.average);
    struct dt_named_tensor *list = dt_model_named_tensors(&s->model->table, average, "");
    int rc = dt_safetensors_read(path, list, s->model->table.count, NULL, err);
    if (rc == 0)
        dev->ops->upload(dev, s->average, average, s->bytes.average);
    free(list);
    free(average);
    return rc;
}

/* --- settings ----------------------------------------------------------------------------------
 */

/* Settings that may change between the parts of a run: how it is watched and
 * saved, and how long it goes on (which moves the end of the schedule). */
static void forgive(struct dt_settings *s, const struct dt_settings *now)
{
    s->training.log_interval = now->training.log_interval;
    s->training.eval_interval = now->training.eval_interval;
    s->training.eval_batches = now->training.eval_batches;
    s->training.save_interval = now->training.save_interval;
    s->training.max_steps = now->training.max_steps;
    s->training.max_tokens = now->training.max_tokens;
    s->training.max_epochs = now->training.max_epochs;
    s->training.patience = now->training.patience;
    s->training.max_skipped = now->training.max_skipped;
    s->checkpoint = now->checkpoint;
    s->tracking = now->tracking;
    memcpy(s->data.dataset, now->data.dataset, sizeof s->data.dataset);
    s->data.num_workers = now->data.num_workers;
    s->distributed.backend = now->distributed.backend;
    s->distributed.timeout = now->distributed.timeout;
    s->training.recompute = now->training.recompute; /* the same bits */
    memcpy(s->data.val_split, now->data.val_split, sizeof s->data.val_split);
}

static int check_settings(const char *path, const struct dt_settings *now, struct dt_error *err)
{
    struct dt_settings saved;
    dt_config_defaults(dt_settings_schema, &saved);
    DT_TRY(dt_config_read(dt_settings_schema, &saved, path, err));
    DT_TRY(dt_model_config_check(&saved.model, path, err)); /* keys that are younger than it */
    forgive(&saved, now);
    const struct dt_setting *different = dt_config_difference(dt_settings_schema, &saved, now);
    if (different == NULL)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s: the run began with another value of %s", path,
                   different->name);
}

/* --- names ------------------------------------------------------------------------------------
 */

#define NAME_SIZE 32

static char *name_of(long step, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "step-%08ld", step);
    return name;
}

/* The hidden name of a checkpoint being made or removed; owned by the caller. */
static char *temporary_path(const char *run, long step)
{
    return dt_format("%s/" TEMPORARY "%08ld.tmp-%ld", run, step, (long)getpid());
}

/* The step of a checkpoint's name, or -1. */
static long step_of(const char *name)
{
    long step;
    char again[NAME_SIZE];
    if (sscanf(name, "step-%ld", &step) != 1 || step < 0)
        return -1;
    return strcmp(name_of(step, again), name) == 0 ? step : -1;
}

/* --- whole checkpoints -------------------------------------------------------------------------
 */

static int copy_file(const char *from, const char *to, struct dt_error *err)
{
    char *data;
    size_t size;
    DT_TRY(dt_file_read(from, MOST_TOKENIZER, &data, &size, err));
    int rc = dt_file_write(to, data, size, err);
    free(data);
    return rc;
}

static int save_texts(const char *directory, const struct dt_run_identity *identity,
                      struct dt_error *err)
{
    struct dt_buffer yaml = DT_BUFFER_EMPTY;
    char *settings = dt_path_join(directory, SETTINGS_FILE);
    char *lineage = dt_path_join(directory, LINEAGE_FILE);
    dt_config_print(dt_settings_schema, identity->settings, &yaml);
    int rc = dt_file_write(settings, yaml.data, yaml.size, err);
    rc = rc < 0 ? rc : dt_file_write(lineage, identity->lineage, strlen(identity->lineage), err);
    dt_buffer_release(&yaml);
    free(settings);
    free(lineage);
    return rc;
}

/* Parameters, configuration and tokenizer, as transformers loads them. */
static int save_model(const char *directory, const struct dt_store *store, float *parameters,
                      const struct dt_run_identity *identity, struct dt_error *err)
{
    char *tokenizer = dt_path_join(directory, DT_TOKENIZER_FILE);
    int rc = dt_make_directories(directory, err);
    rc = rc < 0 ? rc : dt_parameters_save(store->model, parameters, identity->eot, directory, err);
    if (rc == 0 && identity->tokenizer_path)
        rc = copy_file(identity->tokenizer_path, tokenizer, err);
    if (rc == 0 && identity->tokenizer_path)
        rc = dt_tokenizer_config_write(directory, identity->eot,
                                       identity->settings->model.max_seq_len, err);
    free(tokenizer);
    return rc;
}

static int save_average(const char *directory, struct dt_snapshot *snapshot,
                        const struct dt_run_identity *identity, struct dt_error *err)
{
    float *average = dt_snapshot_part(snapshot, DT_PART_AVERAGE);
    char *path = dt_path_join(directory, AVERAGE_DIR);
    int rc = average ? save_model(path, snapshot->store, average, identity, err) : 0;
    if (rc == 0 && average)
        rc = dt_sync_directory(path, err);
    free(path);
    return rc;
}

/* state.json holds the hash of the parameters, so both come from one copy of them. */
static int save_parameters(const char *directory, struct dt_snapshot *snapshot,
                           const struct dt_run_identity *identity, struct dt_error *err)
{
    float *parameters = dt_snapshot_part(snapshot, DT_PART_PARAMETERS);
    uint64_t hash = dt_parameters_hash(&snapshot->store->model->table, parameters);
    char *state = dt_path_join(directory, STATE_FILE);
    int rc = save_model(directory, snapshot->store, parameters, identity, err);
    rc = rc < 0 ? rc : dt_progress_state_write(&snapshot->state, identity->data, hash, state, err);
    free(state);
    return rc;
}

#define MOST_FILES 16

static int save_manifest(const char *directory, const struct dt_snapshot *snapshot,
                         const struct dt_run_identity *identity, struct dt_error *err)
{
    const char *files[MOST_FILES] = {DT_CONFIG_FILE, DT_WEIGHTS_FILE, STATE_FILE,
                                     OPTIMIZER_FILE, SETTINGS_FILE,   LINEAGE_FILE};
    int count = 6;
    if (identity->tokenizer_path) {
        files[count++] = DT_TOKENIZER_FILE;
        files[count++] = DT_TOKENIZER_CONFIG_FILE;
    }
    if (snapshot->store->average) {
        files[count++] = AVERAGE_DIR "/" DT_CONFIG_FILE;
        files[count++] = AVERAGE_DIR "/" DT_WEIGHTS_FILE;
    }
    if (snapshot->store->average && identity->tokenizer_path) {
        files[count++] = AVERAGE_DIR "/" DT_TOKENIZER_FILE;
        files[count++] = AVERAGE_DIR "/" DT_TOKENIZER_CONFIG_FILE;
    }
    return dt_inventory_write(directory, DT_MANIFEST_FILE, files, err);
}

static int fill_directory(const char *directory, struct dt_snapshot *snapshot,
                          const struct dt_run_identity *identity, struct dt_error *err)
{
    char *trainer = dt_path_join(directory, DT_TRAINER_DIR);
    char *optimizer = dt_path_join(directory, OPTIMIZER_FILE);
    int rc = dt_make_directories(trainer, err);
    rc = rc < 0 ? rc : save_parameters(directory, snapshot, identity, err);
    rc = rc < 0 ? rc : save_moments(snapshot, optimizer, err);
    rc = rc < 0 ? rc : save_average(directory, snapshot, identity, err);
    rc = rc < 0 ? rc : save_texts(directory, identity, err);
    rc = rc < 0 ? rc : save_manifest(directory, snapshot, identity, err);
    rc = rc < 0 ? rc : dt_sync_directory(trainer, err);
    rc = rc < 0 ? rc : dt_sync_directory(directory, err);
    free(trainer);
    free(optimizer);
    return rc;
}

/* Gives the finished directory its name. One of the same step changes places
 * with it in one move, and is removed under the temporary name. */
static int take_place(const char *temporary, const char *final, struct dt_error *err)
{
    if (rename(temporary, final) == 0)
        return 0;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return dt_fail_errno(err, "cannot rename to '%s'", final);
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, final, RENAME_EXCHANGE) == 0)
        return dt_remove_tree(temporary, err);
    DT_TRY(dt_remove_tree(final, err)); /* a file system that cannot exchange */
    return rename(temporary, final) < 0 ? dt_fail_errno(err, "cannot rename to '%s'", final) : 0;
}

static int point(const char *run, const char *link, const char *name, struct dt_error *err)
{
    char *path = dt_path_join(run, link);
    int rc = dt_replace_symlink(name, path, err);
    free(path);
    return rc;
}

static int publish(const char *run, const char *temporary, const struct dt_progress_state *state,
                   struct dt_error *err)
{
    char name[NAME_SIZE], *final = dt_path_join(run, name_of(state->step, name));
    int rc = take_place(temporary, final, err);
    rc = rc < 0 ? rc : dt_sync_directory(run, err);
    if (rc == 0 && state->best_step == state->step)
        rc = point(run, BEST, name, err);
    rc = rc < 0 ? rc : point(run, LATEST, name, err);
    rc = rc < 0 ? rc : dt_sync_directory(run, err);
    free(final);
    return rc;
}

int dt_checkpoint_save(const char *run, struct dt_snapshot *snapshot,
                       const struct dt_run_identity *identity, struct dt_error *err)
{
    char *temporary = temporary_path(run, snapshot->state.step);
    struct dt_error ignored;
    int rc = fill_directory(temporary, snapshot, identity, err);
    rc = rc < 0 ? rc : publish(run, temporary, &snapshot->state, err);
    if (rc < 0)
        dt_remove_tree(temporary, &ignored); /* what stays is for dt_checkpoint_clean */
    free(temporary);
    return rc;
}

int dt_checkpoint_load(const char *directory, struct dt_store *store,
                       struct dt_progress_state *state, const struct dt_run_identity *identity,
                       struct dt_error *err)
{
    char *settings = dt_path_join(directory, SETTINGS_FILE);
    char *state_path = dt_path_join(directory, STATE_FILE);
    char *optimizer = dt_path_join(directory, OPTIMIZER_FILE);
    char *average = dt_path_join(directory, AVERAGE_DIR "/" DT_WEIGHTS_FILE);
    int rc = dt_inventory_verify(directory, DT_MANIFEST_FILE, err);
    rc = rc < 0 ? rc : check_settings(settings, identity->settings, err);
    rc = rc < 0 ? rc : dt_progress_state_read(state, identity->data, state_path, err);
    rc = rc < 0 ? rc : dt_model_restore(store->model, directory, err);
    rc = rc < 0 ? rc : load_moments(store, optimizer, err);
    rc = rc < 0 ? rc : load_average(store, average, err);
    free(average);
    free(settings);
    free(state_path);
    free(optimizer);
    return rc;
}

/* --- keeping and removing ----------------------------------------------------------------------
 */

static int newest_first(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x < y) - (x > y);
}

struct step_list {
    long *steps;
    size_t count, capacity;
};

/* The steps of RUN's checkpoints up to newest, sorted. */
static int list_steps(const char *run, long newest, struct step_list *list, struct dt_error *err)
{
    DIR *dir = opendir(run);
    if (dir == NULL)
        return dt_fail_errno(err, "cannot open directory '%s'", run);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        long step = step_of(e->d_name);
        if (step < 0 || step > newest)
            continue;
        DT_GROW(list->steps, list->count, list->capacity);
        list->steps[list->count++] = step;
    }
    closedir(dir);
    if (list->count > 0)
        qsort(list->steps, list->count, sizeof *list->steps, newest_first);
    return 0;
}

int dt_checkpoint_find(const char *run, char **path, struct dt_error *err)
{
    struct step_list list = {NULL, 0, 0};
    char name[NAME_SIZE], *latest = dt_path_join(run, LATEST);
    struct stat st;
    *path = NULL;
    if (lstat(latest, &st) == 0) { /* a link to nothing is a damaged run, not a new one */
        *path = latest;
        return 0;
    }
    free(latest);
    DT_TRY(list_steps(run, LONG_MAX, &list, err));
    if (list.count > 0)
        *path = dt_path_join(run, name_of(list.steps[0], name));
    free(list.steps);
    return 0;
}

static bool points_to(const char *run, const char *link, const char *name)
{
    char target[NAME_SIZE] = "", *path = dt_path_join(run, link);
    bool same = readlink(path, target, sizeof target - 1) > 0 && strcmp(target, name) == 0;
    free(path);
    return same;
}

/* Under a hidden name first, so that no half of it is ever taken for a checkpoint. */
static int remove_checkpoint(const char *run, long step, struct dt_error *err)
{
    char name[NAME_SIZE], *path = dt_path_join(run, name_of(step, name));
    char *temporary = temporary_path(run, step);
    int rc = rename(path, temporary) < 0 ? dt_fail_errno(err, "cannot rename '%s'", path)
                                         : dt_remove_tree(temporary, err);
    free(path);
    free(temporary);
    return rc;
}

int dt_checkpoint_prune(const char *run, long newest, long keep_last, long keep_every,
                        struct dt_error *err)
{
    struct step_list list = {NULL, 0, 0};
    char name[NAME_SIZE];
    if (keep_last == 0)
        return 0;
    int rc = list_steps(run, newest, &list, err);
    for (size_t i = (size_t)keep_last; rc == 0 && i < list.count; i++) {
        long step = list.steps[i];
        bool kept = keep_every > 0 && step % keep_every == 0;
        name_of(step, name);
        if (!kept && !points_to(run, LATEST, name) && !points_to(run, BEST, name))
            rc = remove_checkpoint(run, step, err);
    }
    free(list.steps);
    return rc;
}

int dt_checkpoint_clean(const char *run, struct dt_error *err)
{
    DIR *dir = opendir(run);
    if (dir == NULL)
        return errno == ENOENT ? 0 : dt_fail_errno(err, "cannot open directory '%s'", run);
    int rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;) {
        if (strncmp(e->d_name, TEMPORARY, strlen(TEMPORARY)) != 0)
            continue;
        char *path = dt_path_join(run, e->d_name);
        rc = dt_remove_tree(path, err);
        free(path);
    }
    closedir(dir);
    return rc;
}
