/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "api/api-internal.h"
#include "base/buffer.h"
#include "base/program.h"
#include "clean/rule.h"
#include "unicode/utf8.h"

struct dt_api_cleaner {
    struct dt_rule rules[DT_RULES_MAX];
    int count;
    struct dt_classifier *identifier;
    char *languages;
    struct dt_idle scratches;
};

struct scratch {
    struct dt_idle_item item;
    struct dt_rule_scratch rules;
};

static void free_scratch(struct dt_idle_item *item)
{
    struct scratch *s = (struct scratch *)item;
    dt_rule_scratch_release(&s->rules);
    free(s);
}

/* --- options ---------------------------------------------------------------------------------- */

/* The index of a name, 0 for NULL. names: ended by NULL. */
static int choose(const char *option, const char *name, const char *const *names, int *choice,
                  struct dt_error *err)
{
    struct dt_buffer all = DT_BUFFER_EMPTY;
    *choice = 0;
    for (int i = 0; name && names[i]; i++) {
        if (strcmp(names[i], name) == 0) {
            *choice = i;
            name = NULL;
        } else {
            dt_buffer_printf(&all, " %s", names[i]);
        }
    }
    int rc = name ? dt_fail(err, DT_EINVALID, "%s '%s': none of%s", option, name, all.data) : 0;
    dt_buffer_release(&all);
    return rc;
}

static int read_masks(const char *list, unsigned *masks, struct dt_error *err)
{
    const char *unknown = list ? dt_mask_parse(list, masks) : NULL;
    return unknown ? dt_fail(err, DT_EINVALID,
                             "mask '%.*s': none of email, ipv6, ipv4, iban, card, phone, all",
                             (int)strcspn(unknown, ","), unknown)
                   : 0;
}

static int read_identifier(struct dt_api_cleaner *c, const char *name, struct dt_error *err)
{
    if (name == NULL)
        return 0;
    char *own = dt_program_installed_path("share/dt/language/languages.ftz");
    int rc = dt_classifier_read(&c->identifier, *name ? name : own, err);
    free(own);
    return rc;
}

static int open_cleaner(struct dt_api_cleaner *c, const struct dt_api_cleaner_options *given,
                        struct dt_error *err)
{
    struct dt_api_cleaner_options o;
    int form, space;
    unsigned masks = 0;
    DT_TRY(dt_taken_options(&o, sizeof o, given, given->size, err));
    DT_TRY(choose("normalize", o.normalize, dt_normal_form_names, &form, err));
    DT_TRY(choose("space", o.space, dt_space_names, &space, err));
    DT_TRY(read_masks(o.mask, &masks, err));
    if (!(o.language_score >= 0 && o.language_score <= 1))
        return dt_fail(err, DT_EINVALID, "language_score must be from 0 to 1, not %g",
                       o.language_score);
    DT_TRY(read_identifier(c, o.identifier, err));
    c->languages = o.languages ? dt_strdup(o.languages) : NULL;
    const struct dt_clean_options options = {
        .reject_invalid = o.reject_invalid != 0,
        .mojibake = o.mojibake != 0,
        .invisible = o.invisible != 0,
        .keep_line_ends = o.keep_line_ends != 0,
        .casefold = o.casefold != 0,
        .space = (enum dt_space)space,
        .form = (enum dt_normal_form)form,
        .min_chars = o.min_chars,
        .max_chars = o.max_chars,
        .identifier = c->identifier,
        .languages = c->languages,
        .language_score = o.language_score,
        .masks = masks,
        .max_masked = UINT64_MAX,
        .rule_files = o.rules,
        .rule_file_count = (int)o.rule_count,
        .rule_text = o.rule_text,
    };
    return dt_rule_select(&options, c->rules, &c->count, err);
}

