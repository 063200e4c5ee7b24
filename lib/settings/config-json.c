/* SPDX-License-Identifier: MIT */
/* config.json: the configuration under the names that Hugging Face gives each family. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "settings/model-config.h"
#include "json/json.h"

/* What a file is read and written with. */
struct dialect {
    const struct dt_family_json *family;
    const struct dt_dialect_spec *spec;
};

static long *field(struct dt_model_config *c, const struct dt_member_spec *m)
{
    return (long *)((char *)c + m->offset);
}

static bool is_given(struct json_object *object, const char *name)
{
    return json_object_object_get_ex(object, name, NULL);
}

/* For members that transformers writes as null where they are not set. Elsewhere null is refused as
 * a lost value. */
static bool is_set(struct json_object *object, const char *name)
{
    return json_object_object_get(object, name) != NULL;
}

/* A second name of a setting: both must agree. */
static int check_same(const struct dt_model_config *c, struct json_object *object,
                      const struct dt_member_spec *m, const struct dt_family_json *family,
                      const char *path, struct dt_error *err)
{
    const struct dt_member_spec *first = family->members;
    int64_t value;
    while (first->offset != m->offset)
        first++;
    long expected = *(const long *)((const char *)c + m->offset);
    DT_TRY(dt_json_get_int(object, m->name, path, &value, err));
    if (value == expected)
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "%s: %s is %lld, but %s, which means the same, is %ld: remove one of them", path,
                   m->name, (long long)value, first->name, expected);
}

static int read_member(struct dt_model_config *c, struct json_object *object,
                       const struct dt_member_spec *m, const struct dt_family_json *family,
                       const char *path, struct dt_error *err)
{
    int64_t value;
    if (m->use != DT_MEMBER_REQUIRED && !is_set(object, m->name))
        return 0;
    if (m->use == DT_MEMBER_REPEATED || m->use == DT_MEMBER_ALIAS)
        return check_same(c, object, m, family, path, err);
    DT_TRY(dt_json_get_int(object, m->name, path, &value, err));
    *field(c, m) = (long)value;
    return 0;
}

static int read_real(struct json_object *object, const char *name, double *value, const char *path,
                     struct dt_error *err)
{
    return is_given(object, name) ? dt_json_get_real(object, name, path, value, err) : 0;
}

static int read_tie(struct dt_model_config *c, struct json_object *object, bool otherwise,
                    const char *path, struct dt_error *err)
{
    struct json_object *tie;
    c->tie_word_embeddings = otherwise;
    if (!is_given(object, "tie_word_embeddings"))
        return 0;
    DT_TRY(dt_json_get(object, "tie_word_embeddings", json_type_boolean, path, &tie, err));
    c->tie_word_embeddings = json_object_get_boolean(tie);
    return 0;
}

static int find_dialect(struct dialect *found, struct dt_model_config *c,
                        struct json_object *object, const char *path, struct dt_error *err)
{
    struct dt_buffer known = DT_BUFFER_EMPTY;
    const char *type;
    DT_TRY(dt_json_get_string(object, "model_type", path, &type, err));
    for (c->family = 0; c->family < DT_FAMILY_COUNT; c->family++) {
        found->family = dt_family_of(c)->json;
        for (found->spec = found->family->dialects; found->spec->model_type; found->spec++) {
            if (strcmp(type, found->spec->model_type) == 0) {
                dt_buffer_release(&known);
                c->qk_norm = found->spec->qk_norm;
                return 0;
            }
            dt_buffer_printf(&known, "%s%s", known.size > 0 ? ", " : "", found->spec->model_type);
        }
    }
    int rc = dt_fail(err, DT_EFORMAT, "%s: model_type '%s' is not a family that dt knows (%s)",
                     path, type, known.data);
    dt_buffer_release(&known);
    return rc;
}

static int check_fixed(const struct dt_fixed_spec *f, struct json_object *object, const char *path,
                       struct dt_error *err)
{
    int64_t number = f->otherwise;
    if (f->number && is_given(object, f->name))
        DT_TRY(dt_json_get_int(object, f->name, path, &number, err));
    if (!f->number && is_given(object, f->name)) {
        struct json_object *truth;
        DT_TRY(dt_json_get(object, f->name, json_type_boolean, path, &truth, err));
        number = json_object_get_boolean(truth);
    }
    if (number == f->value)
        return 0;
    if (f->number)
        return dt_fail(err, DT_EFORMAT, "%s: %s must be %d, dt knows no other", path, f->name,
                       f->value);
    return dt_fail(err, DT_EFORMAT, "%s: %s must be %s, dt knows no other", path, f->name,
                   f->value ? "true" : "false");
}

