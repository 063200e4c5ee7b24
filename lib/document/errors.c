/* SPDX-License-Identifier: MIT */
#include "document/errors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"

int dt_bad_lines_open(struct dt_bad_lines *b, const struct dt_bad_line_policy *policy,
                      struct dt_error *err)
{
    *b = (struct dt_bad_lines){.policy = *policy, .out = {.fd = -1}};
    if (policy->quarantine == NULL)
        return 0;
    return dt_output_open(&b->out, policy->quarantine, err);
}

/* A line of JSON with position and reason, then the bad line unchanged. */
static int write_pair(struct dt_bad_lines *b, const char *file, uint64_t number, const char *reason,
                      const struct dt_buffer *line, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&text, "{\"file\":");
    dt_json_add_string(&text, file, strlen(file));
    dt_buffer_printf(&text, ",\"line\":%" PRIu64 ",\"reason\":", number);
    dt_json_add_string(&text, reason, strlen(reason));
    dt_buffer_add_string(&text, "}\n");
    dt_buffer_append(&text, line->data, line->size);
    dt_buffer_add_char(&text, '\n');
    int rc = dt_output_write(&b->out, text.data, text.size, err);
    dt_buffer_release(&text);
    return rc;
}

/* Whether one more is skipped; else it names the limit in *err. */
static bool may_skip(const struct dt_bad_lines *b, struct dt_error *err)
{
    struct dt_error reason = *err;
    if (b->policy.skip && b->count + b->files < b->policy.most)
        return true;
    if (b->policy.skip)
        dt_fail(err, DT_EFORMAT, "%s; --max-errors allows %" PRIu64 " bad line%s", reason.text,
                b->policy.most, dt_plural(b->policy.most));
    return false;
}

int dt_bad_lines_take_file(struct dt_bad_lines *b, const char *file, struct dt_error *err)
{
    const struct dt_buffer nothing = {.data = ""};
    struct dt_error reason = *err;
    if (!may_skip(b, err))
        return err->code;
    if (b->files++ == 0)
        b->first_file = dt_strdup(reason.text);
    return b->policy.quarantine ? write_pair(b, file, 0, reason.text, &nothing, err) : 0;
}

int dt_bad_lines_take(struct dt_bad_lines *b, const char *file, uint64_t number,
                      const struct dt_buffer *line, struct dt_error *err)
{
    struct dt_error reason = *err;
    const bool skipped = may_skip(b, err);
    dt_fail_context(err, "%s:%" PRIu64, file, number);
    if (!skipped)
        return err->code;
    b->count++;
    if (b->first == NULL)
        b->first = dt_strdup(err->text);
    return b->policy.quarantine ? write_pair(b, file, number, reason.text, line, err) : 0;
}

int dt_bad_lines_finish(struct dt_bad_lines *b, struct dt_error *err)
{
    return b->out.path ? dt_output_commit(&b->out, err) : 0;
}

void dt_bad_lines_release(struct dt_bad_lines *b)
{
    dt_output_abandon(&b->out);
    free(b->first);
    free(b->first_file);
    b->first = b->first_file = NULL;
}
