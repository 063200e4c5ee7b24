/* SPDX-License-Identifier: MIT */
#include "formats/export-format.h"

#include <string.h>

#include "base/buffer.h"

#define POINTER(name) &dt_export_format_##name,
const struct dt_export_format *const dt_export_format_list[] = {DT_EXPORT_FORMATS(POINTER) NULL};

#define NAME(name) #name,
const char *const dt_export_format_names[] = {DT_EXPORT_FORMATS(NAME) NULL};

#define TYPE_NAME(NAME, name, tolerance) name,
const char *const dt_export_type_names[] = {DT_EXPORT_TYPES(TYPE_NAME) NULL};

#define TYPE_TOLERANCE(NAME, name, tolerance) tolerance,
const double dt_export_type_tolerances[] = {DT_EXPORT_TYPES(TYPE_TOLERANCE)};

static bool has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

const struct dt_export_format *dt_export_format_of_path(const char *path)
{
    for (int i = 0; dt_export_format_list[i]; i++)
        if (dt_export_format_list[i]->suffix && has_suffix(path, dt_export_format_list[i]->suffix))
            return dt_export_format_list[i];
    return &dt_export_format_hf;
}

char *dt_export_format_types(const struct dt_export_format *f)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    for (int i = 0; i < DT_EXPORT_TYPE_COUNT; i++) {
        if (!(f->types >> i & 1))
            continue;
        const char *before = text.size == 0 ? "" : f->types >> (i + 1) ? ", " : " or ";
        dt_buffer_printf(&text, "%s%s", before, dt_export_type_names[i]);
    }
    return text.data;
}
