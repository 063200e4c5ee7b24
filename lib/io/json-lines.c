/* SPDX-License-Identifier: MIT */
#include "io/json-lines.h"

#include <stdlib.h>

#include "io/input.h"
#include "json/json.h"

static int take_line(const struct dt_buffer *text, const char *path, long number,
                     dt_json_taker *take, void *context, struct dt_error *err)
{
    struct json_object *line = NULL;
    char *subject = dt_asprintf("%s:%ld", path, number);
    int rc = dt_json_parse(text->data, text->size, subject, &line, err);
    if (rc == 0)
        rc = take(context, line, subject, err);
    json_object_put(line);
    free(subject);
    return rc;
}

static int read_lines(const char *path, bool complete, dt_json_taker *take, void *context,
                      struct dt_error *err)
{
    struct dt_input *in;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    bool whole = true;
    DT_TRY(dt_input_open(&in, path, err));
    int rc = 0;
    for (long number = 1; rc == 0 && whole; number++) {
        rc = dt_input_read_until(in, '\n', &text, &whole, err);
        if (rc == 0 && (complete ? text.size > 0 : whole))
            rc = take_line(&text, path, number, take, context, err);
    }
    dt_buffer_release(&text);
    dt_input_close(in);
    return rc;
}

int dt_json_lines_read(const char *path, dt_json_taker *take, void *context, struct dt_error *err)
{
    return read_lines(path, false, take, context, err);
}

int dt_json_lines_read_complete(const char *path, dt_json_taker *take, void *context,
                                struct dt_error *err)
{
    return read_lines(path, true, take, context, err);
}
