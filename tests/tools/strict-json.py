#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""strict-json.py [--least N] FILE...: whether files are JSON, or JSON Lines, by RFC 8259: no NaN and
no Infinity, which Python takes otherwise. Each must hold N values at least (default 1)."""
import json
import sys


def refuse(word):
    raise ValueError(f"{word} is not JSON")


def parse(text):
    return json.loads(text, parse_constant=refuse)


def check(path, least):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        parse(text)
        count = 1
    except ValueError:
        if "\n" not in text.strip() and "NaN" not in text and "Infinity" not in text:
            raise
        lines = [line for line in text.split("\n") if line]
        for number, line in enumerate(lines, 1):
            try:
                parse(line)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}: {line[:200]}") from None
        count = len(lines)
    if count < least:
        raise ValueError(f"has {count} values")


least, paths = 1, sys.argv[1:]
if paths[0] == "--least":
    least, paths = int(paths[1]), paths[2:]
for path in paths:
    try:
        check(path, least)
    except (ValueError, OSError) as error:
        sys.exit(f"{path}: {error}")
