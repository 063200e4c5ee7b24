/* SPDX-License-Identifier: MIT */
#include "shard/mixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "shard/dataset.h"
#include "json/json.h"

bool dt_mixture_is_named(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".json") == 0;
}

void dt_mixture_release(struct dt_mixture *m)
{
    for (int i = 0; i < m->count; i++)
        free(m->parts[i].path);
    free(m->parts);
    *m = (struct dt_mixture){0};
}

/* Refuses other members: a misspelled one would be ignored. */
static int check_members(struct json_object *object, const char *subject, const char *one,
                         const char *other, struct dt_error *err)
{
    json_object_object_foreach(object, name, value)
    {
        (void)value;
        if (strcmp(name, one) != 0 && strcmp(name, other) != 0)
            return dt_fail(err, DT_EFORMAT, "%s: unknown member '%s': expected '%s' and '%s'",
                           subject, name, one, other);
    }
    return 0;
}

static int read_part(struct dt_mixture *m, struct json_object *object, const char *subject,
                     struct dt_error *err)
{
    const char *data, *slash = strrchr(subject, '/');
    double weight;
    if (!json_object_is_type(object, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: part %d is not an object", subject, m->count);
    char *subject_of_part = dt_asprintf("%s: part %d", subject, m->count);
    int rc = check_members(object, subject_of_part, "data", "weight", err);
    free(subject_of_part);
    DT_TRY(rc);
    DT_TRY(dt_json_get_string(object, "data", subject, &data, err));
    DT_TRY(dt_json_get_real(object, "weight", subject, &weight, err));
    if (!(weight > 0) || !isfinite(weight))
        return dt_fail(err, DT_EFORMAT, "%s: the weight of '%s' must be above 0", subject, data);
    DT_GROW(m->parts, m->count, m->capacity);
    struct dt_mixture_part *part = &m->parts[m->count++];
    *part = (struct dt_mixture_part){.weight = weight};
    if (*data == '/' || slash == NULL)
        part->path = dt_strdup(data);
    else
        part->path = dt_asprintf("%.*s/%s", (int)(slash - subject), subject, data);
    if (!dt_file_is_directory(part->path) && dt_mixture_is_named(part->path))
        return dt_fail(err, DT_EFORMAT, "%s: '%s' is a mixture: mixtures cannot be nested", subject,
                       data);
    return 0;
}

/* Assigns slots by weight (largest remainder method; ties to the first). */
static int assign_slots(struct dt_mixture *m, const char *subject, struct dt_error *err)
{
    double sum = 0;
    uint32_t left = DT_MIXTURE_SLOTS;
    for (int i = 0; i < m->count; i++)
        sum += m->parts[i].weight;
    if (!isfinite(sum))
        return dt_fail(err, DT_EFORMAT, "%s: the sum of the weights is too large", subject);
    for (int i = 0; i < m->count; i++) {
        double exact = m->parts[i].weight / sum * DT_MIXTURE_SLOTS;
        m->parts[i].slots = (uint32_t)exact;
        m->parts[i].weight = exact - floor(exact);
        left -= m->parts[i].slots;
    }
    for (; left > 0; left--) {
        int largest = 0;
        for (int i = 1; i < m->count; i++)
            if (m->parts[i].weight > m->parts[largest].weight)
                largest = i;
        m->parts[largest].slots++;
        m->parts[largest].weight = -1;
    }
    for (int i = 0; i < m->count; i++)
        if (m->parts[i].slots == 0)
            return dt_fail(err, DT_EFORMAT, "%s: the weight of '%s' is below 1/%u of the total",
                           subject, m->parts[i].path, DT_MIXTURE_SLOTS);
    return 0;
}

static int read_root(struct dt_mixture *m, struct json_object *root, const char *subject,
                     struct dt_error *err)
{
    struct json_object *parts;
    int64_t version;
    if (!json_object_is_type(root, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: is not a JSON object", subject);
    DT_TRY(check_members(root, subject, "version", "mixture", err));
    DT_TRY(dt_json_get(root, "mixture", json_type_array, subject, &parts, err));
    DT_TRY(dt_json_get_int(root, "version", subject, &version, err));
    if (version != 1)
        return dt_fail(err, DT_EFORMAT, "%s: version %lld: this program reads version 1", subject,
                       (long long)version);
    for (size_t i = 0; i < json_object_array_length(parts); i++)
        DT_TRY(read_part(m, json_object_array_get_idx(parts, i), subject, err));
    if (m->count == 0)
        return dt_fail(err, DT_EFORMAT, "%s: 'mixture' is empty", subject);
    return assign_slots(m, subject, err);
}

int dt_mixture_read(struct dt_mixture *m, const char *path, struct dt_error *err)
{
    struct json_object *root = NULL;
    *m = (struct dt_mixture){0};
    int rc = dt_json_read(path, &root, err);
    if (rc == 0)
        rc = read_root(m, root, path, err);
    json_object_put(root);
    return rc;
}
