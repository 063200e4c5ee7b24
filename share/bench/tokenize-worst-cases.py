#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Texts that other tokenizers are slow on, or fail at: seconds of processor time and MB of
memory that dt-tokenize takes for each, in one document without a line end, on one thread.

  tokenize-worst-cases.py [TOKENIZER [MEGABYTES]]

A document of 100 times as many bytes of English comes last: 1 GB for 10 MB, the default.
Without TOKENIZER, dt-vocab makes one from a text of dt-synth. Needs dt's programs on PATH or in build/bin.
"""
import base64
import os
import random
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

CASES = {
    "one letter": "a",
    "one digit": "7",
    "blanks": " ",
    "no blanks": "abcdefghijklmnopqrstuvwxyz",
    "NUL bytes": "\0",
    "CRLF": "\r\n",
    "combining marks": "e\u0301\u0323\u0302",
    "Hangul jamo": "\u1112\u1161\u11ab",
    "emoji sequences": "\U0001f468\u200d\U0001f469\u200d\U0001f467\U0001f44d\U0001f3fd",
    "the long s": "it'\u017f \u017f",
    "right to left": "\u0627\u0644\u0633\u0644\u0627\u0645 \u05e9\u05dc\u05d5\u05dd ",
    "cut UTF-8": b"\xe2\x82\xf0\x9f\x98",
    "words": "the cat sat on the mat, and it's 2024 now. ",
}


def write(path, unit, size):
    unit = unit.encode() if isinstance(unit, str) else unit
    block = unit * (1000000 // len(unit) + 1)
    with open(path, "wb") as f:
        for at in range(0, size, len(block)):
            f.write(block[:size - at])


def random_bytes(size):
    return random.Random(1).randbytes(size)


def measure(tokenizer, path):
    process = subprocess.Popen(["dt-tokenize", "-q", "-j", "1", "-t", tokenizer, "--from", "text",
                                "-o", os.devnull, path])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"dt-tokenize failed on {path}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def show(name, size, tokenizer, path):
    seconds, memory = measure(tokenizer, path)
    print(f"{name:20}{size / 1e6:8.0f} MB{seconds:10.2f} s{size / 1e6 / seconds:8.0f} MB/s"
          f"{memory:8.0f} MB of memory", flush=True)


def main(tokenizer=None, megabytes="10"):
    size = int(megabytes) * 1000000
    common.need_programs("dt-tokenize", "dt-synth", "dt-vocab", "dt-clean")
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = tokenizer or common.synthesize(folder)[1]
        path = os.path.join(folder, "text")
        for name, unit in CASES.items():
            write(path, unit, size)
            show(name, size, tokenizer, path)
        for name, data in (("random bytes", random_bytes(size)),
                           ("Base64", base64.b64encode(random_bytes(size))[:size])):
            with open(path, "wb") as f:
                f.write(data)
            show(name, size, tokenizer, path)
        write(path, CASES["words"], 100 * size)
        show("words", 100 * size, tokenizer, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
