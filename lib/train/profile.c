/* SPDX-License-Identifier: MIT */
/* What all ranks of a run must have in common. */
#include <stdio.h>
#include <string.h>

#include "train/training-internal.h"

void dt_training_profile(const struct dt_training *t, struct dt_training_profile *p)
{
    memset(p, 0, sizeof *p);
    p->settings = t->settings;
    p->data = t->identity.data;
    if (t->settings.distributed.sync != DT_SYNC_ASYNC) /* whose rank 0 validates alone */
        p->validation = t->validation;
    p->plan_only = t->options.plan_only;
    snprintf(p->engine, sizeof p->engine, "%s, %s", t->device->engine->name, t->device->isa);
}

/* All ranks must have the same settings, data and engine. Paths may differ, since each rank finds
 * its own data, and rank 0 the run; and so may addresses, as machines have their own. */
int dt_training_compare_profiles(const struct dt_training *t,
                                 const struct dt_training_profile *other, const char *whose,
                                 struct dt_error *err)
{
    struct dt_training_profile own, theirs = *other;
    dt_training_profile(t, &own);
    strcpy(theirs.settings.data.dataset, t->settings.data.dataset);
    strcpy(theirs.settings.data.stages, t->settings.data.stages);
    strcpy(theirs.settings.data.validation, t->settings.data.validation);
    strcpy(theirs.settings.distributed.replay, t->settings.distributed.replay);
    strcpy(theirs.settings.distributed.rendezvous, t->settings.distributed.rendezvous);
    strcpy(theirs.settings.distributed.interface, t->settings.distributed.interface);
    strcpy(theirs.settings.checkpoint.dir, t->settings.checkpoint.dir);
    strcpy(theirs.settings.checkpoint.resume_from, t->settings.checkpoint.resume_from);
    if (theirs.plan_only != own.plan_only)
        return dt_fail(err, DT_EINVALID, "--dry-run must be given to all ranks or to none");
    if (theirs.data != own.data)
        return dt_fail(err, DT_EINVALID, "its training data differ from those of %s", whose);
    if (theirs.validation != own.validation)
        return dt_fail(err, DT_EINVALID, "its validation data differ from those of %s", whose);
    if (strcmp(theirs.engine, own.engine) != 0)
        return dt_fail(err, DT_EINVALID,
                       "its engine is %s, that of %s is %s: their results differ; choose one that "
                       "all have with --device",
                       own.engine, whose, theirs.engine);
    const struct dt_setting *different =
        dt_config_difference(dt_settings_schema, &theirs.settings, &t->settings);
    return different
               ? dt_fail(err, DT_EINVALID, "%s differs from that of %s", different->name, whose)
               : 0;
}
