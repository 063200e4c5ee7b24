/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "clean/clean.h"
#include "hash/hash.h"
#include "unicode/unicode.h"
#include "json/json-number.h"
#include "json/json.h"

static void add_count(struct json_object *object, const char *name, uint64_t count)
{
    dt_json_object_add(object, name, dt_json_new_uint(count));
}

static struct json_object *in_and_out(uint64_t in, uint64_t out)
{
    struct json_object *pair = dt_json_new_object();
    add_count(pair, "in", in);
    add_count(pair, "out", out);
    return pair;
}

static struct json_object *rule_json(const struct dt_rule_count *rule)
{
    struct json_object *object = dt_json_new_object();
    dt_json_object_add(object, "rule", dt_json_new_string(rule->name));
    add_count(object, "dropped", rule->dropped);
    add_count(object, "changed", rule->changed);
    add_count(object, "changes", rule->changes);
    return object;
}

/* What results depend on besides the input, the options and the files that they name. */
static void add_definitions(struct json_object *all, const struct dt_clean_statistics *s)
{
    char hash[DT_HASH_HEX];
    dt_json_object_add(all, "unicode", dt_json_new_string(dt_unicode_version));
    dt_json_object_add(all, "words", dt_json_new_string(s->words));
    if (s->identifier)
        dt_json_object_add(all, "identifier", dt_json_new_string(dt_hash_hex(s->identifier, hash)));
}

struct json_object *dt_clean_statistics_json(const struct dt_clean_statistics *s, double seconds)
{
    struct json_object *all = dt_json_new_object(), *rules = dt_json_new_array();
    for (int i = 0; i < s->rule_count; i++)
        dt_json_array_add(rules, rule_json(&s->rules[i]));
    dt_json_object_add(all, "documents", in_and_out(s->documents_in, s->documents_out));
    add_count(all, "lines_skipped", s->lines_skipped);
    dt_json_object_add(all, "bytes", in_and_out(s->bytes_in, s->bytes_out));
    dt_json_object_add(all, "rules", rules);
    add_count(all, "dedup_memory_bytes", s->dedup_bytes);
    dt_json_object_add(all, "seconds", dt_json_number(seconds));
    double speed = seconds > 0 ? (double)s->bytes_in / 1e6 / seconds : 0;
    dt_json_object_add(all, "megabytes_per_second", dt_json_number(speed));
    add_definitions(all, s);
    return all;
}

#define SHOWN_RULES 24

/* The rank of this rule by dropped documents; ties by order. */
static int rank(const struct dt_clean_statistics *s, int rule)
{
    int before = 0;
    for (int i = 0; i < s->rule_count; i++)
        before += s->rules[i].dropped > s->rules[rule].dropped ||
                  (s->rules[i].dropped == s->rules[rule].dropped && i < rule);
    return before;
}

/* A rule's name for a person, who has not set min-chars. */
static const char *name_of(const struct dt_clean_statistics *s, int rule)
{
    const char *name = s->rules[rule].name;
    return s->only_empty && strcmp(name, "min-chars") == 0 ? "empty" : name;
}

/* The rules that dropped most, in order, and the sum of the others. */
void dt_clean_statistics_text(const struct dt_clean_statistics *s, struct dt_buffer *text)
{
    const char *before = " (dropped: ";
    uint64_t others = 0;
    dt_buffer_printf(text, "%llu in, %llu out", (unsigned long long)s->documents_in,
                     (unsigned long long)s->documents_out);
    for (int i = 0; i < s->rule_count; i++) {
        uint64_t dropped = s->rules[i].dropped;
        bool shown = dropped > 0 && rank(s, i) < SHOWN_RULES;
        others += shown ? 0 : dropped;
        if (!shown)
            continue;
        dt_buffer_printf(text, "%s%llu %s", before, (unsigned long long)dropped, name_of(s, i));
        before = ", ";
    }
    if (others > 0)
        dt_buffer_printf(text, ", %llu by other rules", (unsigned long long)others);
    if (s->documents_out < s->documents_in)
        dt_buffer_add_char(text, ')');
    for (int i = 0; i < s->rule_count; i++)
        if (s->rules[i].changed > 0 && strcmp(s->rules[i].name, "utf8") == 0)
            dt_buffer_printf(text, ", %llu repaired (invalid UTF-8)",
                             (unsigned long long)s->rules[i].changed);
}
