/* SPDX-License-Identifier: MIT */
/*
 * Recomputes steps of a training run, from one of its checkpoints or from initial parameters, and
 * compares them with what the run has recorded: metrics.jsonl, checkpoints and, if asked,
 * hashes.jsonl. The training code itself runs, and writes nothing.
 *
 *     struct dt_verify_steps_options how = {.run = "run", .from = -1, .device = dev, .comm =
 * world}; DT_TRY(dt_verify_steps(&how, &report, err));
 */
#ifndef DT_VERIFY_STEPS_H
#define DT_VERIFY_STEPS_H

#include "comm/comm.h"
#include "device/device.h"
#include "verify/report.h"

struct dt_verify_steps_options {
    const char *run;
    const char *steps;     /* "A:B" or "A"; NULL: all that are logged */
    long from;             /* step of the checkpoint to start from, 0: initial parameters; -1: the
                            * newest checkpoint before the first step, if there is one */
    const char *data;      /* NULL: the path that the run recorded */
    const char *init_from; /* the model that a run of dt-train --init-from started from; or NULL */
    const char *adapter;   /* that was merged into it, */
    const char *reference; /* and the reference model of a run of dpo; or NULL */
    const char *deep;      /* a file of hashes of traced steps, or a run with one; NULL: none */
    const char *const *settings; /* assignments of section distributed, and training.recompute */
    int setting_count;
    struct dt_device *device;
    struct dt_comm *comm; /* all ranks */
    bool quiet;           /* show no progress */
};

/* Reports the first difference, or what was verified, on rank 0; counts differences on all ranks.
 * Collective. */
int dt_verify_steps(const struct dt_verify_steps_options *options, struct dt_verify_report *report,
                    struct dt_error *err) DT_MUST_CHECK;

#endif
