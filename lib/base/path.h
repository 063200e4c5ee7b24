/* SPDX-License-Identifier: MIT */
/* Paths as text. */
#ifndef DT_BASE_PATH_H
#define DT_BASE_PATH_H

#include "base/error.h"

/* "dir" + "/" + "name"; owned by the caller. */
char *dt_path_join(const char *dir, const char *name);
/* DT_EFORMAT unless name, as subject lists it, is a file below the directory that subject
 * describes: relative, without "." and ".." and without empty parts. */
int dt_path_check_inside(const char *name, const char *subject, struct dt_error *err) DT_MUST_CHECK;
/* The part of path after the last '/'; points into path. */
const char *dt_path_base(const char *path);
/* The same for all spellings of a path, which need not exist in its directory; owned by the
 * caller. */
char *dt_path_real(const char *path);

/* The path of a file of the user's configuration: what the environment variable says, or dt/NAME in
 * $XDG_CONFIG_HOME or ~/.config. Owned by the caller. */
char *dt_path_configuration(const char *variable, const char *name);

/* "hf://OWNER/NAME@COMMIT/FILE" for a path in the cache of Hugging Face's hub, in
 * models--OWNER--NAME/snapshots/COMMIT, or with "datasets/" before OWNER; NULL for any other path.
 * Owned by the caller. */
char *dt_path_hub_name(const char *path);

#endif
