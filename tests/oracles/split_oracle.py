# SPDX-License-Identifier: MIT
"""Splits random and chosen strings by the regular expressions of published tokenizers, with
Python's module `regex`. Writes JSON Lines: name of the pattern, text, and ends of the pieces in
bytes.

  split_oracle.py SEED COUNT
"""
import json
import random
import sys

import regex

from tokenizers_oracle import pools, random_text

WHITE = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
FOLDED = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORD = r"[^\r\n\p{L}\p{N}]?"
CAPITAL, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PATTERNS = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": FOLDED + "|" + WORD + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + WHITE,
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
              r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "qwen": FOLDED + "|" + WORD + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + WHITE,
    "qwen35": FOLDED + "|" + WORD + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + WHITE,
    "o200k": WORD + CAPITAL + "*" + SMALL + "+" + FOLDED + "?|" + WORD + CAPITAL + "+" + SMALL
             + "*" + FOLDED + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + WHITE,
    "tekken": WORD + CAPITAL + "*" + SMALL + "+|" + WORD + CAPITAL + "+" + SMALL
              + r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + WHITE,
}
CHOSEN = [
    "x\n\t ", "x\n\t y", "  \n  \n  z", "!\n\n  \n", "a\r\n\r\nb", "1234567 89\u0661\u0662\u0663\u0664",
    "I'd've DON'T'S it'\u017f x'llama 's's 3's ''s", "(word) ((word)) \"quote\" 'single' -dash",
    "helloWorld HTTPServer ABCdef iPhone XMLs \u4e2dA\u4e2da A\u4e2dB a\u4e2dB", "//x\n//y\n/*z*/\n/ !\n/!",
    "e\u0301a\u0301 \u0301x \u0301 \u0915\u094d\u0937 A\u0301B\u0301c", "\u01c5a A\u01c5 \u02b0a A\u02b0B",
    "caf\u00e9 \u00c9COLE \u00c9cole l'\u00e9t\u00e9", "\u00a0x \u3000\u3000y \u2003\n\u2003",
    "   leading", "trailing   ", "tab\tword \tword\t word", "\u201cquoted\u201d \u2014 \u2026word",
    "for (i = 0; i < 10; i++) {\n    a[i] = 'b';\n}\n", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \ud55c\uad6d\uc5b4",
]


def pieces(name, text):
    """A pattern that ends in \\s++$ means the end of the text, not of a line."""
    ends, at = [], 0
    for match in regex.compile(PATTERNS[name].replace("$", r"\Z")).finditer(text):
        assert match.start() == at
        at = match.end()
        ends.append(len(text[:at].encode()))
    assert at == len(text)
    return ends


def main(seed, count):
    rng, choices = random.Random(int(seed)), pools()
    long = ["".join(random_text(rng, choices) for _ in range(8)) for _ in range(int(count))]
    for text in CHOSEN + ["word " * 13 + t + " word" * 13 for t in CHOSEN] + long:
        for name in PATTERNS:
            print(json.dumps({"pattern": name, "text": text, "ends": pieces(name, text)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
