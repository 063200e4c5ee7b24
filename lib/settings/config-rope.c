/* SPDX-License-Identifier: MIT */
/*
 * RoPE in config.json: transformers 4 has rope_theta and rope_scaling, transformers 5
 * rope_parameters with both, in some families one a type of layers.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "settings/config-json-internal.h"

#define AT(field) offsetof(struct dt_model_config, field)

/* --- reading --------------------------------------------------------------------------------- */

/* A number that several places may give: the last of them. */
struct given {
    size_t offset;
    char name[64]; /* empty: none so far */
};

/* An object with the parameters of RoPE; place: its name in errors. */
struct rope {
    struct json_object *object;
    const char *place;
    struct given *theta, *share;
};

static int fail_in(const struct dt_config_reader *r, const struct rope *rope, const char *name,
                   const char *reason, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "%s: %s.%s %s", r->path, rope->place, name, reason);
}

/* Newer files say rope_type, older ones type; where both are given they must agree. */
static int read_kind(const struct dt_config_reader *r, const struct rope *rope, int *kind,
                     struct dt_error *err)
{
    static const char *const names[] = {"type", "rope_type"};
    const char *type = NULL;
    for (int i = 0; i < 2; i++) {
        const char *one;
        if (!json_object_object_get_ex(rope->object, names[i], NULL))
            continue;
        DT_TRY(dt_json_get_string(rope->object, names[i], r->path, &one, err));
        if (type && strcmp(type, one) != 0)
            return fail_in(r, rope, "rope_type", "is not type, which means the same", err);
        type = one;
    }
    *kind = DT_ROPE_SCALING_NONE;
    if (type == NULL || strcmp(type, "default") == 0)
        return 0;
    if (strcmp(type, "su") == 0) /* in older files */
        type = dt_rope_scaling_names[DT_ROPE_SCALING_LONGROPE];
    for (*kind = 1; dt_rope_scaling_names[*kind]; ++*kind)
        if (strcmp(type, dt_rope_scaling_names[*kind]) == 0 && r->family->scalings & 1u << *kind)
            return 0;
    return dt_fail(err, DT_EFORMAT, "%s: %s of type '%s' is not known with %s", r->path,
                   rope->place, type, dt_family_names[r->config->family]);
}

/* A base, which other places of the file may give too; they must agree. */
static int read_theta(struct dt_config_reader *r, const struct rope *rope, struct dt_error *err)
{
    double theta, *field = (double *)((char *)r->config + rope->theta->offset);
    DT_TRY(dt_json_get_real(rope->object, "rope_theta", r->path, &theta, err));
    if (*rope->theta->name && theta != *field)
        return dt_fail(
            err, DT_EFORMAT,
            "%s: %s.rope_theta is %.15g, but %s, which means the same, is %.15g: remove one of "
            "them",
            r->path, rope->place, theta, rope->theta->name, *field);
    *field = theta;
    snprintf(rope->theta->name, sizeof rope->theta->name, "%s.rope_theta", rope->place);
    return 0;
}

/* Likewise the share of a head that is rotated. */
static int read_share(struct dt_config_reader *r, const struct rope *rope, struct dt_error *err)
{
    static const char name[] = "partial_rotary_factor";
    double share;
    DT_TRY(dt_json_get_real(rope->object, name, r->path, &share, err));
    long rotary = dt_config_rotary_of_share(r->config, share);
    if (rotary < 0 || (rotary != 0 && dt_family_member_of(r->family, AT(rotary_dim)) == NULL))
        return fail_in(r, rope, name, "is not supported", err);
    if (*rope->share->name && rotary != r->config->rotary_dim)
        return fail_in(r, rope, name, "differs from another place of the file", err);
    r->config->rotary_dim = rotary;
    snprintf(rope->share->name, sizeof rope->share->name, "%s", rope->place);
    return 0;
}

static const struct dt_rope_key *find_key(const char *name)
{
    const struct dt_rope_key *k = dt_rope_keys;
    while (k->name && strcmp(k->name, name) != 0)
        k++;
    return k->name ? k : NULL;
}

