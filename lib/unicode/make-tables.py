#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes lib/unicode/tables.c from the Unicode Character Database.

  lib/unicode/make-tables.py DIRECTORY >lib/unicode/tables.c

DIRECTORY holds UnicodeData.txt and CompositionExclusions.txt of one version, as Debian's
package unicode-data has them in /usr/share/unicode. Another version gives tokenizers other
fingerprints: see dt-tokenizer(5).
"""
import collections
import os
import re
import sys

CODES = 0x110000
BLOCK = 256

HEAD = """/* SPDX-License-Identifier: MIT AND Unicode-DFS-2016 */
/* Made by lib/unicode/make-tables.py from the Unicode Character Database: do not edit.
 * Copyright 1991-2022 Unicode, Inc., https://www.unicode.org/license.txt */
#include "unicode/unicode.h"

/* clang-format off */"""


def read_data(path):
    """Of each code its category, combining class and distance to its lower case; of those that
    have one, the canonical decomposition."""
    facts, decompositions, first = [("CN", 0, 0)] * CODES, {}, None
    for line in open(path):
        field = line.rstrip("\n").split(";")
        code = int(field[0], 16)
        if field[1].endswith(", First>"):
            first = code
            continue
        begin = first if field[1].endswith(", Last>") else code
        lower = int(field[13], 16) - code if field[13] else 0
        for c in range(begin, code + 1):
            facts[c] = (field[2].upper(), int(field[3]), lower)
        if field[5] and field[5][0] != "<":
            decompositions[code] = [int(c, 16) for c in field[5].split()]
    return facts, decompositions


def read_exclusions(path):
    text = open(path).read()
    version = re.search(r"CompositionExclusions-([0-9.]+)\.txt", text).group(1)
    return version, {int(m, 16) for m in re.findall(r"^([0-9A-F]+)", text, re.M)}


def compositions_of(facts, decompositions, excluded):
    """{(first, second): code} for all that canonical composition makes, but Hangul."""
    return {tuple(parts): code for code, parts in decompositions.items()
            if len(parts) == 2 and code not in excluded and facts[code][1] == 0
            and facts[parts[0]][1] == 0}


def table(declaration, items, between=","):
    """A C array, in lines of at most 100 columns."""
    print(f"\nconst {declaration} = {{")
    line = ""
    for item in items:
        if len(line) + len(item) + len(between) > 96:
            print("    " + line.rstrip())
            line = ""
        line += item + between
    print("    " + line.rstrip())
    print("};")


def numbers(values):
    return [str(v) for v in values]


def records_of(facts, decompositions, seconds):
    """The different records, the most frequent first, and each code's place among them."""
    of = [(*facts[c], int(c in decompositions), int(c in seconds)) for c in range(CODES)]
    records = [record for record, _ in collections.Counter(of).most_common()]
    place = {record: i for i, record in enumerate(records)}
    return records, [place[record] for record in of]


def main():
    directory = sys.argv[1]
    version, excluded = read_exclusions(os.path.join(directory, "CompositionExclusions.txt"))
    facts, decompositions = read_data(os.path.join(directory, "UnicodeData.txt"))
    compositions = compositions_of(facts, decompositions, excluded)
    records, of = records_of(facts, decompositions, {second for _, second in compositions})
    blocks = {}
    index = [blocks.setdefault(tuple(of[i:i + BLOCK]), len(blocks)) for i in range(0, CODES, BLOCK)]
    assert len(records) <= 256 and len(blocks) <= 256 and records[0] == ("CN", 0, 0, 0, 0)
    rows = sorted(decompositions.items())
    place = {code: i for i, (code, _) in enumerate(rows)}
    print(HEAD)
    print(f'\nconst char dt_unicode_version[] = "{version}";')
    table("struct dt_unicode_record dt_unicode_records[]",
          ["{DT_CATEGORY_%s, %d, %d, %d, %d}" % record for record in records], ", ")
    table("uint8_t dt_unicode_index[]", numbers(index))
    table("uint8_t dt_unicode_blocks[]", numbers(i for block in blocks for i in block))
    table("struct dt_unicode_decomposition dt_unicode_decompositions[]",
          ["{0x%x,0x%x,0x%x}" % (code, parts[0], (parts + [0])[1]) for code, parts in rows])
    print(f"const unsigned dt_unicode_decomposition_count = {len(rows)};")
    table("uint16_t dt_unicode_compositions[]",
          numbers(place[code] for _, code in sorted(compositions.items())))
    print(f"const unsigned dt_unicode_composition_count = {len(compositions)};")


main()
