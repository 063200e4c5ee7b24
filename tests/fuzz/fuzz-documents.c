/* SPDX-License-Identifier: MIT */
/* Documents in every format: the first byte chooses, the others are the file, which may
 * be gzip or zstd data. What was read is written, and must be read again as the same. */
#include <string.h>

#include "fuzz.h"
#include "io/document.h"
#include "io/json-line.h"
#include "text/utf8.h"

static void check_again(const struct dt_document *doc)
{
    struct dt_document again = DT_DOCUMENT_EMPTY;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    struct dt_stream_mark mark;
    struct dt_error err;
    dt_document_to_json(doc, &line);
    line.data[--line.size] = '\0';
    if (dt_json_line_read(line.data, line.size, "text", &again, &mark, &err) < 0)
        abort();
    if (again.text.size != doc->text.size ||
        (doc->text.size && memcmp(again.text.data, doc->text.data, doc->text.size) != 0))
        abort();
    dt_document_release(&again);
    dt_buffer_release(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32];
    char *const paths[] = {path};
    struct dt_documents *docs = NULL;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_error err;
    if (size == 0)
        return 0;
    struct dt_documents_options options = {.format = (enum dt_document_format)(data[0] % 6),
                                           .field = data[0] & 8 ? "a.b" : NULL,
                                           .bad_lines = {.skip = data[0] & 16, .most = 3},
                                           .partial = data[0] & 32};
    if (options.format == DT_FROM_SEPARATOR)
        options.separator = "--";
    int fd = fuzz_file(data + 1, size - 1, path);
    int rc = dt_documents_open(&docs, paths, 1, &options, &err);
    while (rc >= 0 && (rc = dt_documents_next(docs, &doc, &err)) > 0)
        check_again(&doc);
    dt_document_release(&doc);
    dt_documents_close(docs);
    close(fd);
    return 0;
}
