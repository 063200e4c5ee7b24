/* SPDX-License-Identifier: MIT */
#include "clean/quality.h"

#include <math.h>
#include <string.h>

#include "base/program.h"
#include "clean/rule-setting.h"
#include "unicode/character.h"

static const struct dt_quality_rule *const tables[] = {
    dt_quality_rules_gopher, dt_quality_rules_c4, dt_quality_rules_fineweb, dt_quality_rules_dolma};
#define TABLES (sizeof tables / sizeof *tables)

const struct dt_quality_rule *dt_quality_find(const char *name)
{
    for (size_t t = 0; t < TABLES; t++)
        for (const struct dt_quality_rule *rule = tables[t]; rule->name; rule++)
            if (strcmp(rule->name, name) == 0)
                return rule;
    return NULL;
}

const char *dt_quality_suggest(const char *name)
{
    const char *names[DT_RULES_MAX + 1] = {NULL};
    size_t count = 0;
    for (size_t t = 0; t < TABLES; t++)
        for (const struct dt_quality_rule *rule = tables[t]; rule->name; rule++)
            if (count < DT_RULES_MAX)
                names[count++] = rule->name;
    return dt_program_did_you_mean(name, names);
}

/* A limit of NaN is never crossed. */
static bool crosses(const struct dt_rule *rule, double limit, double value)
{
    const struct dt_quality_rule *quality = rule->object;
    return quality->bound == DT_BOUND_AT_LEAST ? value < limit : value > limit;
}

static bool apply_measure(const struct dt_rule *rule, struct dt_document *document,
                          struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    const struct dt_quality_rule *quality = rule->object;
    if (!scratch->measured)
        dt_measures_start(&scratch->measures, document->text.data ? document->text.data : "",
                          document->text.size);
    scratch->measured = true;
    dt_measures_set_words(&scratch->measures,
                          rule->languages ? rule->languages->segmentation
                                          : DT_SEGMENTATION_CHARACTERS,
                          dt_words_traits(dt_rule_language(document, scratch)));
    scratch->measures.stop_words = dt_rule_stop_words(rule, document, scratch);
    double limit = dt_rule_setting(rule, document, scratch);
    if (quality->bound_of && !scratch->exact &&
        !crosses(rule, limit, quality->bound_of(&scratch->measures, quality->words)))
        return true;
    finding->value = quality->of_sequences
                         ? quality->of_sequences(&scratch->measures, quality->words)
                         : quality->measure(&scratch->measures);
    return !crosses(rule, limit, finding->value);
}

static bool is_blank_at(const char *p)
{
    size_t n;
    return dt_character_kind(p, &n) & DT_CHARACTER_BLANK;
}

/* The line without the blanks around it. */
static struct dt_line trimmed(char *text, size_t size)
{
    size_t n;
    while (size > 0 && is_blank_at(text)) {
        (void)dt_character_kind(text, &n);
        text += n;
        size -= n;
    }
    while (size > 0) {
        size_t at = size - 1;
        while (at > 0 && (text[at] & 0xc0) == 0x80)
            at--;
        if (!is_blank_at(text + at))
            break;
        size = at;
    }
    return (struct dt_line){.text = text, .size = size};
}

/* Bytes of the end of line at p: LF, U+2028 or U+2029; 0 if there is none. */
static size_t line_end(const char *p, size_t size)
{
    if (*p == '\n')
        return 1;
    return size >= 3 && p[0] == '\xe2' && p[1] == '\x80' && (p[2] & '\xfe') == '\xa8' ? 3 : 0;
}

/* Bytes up to the end of the first line; *end is set to the bytes of that. */
static size_t find_line_end(const char *text, size_t size, size_t *end)
{
    const char *feed = memchr(text, '\n', size);
    size_t limit = feed ? (size_t)(feed - text) : size;
    *end = feed != NULL;
    for (const char *p = text; (p = memchr(p, 0xe2, limit - (size_t)(p - text))) != NULL; p++) {
        size_t n = line_end(p, limit - (size_t)(p - text));
        if (n == 0)
            continue;
        *end = n;
        return (size_t)(p - text);
    }
    return limit;
}

/* Applies the rules to a line. Returns -1 if it stays, or the rule that drops it, whose value is
 * set; counts changes by rule. */
static int judge_line(const struct dt_rule *rules, const double *limits, int count,
                      struct dt_line *line, uint64_t *changes, double *value)
{
    for (int i = 0; i < count; i++) {
        const struct dt_quality_rule *quality = rules[i].object;
        if (isnan(limits[i]))
            continue;
        line->limit = limits[i];
        *value = quality->measure_line(line);
        if (quality->effect == DT_LINE_EFFECT_EDIT)
            changes[i] += (uint64_t)*value;
        else if (crosses(&rules[i], limits[i], *value))
            return i;
    }
    return -1;
}