/* The factors of longrope: a number above 0 for each pair of rotated channels. */
static int read_factors(const struct dt_config_reader *r, const struct rope *rope, const char *name,
                        double factors[DT_ROPE_PAIRS], struct dt_error *err)
{
    struct json_object *list;
    const struct dt_model_config *c = r->config;
    size_t pairs = (size_t)(c->rotary_dim > 0 ? c->rotary_dim : dt_model_head_dim(c)) / 2;
    DT_TRY(dt_json_get(rope->object, name, json_type_array, r->path, &list, err));
    if (pairs > DT_ROPE_PAIRS || json_object_array_length(list) != pairs)
        return dt_fail(err, DT_EFORMAT, "%s: %s.%s has %zu factors, but heads have %zu pairs%s",
                       r->path, rope->place, name, json_object_array_length(list), pairs,
                       pairs > DT_ROPE_PAIRS ? ", too many for dt" : "");
    for (size_t i = 0; i < pairs; i++) {
        struct json_object *factor = json_object_array_get_idx(list, i);
        bool number = json_object_is_type(factor, json_type_double) ||
                      json_object_is_type(factor, json_type_int);
        factors[i] = number ? json_object_get_double(factor) : 0;
        if (!(factors[i] > 0 && factors[i] <= 1e12))
            return fail_in(r, rope, name, "must hold numbers above 0", err);
    }
    return 0;
}

/* The context in which dt uses the model, where it is not the original one: transformers chooses
 * the factors by the length of each pass, and has no member for it. */
static const char context_name[] = "dt_context_length";

/* The file's longest context is that of the long factors; a model is read with the short ones
 * unless the file, or dt_model_config_set_context, says otherwise. */
static int take_longrope(struct dt_config_reader *r, struct dt_error *err)
{
    static const char name[] = "original_max_position_embeddings";
    struct dt_model_config *c = r->config;
    int64_t original = r->family->original_length, context = 0;
    if (c->rope_scaling != DT_ROPE_SCALING_LONGROPE)
        return 0;
    if (dt_config_reader_has(r, name))
        DT_TRY(dt_json_get_int(r->object, name, r->path, &original, err));
    if (original < 2 || original > c->max_seq_len)
        return dt_fail(err, DT_EFORMAT,
                       "%s: %s must be from 2 to max_position_embeddings, %ld, with longrope, not "
                       "%lld",
                       r->path, name, c->max_seq_len, (long long)original);
    c->rope_factor = (double)c->max_seq_len / (double)original;
    c->max_seq_len = c->rope_original_length = (long)original;
    if (!dt_config_reader_has(r, context_name))
        return 0;
    DT_TRY(dt_json_get_int(r->object, context_name, r->path, &context, err));
    if (context < 1)
        return dt_fail(err, DT_EFORMAT, "%s: %s must be above 0, not %lld", r->path, context_name,
                       (long long)context);
    c->max_seq_len = (long)context; /* dt_rope_keys_check bounds it */
    return 0;
}

/* A member of the object; null where it may be absent. */
static int read_key(struct dt_config_reader *r, const struct rope *rope, const char *name,
                    struct json_object *value, struct dt_error *err)
{
    const struct dt_rope_key *k = find_key(name);
    double number;
    if (strcmp(name, "type") == 0 || strcmp(name, "rope_type") == 0)
        return 0;
    if (strcmp(name, "rope_theta") == 0)
        return read_theta(r, rope, err);
    if (strcmp(name, "partial_rotary_factor") == 0)
        return read_share(r, rope, err);
    bool yarn = r->config->rope_scaling == DT_ROPE_SCALING_YARN;
    bool longrope = r->config->rope_scaling == DT_ROPE_SCALING_LONGROPE;
    if (longrope && (strcmp(name, "short_factor") == 0 || strcmp(name, "long_factor") == 0))
        return 0; /* read_factors */
    if (yarn && strcmp(name, "truncate") == 0 && json_object_is_type(value, json_type_boolean) &&
        json_object_get_boolean(value))
        return 0;
    if (k == NULL || longrope || !(k->kinds & 1u << r->config->rope_scaling))
        return dt_fail(err, DT_EFORMAT, "%s: %s.%s is not known with type %s", r->path, rope->place,
                       name, dt_rope_scaling_names[r->config->rope_scaling]);
    if (value == NULL && !(k->needed & 1u << r->config->rope_scaling))
        return 0;
    DT_TRY(dt_json_get_real(rope->object, name, r->path, &number, err));
    if (!(number > 0 && number <= 1e12) || (k->integer && number != (double)(long)number))
        return fail_in(r, rope, name, "is out of range", err);
    dt_rope_key_set(r->config, k, number);
    return 0;
}

