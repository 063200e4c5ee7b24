/* SPDX-License-Identifier: MIT */
/*
 * dt-verify replay: rebuilds an output from its raw inputs, by the commands of its lineage.
 *
 * The commands run in a new directory, in which the outputs of all stages and links to the raw
 * inputs have the paths that they were read by, so that the commands are the recorded ones. A path
 * that leads out of the directory, or is both an input and an output, gets a place in "moved".
 */
#ifndef DT_VERIFY_REPLAY_H
#define DT_VERIFY_REPLAY_H

#include <signal.h>

#include "verify/report.h"

struct dt_verify_replay_options {
    const char *path;         /* a run, a checkpoint, shards, an export or a file with a record */
    const char *directory;    /* new or empty; NULL with plan_only */
    const char *programs;     /* directory of dt's programs */
    const char *const *moved; /* "OLD=NEW": raw inputs that are elsewhere now */
    int moved_count;
    bool plan_only;                    /* prints the makefile */
    const volatile sig_atomic_t *stop; /* nonzero: ends the replay with DT_ESTOP */
};

/* Reports for each stage whether its output is the recorded one. DT_EINVALID names a stage that
 * cannot be replayed, DT_EMISSING a raw input that is absent or has another hash. */
int dt_verify_replay(const struct dt_verify_replay_options *o, struct dt_verify_report *r,
                     struct dt_error *err) DT_MUST_CHECK;

#endif
