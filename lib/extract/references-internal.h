/* SPDX-License-Identifier: MIT */
/* The names of character references, which make-reference-names.py writes. Private to lib/extract.
 */
#ifndef DT_EXTRACT_REFERENCES_INTERNAL_H
#define DT_EXTRACT_REFERENCES_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

struct dt_reference_name {
    const char *name;       /* without the semicolon */
    uint32_t first, second; /* its characters; second is 0 if there is one */
    int bare;               /* whether it may lack the semicolon */
};

extern const struct dt_reference_name dt_references_names[]; /* ordered by name */
extern const size_t dt_references_count;

#endif
