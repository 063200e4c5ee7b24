/* SPDX-License-Identifier: MIT */
#include "steps/step.h"

#include <stdlib.h>

void dt_pieces_release(struct dt_pieces *p)
{
    dt_traced_text_release(&p->text);
    free(p->items);
    *p = (struct dt_pieces){.items = NULL};
}

void dt_pieces_add_token(struct dt_pieces *p, size_t from, size_t to)
{
    DT_GROW(p->items, p->count, p->capacity);
    p->items[p->count++] = (struct dt_span){from, to};
}

void dt_pieces_add(struct dt_pieces *p, size_t from, size_t to)
{
    if (from < to)
        dt_pieces_add_token(p, from, to);
}

int dt_step_check_flags(struct json_object *component, const char *subject, struct dt_error *err)
{
    static const char *const names[] = {"add_dummy_prefix",
                                        "add_prefix_space",
                                        "byte_fallback",
                                        "clean_text",
                                        "cleanup",
                                        "escape_whitespaces",
                                        "fuse_unk",
                                        "handle_chinese_chars",
                                        "ignore_merges",
                                        "individual_digits",
                                        "invert",
                                        "lowercase",
                                        "lstrip",
                                        "normalized",
                                        "remove_extra_whitespaces",
                                        "rstrip",
                                        "single_word",
                                        "special",
                                        "split",
                                        "strip_accents",
                                        "strip_left",
                                        "strip_right",
                                        "treat_whitespace_as_suffix",
                                        "trim_offsets",
                                        "use_regex",
                                        NULL};
    return dt_json_check_flags(component, names, subject, err);
}

bool dt_step_flag(struct json_object *component, const char *name, bool absent)
{
    struct json_object *value = json_object_object_get(component, name);
    return value ? json_object_get_boolean(value) : absent;
}

bool dt_step_cut_anywhere(const void *data, struct dt_word_cuts *cuts)
{
    (void)data;
    (void)cuts;
    return true;
}

bool dt_step_cut_pieces(const void *data, struct dt_word_cuts *cuts)
{
    (void)data;
    cuts->separates = true;
    return cuts->start == DT_WORD_START_SPACE;
}
