# SPDX-License-Identifier: MIT
"""Matches of random regular expressions in random texts, by the Oniguruma of `tokenizers`. Writes JSON
Lines: the expression, the text, and start and end in bytes of each match that is not empty.

  regex_oracle.py SEED COUNT
"""
import json
import random
import sys

from tokenizers import Regex, pre_tokenizers

from tokenizers_oracle import pools, random_text

ATOMS = [r"\p{L}", r"\p{N}", r"\s", r"\S", r"\w", r"\W", r"\d", ".", "e", "a", " ", "'s", "[a-m]", r"[^a-m\s]",
         r"[\p{L}&&[^e]]", r"[ \n]", r"\n", "1", ",", r"\p{P}", r"[\p{Ll}\p{Lo}\p{M}]", r"\P{L}", r"\p{^N}",
         "(?i:es|T)", "(?i)t", r"[^\S\n]", r"\p{Han}", r"\x20", r"[-\w]", r"[^\w ]", r"\u0065", r"\b", "^", "$", r"\B", "(?=e)",
         "(?!a)", "(?<=t)", "(?<!e )", r"\z", r"\A", r"\Z", "(?<=t|oe)", "(?m:.)"]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,3}", "{2,}", "{,2}", "*?", "+?", "??", "*+", "++", "?+", "{1,2}?",
               "{1,3}+"]


def expression(rng, depth):
    kind = rng.random()
    if depth == 0 or kind < .4:
        return rng.choice(ATOMS)
    if kind < .6:
        return "".join(expression(rng, depth - 1) for _ in range(rng.randint(1, 3)))
    if kind < .75:
        return "(?:" + "|".join(expression(rng, depth - 1) for _ in range(rng.randint(1, 3))) + ")"
    if kind < .83:
        return rng.choice(["(?>", "("]) + expression(rng, depth - 1) + "|" + expression(rng, depth - 1) + ")"
    body = expression(rng, depth - 1)
    return ("(?:" + body + ")" if len(body) > 2 else body) + rng.choice(QUANTIFIERS)


def main(seed, count):
    rng, choices = random.Random(int(seed)), pools()
    while count > 0:
        regex = "|".join(expression(rng, 2) for _ in range(rng.randint(1, 3)))
        text = rng.choice([random_text(rng, choices),
                           "".join(rng.choices("etaoinsr  \n1,2'sESt\u4e2de", k=rng.randint(3, 30)))])
        try:
            split = pre_tokenizers.Split(Regex(regex), "removed", invert=True)
        except Exception:
            continue
        bytes_before = lambda n: len(text[:n].encode())
        matches = [[bytes_before(a), bytes_before(b)] for _, (a, b) in split.pre_tokenize_str(text)]
        print(json.dumps({"regex": regex, "text": text, "matches": matches}))
        count -= 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
