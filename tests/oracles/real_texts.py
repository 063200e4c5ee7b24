# SPDX-License-Identifier: MIT
"""The UTF-8 texts below folders as JSON Lines, in pieces of 64 KB at most that end with
a line where one ends: the files by name, unpacked where they are gzip, until BYTES are
written. Pieces that came before are left out.

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