static int read_object(struct dt_config_reader *r, const struct rope *rope, struct dt_error *err)
{
    DT_TRY(read_kind(r, rope, &r->config->rope_scaling, err));
    json_object_object_foreach(rope->object, name, value)
        DT_TRY(read_key(r, rope, name, value, err));
    if (r->config->rope_scaling == DT_ROPE_SCALING_LONGROPE) {
        DT_TRY(read_factors(r, rope, "short_factor", r->config->rope_short_factors, err));
        DT_TRY(read_factors(r, rope, "long_factor", r->config->rope_long_factors, err));
    }
    /* The context before scaling stays when the longest context is changed later. */
    if (r->config->rope_scaling == DT_ROPE_SCALING_YARN && r->config->rope_original_length == 0)
        r->config->rope_original_length = r->config->max_seq_len;
    return 0;
}

/* RoPE of local layers has another base, and no scaling. */
static int read_local(struct dt_config_reader *r, const struct rope *rope, struct dt_error *err)
{
    int kind;
    DT_TRY(read_kind(r, rope, &kind, err));
    if (kind != DT_ROPE_SCALING_NONE)
        return fail_in(r, rope, "rope_type", "must be default", err);
    json_object_object_foreach(rope->object, name, value)
    {
        (void)value;
        if (strcmp(name, "rope_theta") == 0)
            DT_TRY(read_theta(r, rope, err));
        else if (strcmp(name, "type") != 0 && strcmp(name, "rope_type") != 0)
            return fail_in(r, rope, name, "is not known", err);
    }
    return 0;
}

/* The places of the file that give a base or a share. */
struct places {
    struct given theta, local, share;
};

/* rope_parameters of each type of layers. */
static int read_types(struct dt_config_reader *r, struct places *p, struct json_object *object,
                      struct dt_error *err)
{
    static const char local[] = "sliding_attention", global[] = "full_attention";
    struct rope of_global = {NULL, "rope_parameters.full_attention", &p->theta, &p->share};
    struct rope of_local = {NULL, "rope_parameters.sliding_attention", &p->local, NULL};
    DT_TRY(dt_json_get(object, global, json_type_object, r->path, &of_global.object, err));
    DT_TRY(dt_json_get(object, local, json_type_object, r->path, &of_local.object, err));
    json_object_object_foreach(object, name, value)
    {
        (void)value;
        if (strcmp(name, local) != 0 && strcmp(name, global) != 0)
            return dt_fail(err, DT_EFORMAT, "%s: rope_parameters.%s is not known", r->path, name);
    }
    DT_TRY(read_object(r, &of_global, err));
    return read_local(r, &of_local, err);
}

static bool has_types(const struct dt_family_json *family)
{
    return dt_family_member_of(family, AT(rope_local_theta)) != NULL;
}

static int read_place(struct dt_config_reader *r, struct places *p, const char *place,
                      struct dt_error *err)
{
    struct rope rope = {NULL, place, &p->theta, &p->share};
    DT_TRY(dt_json_get(r->object, place, json_type_object, r->path, &rope.object, err));
    if (has_types(r->family) && json_object_object_get_ex(rope.object, "full_attention", NULL))
        return read_types(r, p, rope.object, err);
    return read_object(r, &rope, err);
}

static bool same_scaling(const struct dt_model_config *a, const struct dt_model_config *b)
{
    size_t bytes = sizeof a->rope_short_factors;
    bool same = a->rope_scaling == b->rope_scaling &&
                memcmp(a->rope_short_factors, b->rope_short_factors, bytes) == 0 &&
                memcmp(a->rope_long_factors, b->rope_long_factors, bytes) == 0;
    for (const struct dt_rope_key *k = dt_rope_keys; k->name; k++)
        same = same && dt_rope_key_get(a, k) == dt_rope_key_get(b, k);
    return same;
}

