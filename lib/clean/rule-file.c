/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/program.h"
#include "clean/quality.h"

#define LARGEST_FILE ((size_t)1 << 20)

/* The path of a rule file; owned by the caller. */
static int find_file(const char *name, char **path, struct dt_error *err)
{
    *path = dt_strdup(name);
    int there = strchr(name, '/') ? 1 : dt_file_probe(name, err);
    if (there != 0)
        return there < 0 ? there : 0;
    char *share = dt_program_installed_path("share/dt");
    free(*path);
    *path = dt_asprintf("%s/rules/%s.rules", share, name);
    free(share);
    if ((there = dt_file_probe(*path, err)) != 0)
        return there < 0 ? there : 0;
    return dt_fail(err, DT_EMISSING,
                   "'%s': not found; the built-in sets of rules are gopher, c4, fineweb and "
                   "dolma",
                   name);
}

/* Cuts comment and blanks from both ends of a line. */
static char *strip(char *line)
{
    line[strcspn(line, "#")] = '\0';
    line += strspn(line, " \t\r");
    for (size_t n = strlen(line); n > 0 && strchr(" \t\r", line[n - 1]); n--)
        line[n - 1] = '\0';
    return line;
}

static int read_rule(char *line, struct dt_rule *step, struct dt_error *err)
{
    char *colon = strchr(line, ':');
    double threshold;
    if (colon == NULL)
        return dt_fail(err, DT_EFORMAT, "'NAME: THRESHOLD' expected");
    *colon = '\0';
    char *name = strip(line), *value = strip(colon + 1);
    const struct dt_quality_rule *rule = dt_quality_find(name);
    const char *near = rule ? NULL : dt_quality_suggest(name);
    if (rule == NULL && near)
        return dt_fail(err, DT_EFORMAT, "unknown rule '%s' (did you mean '%s'?)", name, near);
    if (rule == NULL)
        return dt_fail(err, DT_EFORMAT, "unknown rule '%s'", name);
    if (dt_program_parse_real(value, &threshold) < 0 || threshold < 0)
        return dt_fail(err, DT_EFORMAT, "rule '%s': the threshold must be a number, not '%s'", name,
                       value);
    *step = dt_quality_step(rule, threshold);
    return 0;
}

static int read_lines(const char *path, char *text, struct dt_rule rules[DT_RULES_MAX], int *count,
                      struct dt_error *err)
{
    char *rest = text, *line;
    for (int number = 1; (line = strsep(&rest, "\n")) != NULL; number++) {
        line = strip(line);
        if (*line == '\0')
            continue;
        if (*count == DT_RULES_MAX)
            return dt_fail(err, DT_EINVALID, "%s:%d: more than %d rules", path, number,
                           DT_RULES_MAX);
        if (read_rule(line, &rules[*count], err) < 0)
            return dt_fail_context(err, "%s:%d", path, number);
        ++*count;
    }
    return 0;
}

int dt_rule_file_read(const char *name, struct dt_rule rules[DT_RULES_MAX], int *count,
                      struct dt_error *err)
{
    char *path, *text = NULL;
    size_t size;
    int before = *count, rc = find_file(name, &path, err);
    if (rc == 0)
        rc = dt_file_read(path, LARGEST_FILE, &text, &size, err);
    if (rc == 0 && strlen(text) != size)
        rc = dt_fail(err, DT_EFORMAT, "%s: holds a NUL byte", path);
    if (rc == 0)
        rc = read_lines(path, text, rules, count, err);
    if (rc == 0 && *count == before)
        rc = dt_fail(err, DT_EFORMAT, "%s: holds no rule", path);
    free(text);
    free(path);
    return rc;
}
