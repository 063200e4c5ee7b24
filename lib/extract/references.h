/* SPDX-License-Identifier: MIT */
/*
 * Character references of HTML, such as &nbsp; and &#8211; (HTML, section 13.2.5.72 ff.).
 *
 *     uint32_t codes[2];
 *     size_t size = dt_references_read(p, (size_t)(end - p), false, codes);
 */
#ifndef DT_EXTRACT_REFERENCES_H
#define DT_EXTRACT_REFERENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The bytes of the reference that begins with the ampersand at text; 0 if none does. codes: its
 * characters; those that it does not have are 0: both of references to controls and noncharacters.
 * In the value of an attribute a name without a semicolon is none before "=", a letter or a digit.
 */
size_t dt_references_read(const char *text, size_t size, bool in_attribute, uint32_t codes[2]);

#endif
