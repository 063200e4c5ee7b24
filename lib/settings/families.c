/* SPDX-License-Identifier: MIT */
#include "settings/families-internal.h"

#define NAME(family) #family,
const char *const dt_family_names[] = {DT_EACH_FAMILY(NAME) NULL};

#define ADDRESS(family) &dt_family_##family,
static const struct dt_family_descriptor *const families[] = {DT_EACH_FAMILY(ADDRESS)};

_Static_assert(sizeof families / sizeof *families == DT_FAMILY_COUNT, "a descriptor a family");

bool dt_role_is_layer_map(enum dt_role role)
{
    switch (role) {
    case DT_ROLE_QKV_WEIGHT:
    case DT_ROLE_Q_WEIGHT:
    case DT_ROLE_K_WEIGHT:
    case DT_ROLE_V_WEIGHT:
    case DT_ROLE_PROJECTION_WEIGHT:
    case DT_ROLE_GATE_WEIGHT:
    case DT_ROLE_UP_WEIGHT:
    case DT_ROLE_DOWN_WEIGHT:
        return true;
    default:
        return false;
    }
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
