/* SPDX-License-Identifier: MIT */
#include "verify/report.h"

#include <stdlib.h>
#include <string.h>

int dt_verify_report_say(struct dt_verify_report *r, char *line, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_buffer_printf(&text, "%s\n", line);
    int rc = dt_output_write(r->out, text.data, text.size, err);
    dt_buffer_release(&text);
    free(line);
    return rc;
}

int dt_verify_report_differ(struct dt_verify_report *r, char *line, struct dt_error *err)
{
    r->differ++;
    return dt_verify_report_say(r, line, err);
}