int dt_api_cleaner_open(struct dt_api_cleaner **result, const struct dt_api_cleaner_options *given,
                        char *error)
{
    struct dt_error err;
    struct dt_api_cleaner *c = dt_alloc(1, sizeof *c);
    dt_idle_init(&c->scratches, free_scratch);
    locale_t callers = uselocale(dt_c_locale());
    int rc = open_cleaner(c, given, &err);
    uselocale(callers);
    if (rc < 0)
        dt_api_cleaner_close(c);
    *result = rc < 0 ? NULL : c;
    return dt_told(rc, &err, error);
}

void dt_api_cleaner_close(struct dt_api_cleaner *c)
{
    if (c == NULL)
        return;
    dt_rule_release(c->rules, c->count);
    dt_classifier_free(c->identifier);
    dt_idle_release(&c->scratches);
    free(c->languages);
    free(c);
}

/* --- a document ------------------------------------------------------------------------------- */

/* The rule that drops the document; NULL if it stays. */
static const struct dt_rule *apply_rules(const struct dt_api_cleaner *c, struct dt_document *d,
                                         struct dt_rule_scratch *scratch, double *value)
{
    struct dt_finding finding;
    dt_rule_start(scratch);
    for (int i = 0; i < c->count; i++) {
        if (!dt_rule_apply(&c->rules[i], d, scratch, &finding)) {
            *value = finding.value;
            return &c->rules[i];
        }
    }
    *value = 0;
    return NULL;
}

/* Adds a string of the caller, which rules take for UTF-8. */
static int add_string(const char *name, const char *text, size_t size, struct dt_buffer *to,
                      struct dt_error *err)
{
    if (dt_utf8_valid_prefix(text, size) != size)
        return dt_fail(err, DT_EINVALID, "%s of a document is not UTF-8", name);
    dt_buffer_append(to, text, size);
    return 0;
}

/* Without the blanks around it, since rules add members before its last byte; whether the others
 * are JSON is not looked at. */
static int add_meta(const char *meta, struct dt_buffer *to, struct dt_error *err)
{
    static const char blanks[] = " \t\r\n";
    meta += strspn(meta, blanks);
    size_t size = strlen(meta);
    while (size > 0 && strchr(blanks, meta[size - 1]))
        size--;
    if (size > 0 && (meta[0] != '{' || meta[size - 1] != '}'))
        return dt_fail(err, DT_EINVALID, "meta of a document is not a JSON object");
    return add_string("meta", meta, size, to, err);
}

int dt_api_cleaner_apply(struct dt_api_cleaner *c, const char *text, size_t size, const char *id,
                         const char *meta, struct dt_api_cleaned *cleaned, char *error)
{
    struct dt_error err;
    struct dt_document d = DT_DOCUMENT_EMPTY;
    *cleaned = (struct dt_api_cleaned){0};
    id = id ? id : "";
    int rc = add_string("the id", id, strlen(id), &d.id, &err);
    if (rc == 0)
        rc = add_meta(meta ? meta : "", &d.meta, &err);
    if (rc < 0) {
        dt_document_release(&d);
        return dt_told(rc, &err, error);
    }
    dt_buffer_append(&d.text, text, size);
    struct scratch *s = (struct scratch *)dt_idle_take(&c->scratches, 0);
    if (s == NULL)
        s = dt_alloc(1, sizeof *s);
    locale_t callers = uselocale(dt_c_locale());
    const struct dt_rule *rule = apply_rules(c, &d, &s->rules, &cleaned->value);
    uselocale(callers);
    dt_idle_put(&c->scratches, &s->item, 0);
    cleaned->rule = rule ? rule->name : NULL;
    cleaned->text_size = d.text.size;
    cleaned->meta_size = d.meta.size;
    cleaned->text = d.text.data;
    cleaned->meta = d.meta.data;
    dt_buffer_release(&d.id);
    return 0;
}

void dt_api_cleaned_release(struct dt_api_cleaned *cleaned)
{
    free(cleaned->text);
    free(cleaned->meta);
    *cleaned = (struct dt_api_cleaned){0};
}
