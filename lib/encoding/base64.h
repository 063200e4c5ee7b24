/* SPDX-License-Identifier: MIT */
/* Base64 (RFC 4648) with padding.
 *
 *     if (!dt_base64_decode(text, strlen(text), &bytes))
 *         ... not Base64
 */
#ifndef DT_ENCODING_BASE64_H
#define DT_ENCODING_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Replaces bytes by the decoded text; false if it is invalid, or empty. */
bool dt_base64_decode(const char *text, size_t size, struct dt_buffer *bytes);
/* Appends the Base64 of data. */
void dt_base64_encode(const char *data, size_t size, struct dt_buffer *text);

#endif
