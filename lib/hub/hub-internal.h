/* SPDX-License-Identifier: MIT */
/* Shared by the files of lib/hub. */
#ifndef DT_HUB_HUB_INTERNAL_H
#define DT_HUB_HUB_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "http/http.h"
#include "hub/hub.h"
#include "json/json.h"

/* A name, divided. */
struct dt_hub_name {
    bool data;        /* a data set */
    char *repository; /* OWNER/NAME */
    char *revision;   /* "main" where none is named */
    char *file;       /* NULL: none */
};

int dt_hub_name_parse(struct dt_hub_name *name, const char *text,
                      struct dt_error *err) DT_MUST_CHECK;
void dt_hub_name_release(struct dt_hub_name *name);
/* Whether a revision is a commit, which never changes. */
bool dt_hub_is_commit(const char *revision);

/* --- the cache --- */

/* $HF_HOME, or where Python has it without: of the cache and the token. Owned by the caller. */
char *dt_hub_home(void);
/* models--OWNER--NAME in the cache; owned by the caller. */
char *dt_hub_cache_directory(const struct dt_hub_name *name);
/* snapshots/COMMIT/FILE there; file NULL: the directory. */
char *dt_hub_cache_path(const struct dt_hub_name *name, const char *commit, const char *file);
/* The commit of a revision as the cache has it; NULL: unknown. */
char *dt_hub_cache_commit(const struct dt_hub_name *name);
int dt_hub_cache_set_commit(const struct dt_hub_name *name, const char *commit,
                            struct dt_error *err) DT_MUST_CHECK;
/* Makes snapshots/COMMIT/FILE a link to a blob. */
int dt_hub_cache_link(const struct dt_hub_name *name, const char *commit, const char *file,
                      const char *etag, struct dt_error *err) DT_MUST_CHECK;
/* Waits until this process alone writes a blob; returns a descriptor to close. */
int dt_hub_cache_lock(const struct dt_hub_name *name, const char *etag, struct dt_error *err);

/* --- the hub --- */

struct dt_hub {
    const struct dt_http *http;
    void *own, *other; /* connections to the endpoint, with the token, and to other hosts */
    struct dt_http_login login, none;
    char *endpoint;
};

int dt_hub_open(struct dt_hub *hub, struct dt_error *err) DT_MUST_CHECK;
void dt_hub_close(struct dt_hub *hub);
/* What the hub says of a revision: {"sha": commit, "siblings": [{"rfilename"}]}. DT_EIO: it was not
 * reached. */
int dt_hub_describe(struct dt_hub *hub, const struct dt_hub_name *name,
                    struct json_object **description, struct dt_error *err) DT_MUST_CHECK;
/* Downloads a file of a commit into the cache, unless it is there. */
int dt_hub_download(struct dt_hub *hub, const struct dt_hub_name *name, const char *commit,
                    const char *file, struct dt_error *err) DT_MUST_CHECK;

#endif
