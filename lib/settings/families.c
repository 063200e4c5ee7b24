/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

#define NAME(family) #family,
const char *const dt_family_names[] = {DT_EACH_FAMILY(NAME) NULL};

#define ADDRESS(family) &dt_family_##family,
static const struct dt_family_descriptor *const families[] = {DT_EACH_FAMILY(ADDRESS)};

_Static_assert(sizeof families / sizeof *families == DT_FAMILY_COUNT, "a descriptor a family");

enum dt_role_split dt_role_split_of(enum dt_role role)
{
    switch (role) {
    case DT_ROLE_QKV_WEIGHT:
    case DT_ROLE_Q_WEIGHT:
    case DT_ROLE_K_WEIGHT:
    case DT_ROLE_V_WEIGHT:
    case DT_ROLE_PROJECTION_WEIGHT:
        return DT_ROLE_SPLIT_HEADS;
    case DT_ROLE_GATE_WEIGHT:
    case DT_ROLE_UP_WEIGHT:
    case DT_ROLE_DOWN_WEIGHT:
        return DT_ROLE_SPLIT_CHANNELS;
    default:
        return DT_ROLE_SPLIT_NONE;
    }
}

bool dt_role_is_layer_map(enum dt_role role)
{
    return dt_role_split_of(role) != DT_ROLE_SPLIT_NONE;
}

const struct dt_family_descriptor *dt_family_of(const struct dt_model_config *c)
{
    return families[c->family];
}

const struct dt_member_spec *dt_family_member_of(const struct dt_family_json *family, size_t offset)
{
    for (const struct dt_member_spec *m = family->members; m->name; m++)
        if (m->offset == offset)
            return m;
    return NULL;
}
