/* SPDX-License-Identifier: MIT */
/* The stages of a lineage, where their outputs go, and the makefile that runs them. */
#ifndef DT_VERIFY_REPLAY_PLAN_H
#define DT_VERIFY_REPLAY_PLAN_H

#include <stdbool.h>

#include "base/buffer.h"
#include "verify/replay.h"
#include "json/json.h"

#define DT_REPLAY_MAKEFILE "replay.mk"

struct dt_replay_input {
    struct json_object *record; /* borrowed */
    const char *path, *file;    /* as recorded; file: in the directory path, or NULL */
    char *name;                 /* the path in its shortest form: ./a/ is a */
    int from;                   /* the stage that wrote it; -1: a raw input */
    char *place;                /* in the new directory; NULL: standard input */
    char *source; /* of a raw input: where it is now; NULL: standard input of a pipe */
    bool linked;  /* a raw input in a directory that is one, too: it needs no other link */
};

struct dt_replay_stage {
    struct json_object *record; /* borrowed */
    const char *program;
    struct dt_replay_input *inputs;
    int count;
    char *recorded; /* the output as it was named by whoever read it; NULL: a pipe */
    char *place;    /* in the new directory; NULL: a pipe */
};

struct dt_replay_plan {
    struct json_object *records;
    struct dt_replay_stage *stages;
    int count;
};

/* name: of the output of the last stage. Release *p with dt_replay_plan_release, also after a
 * failure. records is borrowed. */
int dt_replay_plan_make(struct dt_replay_plan *p, struct json_object *records, const char *name,
                        const struct dt_verify_replay_options *o,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_replay_plan_release(struct dt_replay_plan *p);
void dt_replay_plan_print(const struct dt_replay_plan *p, const char *programs,
                          struct dt_buffer *makefile);

#endif
