/* SPDX-License-Identifier: MIT */
#define DT_JSON_UNCHECKED
#include "json/json-number.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

struct json_object *dt_json_number(double x)
{
    return isfinite(x) ? dt_checked(json_object_new_double(x)) : NULL;
}

void dt_json_add_number(struct dt_buffer *b, double x)
{
    if (isfinite(x))
        dt_buffer_add_real(b, x);
    else
        dt_buffer_add_string(b, "null");
}

static void add_name(struct dt_buffer *b, const char *name)
{
    bool first = b->size > 0 && b->data[b->size - 1] == '{';
    dt_buffer_add_string(b, first ? "" : ",");
    dt_json_add_string(b, name, strlen(name));
    dt_buffer_add_char(b, ':');
}

void dt_json_add_real(struct dt_buffer *b, const char *name, double x, int digits)
{
    add_name(b, name);
    if (isfinite(x))
        dt_buffer_printf(b, "%.*g", digits, x);
    else
        dt_buffer_add_string(b, "null");
}

void dt_json_add_fixed(struct dt_buffer *b, const char *name, double x, int decimals)
{
    add_name(b, name);
    if (isfinite(x))
        dt_buffer_printf(b, "%.*f", decimals, x);
    else
        dt_buffer_add_string(b, "null");
}
