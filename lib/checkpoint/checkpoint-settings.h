/* SPDX-License-Identifier: MIT */
/* The settings in a checkpoint, trainer/config.yaml, against those of a run that continues it or
 * branches from it. */
#ifndef DT_CHECKPOINT_CHECKPOINT_SETTINGS_H
#define DT_CHECKPOINT_CHECKPOINT_SETTINGS_H

#include "settings/settings.h"
#include "json/json.h"

#define DT_CHECKPOINT_SETTINGS "trainer/config.yaml" /* in the checkpoint's directory */

int dt_checkpoint_read_settings(const char *directory, struct dt_settings *settings,
                                struct dt_error *err) DT_MUST_CHECK;

/* DT_EINVALID names the first setting that now has another value than the checkpoint, and must not:
 * on a resume all that give a step its meaning; in a branch those that decide which tensors a
 * checkpoint has. */
int dt_checkpoint_check_resume(const char *directory, const struct dt_settings *now,
                               struct dt_error *err) DT_MUST_CHECK;
int dt_checkpoint_check_branch(const char *directory, const struct dt_settings *now,
                               struct dt_error *err) DT_MUST_CHECK;

/* The settings that differ, {"training.seed": ["1", "2"]}, without those of directories and names.
 * Owned by the caller. */
struct json_object *dt_checkpoint_changes(const struct dt_settings *then,
                                          const struct dt_settings *now);

#endif