static struct given given_as(struct dt_config_reader *r, size_t offset)
{
    struct given given = {.offset = offset};
    const struct dt_member_spec *m = dt_family_member_of(r->family, offset);
    if (m && dt_config_reader_has_value(r, m->name))
        snprintf(given.name, sizeof given.name, "%s", m->name);
    return given;
}

int dt_config_rope_read(struct dt_config_reader *r, struct dt_error *err)
{
    struct places p = {given_as(r, AT(rope_theta)), given_as(r, AT(rope_local_theta)),
                       given_as(r, AT(rotary_dim))};
    bool older = dt_config_reader_has_value(r, "rope_scaling");
    if (older)
        DT_TRY(read_place(r, &p, "rope_scaling", err));
    const struct dt_model_config first = *r->config;
    if (!dt_config_reader_has_value(r, "rope_parameters"))
        return take_longrope(r, err);
    for (const struct dt_rope_key *k = dt_rope_keys; k->name; k++)
        dt_rope_key_set(r->config, k, 0);
    DT_TRY(read_place(r, &p, "rope_parameters", err));
    if (!older || same_scaling(r->config, &first))
        return take_longrope(r, err);
    return dt_fail(err, DT_EFORMAT,
                   "%s: rope_parameters scales other than rope_scaling: remove one of them",
                   r->path);
}

/* --- writing --------------------------------------------------------------------------------- */

static void add_factors(struct json_object *object, const char *name,
                        const double factors[DT_ROPE_PAIRS])
{
    struct json_object *list = dt_json_new_array();
    for (int i = 0; i < DT_ROPE_PAIRS && factors[i] > 0; i++)
        dt_json_array_add(list, dt_config_new_real(factors[i]));
    dt_json_object_add(object, name, list);
}

static struct json_object *scaling_of(const struct dt_model_config *c, const char *kind_name)
{
    struct json_object *object = dt_json_new_object();
    int kind = c->rope_scaling;
    dt_json_object_add(
        object, kind_name,
        dt_json_new_string(kind == DT_ROPE_SCALING_NONE ? "default" : dt_rope_scaling_names[kind]));
    if (kind == DT_ROPE_SCALING_LONGROPE) { /* its other keys are lengths outside the object */
        add_factors(object, "short_factor", c->rope_short_factors);
        add_factors(object, "long_factor", c->rope_long_factors);
        return object;
    }
    for (const struct dt_rope_key *k = dt_rope_keys; k->name; k++)
        if (k->kinds & 1u << kind && dt_rope_key_get(c, k) > 0) {
            if (k->integer)
                dt_json_object_add(object, k->name, dt_json_new_int((long)dt_rope_key_get(c, k)));
            else
                dt_config_add_real(object, k->name, dt_rope_key_get(c, k));
        }
    return object;
}

static struct json_object *parameters_of(const struct dt_model_config *c)
{
    struct json_object *object = scaling_of(c, "rope_type");
    dt_config_add_real(object, "rope_theta", c->rope_theta);
    if (c->rotary_dim > 0)
        dt_config_add_real(object, "partial_rotary_factor", dt_config_share_of_rotary(c));
    return object;
}

void dt_config_rope_add(struct json_object *object, const struct dt_model_config *c, long context)
{
    const struct dt_family_json *family = dt_family_of(c)->json;
    struct json_object *parameters = parameters_of(c), *types = dt_json_new_object();
    if (c->rope_scaling != DT_ROPE_SCALING_NONE)
        dt_json_object_add(object, "rope_scaling", scaling_of(c, family->scaling_name));
    if (has_types(family)) {
        struct json_object *local = dt_json_new_object();
        dt_json_object_add(local, "rope_type", dt_json_new_string("default"));
        dt_config_add_real(local, "rope_theta",
                           c->rope_local_theta > 0 ? c->rope_local_theta : c->rope_theta);
        dt_json_object_add(types, "full_attention", parameters);
        dt_json_object_add(types, "sliding_attention", local);
        parameters = types;
    } else {
        json_object_put(types);
    }
    dt_json_object_add(object, "rope_parameters", parameters);
    if (c->rope_scaling != DT_ROPE_SCALING_LONGROPE)
        return;
    dt_json_object_add(object, "original_max_position_embeddings",
                       dt_json_new_int(c->rope_original_length));
    if (context != c->rope_original_length)
        dt_json_object_add(object, context_name, dt_json_new_int(context));
}
