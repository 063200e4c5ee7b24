/* SPDX-License-Identifier: MIT */
#include "clean/contamination-report.h"

#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "json/json.h"

int dt_contamination_report_write(const struct dt_contamination *c, struct dt_output *out,
                                  struct dt_error *err)
{
    struct dt_buffer line = DT_BUFFER_EMPTY;
    struct dt_contamination_item item;
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && dt_contamination_item(c, i, &item); i++) {
        if (item.documents == 0)
            continue;
        dt_buffer_clear(&line);
        dt_buffer_add_string(&line, "{\"item\":");
        dt_json_add_string(&line, item.id, strlen(item.id));
        dt_buffer_printf(&line,
                         ",\"sequences\":%" PRIu64 ",\"documents\":%" PRIu64
                         ",\"overlaps\":%" PRIu64 ",\"most\":%" PRIu64 "}\n",
                         item.sequences, item.documents, item.overlaps, item.most);
        rc = dt_output_write(out, line.data, line.size, err);
    }
    dt_buffer_release(&line);
    return rc;
}
