/* SPDX-License-Identifier: MIT */
/*
 * Text that was UTF-8, was taken for another encoding, and was made UTF-8 again: "CafÃ©" for
 * "Café", "â€™" for an apostrophe, "Р”Р°" for "Да".
 *
 *     changes = dt_mojibake_repair(text, size, &out);
 *
 * A line is decoded as a whole if all of it is UTF-8 in one of the encodings of ENCODINGS in
 * make-encodings.py, and implausible as it is. In other lines a sequence of characters of
 * Windows-1252 or Latin-1 is decoded if its bytes are well-formed UTF-8 and it is implausible as
 * text, as dt-clean(1) defines; an ambiguous one, if the whole document was mangled. Repeated
 * mangling is undone up to three times. Finally, C1 controls become the characters that
 * Windows-1252 has there.
 */
#ifndef DT_REPAIR_MOJIBAKE_H
#define DT_REPAIR_MOJIBAKE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Replaces out by the repaired text and returns the number of characters repaired; with 0 the
 * content of out is unspecified. text must be valid UTF-8. */
uint64_t dt_mojibake_repair(const char *text, size_t size, struct dt_buffer *out);

#endif
