/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/program.h"
#include "clean/file-rules.h"
#include "clean/quality.h"
#include "options/completion.h"

#define LARGEST_FILE ((size_t)1 << 24)
#define BLANKS       " \t\r"

/* The path of a rule file; owned by the caller. */
static int find_file(const char *name, char **path, struct dt_error *err)
{
    *path = dt_strdup(name);
    if (strchr(name, '/'))
        return 0;
    int there = dt_file_probe(name, err);
    DT_TRY(there);
    char *share = dt_program_installed_path("share/dt");
    char *built_in = dt_asprintf("%s/rules/%s.rules", share, name);
    free(share);
    int known = dt_file_probe(built_in, err);
    if (known == 1 && there == 0) {
        free(*path);
        *path = built_in;
        return 0;
    }
    free(built_in);
    DT_TRY(known);
    if (known == 1)
        return dt_fail(err, DT_EINVALID,
                       "'%s' is a built-in set of rules and a file here: name the file ./%s, or "
                       "another directory's",
                       name, name);
    if (there == 1)
        return 0;
    return dt_fail(err, DT_EMISSING,
                   "'%s': not found; the built-in sets of rules are gopher, c4, fineweb, "
                   "fineweb2 and dolma",
                   name);
}

void dt_rule_file_add_names(struct dt_buffer *words)
{
    char *folder = dt_program_installed_path("share/dt/rules");
    dt_completion_add_files(words, folder, ".rules");
    free(folder);
}

/* Cuts comment and blanks from both ends of a line. */
static char *strip(char *line)
{
    line[strcspn(line, "#")] = '\0';
    line += strspn(line, BLANKS);
    for (size_t n = strlen(line); n > 0 && strchr(BLANKS, line[n - 1]); n--)
        line[n - 1] = '\0';
    return line;
}

/* What a file brings with it; owned by its first rule. */
struct rule_file {
    struct dt_rule_languages languages;
    struct dt_file_models models;
    struct object { /* of a rule */
        void *owned;
        void (*release)(void *owned);
    } * objects;
    size_t object_count, object_capacity;
    double **settings; /* of rules that sections change */
    size_t setting_count, setting_capacity;
};

static void free_file(void *owned)
{
    struct rule_file *file = owned;
    dt_rule_languages_release(&file->languages);
    dt_file_models_release(&file->models);
    for (size_t i = 0; i < file->object_count; i++)
        file->objects[i].release(file->objects[i].owned);
    free(file->objects);
    for (size_t i = 0; i < file->setting_count; i++)
        free(file->settings[i]);
    free(file->settings);
    free(file);
}

/* A line of a section. */
struct change {
    const void *rule; /* its object */
    size_t section;
    double setting;
    int line;
};

struct reader {
    const char *path;
    int line;
    struct rule_file *file;
    size_t section;
    struct dt_rule *rules; /* all, of which those of this file begin at `first` */
    int *count, first;
    struct change *changes;
    size_t change_count, change_capacity;
    struct dt_lineage *lineage;
    struct dt_error *err;
};

static int find_rule(const struct reader *r, const char *name, const struct dt_quality_rule **rule)
{
    *rule = dt_quality_find(name);
    const char *near = *rule ? NULL : dt_quality_suggest(name);
    if (near)
        return dt_fail(r->err, DT_EFORMAT, "unknown rule '%s' (did you mean '%s'?)", name, near);
    return *rule ? 0 : dt_fail(r->err, DT_EFORMAT, "unknown rule '%s'", name);
}

/* A threshold, or "off", which is NaN. */
static int read_setting(const struct reader *r, const char *name, const char *value,
                        double *setting)
{
    *setting = NAN;
    if (strcmp(value, "off") == 0 || (dt_program_parse_real(value, setting) == 0 && *setting >= 0))
        return 0;
    return dt_fail(r->err, DT_EFORMAT,
                   "rule '%s': the threshold must be a number of at least 0 or off, not '%s'", name,
                   value);
}

static int append_rule(struct reader *r, struct dt_rule rule)
{
    if (*r->count == DT_RULES_MAX)
        return dt_fail(r->err, DT_EINVALID, "more than %d rules", DT_RULES_MAX);
    rule.languages = &r->file->languages;
    rule.owned = NULL;
    rule.release = NULL;
    r->rules[(*r->count)++] = rule;
    return 0;
}

