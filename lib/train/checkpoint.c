/* SPDX-License-Identifier: MIT */
#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/inventory.h"
#include "base/json.h"
#include "model/directory.h"

#define STATE_FILE     "trainer/state.json"
#define OPTIMIZER_FILE "trainer/optimizer.safetensors.zst"
#define SETTINGS_FILE  "trainer/config.yaml"
#define LINEAGE_FILE   "trainer/lineage.txt"
#define TEMPORARY      ".step-"
#define LATEST         "latest"
#define BEST           "best"
#define MOST_TOKENIZER ((size_t)1 << 30)

/* --- optimizer moments -------------------------------------------------------------------------
 */

/* The optimizer's state as one list of tensors over host copies. */
struct moments {
    float *first, *second;
    struct dt_named_tensor *list;
    int count;
};

static struct moments moments_new(const struct dt_optimizer *o)
{
    struct moments m;
    m.first = dt_alloc(1, dt_optimizer_first_bytes(o));
    m.second = dt_alloc(1, dt_optimizer_second_bytes(o));
    m.list = dt_optimizer_named_tensors(o, m.first, m.second, &m.count);
    return m;
}

static void moments_free(struct moments *m)
{
    free(m->first);
    free(m->second);
    free(m->list);
}

static int save_moments(const struct dt_store *s, const char *path, struct dt_error *err)
{
    struct dt_device *dev = s->model->device;
    const struct dt_optimizer *o = &s->optimizer;
    struct moments m = moments_new(o);
    dev->ops->download(dev, m.first, o->first, dt_optimizer_first_bytes(o));
    dev->ops->download(dev, m.second, o->second, dt_optimizer_second_bytes(o));
    int rc = dt_safetensors_write(path, m.list, m.count, true, err);
    moments_free(&m);
    return rc;
}

static int load_moments(struct dt_store *s, const char *path, struct dt_error *err)
{
    struct dt_device *dev = s->model->device;
    struct dt_optimizer *o = &s->optimizer;
    struct moments m = moments_new(o);
    int rc = dt_safetensors_read(path, m.list, m.count, NULL, err);
    if (rc == 0) {
        dev->ops->upload(dev, o->first, m.first, dt_optimizer_first_bytes(o));
        dev->ops->upload(dev, o->second, m.second, dt_optimizer_second_bytes(o));
    }
    moments_free(&m);
    return rc;
}

/* --- state -------------------------------------------------------------------------------------
 */

static void add_hex(struct json_object *object, const char *name, uint64_t value)
{
    char hex[DT_HEX64];
    json_object_object_add(object, name, json_object_new_string(dt_hex64(value, hex)));
}

static struct json_object *best_object(const struct dt_progress_state *state)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "step", json_object_new_int64(state->best_step));
    json_object_object_add(o, "loss", json_object_new_double(state->best_loss));
    json_object_object_add(o, "validations_since",
                           json_object_new_int64(state->validations_since_best));
    return o;
}

static struct json_object *skipped_object(const struct dt_progress_state *state)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "updates", json_object_new_int64(state->skipped));
    json_object_object_add(o, "in_a_row", json_object_new_int64(state->skipped_in_row));
    return o;
}

static int save_state(const char *path, const struct dt_store *store,
                      const struct dt_progress_state *state, const struct dt_run_identity *identity,
                      struct dt_error *err)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "version", json_object_new_int(1));
    json_object_object_add(o, "step", json_object_new_int64(state->step));
    json_object_object_add(o, "samples", json_object_new_int64((int64_t)state->samples));
    json_object_object_add(o, "seconds", json_object_new_double(state->seconds));
    if (state->best_step > 0)
        json_object_object_add(o, "best", best_object(state));
    if (state->skipped > 0)
        json_object_object_add(o, "skipped", skipped_object(state));
    add_hex(o, "data", identity->data);
    add_hex(o, "parameters", dt_model_hash(store->model));
    int rc = dt_json_write(path, o, err);
    json_object_put(o);
    return rc;
}

static int parse_best(struct json_object *o, const char *path, struct dt_progress_state *state,
                      struct dt_error *err)
{
    int64_t step, since;
    DT_TRY(dt_json_get_int(o, "step", path, &step, err));
    DT_TRY(dt_json_get_real(o, "loss", path, &state->best_loss, err));
    DT_TRY(dt_json_get_int(o, "validations_since", path, &since, err));
    state->best_step = (long)step;
    state->validations_since_best = (long)since;
    return 0;
}

static int parse_skipped(struct json_object *o, const char *path, struct dt_progress_state *state,
                         struct dt_error *err)
{
    int64_t skipped, in_row;
    DT_TRY(dt_json_get_int(o, "updates", path, &skipped, err));
    DT_TRY(dt_json_get_int(o, "in_a_row", path, &in_row, err));
    state->skipped = (long)skipped;
    state->skipped_in_row = (long)in_row;
    return 0;
}

