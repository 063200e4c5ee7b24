/* SPDX-License-Identifier: MIT */
/* What differs between layers in config.json: windows and RoPE. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "settings/config-json-internal.h"

#define AT(field) offsetof(struct dt_model_config, field)

#define LOCAL  "sliding_attention"
#define GLOBAL "full_attention"

/* A truth that may be absent. */
static int read_truth(struct dt_config_reader *r, const char *name, bool *value,
                      struct dt_error *err)
{
    struct json_object *truth;
    if (!dt_config_reader_has(r, name))
        return 0;
    DT_TRY(dt_json_get(r->object, name, json_type_boolean, r->path, &truth, err));
    *value = json_object_get_boolean(truth);
    return 0;
}

/* A count that may be absent. */
static int read_count(struct dt_config_reader *r, const char *name, int64_t least, int64_t *value,
                      struct dt_error *err)
{
    if (!dt_config_reader_has(r, name))
        return 0;
    DT_TRY(dt_json_get_int(r->object, name, r->path, value, err));
    if (*value >= least)
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s: %s must be at least %lld, not %lld", r->path, name,
                   (long long)least, (long long)*value);
}

/* A list with an element a layer; NULL: absent, or null. */
static int read_list(struct dt_config_reader *r, const char *name, struct json_object **list,
                     struct dt_error *err)
{
    *list = NULL;
    if (!dt_config_reader_has_value(r, name))
        return 0;
    DT_TRY(dt_json_get(r->object, name, json_type_array, r->path, list, err));
    size_t count = json_object_array_length(*list);
    if (count == (size_t)r->config->num_layers)
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s: %s has %zu elements, not one for each of the %ld layers",
                   r->path, name, count, r->config->num_layers);
}

/* --- RoPE ------------------------------------------------------------------------------------ */

/* rope_skip_every of a list with 0 for layers without RoPE, 1 for others. */
static int fit_skips(struct dt_config_reader *r, struct json_object *list, struct dt_error *err)
{
    struct dt_model_config *c = r->config;
    c->rope_skip_every = 0;
    for (long i = 0; i < c->num_layers; i++) {
        struct json_object *layer = json_object_array_get_idx(list, (size_t)i);
        int64_t rotated = json_object_get_int64(layer);
        if (!json_object_is_type(layer, json_type_int) || (rotated != 0 && rotated != 1))
            return dt_fail(err, DT_EFORMAT, "%s: no_rope_layers must hold 0 and 1 only", r->path);
        if (rotated == 0 && c->rope_skip_every == 0)
            c->rope_skip_every = i + 1;
        bool skipped = c->rope_skip_every > 0 && (i + 1) % c->rope_skip_every == 0;
        if (skipped == (rotated == 1))
            return dt_fail(err, DT_EFORMAT,
                           "%s: no_rope_layers is not regular: dt supports one layer without RoPE "
                           "in every N, the last of them",
                           r->path);
    }
    return 0;
}

static int read_skips(struct dt_config_reader *r, struct dt_error *err)
{
    struct json_object *list;
    int64_t interval = 4;
    DT_TRY(read_count(r, "no_rope_layer_interval", 1, &interval, err));
    DT_TRY(read_list(r, "no_rope_layers", &list, err));
    if (list)
        return fit_skips(r, list, err);
    r->config->rope_skip_every = (long)interval;
    return 0;
}

static void add_skips(struct json_object *object, const struct dt_model_config *c)
{
    struct json_object *list = dt_json_new_array();
    for (long i = 0; i < c->num_layers; i++)
        dt_json_array_add(
            list, dt_json_new_int(c->rope_skip_every == 0 || (i + 1) % c->rope_skip_every != 0));
    dt_json_object_add(object, "no_rope_layers", list);
    if (c->rope_skip_every > 0)
        dt_json_object_add(object, "no_rope_layer_interval", dt_json_new_int(c->rope_skip_every));
}

/* --- windows --------------------------------------------------------------------------------- */

/* The layers without a window where the file has no layer_types; count: num_layers. */
static int default_layers(struct dt_config_reader *r, bool *global, struct dt_error *err)
{
    const struct dt_model_config *c = r->config;
    int64_t upper = 28, pattern = 6;
    bool window = c->sliding_window > 0, used = false;
    enum dt_local_layers kind = r->family->local_layers;
    if (kind == DT_LOCAL_LAYERS_UPPER || kind == DT_LOCAL_LAYERS_SKIPPING)
        DT_TRY(read_truth(r, "use_sliding_window", &used, err));
    if (kind == DT_LOCAL_LAYERS_UPPER)
        DT_TRY(read_count(r, "max_window_layers", 0, &upper, err));
    if (kind == DT_LOCAL_LAYERS_PATTERN)
        DT_TRY(read_count(r, "sliding_window_pattern", 1, &pattern, err));
    if (kind == DT_LOCAL_LAYERS_UPPER && !used)
        r->config->sliding_window = 0;
    for (long i = 0; i < c->num_layers; i++)
        switch (kind) {
        case DT_LOCAL_LAYERS_NONE:
        case DT_LOCAL_LAYERS_ALL:
            global[i] = !window;
            break;
        case DT_LOCAL_LAYERS_UPPER:
            global[i] = !used || !window || i < upper;
            break;
        case DT_LOCAL_LAYERS_SKIPPING:
            global[i] =
                !used || !window || c->rope_skip_every == 0 || (i + 1) % c->rope_skip_every != 0;
            break;
        case DT_LOCAL_LAYERS_PAIRS:
            global[i] = i % 2 == 1;
            break;
        case DT_LOCAL_LAYERS_PATTERN:
            global[i] = (i + 1) % pattern == 0;
            break;
        case DT_LOCAL_LAYERS_MEMBER:
            global[i] = i % c->global_every == 0;
            break;
        }
    return 0;
}

