/* SPDX-License-Identifier: MIT */
/* Writes what rules find in a document as a line of a Dolma attribute file. */
#ifndef DT_CLEAN_ATTRIBUTES_H
#define DT_CLEAN_ATTRIBUTES_H

#include "clean/rule.h"

/* Applies all rules to the document without dropping it and appends
 *
 *     {"id":ID,"attributes":{"dt__RULE":[[0,CHARS,VALUE]],...,"dt__drop":[[0,CHARS,1]]}}
 *
 * with the code points of the text and the value that each rule found; dt__drop is 1
 * where a rule would have dropped the document, else 0. The second rule of a name is dt__RULE-2. */
void dt_attributes_write(const struct dt_rule *rules, int count, struct dt_document *document,
                         struct dt_rule_scratch *scratch, struct dt_buffer *out);

#endif
