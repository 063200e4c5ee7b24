/* SPDX-License-Identifier: MIT */
/* One document: released, and written in each format. */
#include "document/document.h"
#include "json/json.h"

const char *const dt_document_outputs[] = {"jsonl", "text", "nul", NULL};

void dt_document_release(struct dt_document *doc)
{
    dt_buffer_release(&doc->id);
    dt_buffer_release(&doc->text);
    dt_buffer_release(&doc->meta);
}

void dt_document_to_json(const struct dt_document *doc, struct dt_buffer *line)
{
    dt_buffer_add_string(line, "{\"id\":");
    dt_json_add_string(line, doc->id.data ? doc->id.data : "", doc->id.size);
    dt_buffer_add_string(line, ",\"text\":");
    dt_json_add_string(line, doc->text.data ? doc->text.data : "", doc->text.size);
    if (doc->meta.size > 0) {
        dt_buffer_add_string(line, ",\"meta\":");
        dt_buffer_append(line, doc->meta.data, doc->meta.size);
    }
    dt_buffer_add_string(line, "}\n");
}

void dt_document_write(enum dt_document_output format, const struct dt_document *doc,
                       struct dt_buffer *out)
{
    if (format == DT_DOCUMENT_OUTPUT_JSONL) {
        dt_document_to_json(doc, out);
        return;
    }
    dt_buffer_append(out, doc->text.data, doc->text.size);
    if (format == DT_DOCUMENT_OUTPUT_NUL)
        dt_buffer_add_char(out, '\0');
    else if (doc->text.size == 0 || doc->text.data[doc->text.size - 1] != '\n')
        dt_buffer_add_char(out, '\n');
}
