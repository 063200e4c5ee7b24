# SPDX-License-Identifier: MIT
"""Writes the UTF-8 texts below directories as JSON Lines, until BYTES are written: files in order
of their names, gzip files decompressed, split at ends of lines into pieces of at most 64 KB,
without duplicates.

  real_texts.py BYTES FOLDER...
"""
import gzip
import hashlib
import json
import os
import sys

PIECE = 64000


def files(folder):
    for directory, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(directory, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def text_of(path):
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
            return f.read().decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError):
        return ""


def pieces(text):
    while len(text) > PIECE:
        end = text.rfind("\n", 0, PIECE) + 1 or PIECE
        yield text[:end]
        text = text[end:]
    if text:
        yield text


def main(most, *folders):
    seen, count, size = set(), 0, 0
    for path in (p for folder in folders for p in files(folder)):
        for piece in pieces(text_of(path)):
            data = piece.encode()
            digest = hashlib.md5(data).digest()
            if digest in seen:
                continue
            if size >= int(most):
                break
            seen.add(digest)
            count, size = count + 1, size + len(data)
            print(json.dumps({"text": piece}, ensure_ascii=False))
    print(f"{count} texts, {size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