static void add_change(struct reader *r, const void *rule, double setting)
{
    DT_GROW(r->changes, r->change_count, r->change_capacity);
    r->changes[r->change_count++] = (struct change){rule, r->section, setting, r->line};
}

/* Whether the file already has the rule. */
static bool has_rule(const struct reader *r, const struct dt_quality_rule *rule)
{
    for (int i = r->first; i < *r->count; i++)
        if (r->rules[i].object == rule)
            return true;
    return false;
}

static int read_rule(struct reader *r, const char *name, const char *value)
{
    const struct dt_quality_rule *rule;
    double setting;
    DT_TRY(find_rule(r, name, &rule));
    DT_TRY(read_setting(r, name, value, &setting));
    if (r->section == 0)
        return append_rule(r, dt_quality_step(rule, setting));
    for (size_t i = 0; i < r->change_count; i++)
        if (r->changes[i].rule == rule && r->changes[i].section == r->section)
            return dt_fail(r->err, DT_EFORMAT, "line %d sets '%s' for the same languages",
                           r->changes[i].line, name);
    add_change(r, rule, setting);
    return has_rule(r, rule) ? 0 : append_rule(r, dt_quality_step(rule, NAN));
}

/* A rule that reads a file; the line of a section is a rule for its languages alone. */
static int read_file_rule(struct reader *r, const char *name, char *arguments)
{
    const struct dt_file_rules_context context = {r->path, &r->file->models, r->lineage};
    struct dt_rule rule;
    DT_TRY(dt_file_rules_make(&context, name, arguments, &rule, r->err));
    DT_GROW(r->file->objects, r->file->object_count, r->file->object_capacity);
    r->file->objects[r->file->object_count++] = (struct object){rule.owned, rule.release};
    if (r->section > 0) {
        add_change(r, rule.object, rule.setting);
        rule.setting = NAN;
    }
    return append_rule(r, rule);
}

/* Words between blanks; further lines add to the list. */
static int read_stop_words(struct reader *r, const char *words)
{
    struct dt_stop_words **list = &r->file->languages.sections[r->section].stop_words;
    if (*words == '\0')
        return dt_fail(r->err, DT_EFORMAT, "stop-words: words between blanks expected");
    if (*list == NULL)
        *list = dt_stop_words_new();
    for (size_t n; *words; words += n + strspn(words + n, BLANKS)) {
        n = strcspn(words, BLANKS);
        if (!dt_stop_words_add(*list, words, n))
            return dt_fail(r->err, DT_EINVALID, "more than %d stop words", DT_STOP_WORDS_MAX);
    }
    return 0;
}

/* How words of scripts without blanks are found, for the whole file. */
static int read_words(struct reader *r, const char *value)
{
    int choice = 0;
    if (r->section > 0)
        return dt_fail(r->err, DT_EFORMAT, "words: stands before the first header");
    while (dt_segmentation_names[choice] && strcmp(dt_segmentation_names[choice], value) != 0)
        choice++;
    if (dt_segmentation_names[choice] == NULL)
        return dt_fail(r->err, DT_EFORMAT, "words: characters or icu expected, not '%s'", value);
    r->file->languages.segmentation = (enum dt_segmentation)choice;
    return dt_segmentation_load((enum dt_segmentation)choice, r->err);
}

static size_t add_section(struct dt_rule_languages *l, int line)
{
    DT_GROW(l->sections, l->section_count, l->section_capacity);
    l->sections[l->section_count] = (struct dt_rule_section){.line = line};
    return l->section_count++;
}

/* "de", "deu" or "deu_Latn", as identifiers write languages. */
static bool is_code(const char *code, size_t size)
{
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz",
                      upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = strspn(code, lower);
    if (n < 2 || n > 3)
        return false;
    return size == n || (size == n + 5 && code[n] == '_' && strchr(upper, code[n + 1]) &&
                         strspn(code + n + 2, lower) == 3);
}

static int add_language(struct reader *r, const char *code, size_t size)
{
    if (!is_code(code, size))
        return dt_fail(r->err, DT_EFORMAT,
                       "'%.*s': not a language; blanks separate codes such as de, deu or deu_Latn, "
                       "as meta.lang has them",
                       (int)(size < 60 ? size : 60), code);
    int line = dt_rule_languages_add(&r->file->languages, code, size, r->section);
    return line == 0 ? 0
                     : dt_fail(r->err, DT_EFORMAT,
                               "line %d has the language '%.*s' already; name it in one section",
                               line, (int)size, code);
}

