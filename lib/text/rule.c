/* SPDX-License-Identifier: MIT */
#include "text/rule.h"

#include "text/control.h"
#include "text/utf8.h"

void dt_rule_scratch_release(struct dt_rule_scratch *scratch)
{
    dt_buffer_release(&scratch->text);
    dt_code_points_release(&scratch->points);
}

static void swap(struct dt_buffer *a, struct dt_buffer *b)
{
    struct dt_buffer old = *a;
    *a = *b;
    *b = old;
}

static void set_size(struct dt_buffer *text, size_t size)
{
    text->size = size;
    if (text->data)
        text->data[size] = '\0';
}

/* Drops or repairs (setting) what is no UTF-8; counts ill-formed sequences. */
static bool apply_utf8(const struct dt_rule *rule, struct dt_document *document,
                       struct dt_rule_scratch *scratch, uint64_t *amount)
{
    struct dt_buffer *text = &document->text;
    *amount = 0;
    if (dt_utf8_valid_prefix(text->data, text->size) == text->size)
        return true;
    dt_buffer_clear(&scratch->text);
    *amount = dt_utf8_repair(text->data, text->size, &scratch->text);
    swap(text, &scratch->text);
    return !rule->setting;
}

static bool apply_controls(const struct dt_rule *rule, struct dt_document *document,
                           struct dt_rule_scratch *scratch, uint64_t *amount)
{
    (void)rule, (void)scratch;
    size_t size = document->text.size;
    *amount = dt_remove_controls(document->text.data, &size);
    set_size(&document->text, size);
    return true;
}

static bool apply_line_ends(const struct dt_rule *rule, struct dt_document *document,
                            struct dt_rule_scratch *scratch, uint64_t *amount)
{
    (void)rule, (void)scratch;
    size_t size = document->text.size;
    *amount = dt_unify_line_ends(document->text.data, &size);
    set_size(&document->text, size);
    return true;
}

/* Counts the bytes removed; a lone tab that becomes a space counts nothing. */
static bool apply_space(const struct dt_rule *rule, struct dt_document *document,
                        struct dt_rule_scratch *scratch, uint64_t *amount)
{
    (void)scratch;
    size_t before = document->text.size;
    set_size(&document->text,
             dt_tidy_space(document->text.data, before, (enum dt_space)rule->setting));
    *amount = before - document->text.size;
    return true;
}

/* Counts a document whose text was not in the normal form as one change. */
static bool apply_normalize(const struct dt_rule *rule, struct dt_document *document,
                            struct dt_rule_scratch *scratch, uint64_t *amount)
{
    dt_buffer_clear(&scratch->text);
    *amount = dt_normalize((enum dt_normal_form)rule->setting, document->text.data,
                           document->text.size, &scratch->points, &scratch->text);
    if (*amount)
        swap(&document->text, &scratch->text);
    return true;
}

static bool apply_min_chars(const struct dt_rule *rule, struct dt_document *document,
                            struct dt_rule_scratch *scratch, uint64_t *amount)
{
    (void)scratch;
    uint64_t chars = dt_utf8_count(document->text.data, document->text.size);
    *amount = chars < rule->setting ? chars : 0;
    return chars >= rule->setting;
}

static bool apply_max_chars(const struct dt_rule *rule, struct dt_document *document,
                            struct dt_rule_scratch *scratch, uint64_t *amount)
{
    (void)scratch;
    uint64_t chars = dt_utf8_count(document->text.data, document->text.size);
    *amount = chars > rule->setting ? chars : 0;
    return chars <= rule->setting;
}

int dt_rules_select(const struct dt_clean_options *options, struct dt_rule rules[DT_RULES_MAX])
{
    const struct {
        bool wanted;
        struct dt_rule rule;
    } all[] = {
        {true, {"utf8", options->reject_invalid, apply_utf8}},
        {true, {"controls", 0, apply_controls}},
        {true, {"line-ends", 0, apply_line_ends}},
        {options->form != DT_NORMALIZE_NONE, {"normalize", options->form, apply_normalize}},
        {options->space != DT_SPACE_KEEP, {"space", options->space, apply_space}},
        {options->min_chars > 0, {"min-chars", options->min_chars, apply_min_chars}},
        {options->max_chars > 0, {"max-chars", options->max_chars, apply_max_chars}},
    };
    int count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].wanted)
            rules[count++] = all[i].rule;
    return count;
}
