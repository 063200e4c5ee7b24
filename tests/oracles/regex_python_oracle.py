# SPDX-License-Identifier: MIT
"""Matches of random regular expressions in random texts, by Python's module re. Writes JSON Lines: the
expression, the text, start and end in bytes of each group of each match (-1: not in the match), and
re.sub() of the text.

  regex_python_oracle.py SEED COUNT
"""
import json
import random
import re
import sys

ATOMS = [r"\s", r"\S", r"\w", r"\W", r"\d", r"\D", ".", "e", "a", " ", "'s", "[a-m]", r"[^a-m\s]", "[[]", "[]a]",
         r"[^]e]", "[&&a]", r"[ \n]", r"\n", "1", ",", r"\x41", r"\xe9", r"[-\w]", r"[^\w ]", r"\u0065", r"\b", "^",
         "$", r"\B", "(?=e)", "(?!a)", "(?<=t)", "(?<!e )", r"\A", r"\Z", "(?s:.)", "(?i:es|T)", "(?i:k)", "(?i:[g-j])",
         r"-?[0-9.,]{2,}", r"#### (\-?[0-9\.\,]+)", r"\$", "{", "}", "É"]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,3}", "{2,}", "{,2}", "*?", "+?", "??", "*+", "{1,2}?", "{2}?", "{1,3}+"]
PIECES = ["a", "e", "t", "es", "T", "ess", "k", "K", "\u212a", "ſ", "ı", "İ", "é", "É", " ", "  ", "\n", "\t", "\u00a0", "\x1c",
          "1", "12,5", "#### -7.", "$4", "²", "Ⅷ", "_", "'s", "[x]", "]", "{", "}", "&", "-", "中", "ा", ".", ",", "🏫"]
REPLACEMENTS = ["", "<\\g<0>>", "\\\\", "\\n", "x"]


def expression(rng, depth):
    kind = rng.random()
    if depth == 0 or kind < .35:
        return rng.choice(ATOMS)
    if kind < .55:
        return "".join(expression(rng, depth - 1) for _ in range(rng.randint(1, 3)))
    if kind < .85:
        begin = rng.choice(["(?:", "(", "(", "(?P<n%d>" % rng.randint(0, 10**9)])
        return begin + "|".join(expression(rng, depth - 1) for _ in range(rng.randint(1, 3))) + ")"
    body = expression(rng, depth - 1)
    return ("(" + rng.choice(["?:", ""]) + body + ")" if len(body) > 2 else body) + rng.choice(QUANTIFIERS)


def main(seed, count):
    rng = random.Random(int(seed))
    while count > 0:
        regex = rng.choice(["", "", "", "(?s)", "(?i)"]) + "|".join(expression(rng, 2) for _ in range(rng.randint(1, 2)))
        text = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 12)))
        replacement = rng.choice(REPLACEMENTS)
        try:
            compiled = re.compile(regex)
        except re.error:
            continue
        at = [len(text[:i].encode()) for i in range(len(text) + 1)]
        matches = [[at[x] if x >= 0 else -1 for g in range(compiled.groups + 1) for x in m.span(g)]
                   for m in compiled.finditer(text)]
        print(json.dumps({"regex": regex, "text": text, "matches": matches, "replacement": replacement,
                          "replaced": compiled.sub(replacement, text)}))
        count -= 1


main(sys.argv[1], int(sys.argv[2]))