/* A header "[lang de at]". */
static int read_header(struct reader *r, char *line)
{
    char *codes = line + 1, *end = strchr(line, ']');
    size_t keyword = strlen("lang"), n;
    if (end == NULL || end[1] != '\0' || strncmp(codes, "lang", keyword) != 0 ||
        !strchr(BLANKS, codes[keyword]) || codes + keyword == end)
        return dt_fail(r->err, DT_EFORMAT, "a header '[lang CODE ...]' expected, not '%s'", line);
    *end = '\0';
    r->section = add_section(&r->file->languages, r->line);
    for (codes += keyword; *(codes += strspn(codes, BLANKS)); codes += n) {
        n = strcspn(codes, BLANKS);
        DT_TRY(add_language(r, codes, n));
    }
    return 0;
}

static int read_line(struct reader *r, char *line)
{
    if (*line == '[')
        return read_header(r, line);
    char *colon = strchr(line, ':');
    if (colon == NULL)
        return dt_fail(r->err, DT_EFORMAT, "'NAME: THRESHOLD' expected");
    *colon = '\0';
    char *name = strip(line), *value = strip(colon + 1);
    if (strcmp(name, "words") == 0)
        return read_words(r, value);
    if (dt_file_rules_has(name))
        return read_file_rule(r, name, value);
    return strcmp(name, "stop-words") == 0 ? read_stop_words(r, value) : read_rule(r, name, value);
}

/* Gives each rule that sections change its setting in every section. */
static void apply_changes(struct reader *r)
{
    struct rule_file *file = r->file;
    for (int i = r->first; i < *r->count; i++) {
        struct dt_rule *rule = &r->rules[i];
        double *settings = NULL;
        for (size_t k = 0; k < r->change_count; k++) {
            if (r->changes[k].rule != rule->object)
                continue;
            if (settings == NULL) {
                settings = dt_alloc(file->languages.section_count, sizeof *settings);
                for (size_t s = 0; s < file->languages.section_count; s++)
                    settings[s] = rule->setting;
                DT_GROW(file->settings, file->setting_count, file->setting_capacity);
                file->settings[file->setting_count++] = settings;
            }
            settings[r->changes[k].section] = r->changes[k].setting;
        }
        rule->settings = settings;
    }
}

static int read_lines(struct reader *r, char *text)
{
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        r->line++;
        line = strip(line);
        if (*line && read_line(r, line) < 0)
            return dt_fail_context(r->err, "%s:%d", r->path, r->line);
    }
    dt_rule_languages_sort(&r->file->languages);
    if (*r->count == r->first)
        return dt_fail(r->err, DT_EFORMAT, "%s: holds no rule", r->path);
    apply_changes(r);
    return 0;
}

/* The first rule then owns what the file brings. */
static int read_text(const char *path, char *text, struct dt_lineage *lineage,
                     struct dt_rule *rules, int *count, struct dt_error *err)
{
    struct reader r = {.path = path,
                       .lineage = lineage,
                       .file = dt_alloc(1, sizeof *r.file),
                       .rules = rules,
                       .count = count,
                       .first = *count,
                       .err = err};
    add_section(&r.file->languages, 0);
    int rc = read_lines(&r, text);
    free(r.changes);
    if (rc < 0) {
        free_file(r.file);
        *count = r.first;
        return rc;
    }
    rules[r.first].owned = r.file;
    rules[r.first].release = free_file;
    return 0;
}

int dt_rule_file_read(const char *name, struct dt_lineage *lineage,
                      struct dt_rule rules[DT_RULES_MAX], int *count, struct dt_error *err)
{
    char *path, *text = NULL;
    size_t size;
    int rc = find_file(name, &path, err);
    if (rc == 0)
        rc = dt_file_read(path, LARGEST_FILE, &text, &size, err);
    if (rc == 0 && strlen(text) != size)
        rc = dt_fail(err, DT_EFORMAT, "%s: holds a NUL byte", path);
    if (rc == 0)
        rc = read_text(path, text, lineage, rules, count, err);
    free(text);
    free(path);
    return rc;
}

int dt_rule_text_read(const char *text, struct dt_rule rules[DT_RULES_MAX], int *count,
                      struct dt_error *err)
{
    char *copy = dt_strdup(text);
    int rc = read_text("rules", copy, NULL, rules, count, err);
    free(copy);
    return rc;
}