/* Refuses variants of the architecture that dt would silently compute as the usual one. */
static int refuse_variants(const struct dt_family_json *d, struct json_object *object,
                           const char *path, struct dt_error *err)
{
    const char *activation = d->activation;
    if (is_given(object, d->activation_name))
        DT_TRY(dt_json_get_string(object, d->activation_name, path, &activation, err));
    if (strcmp(activation, d->activation) != 0)
        return dt_fail(err, DT_EFORMAT, "%s: %s '%s' is not %s", path, d->activation_name,
                       activation, d->activation);
    for (const struct dt_fixed_spec *f = d->fixed; f->name; f++)
        DT_TRY(check_fixed(f, object, path, err));
    return 0;
}

static double *rate_of(struct dt_model_config *c, const struct dt_rate_spec *r)
{
    return (double *)((char *)c + r->offset);
}

static int read_rates(struct dt_model_config *c, const struct dt_family_json *d,
                      struct json_object *object, const char *path, struct dt_error *err)
{
    for (const struct dt_rate_spec *r = d->rates; r->name; r++) {
        double *rate = rate_of(c, r);
        *rate = r->otherwise;
        DT_TRY(read_real(object, r->name, rate, path, err));
    }
    return 0;
}

/* One of the places that give rope_theta; given: the member that has given it before, or NULL. */
static int read_theta(struct dt_model_config *c, struct json_object *object, const char *place,
                      const char **given, const char *path, struct dt_error *err)
{
    double theta;
    if (!is_given(object, "rope_theta"))
        return 0;
    DT_TRY(dt_json_get_real(object, "rope_theta", path, &theta, err));
    if (*given && theta != c->rope_theta)
        return dt_fail(
            err, DT_EFORMAT,
            "%s: %s is %.15g, but %s, which means the same, is %.15g: remove one of them", path,
            place, theta, *given, c->rope_theta);
    c->rope_theta = theta;
    *given = place;
    return 0;
}

/* Newer files say rope_type, older ones type. Scaled angles are not supported. */
static int check_rope_type(struct json_object *rope, const char *place, const char *path,
                           struct dt_error *err)
{
    static const char *const names[] = {"type", "rope_type"};
    for (int i = 0; i < 2; i++) {
        const char *type = "default";
        if (is_given(rope, names[i]))
            DT_TRY(dt_json_get_string(rope, names[i], path, &type, err));
        if (strcmp(type, "default") != 0)
            return dt_fail(err, DT_EFORMAT, "%s: %s of type '%s' is not known", path, place, type);
    }
    return 0;
}

/* rope_theta is a member of the file in older versions of transformers, of rope_parameters in
 * newer ones; where several are given they must agree. */
static int read_rope(struct dt_model_config *c, struct json_object *object, const char *path,
                     struct dt_error *err)
{
    static const struct {
        const char *object, *theta;
    } places[] = {{"rope_scaling", "rope_scaling.rope_theta"},
                  {"rope_parameters", "rope_parameters.rope_theta"}};
    const char *given = NULL;
    c->rope_theta = DT_ROPE_THETA;
    DT_TRY(read_theta(c, object, "rope_theta", &given, path, err));
    for (int i = 0; i < 2; i++) {
        struct json_object *rope;
        if (!is_set(object, places[i].object))
            continue;
        DT_TRY(dt_json_get(object, places[i].object, json_type_object, path, &rope, err));
        DT_TRY(check_rope_type(rope, places[i].object, path, err));
        DT_TRY(read_theta(c, rope, places[i].theta, &given, path, err));
    }
    return 0;
}

static int check_head_dim(const struct dt_model_config *c, const struct dt_dialect_spec *d,
                          struct json_object *object, const char *path, struct dt_error *err)
{
    int64_t expected = c->hidden_size / c->num_heads, size = d->head_dim ? d->head_dim : expected;
    if (is_set(object, "head_dim"))
        DT_TRY(dt_json_get_int(object, "head_dim", path, &size, err));
    if (size == expected)
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s: head_dim %lld is not hidden_size / num_attention_heads",
                   path, (long long)size);
}

static int read_epsilon(struct dt_model_config *c, const struct dt_family_json *d,
                        struct json_object *object, const char *path, struct dt_error *err)
{
    c->layer_norm_epsilon = d->epsilon;
    if (d->epsilon_name)
        DT_TRY(read_real(object, d->epsilon_name, &c->layer_norm_epsilon, path, err));
    if (!(c->layer_norm_epsilon > 0)) /* 0 would mean the default */
        return dt_fail(err, DT_EINVALID, "%s: %s must be above 0", path, d->epsilon_name);
    return 0;
}

