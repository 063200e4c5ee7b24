/* SPDX-License-Identifier: MIT */
/* The formats that io reads, shared by its files. */
#ifndef DT_DOCUMENT_DOCUMENT_INTERNAL_H
#define DT_DOCUMENT_DOCUMENT_INTERNAL_H

#include "document/reader.h"

extern const struct dt_document_reader dt_document_reader_text, dt_document_reader_lines,
    dt_document_reader_separator, dt_document_reader_nul, dt_document_reader_split,
    dt_document_reader_jsonl, dt_document_reader_csv, dt_document_reader_tsv,
    dt_document_reader_json, dt_document_reader_parquet, dt_document_reader_arrow;

#endif
