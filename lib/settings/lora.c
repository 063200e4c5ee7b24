/* SPDX-License-Identifier: MIT */
#include "settings/lora.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "settings/model-config.h"

double dt_lora_scale(const struct dt_lora *l)
{
    return l->alpha / (l->rslora ? sqrt((double)l->rank) : (double)l->rank);
}

int dt_lora_map_length(const char *weight)
{
    return (int)(strlen(weight) - strlen(".weight"));
}

/* Whether a target of n bytes names the map of a weight. */
static bool names(const char *target, size_t n, const char *weight)
{
    size_t length = (size_t)dt_lora_map_length(weight);
    const char *end = weight + length - n;
    if (n == strlen(DT_LORA_ALL) && strncmp(target, DT_LORA_ALL, n) == 0)
        return true;
    return n > 0 && n <= length && strncmp(end, target, n) == 0 && (n == length || end[-1] == '.');
}

bool dt_lora_targets(const struct dt_lora *l, enum dt_role role, const char *weight)
{
    if (!dt_role_is_layer_map(role))
        return false;
    for (const char *at = l->targets; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (names(at, n, weight))
            return true;
        at += n;
    }
    return false;
}

#define NAME_SIZE 128

/* The names of a tensor's weight in the files of layers. */
static const char *name_of(const struct dt_tensor_spec *s, int layer, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, s->fused ? s->fused : s->name, layer);
    return name;
}

static bool is_map(const struct dt_model_config *c, const struct dt_tensor_spec *s)
{
    return dt_role_is_layer_map(s->role) && dt_model_has_role(c, s->role);
}

static bool is_known(const struct dt_model_config *c, const char *target, size_t n)
{
    char name[NAME_SIZE];
    for (const struct dt_tensor_spec *s = dt_family_of(c)->tensors; s->site != DT_TENSOR_SITE_END;
         s++)
        for (int layer = 0; is_map(c, s) && layer < c->num_layers; layer++)
            if (names(target, n, name_of(s, layer, name)))
                return true;
    return false;
}

/* "q_proj, k_proj": the maps of a layer. */
static void list_maps(const struct dt_model_config *c, struct dt_buffer *list)
{
    char name[NAME_SIZE];
    for (const struct dt_tensor_spec *s = dt_family_of(c)->tensors; s->site != DT_TENSOR_SITE_END;
         s++) {
        if (!is_map(c, s))
            continue;
        name[dt_lora_map_length(name_of(s, 0, name))] = '\0';
        const char *last = strrchr(name, '.') + 1;
        if (list->size == 0 || strstr(list->data, last) == NULL)
            dt_buffer_printf(list, "%s%s", list->size ? ", " : "", last);
    }
}

int dt_lora_check(const struct dt_model_config *c, const char *path, struct dt_error *err)
{
    const char *at = c->lora.targets;
    int rc = 0;
    do {
        size_t n = strcspn(at, ",");
        if (!is_known(c, at, n)) {
            struct dt_buffer list = DT_BUFFER_EMPTY;
            list_maps(c, &list);
            rc = dt_fail(err, DT_EINVALID,
                         "%s: lora.targets: '%.*s' is not a linear map of the model's layers; "
                         "those are %s, or " DT_LORA_ALL " for all",
                         path, (int)n, at, list.data);
            dt_buffer_release(&list);
        }
        at += n;
    } while (rc == 0 && *at++ == ',');
    return rc;
}
