#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes lib/unicode/tables.c from the Unicode Character Database.

  lib/unicode/make-tables.py DIRECTORY >lib/unicode/tables.c

DIRECTORY holds UnicodeData.txt, CaseFolding.txt, SpecialCasing.txt, CompositionExclusions.txt,
auxiliary/GraphemeBreakProperty.txt and emoji/emoji-data.txt of one version; Debian's package unicode-data installs them in /usr/share/unicode. Tokenizers of another version
have other fingerprints: see dt-tokenizer(5).
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


Facts = collections.namedtuple("Facts", "category combining lower title")


def read_data(path):
    """Facts by code, and the canonical and the compatibility decompositions as UnicodeData.txt
    has them: one step, by code."""
    facts, canonical, compatible, first = [Facts("CN", 0, 0, 0)] * CODES, {}, {}, None
    for line in open(path):
        field = line.rstrip("\n").split(";")
        code = int(field[0], 16)
        if field[1].endswith(", First>"):
            first = code
            continue
        begin = first if field[1].endswith(", Last>") else code
        lower, title = [int(field[i], 16) - code if field[i] else 0 for i in (13, 14)]
        for c in range(begin, code + 1):
            facts[c] = Facts(field[2].upper(), int(field[3]), lower, title)
        if field[5]:
            kind = compatible if field[5][0] == "<" else canonical
            kind[code] = [int(c, 16) for c in field[5].split() if c[0] != "<"]
    return facts, canonical, compatible


def read_folds(path):
    """Full case folding: the mappings of status C and F, by code."""
    rows = [line.split("; ") for line in open(path) if re.match("[0-9A-F]+; [CF];", line)]
    return {int(row[0], 16): [int(c, 16) for c in row[2].split()] for row in rows}


def read_cases(directory, facts):
    """Full mappings to upper and to title case, by code, that are not the one of the record."""
    uppers, titles = {}, {}
    for line in open(os.path.join(directory, "UnicodeData.txt")):
        field = line.split(";")
        uppers[int(field[0], 16)] = [int(field[12] or field[0], 16)]
    for line in open(os.path.join(directory, "SpecialCasing.txt")):
        field = line.split("#")[0].strip().split("; ")
        if len(field) == 4:  # others have a condition
            code = int(field[0], 16)
            titles[code], uppers[code] = [[int(c, 16) for c in field[i].strip(" ;").split()] for i in (2, 3)]
    titles = {c: parts for c, parts in titles.items() if parts != [c + facts[c].title]}
    return {c: parts for c, parts in uppers.items() if parts != [c + facts[c].title]}, titles


def decompose(code, *mappings):
    """The full decomposition of a code by the first mapping that has it, then of the result."""
    for mapping in mappings:
        if code in mapping:
            return [part for c in mapping[code] for part in decompose(c, *mappings)]
    return [code]


def read_exclusions(path):
    text = open(path).read()
    version = re.search(r"CompositionExclusions-([0-9.]+)\.txt", text).group(1)
    return version, {int(m, 16) for m in re.findall(r"^([0-9A-F]+)", text, re.M)}


def compositions_of(facts, canonical, excluded):
    """{(first, second): code} of all canonical compositions but Hangul."""
    return {tuple(parts): code for code, parts in canonical.items()
            if len(parts) == 2 and code not in excluded and facts[code].combining == 0
            and facts[parts[0]].combining == 0}


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


def settled_of(code, facts, canonical, compatible, composed, seconds):
    """1 for NFC plus 2 for NFKC: the code is unchanged in that form whatever precedes it."""
    hangul = 0x1161 <= code <= 0x1175 or 0x11a8 <= code <= 0x11c2
    if facts[code].combining or code in seconds or hangul:
        return 0
    nfc = code in composed or code not in canonical
    nfkc = nfc and decompose(code, canonical) == decompose(code, compatible, canonical)
    return nfc + 2 * nfkc


def records_of(facts, canonical, compatible, folds, compositions):
    """The distinct records, the most frequent first, and the index of each code's record."""
    seconds = {second for _, second in compositions}
    composed = set(compositions.values())
    of = []
    for c in range(CODES):
        fold = folds.get(c, [c])
        of.append((*facts[c], int(c in canonical), int(c in seconds),
                   int(decompose(c, canonical) != decompose(c, compatible, canonical)),
                   settled_of(c, facts, canonical, compatible, composed, seconds),
                   fold[0] - c if len(fold) == 1 else 0, int(len(fold) > 1)))
    records = [record for record, _ in collections.Counter(of).most_common()]
    index = {record: i for i, record in enumerate(records)}
    return records, [index[record] for record in of]


