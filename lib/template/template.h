/* SPDX-License-Identifier: MIT */
/*
 * Templates in the subset of Jinja that chat templates use, rendered as transformers renders them
 * (trim_blocks and lstrip_blocks, loop controls, an immutable sandbox, json.dumps without
 * ensure_ascii): the same bytes, or an error that names what is not supported.
 *
 *     struct dt_template *t;
 *     DT_TRY(dt_template_parse(&t, text, size, "chat_template.jinja", err));
 *     struct json_object *context = {"messages": [...], "add_generation_prompt": true, ...};
 *     int rc = dt_template_render(t, context, &how, &out, NULL, err);
 *     dt_template_free(t);
 *
 * A template is a program of a stranger: it reads nothing but its context, and its steps, the bytes
 * and items that they read, its depth and its memory are bounded. Source: the documentation of
 * Jinja 3.1 (jinja.palletsprojects.com) and of transformers' chat templates.
 */
#ifndef DT_TEMPLATE_TEMPLATE_H
#define DT_TEMPLATE_TEMPLATE_H

#include <stddef.h>
#include <time.h>

#include "base/buffer.h"
#include "base/error.h"
#include "json/json.h"

struct dt_template;

/* Byte ranges of a rendered text, in order: what {% generation %} blocks wrote. */
struct dt_template_spans {
    struct dt_template_span {
        size_t begin, end;
    } * items;
    size_t count, capacity;
};

enum dt_template_kind {
    DT_TEMPLATE_CHAT,
    DT_TEMPLATE_TASK /* of lm-evaluation-harness: white space stays as it is written, what is
                        undefined is an error, tojson is Jinja's own, and there is the filter
                        regex_replace */
};

/* subject: names the template in errors, as in "SUBJECT, line 3: ..."; copied. */
int dt_template_parse(struct dt_template **t, const char *text, size_t size, const char *subject,
                      struct dt_error *err) DT_MUST_CHECK;
int dt_template_parse_as(struct dt_template **t, enum dt_template_kind kind, const char *text,
                         size_t size, const char *subject, struct dt_error *err) DT_MUST_CHECK;

/* Appends the text to *out. context: an object, in UTF-8, whose members are the variables. now: the
 * time of strftime_now(), in the local time zone. spans: may be NULL; release items with free().
 * After a failure *out and *spans have what was written before it. Threads may share a template. */
int dt_template_render(const struct dt_template *t, struct json_object *context, time_t now,
                       struct dt_buffer *out, struct dt_template_spans *spans,
                       struct dt_error *err) DT_MUST_CHECK;

/* Whether the template has {% generation %} blocks. */
bool dt_template_marks_generation(const struct dt_template *t);

void dt_template_free(struct dt_template *t); /* NULL is fine */

#endif
