/* SPDX-License-Identifier: MIT */
/* Downloads by the program hf or huggingface-cli, where dt was built without libcurl; private to
 * lib/hub. */
#ifndef DT_HUB_HUB_PROGRAM_H
#define DT_HUB_HUB_PROGRAM_H

#include "hub/hub-internal.h"

/* Fetches the file of a name, or the files of a model or tokenizer, into the cache. *commit is
 * owned by the caller. DT_EIO if neither program is there: the hub cannot be reached. */
int dt_hub_program_fetch(const struct dt_hub_name *name, bool tokenizer, char **commit,
                         struct dt_error *err) DT_MUST_CHECK;

#endif
