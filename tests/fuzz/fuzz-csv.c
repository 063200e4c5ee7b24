/* SPDX-License-Identifier: MIT */
/* Rows of CSV and TSV: the first byte chooses the separator and the limit, the others are the file.
 * What was read is written with quotes, and must be read again as the same. */
#include <string.h>

#include "document/document.h"
#include "fuzz.h"

static void add_quoted(struct dt_buffer *file, const struct dt_buffer *text)
{
    dt_buffer_add_char(file, '"');
    for (size_t i = 0; i < text->size; i++) {
        if (text->data[i] == '"')
            dt_buffer_add_char(file, '"');
        dt_buffer_add_char(file, text->data[i]);
    }
    dt_buffer_add_string(file, "\"\n");
}

/* Reads a file; texts gets each text and a count. */
static int read_texts(const uint8_t *data, size_t size, const struct dt_documents_options *options,
                      struct dt_buffer *texts, struct dt_buffer *quoted)
{
    char path[32];
    char *const paths[] = {path};
    struct dt_documents *docs = NULL;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_error err;
    int fd = fuzz_file(data, size, path);
    int rc = dt_documents_open(&docs, paths, 1, options, &err);
    while (rc >= 0 && (rc = dt_documents_next(docs, &doc, &err)) > 0) {
        if (options->most && doc.text.size > options->most)
            abort();
        dt_buffer_append(texts, doc.text.data, doc.text.size);
        dt_buffer_printf(texts, "|%zu|", doc.text.size);
        if (quoted)
            add_quoted(quoted, &doc.text);
    }
    dt_document_release(&doc);
    dt_documents_close(docs);
    close(fd);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dt_buffer texts = DT_BUFFER_EMPTY, again = DT_BUFFER_EMPTY, quoted = DT_BUFFER_EMPTY;
    if (size == 0)
        return 0;
    struct dt_documents_options options = {.format = data[0] & 1 ? DT_DOCUMENT_FORMAT_TSV
                                                                 : DT_DOCUMENT_FORMAT_CSV,
                                           .most = data[0] & 2 ? 20 : 0,
                                           .bad_lines = {.skip = data[0] & 4, .most = 3}};
    dt_buffer_add_string(&quoted, "text\n");
    read_texts(data + 1, size - 1, &options, &texts, &quoted);
    options = (struct dt_documents_options){.format = options.format};
    if (read_texts((const uint8_t *)quoted.data, quoted.size, &options, &again, NULL) < 0)
        abort();
    if (again.size != texts.size || (texts.size && memcmp(again.data, texts.data, texts.size) != 0))
        abort();
    dt_buffer_release(&texts);
    dt_buffer_release(&again);
    dt_buffer_release(&quoted);
    return 0;
}
