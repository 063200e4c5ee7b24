/* SPDX-License-Identifier: MIT */
#include "clean/rule.h"

#include <string.h>

#include "clean/quality.h"
#include "clean/rule-setting.h"
#include "dedup/contamination.h"
#include "repair/control.h"
#include "repair/mojibake.h"
#include "unicode/casefold.h"
#include "unicode/character.h"
#include "unicode/utf8.h"
#include "json/json.h"
#include "json/meta.h"

void dt_rule_scratch_release(struct dt_rule_scratch *scratch)
{
    dt_buffer_release(&scratch->text);
    dt_ids_release(&scratch->points);
    dt_measures_release(&scratch->measures);
    dt_shingles_release(&scratch->shingles);
    dt_classifier_scratch_release(&scratch->classifier);
    dt_buffer_release(&scratch->language);
    scratch->language_known = false;
    scratch->measured = false;
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

/* --- rules that change the text --------------------------------------------------------------- */

/* Drops or repairs (setting) text that is not UTF-8; counts ill-formed sequences. */
static bool apply_utf8(const struct dt_rule *rule, struct dt_document *document,
                       struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    struct dt_buffer *text = &document->text;
    if (dt_utf8_valid_prefix(text->data, text->size) == text->size)
        return true;
    dt_buffer_clear(&scratch->text);
    finding->changes = dt_utf8_repair(text->data, text->size, &scratch->text);
    swap(text, &scratch->text);
    return rule->setting == 0;
}

static bool apply_mojibake(const struct dt_rule *rule, struct dt_document *document,
                           struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    (void)rule;
    finding->changes = dt_mojibake_repair(document->text.data, document->text.size, &scratch->text);
    if (finding->changes)
        swap(&document->text, &scratch->text);
    return true;
}

static bool apply_controls(const struct dt_rule *rule, struct dt_document *document,
                           struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    (void)rule, (void)scratch;
    size_t size = document->text.size;
    finding->changes = dt_control_remove(document->text.data, &size);
    set_size(&document->text, size);
    return true;
}

static bool apply_invisible(const struct dt_rule *rule, struct dt_document *document,
                            struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    (void)rule, (void)scratch;
    size_t size = document->text.size;
    finding->changes = dt_control_remove_invisible(document->text.data, &size);
    set_size(&document->text, size);
    return true;
}

static bool apply_line_ends(const struct dt_rule *rule, struct dt_document *document,
                            struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    (void)rule, (void)scratch;
    size_t size = document->text.size;
    finding->changes = dt_control_unify_line_ends(document->text.data, &size);
    set_size(&document->text, size);
    return true;
}

/* Counts the bytes removed; a single tab that becomes a space counts 0. */
static bool apply_space(const struct dt_rule *rule, struct dt_document *document,
                        struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    size_t before = document->text.size;
    scratch->measured = false;
    set_size(&document->text,
             dt_whitespace_tidy(document->text.data, before, (enum dt_space)rule->setting));
    finding->changes = before - document->text.size;
    return true;
}

/* Counts 1 for a document whose text was not in the normal form. */
static bool apply_normalize(const struct dt_rule *rule, struct dt_document *document,
                            struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    dt_buffer_clear(&scratch->text);
    finding->changes = dt_normalize((enum dt_normal_form)rule->setting, document->text.data,
                                    document->text.size, &scratch->points, &scratch->text);
    if (finding->changes)
        swap(&document->text, &scratch->text);
    return true;
}

static bool apply_casefold(const struct dt_rule *rule, struct dt_document *document,
                           struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    (void)rule;
    dt_buffer_clear(&scratch->text);
    finding->changes = dt_casefold(document->text.data, document->text.size, &scratch->text);
    if (finding->changes)
        swap(&document->text, &scratch->text);
    return true;
}

static bool apply_mask(const struct dt_rule *rule, struct dt_document *document,
                       struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    finding->changes = dt_mask((enum dt_mask_kind)rule->setting, document->text.data,
                               document->text.size, &scratch->text);
    scratch->masked += finding->changes;
    if (finding->changes)
        swap(&document->text, &scratch->text);
    return true;
}

/* --- rules that drop documents ---------------------------------------------------------------- */

static bool apply_min_chars(const struct dt_rule *rule, struct dt_document *document,
                            struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    (void)scratch;
    finding->value = (double)dt_utf8_count(document->text.data, document->text.size);
    return finding->value >= rule->setting;
}

static bool apply_max_chars(const struct dt_rule *rule, struct dt_document *document,
                            struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    (void)scratch;
    finding->value = (double)dt_utf8_count(document->text.data, document->text.size);
    return finding->value <= rule->setting;
}

static bool is_listed(const char *name, const char *list)
{
    size_t n = strlen(name);
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && memcmp(p, name, n) == 0)
            return true;
    return false;
}

static bool has_letter(const struct dt_buffer *text)
{
    for (size_t i = 0, length; i < text->size; i += length)
        if (dt_character_kind(text->data + i, &length) & DT_CHARACTER_LETTER)
            return true;
    return false;
}

/* Writes meta.lang and meta.lang_score; "und" (ISO 639-2, undetermined) with a score of 0 where the
 * text has no letter or the identifier knows nothing of it. */