static int read_object(struct dt_model_config *c, struct json_object *object, const char *path,
                       struct dt_error *err)
{
    struct dialect d;
    DT_TRY(find_dialect(&d, c, object, path, err));
    DT_TRY(refuse_variants(d.family, object, path, err));
    for (const struct dt_member_spec *m = d.family->members; m->name; m++)
        DT_TRY(read_member(c, object, m, d.family, path, err));
    DT_TRY(read_epsilon(c, d.family, object, path, err));
    DT_TRY(read_real(object, "initializer_range", &c->initializer_range, path, err));
    DT_TRY(read_rates(c, d.family, object, path, err));
    DT_TRY(read_tie(c, object, d.family->tied, path, err));
    if (dt_model_is_rotary(c))
        DT_TRY(read_rope(c, object, path, err));
    if (dt_model_config_check(c, "model", err) < 0) /* by the names of dt-config(5) */
        return dt_fail_context(err, "%s", path);
    return dt_model_is_rotary(c) ? check_head_dim(c, d.spec, object, path, err) : 0;
}

int dt_model_config_read(struct dt_model_config *c, const char *path, struct dt_error *err)
{
    struct json_object *object;
    *c = (struct dt_model_config){0};
    DT_TRY(dt_json_read(path, &object, err));
    int rc = read_object(c, object, path, err);
    json_object_put(object);
    return rc;
}

static void add_int(struct json_object *object, const char *name, long value)
{
    dt_json_object_add(object, name, dt_json_new_int(value));
}

static void add_string(struct json_object *object, const char *name, const char *value)
{
    dt_json_object_add(object, name, dt_json_new_string(value));
}

/* With a decimal point even if the value is an integer, so that readers see a float. */
static void add_real(struct json_object *object, const char *name, double value)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_buffer_add_real(&text, value);
    if (strpbrk(text.data, ".e") == NULL)
        dt_buffer_printf(&text, ".0");
    dt_json_object_add(object, name, dt_json_new_double_s(value, text.data));
    dt_buffer_release(&text);
}

static void add_rope(struct json_object *object, const struct dt_model_config *c)
{
    struct json_object *rope = dt_json_new_object();
    add_real(object, "rope_theta", c->rope_theta);
    add_string(rope, "rope_type", "default");
    add_real(rope, "rope_theta", c->rope_theta);
    dt_json_object_add(object, "rope_parameters", rope);
}

static void add_truth(struct json_object *object, const char *name, bool value)
{
    dt_json_object_add(object, name, dt_json_new_boolean(value));
}

static struct dialect dialect_of(const struct dt_model_config *c)
{
    struct dialect d = {.family = dt_family_of(c)->json};
    for (d.spec = d.family->dialects; d.spec->model_type; d.spec++)
        if (d.spec->qk_norm == c->qk_norm)
            return d;
    abort(); /* dt_model_config_check refuses all others */
}

static void add_dimensions(struct json_object *object, const struct dialect *d,
                           struct dt_model_config *c)
{
    for (const struct dt_member_spec *m = d->family->members; m->name; m++)
        if (m->use != DT_MEMBER_ALIAS)
            add_int(object, m->name, *field(c, m));
    if (d->spec->head_dim)
        add_int(object, "head_dim", dt_model_head_dim(c));
    for (const struct dt_fixed_spec *f = d->family->fixed; f->name; f++)
        if (f->written && f->number)
            add_int(object, f->name, f->value);
        else if (f->written)
            add_truth(object, f->name, f->value);
}

static void add_reals(struct json_object *object, const struct dt_family_json *d,
                      struct dt_model_config *c)
{
    if (d->epsilon_name)
        add_real(object, d->epsilon_name, c->layer_norm_epsilon);
    add_real(object, "initializer_range", c->initializer_range);
    for (const struct dt_rate_spec *r = d->rates; r->name; r++)
        add_real(object, r->name, *rate_of(c, r));
    if (dt_model_is_rotary(c))
        add_rope(object, c);
}

/* Ids of the tokens that begin and end documents and, with masked models, pad rows. */
static void add_tokens(struct json_object *object, const struct dt_model_config *c, uint32_t eot)
{
    if (eot == UINT32_MAX)
        return;
    add_int(object, "bos_token_id", eot);
    add_int(object, "eos_token_id", eot);
    if (dt_model_is_masked(c))
        add_int(object, "pad_token_id", eot);
}

int dt_model_config_write(const struct dt_model_config *c, uint32_t eot, const char *path,
                          struct dt_error *err)
{
    struct dialect d = dialect_of(c);
    struct dt_model_config copy = *c;
    struct json_object *object = dt_json_new_object();
    struct json_object *architectures = dt_json_new_array();
    dt_json_array_add(architectures, dt_json_new_string(d.spec->architecture));
    dt_json_object_add(object, "architectures", architectures);
    add_string(object, "model_type", d.spec->model_type);
    add_string(object, d.family->activation_name, d.family->activation);
    add_dimensions(object, &d, &copy);
    add_reals(object, d.family, &copy);
    add_tokens(object, c, eot);
    add_truth(object, "tie_word_embeddings", c->tie_word_embeddings);
    add_string(object, "torch_dtype", "float32");
    int rc = dt_json_write(path, object, err);
    json_object_put(object);
    return rc;
}