def sequences(name, mapping, pool):
    """A table of {code, offset, length} sorted by code; the code points go to the pool."""
    rows = []
    for code, parts in sorted(mapping.items()):
        rows.append("{0x%x,%d,%d}" % (code, len(pool), len(parts)))
        pool += parts
    table(f"struct dt_unicode_sequence dt_unicode_{name}[]", rows)
    print(f"const unsigned dt_unicode_{name[:-1]}_count = {len(rows)};")


def read_breaks(directory):
    """Ranges [first, last, class] of the classes of grapheme clusters (UAX #29), by code, except
    those of Hangul syllables, which a rule gives."""
    names = {"Prepend": "PREPEND", "Control": "CONTROL", "Extend": "EXTEND", "L": "L", "V": "V",
             "T": "T", "Regional_Indicator": "REGIONAL", "SpacingMark": "SPACING", "ZWJ": "ZWJ",
             "CR": "CR", "LF": "LF", "Extended_Pictographic": "PICTURE"}
    of = {}
    for name in ("auxiliary/GraphemeBreakProperty.txt", "emoji/emoji-data.txt"):
        for line in open(os.path.join(directory, name)):
            m = re.match(r"([0-9A-F]+)(?:\.\.([0-9A-F]+))?\s*;\s*(\w+)", line)
            if m and m.group(3) in names:
                for code in range(int(m.group(1), 16), int(m.group(2) or m.group(1), 16) + 1):
                    of[code] = names[m.group(3)]
    ranges = []
    for code in sorted(of):
        if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == of[code]:
            ranges[-1][1] = code
        else:
            ranges.append([code, code, of[code]])
    return ranges


def main():
    directory = sys.argv[1]
    version, excluded = read_exclusions(os.path.join(directory, "CompositionExclusions.txt"))
    facts, canonical, compatible = read_data(os.path.join(directory, "UnicodeData.txt"))
    folds = read_folds(os.path.join(directory, "CaseFolding.txt"))
    compositions = compositions_of(facts, canonical, excluded)
    records, of = records_of(facts, canonical, compatible, folds, compositions)
    blocks, pool = {}, []
    index = [blocks.setdefault(tuple(of[i:i + BLOCK]), len(blocks)) for i in range(0, CODES, BLOCK)]
    assert len(blocks) <= 256 and records[0][:4] == ("CN", 0, 0, 0)
    rows = sorted(canonical.items())
    position = {code: i for i, (code, _) in enumerate(rows)}
    expansions = {c: decompose(c, compatible, canonical) for c in {**canonical, **compatible}}
    print(HEAD)
    print(f'\nconst char dt_unicode_version[] = "{version}";')
    table("struct dt_unicode_record dt_unicode_records[]",
          ["{DT_CATEGORY_%s,%s}" % (record[0], ",".join(numbers(record[1:])))
           for record in records], ", ")
    table("uint8_t dt_unicode_index[]", numbers(index))
    table("uint16_t dt_unicode_blocks[]", numbers(i for block in blocks for i in block))
    table("struct dt_unicode_decomposition dt_unicode_decompositions[]",
          ["{0x%x,0x%x,0x%x}" % (code, parts[0], (parts + [0])[1]) for code, parts in rows])
    print(f"const unsigned dt_unicode_decomposition_count = {len(rows)};")
    table("uint16_t dt_unicode_compositions[]",
          numbers(position[code] for _, code in sorted(compositions.items())))
    print(f"const unsigned dt_unicode_composition_count = {len(compositions)};")
    sequences("expansions", {c: parts for c, parts in expansions.items()
                             if parts != decompose(c, canonical)}, pool)
    sequences("folds", {c: parts for c, parts in folds.items() if len(parts) > 1}, pool)
    uppers, titles = read_cases(directory, facts)
    sequences("uppers", uppers, pool)
    sequences("titles", titles, pool)
    table("uint32_t dt_unicode_sequence_points[]", numbers(pool))
    breaks = read_breaks(directory)
    table("struct dt_unicode_break_range dt_unicode_breaks[]",
          ["{0x%x,0x%x,DT_UNICODE_BREAK_%s}" % tuple(r) for r in breaks])
    print(f"const unsigned dt_unicode_break_count = {len(breaks)};")


main()
