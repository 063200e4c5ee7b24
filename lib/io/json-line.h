/* SPDX-License-Identifier: MIT */
/*
 * The fast way to read a document from a line of JSON: one pass, no objects
 * built, and "meta" taken over byte for byte.
 *
 * It knows the usual line only. Whatever is unusual (an escape in a member's
 * name, a member that comes twice, both "meta" and members that belong into
 * it) or wrong is left to the general parser, which also finds the error.
 */
#ifndef DT_IO_JSON_LINE_H
#define DT_IO_JSON_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "io/document.h"

/* Fills doc from line, which must be followed by a 0 byte; field names the
 * member that holds the text. doc->id stays as it is where the line names
 * none. False if the line is left to the general parser; doc's text and meta
 * then hold anything. */
bool dt_json_line_read(const char *line, size_t size, const char *field, struct dt_document *doc);

#endif
