/* SPDX-License-Identifier: MIT */
/* The parameters of RoPE scaling: fields of struct dt_model_config, and members of rope_scaling in
 * config.json. */
#ifndef DT_SETTINGS_ROPE_KEYS_INTERNAL_H
#define DT_SETTINGS_ROPE_KEYS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "settings/model-config.h"

struct dt_rope_key {
    const char *name;       /* in config.json; NULL ends the list */
    const char *setting;    /* in dt-config(5) */
    size_t offset;          /* of the field: a long or a double */
    bool integer;           /* a long */
    unsigned kinds, needed; /* 1 << enum dt_rope_scaling for each kind that has it, or needs it */
    double least;
};
extern const struct dt_rope_key dt_rope_keys[];

double dt_rope_key_get(const struct dt_model_config *config, const struct dt_rope_key *key);
void dt_rope_key_set(struct dt_model_config *config, const struct dt_rope_key *key, double value);

/* Ranges of the fields, by the names of dt-config(5); subject begins errors. */
int dt_rope_keys_check(const struct dt_model_config *config, const char *subject,
                       struct dt_error *err) DT_MUST_CHECK;

#endif