/* layer_types, where given: replaces the default, or in families without that must agree. */
static int read_types(struct dt_config_reader *r, bool *global, struct dt_error *err)
{
    enum dt_local_layers kind = r->family->local_layers;
    bool fixed = kind == DT_LOCAL_LAYERS_ALL || kind == DT_LOCAL_LAYERS_MEMBER;
    struct json_object *list;
    DT_TRY(read_list(r, "layer_types", &list, err));
    for (long i = 0; list && i < r->config->num_layers; i++) {
        const char *type = dt_json_text(json_object_array_get_idx(list, (size_t)i));
        bool all = type && strcmp(type, GLOBAL) == 0;
        if (!all && (type == NULL || strcmp(type, LOCAL) != 0))
            return dt_fail(err, DT_EFORMAT,
                           "%s: layer_types must hold \"" GLOBAL "\" and \"" LOCAL "\" only",
                           r->path);
        if (fixed && all != global[i])
            return dt_fail(err, DT_EFORMAT,
                           "%s: layer_types differs from the layers that transformers gives a "
                           "window",
                           r->path);
        if (!all && r->config->sliding_window == 0)
            return dt_fail(
                err, DT_EFORMAT,
                "%s: layer_types has \"" LOCAL "\", but sliding_window is null or absent", r->path);
        global[i] = all;
    }
    return 0;
}

/* The period and the first of the global layers; there must be one a period. */
static int fit_layers(struct dt_config_reader *r, const bool *global, struct dt_error *err)
{
    struct dt_model_config *c = r->config;
    long count = c->num_layers, first = 0, second;
    while (first < count && !global[first])
        first++;
    for (second = first + 1; second < count && !global[second];)
        second++;
    c->global_every = first < count ? second - first : 0;
    c->global_first = first < count ? first : 0;
    if (second >= count && c->global_every > 0) /* only one */
        c->global_every = first + 1 > count - first ? first + 1 : count - first;
    bool fits = true, local = false;
    for (long i = 0; i < count; i++) {
        bool expected = c->global_every > 0 && i % c->global_every == c->global_first;
        fits = fits && expected == global[i];
        local = local || !global[i];
    }
    if (!local)
        c->sliding_window = c->global_every = c->global_first = 0;
    if (fits || !local)
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "%s: layer_types is not regular: dt supports one " GLOBAL
                   " layer in every N, or none",
                   r->path);
}

static int read_windows(struct dt_config_reader *r, struct dt_error *err)
{
    bool *global = dt_alloc((size_t)r->config->num_layers, sizeof *global);
    int rc = default_layers(r, global, err);
    rc = rc < 0 ? rc : read_types(r, global, err);
    rc = rc < 0 ? rc : fit_layers(r, global, err);
    free(global);
    return rc;
}

int dt_config_layers_read(struct dt_config_reader *r, struct dt_error *err)
{
    enum dt_local_layers kind = r->family->local_layers;
    if (kind == DT_LOCAL_LAYERS_NONE)
        return 0;
    if (r->config->num_layers > 1 << 12)
        return 0; /* dt_model_config_check refuses it */
    if (kind == DT_LOCAL_LAYERS_SKIPPING)
        DT_TRY(read_skips(r, err));
    return read_windows(r, err);
}

static void add_types(struct json_object *object, const struct dt_model_config *c)
{
    struct json_object *list = dt_json_new_array();
    for (long i = 0; i < c->num_layers; i++)
        dt_json_array_add(list, dt_json_new_string(dt_model_window(c, i) > 0 ? LOCAL : GLOBAL));
    dt_json_object_add(object, "layer_types", list);
}

void dt_config_layers_add(struct json_object *object, const struct dt_model_config *c)
{
    enum dt_local_layers kind = dt_family_of(c)->json->local_layers;
    switch (kind) {
    case DT_LOCAL_LAYERS_NONE:
    case DT_LOCAL_LAYERS_ALL:
    case DT_LOCAL_LAYERS_MEMBER:
        return;
    case DT_LOCAL_LAYERS_SKIPPING:
        add_skips(object, c);
        /* fall through */
    case DT_LOCAL_LAYERS_UPPER:
        dt_json_object_add(object, "use_sliding_window",
                           dt_json_new_boolean(c->sliding_window > 0));
        break;
    case DT_LOCAL_LAYERS_PAIRS:
        break;
    case DT_LOCAL_LAYERS_PATTERN:
        if (c->global_every > 0 && c->global_first == c->global_every - 1)
            dt_json_object_add(object, "sliding_window_pattern", dt_json_new_int(c->global_every));
        break;
    }
    add_types(object, c);
}
