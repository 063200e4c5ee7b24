/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "settings/config-json-internal.h"

bool dt_config_reader_has(struct dt_config_reader *r, const char *name)
{
    dt_json_object_add(r->known, name, NULL);
    return json_object_object_get_ex(r->object, name, NULL);
}

bool dt_config_reader_has_value(struct dt_config_reader *r, const char *name)
{
    return dt_config_reader_has(r, name) && json_object_object_get(r->object, name) != NULL;
}

long dt_config_rotary_of_share(const struct dt_model_config *c, double share)
{
    long size = (long)dt_model_head_dim(c), rotary = (long)((double)size * share);
    if (!(share > 0 && share <= 1) || rotary == 0)
        return -1;
    return rotary == size ? 0 : rotary;
}

double dt_config_share_of_rotary(const struct dt_model_config *c)
{
    double size = (double)dt_model_head_dim(c), share = (double)c->rotary_dim / size;
    if (c->rotary_dim == 0)
        return 1;
    while ((long)(size * share) < c->rotary_dim)
        share = nextafter(share, 2);
    return share;
}

struct json_object *dt_config_new_real(double value)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_buffer_add_real(&text, value);
    if (strpbrk(text.data, ".e") == NULL)
        dt_buffer_printf(&text, ".0");
    struct json_object *number = dt_json_new_double_s(value, text.data);
    dt_buffer_release(&text);
    return number;
}

void dt_config_add_real(struct json_object *object, const char *name, double value)
{
    dt_json_object_add(object, name, dt_config_new_real(value));
}
