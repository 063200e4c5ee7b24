#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes lib/extract/reference-names.c: the named character references of HTML, from Python's html.entities."""
import html.entities
import textwrap

names = {name[:-1]: value for name, value in html.entities.html5.items() if name.endswith(";")}
bare = {name for name in html.entities.html5 if not name.endswith(";")}
assert all(names[name] == html.entities.html5[name] for name in bare)
assert all(len(value) <= 2 for value in names.values())

rows = " ".join('{"%s",0x%x,0x%x,%d},' % (n, ord(names[n][0]), ord(names[n][1:] or "\0"), n in bare)
                for n in sorted(names))
print(f"""/* SPDX-License-Identifier: MIT */
/* Made by lib/extract/make-reference-names.py: do not edit. */
#include "extract/references-internal.h"

/* clang-format off */

const size_t dt_references_count = {len(names)};

const struct dt_reference_name dt_references_names[] = {{
{textwrap.fill(rows, 98, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)}
}};""")