/* Copies the lines that stay, without surrounding blanks, to scratch->text. Returns the rule that
 * drops the document, or -1. scratch->measured is false where the words of a line changed. */
static int copy_lines(const struct dt_rule *rules, struct dt_buffer *text,
                      struct dt_rule_scratch *scratch)
{
    struct dt_buffer *out = &scratch->text;
    bool started = false;
    dt_measures_keep_start(&scratch->measures);
    dt_buffer_clear(out);
    dt_buffer_reserve(out, text->size + 1);
    for (size_t i = 0, size, ending; i < text->size; i += size + ending) {
        size = find_line_end(text->data + i, text->size - i, &ending);
        struct dt_line line = trimmed(text->data + i, size);
        size_t before = out->size, filled = line.size;
        if (started)
            out->data[out->size++] = '\n';
        memcpy(out->data + out->size, line.text, line.size);
        line.text = out->data + out->size;
        int rule = judge_line(rules, scratch->line_limits, rules->group, &line,
                              scratch->line_changes, &scratch->line_value);
        if (ending == 3 || (rule < 0 && line.size != filled))
            scratch->measured = false;
        else if (scratch->measured && filled > 0)
            dt_measures_keep_line(&scratch->measures, rule < 0);
        out->size = rule < 0 ? out->size + line.size : before;
        started = started || rule < 0;
        if (rule < 0)
            continue;
        if (((const struct dt_quality_rule *)rules[rule].object)->effect ==
            DT_LINE_EFFECT_DROP_DOCUMENT) {
            scratch->measured = false;
            return rule;
        }
        scratch->line_changes[rule]++;
    }
    return -1;
}

/* The limits of a group. Rules that find nothing in the text, whose limit is NaN then, need not
 * look at each line; after a rule that edits lines, such as one that joins two halves of a word,
 * they do. */
static void find_limits(const struct dt_rule *rules, struct dt_document *document,
                        struct dt_rule_scratch *scratch)
{
    const struct dt_buffer *text = &document->text;
    bool edited = false;
    for (int i = 0; i < rules->group; i++) {
        const struct dt_quality_rule *quality = rules[i].object;
        double limit = dt_rule_setting(&rules[i], document, scratch);
        if (!edited && limit >= 0 && text->size > 0 && quality->may_find &&
            !quality->may_find(text->data, text->size))
            limit = NAN;
        edited = edited || (quality->effect == DT_LINE_EFFECT_EDIT && !isnan(limit));
        scratch->line_limits[i] = limit;
    }
}

/* Applies a whole group. */
static void apply_group(const struct dt_rule *rules, struct dt_document *document,
                        struct dt_rule_scratch *scratch)
{
    struct dt_buffer *text = &document->text;
    find_limits(rules, document, scratch);
    memset(scratch->line_changes, 0, (size_t)rules->group * sizeof *scratch->line_changes);
    scratch->line_drop = copy_lines(rules, text, scratch);
    if (scratch->line_drop >= 0) {
        memset(scratch->line_changes, 0, (size_t)rules->group * sizeof *scratch->line_changes);
        return;
    }
    struct dt_line all = trimmed(scratch->text.data, scratch->text.size);
    bool same = all.size == text->size;
    dt_buffer_clear(text);
    dt_buffer_append(text, all.text, all.size);
    if (scratch->measured && same)
        scratch->measures.text = text->data; /* the same content, perhaps moved */
    else if (scratch->measured)
        dt_measures_restart(&scratch->measures, text->data, text->size);
}

static bool apply_lines(const struct dt_rule *rule, struct dt_document *document,
                        struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    if (rule->place == 0)
        apply_group(rule, document, scratch);
    finding->changes = scratch->line_changes[rule->place];
    finding->value = (double)finding->changes;
    if (rule->place != scratch->line_drop)
        return true;
    finding->value = scratch->line_value;
    return false;
}

struct dt_rule dt_quality_step(const struct dt_quality_rule *rule, double threshold)
{
    return (struct dt_rule){.name = rule->name,
                            .setting = threshold,
                            .object = rule,
                            .group = 1,
                            .apply = rule->measure_line ? apply_lines : apply_measure};
}

void dt_quality_group_lines(struct dt_rule *rules, int count)
{
    for (int i = 0, n; i < count; i += n) {
        for (n = 1; rules[i].apply == apply_lines && i + n < count; n++)
            if (rules[i + n].apply != apply_lines)
                break;
        for (int k = 0; k < n; k++) {
            rules[i + k].place = k;
            rules[i + k].group = n;
        }
    }
}