static bool apply_identify(const struct dt_rule *rule, struct dt_document *document,
                           struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    const struct dt_classifier *identifier = rule->object;
    const struct dt_buffer *text = &document->text;
    const float *scores = NULL;
    if (has_letter(text))
        scores = dt_classifier_score(identifier, text->data, text->size, &scratch->classifier);
    size_t best = scores ? dt_classifier_best(identifier, scores) : 0;
    const char *language = scores ? dt_classifier_label(identifier, best) : "und";
    char score[DT_RULE_SCORE];
    finding->value = dt_rule_score(scores ? scores[best] : 0, score);
    dt_buffer_clear(&scratch->text);
    dt_json_add_string(&scratch->text, language, strlen(language));
    dt_meta_set(&document->meta, "lang", scratch->text.data);
    dt_meta_set(&document->meta, "lang_score", score);
    scratch->language_known = false;
    scratch->languages = NULL;
    return true;
}

static bool apply_language(const struct dt_rule *rule, struct dt_document *document,
                           struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    finding->value = is_listed(dt_rule_language(document, scratch), rule->object);
    return finding->value > 0;
}

static bool apply_language_score(const struct dt_rule *rule, struct dt_document *document,
                                 struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    (void)scratch;
    finding->value = dt_meta_get_number(&document->meta, "lang_score", 0);
    return finding->value >= rule->setting;
}

static bool apply_contamination(const struct dt_rule *rule, struct dt_document *document,
                                struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    finding->value = (double)dt_contamination_count(rule->object, document->text.data,
                                                    document->text.size, &scratch->shingles);
    return finding->value == 0;
}

static bool apply_max_masked(const struct dt_rule *rule, struct dt_document *document,
                             struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    (void)document;
    finding->value = (double)scratch->masked;
    return finding->value <= rule->setting;
}

/* --- selection -------------------------------------------------------------------------------- */

static void append(struct dt_rule *rules, int *count, bool wanted, struct dt_rule rule)
{
    if (wanted)
        rules[(*count)++] = rule;
}

static void append_repairs(const struct dt_clean_options *o, struct dt_rule *rules, int *count)
{
    const struct dt_rule all[] = {
        {"utf8", o->reject_invalid, .apply = apply_utf8},
        {"mojibake", o->mojibake, .apply = apply_mojibake},
        {"controls", 1, .apply = apply_controls},
        {"invisible", o->invisible, .apply = apply_invisible},
        {"line-ends", !o->keep_line_ends, .apply = apply_line_ends},
        {"normalize", o->form, .apply = apply_normalize},
        {"casefold", o->casefold, .apply = apply_casefold},
        {"space", o->space, .apply = apply_space},
        {"min-chars", (double)o->min_chars, .apply = apply_min_chars},
        {"max-chars", (double)o->max_chars, .apply = apply_max_chars},
        {"identify", o->identifier != NULL, .object = o->identifier, .apply = apply_identify},
        {"language", o->languages != NULL, .object = o->languages, .apply = apply_language},
        {"language-score", o->language_score, .apply = apply_language_score},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        append(rules, count, i == 0 || all[i].setting > 0, all[i]);
}

static void append_masks(const struct dt_clean_options *o, struct dt_rule *rules, int *count)
{
    static const char *const names[] = {"mask-email", "mask-ipv6", "mask-ipv4",
                                        "mask-iban",  "mask-card", "mask-phone"};
    for (int kind = 0; kind < DT_MASK_KINDS; kind++)
        append(rules, count, o->masks >> kind & 1,
               (struct dt_rule){names[kind], kind, .apply = apply_mask});
    append(rules, count, o->max_masked != UINT64_MAX,
           (struct dt_rule){"max-masked", (double)o->max_masked, .apply = apply_max_masked});
}

static void count_namesakes(struct dt_rule *rules, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = rules[i].namesakes = 0; k < i; k++)
            rules[i].namesakes += strcmp(rules[k].name, rules[i].name) == 0;
}

#define OTHER_RULES 24 /* those above, at most */

int dt_rule_select(const struct dt_clean_options *options, struct dt_rule rules[DT_RULES_MAX],
                   int *count, struct dt_error *err)
{
    *count = 0;
    append_repairs(options, rules, count);
    for (int i = 0; i < options->rule_file_count; i++)
        DT_TRY(dt_rule_file_read(options->rule_files[i], options->lineage, rules, count, err));
    if (options->rule_text)
        DT_TRY(dt_rule_text_read(options->rule_text, rules, count, err));
    if (*count > DT_RULES_MAX - OTHER_RULES)
        return dt_fail(err, DT_EINVALID, "more than %d rules", DT_RULES_MAX - OTHER_RULES);
    dt_quality_group_lines(rules, *count);
    append(rules, count, options->contamination != NULL,
           (struct dt_rule){"contamination", .object = options->contamination,
                            .apply = apply_contamination});
    append_masks(options, rules, count);
    count_namesakes(rules, *count);
    return 0;
}

void dt_rule_release(struct dt_rule *rules, int count)
{
    for (int i = 0; i < count; i++)
        if (rules[i].release)
            rules[i].release(rules[i].owned);
}

void dt_rule_start(struct dt_rule_scratch *scratch)
{
    scratch->language_known = false;
    scratch->languages = NULL;
    scratch->measured = false;
    scratch->masked = 0;
}

bool dt_rule_apply(const struct dt_rule *rule, struct dt_document *document,
                   struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    *finding = (struct dt_finding){0};
    bool stays = rule->apply(rule, document, scratch, finding);
    if (finding->changes > 0) {
        finding->value = (double)finding->changes;
        scratch->measured = scratch->measured && rule->group > 0; /* line rules trim blanks
                                                                   * already */
    }
    return stays;
}
