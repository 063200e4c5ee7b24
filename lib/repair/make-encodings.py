#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes lib/repair/mojibake-encodings.c: the upper halves of the encodings that UTF-8 is taken for.

Bytes that an encoding of Windows leaves undefined are the C1 controls of Latin-1, as browsers read
them (the WHATWG Encoding Standard).
"""
ENCODINGS = ["latin-1", "cp1252", "cp1251", "cp1250", "cp1253", "cp1254", "cp1257", "iso8859-2", "mac-roman",
             "cp437"]


def upper_half(name):
    for byte in range(0x80, 0x100):
        try:
            yield ord(bytes([byte]).decode(name))
        except UnicodeDecodeError:
            yield byte


print("""/* SPDX-License-Identifier: MIT */
/* Written by lib/repair/make-encodings.py. */
#include "repair/mojibake-internal.h"

/* clang-format off */
const uint16_t dt_mojibake_encodings[DT_MOJIBAKE_ENCODINGS][128] = {""")
for name in ENCODINGS:
    codes = ["0x%04x" % code for code in upper_half(name)]
    print("    { /* %s */" % name)
    for i in range(0, 128, 12):
        print("        " + ", ".join(codes[i : i + 12]) + ",")
    print("    },")
print("};")
