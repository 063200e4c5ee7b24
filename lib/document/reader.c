/* SPDX-License-Identifier: MIT */
#include "document/reader.h"

#include <stdlib.h>
#include <string.h>

#include "document/document-internal.h"

#define MOST 24 /* formats, those that programs register included */

/* Of enum dt_document_format, then those that were registered. */
static const struct dt_document_reader *readers[MOST] = {
    [DT_DOCUMENT_FORMAT_TEXT] = &dt_document_reader_text,
    [DT_DOCUMENT_FORMAT_LINES] = &dt_document_reader_lines,
    [DT_DOCUMENT_FORMAT_SEPARATOR] = &dt_document_reader_separator,
    [DT_DOCUMENT_FORMAT_NUL] = &dt_document_reader_nul,
    [DT_DOCUMENT_FORMAT_JSONL] = &dt_document_reader_jsonl,
    [DT_DOCUMENT_FORMAT_SPLIT] = &dt_document_reader_split,
    [DT_DOCUMENT_FORMAT_CSV] = &dt_document_reader_csv,
    [DT_DOCUMENT_FORMAT_TSV] = &dt_document_reader_tsv,
    [DT_DOCUMENT_FORMAT_JSON] = &dt_document_reader_json,
    [DT_DOCUMENT_FORMAT_PARQUET] = &dt_document_reader_parquet,
    [DT_DOCUMENT_FORMAT_ARROW] = &dt_document_reader_arrow,
};
const char *dt_document_formats[MOST + 1] = {
    [DT_DOCUMENT_FORMAT_AUTO] = "auto",       [DT_DOCUMENT_FORMAT_TEXT] = "text",
    [DT_DOCUMENT_FORMAT_LINES] = "lines",     [DT_DOCUMENT_FORMAT_SEPARATOR] = "sep",
    [DT_DOCUMENT_FORMAT_NUL] = "nul",         [DT_DOCUMENT_FORMAT_JSONL] = "jsonl",
    [DT_DOCUMENT_FORMAT_SPLIT] = "split",     [DT_DOCUMENT_FORMAT_CSV] = "csv",
    [DT_DOCUMENT_FORMAT_TSV] = "tsv",         [DT_DOCUMENT_FORMAT_JSON] = "json",
    [DT_DOCUMENT_FORMAT_PARQUET] = "parquet", [DT_DOCUMENT_FORMAT_ARROW] = "arrow",
};

static int find(const char *name)
{
    int i = DT_DOCUMENT_FORMAT_TEXT;
    while (dt_document_formats[i] && strcmp(dt_document_formats[i], name) != 0)
        i++;
    return i;
}

void dt_document_reader_register(const struct dt_document_reader *reader)
{
    int i = find(reader->name);
    if (i == MOST)
        abort();
    readers[i] = reader;
    dt_document_formats[i] = reader->name;
}

const struct dt_document_reader *dt_document_reader_named(const char *name)
{
    int i = name ? find(name) : MOST;
    return i < MOST ? readers[i] : NULL;
}

const struct dt_document_reader *dt_document_reader_at(int format)
{
    return readers[format];
}