static int parse_state(struct json_object *o, const char *path, struct dt_progress_state *state,
                       const struct dt_run_identity *identity, struct dt_error *err)
{
    int64_t version, step, samples;
    struct json_object *best, *skipped;
    const char *data;
    char hex[DT_HEX64];
    DT_TRY(dt_json_get_int(o, "version", path, &version, err));
    if (version != 1)
        return dt_fail(err, DT_EFORMAT, "%s: has version %" PRId64 ", this program reads 1", path,
                       version);
    DT_TRY(dt_json_get_int(o, "step", path, &step, err));
    DT_TRY(dt_json_get_int(o, "samples", path, &samples, err));
    DT_TRY(dt_json_get_real(o, "seconds", path, &state->seconds, err));
    DT_TRY(dt_json_get_string(o, "data", path, &data, err));
    if (strcmp(data, dt_hex64(identity->data, hex)) != 0)
        return dt_fail(err, DT_EINVALID, "%s: the run was trained on other data", path);
    state->step = (long)step;
    state->samples = (uint64_t)samples;
    if (json_object_object_get_ex(o, "best", &best))
        DT_TRY(parse_best(best, path, state, err));
    if (json_object_object_get_ex(o, "skipped", &skipped))
        DT_TRY(parse_skipped(skipped, path, state, err));
    return 0;
}

static int load_state(const char *path, struct dt_progress_state *state,
                      const struct dt_run_identity *identity, struct dt_error *err)
{
    struct json_object *o;
    DT_TRY(dt_json_read(path, &o, err));
    int rc = parse_state(o, path, state, identity, err);
    json_object_put(o);
    return rc;
}

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
    char *tokenizer = dt_path_join(directory, DT_TOKENIZER_FILE);
    dt_config_print(dt_settings_schema, identity->settings, &yaml);
    int rc = dt_file_write(settings, yaml.data, yaml.size, err);
    rc = rc < 0 ? rc : dt_file_write(lineage, identity->lineage, strlen(identity->lineage), err);
    if (rc == 0 && identity->tokenizer_path)
        rc = copy_file(identity->tokenizer_path, tokenizer, err);
    if (rc == 0 && identity->tokenizer_path)
        rc = dt_tokenizer_config_write(directory, identity->eot,
                                       identity->settings->model.max_seq_len, err);
    dt_buffer_release(&yaml);
    free(settings);
    free(lineage);
    free(tokenizer);
    return rc;
}

static int fill_directory(const char *directory, const struct dt_store *store,
                          const struct dt_progress_state *state,
                          const struct dt_run_identity *identity, struct dt_error *err)
{
    const char *files[] = {DT_CONFIG_FILE,
                           DT_WEIGHTS_FILE,
                           STATE_FILE,
                           OPTIMIZER_FILE,
                           SETTINGS_FILE,
                           LINEAGE_FILE,
                           NULL,
                           NULL,
                           NULL};
    if (identity->tokenizer_path) {
        files[6] = DT_TOKENIZER_FILE;
        files[7] = DT_TOKENIZER_CONFIG_FILE;
    }
    char *trainer = dt_path_join(directory, DT_TRAINER_DIR);
    char *state_path = dt_path_join(directory, STATE_FILE);
    char *optimizer = dt_path_join(directory, OPTIMIZER_FILE);
    int rc = dt_make_directories(trainer, err);
    rc = rc < 0 ? rc : dt_model_save(store->model, identity->eot, directory, err);
    rc = rc < 0 ? rc : save_moments(store, optimizer, err);
    rc = rc < 0 ? rc : save_state(state_path, store, state, identity, err);
    rc = rc < 0 ? rc : save_texts(directory, identity, err);
    rc = rc < 0 ? rc : dt_inventory_write(directory, DT_MANIFEST_FILE, files, err);
    rc = rc < 0 ? rc : dt_sync_directory(trainer, err);
    rc = rc < 0 ? rc : dt_sync_directory(directory, err);
    free(trainer);
    free(state_path);
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

int dt_checkpoint_save(const char *run, const struct dt_store *store,
                       const struct dt_progress_state *state,
                       const struct dt_run_identity *identity, struct dt_error *err)
{
    char *temporary = temporary_path(run, state->step);
    struct dt_error ignored;
    int rc = fill_directory(temporary, store, state, identity, err);
    rc = rc < 0 ? rc : publish(run, temporary, state, err);
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
    int rc = dt_inventory_verify(directory, DT_MANIFEST_FILE, err);
    rc = rc < 0 ? rc : check_settings(settings, identity->settings, err);
    rc = rc < 0 ? rc : load_state(state_path, state, identity, err);
    rc = rc < 0 ? rc : dt_model_restore(store->model, directory, err);
    rc = rc < 0 ? rc : load_moments(store, optimizer, err);
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
