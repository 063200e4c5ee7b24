#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Near duplicates in eleven languages: the share of planted pairs that dt-dedup finds, by similarity.

Prints for each language and bin of similarity the pairs, the share found, and the mean of
1 - (1 - s^8)^14 over their similarities s; fails where they differ by more than the tolerance
(default 2 points, and three standard deviations). Texts are random words of each script. The
similarity is computed here, by the definition of dt-rules(5), from the text alone.

    near_duplicates_oracle.py [PAIRS] [TOLERANCE]
"""
import bisect
import collections
import json
import math
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

# Letters of the words, letters per word, and the separator of words.
LANGUAGES = {
    "en": ("abcdefghijklmnoprstuvwy", (2, 8), " "),
    "de": ("abcdefghiklmnoprstuvwzäöüß", (2, 11), " "),
    "fr": ("abcdefghijlmnopqrstuvxyzéèêàçùôî", (2, 9), " "),
    "vi": ("abcdeghiklmnopqrstuvxyàảãáạăâđêôơưệọ", (1, 6), " "),
    "ru": ("абвгдежзийклмнопрстуфхчшыья", (2, 10), " "),
    "ar": ("ابتثجحدرزسشصطعغفقكلمنهوي", (2, 7), " "),
    "hi": ("कखगचजटडतदनपबमयरलवशसहािीुे", (2, 6), " "),
    "ko": ("가나다라마바사아자차카타파하고노도로모보소오조", (1, 4), " "),
    "zh": ("的一是不了在人有我他这中大来上个国到说们为子和你地出道也时年", (1, 3), ""),
    "ja": ("のにはをたがでてとしれさいあるなもへこそアイウエンカキク日本語東京人", (1, 4), ""),
    "th": ("กขคงจชซดตถทธนบปผพมยรลวสหอะาเแโใไ", (2, 6), ""),
}
# Sixths of a word that a character of a script without blanks is: (first, last, sixths).
UNSPACED = [
    (0x0E01, 0x0EFF, 2),
    (0x3005, 0x312F, 3),
    (0x4E00, 0xA4CF, 4),
]
BINS = [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 1.01]


def words(text):
    """The words of a text with their sixths."""
    out, word = [], ""
    for c in unicodedata.normalize("NFD", text.casefold()) + " ":
        if unicodedata.category(c)[0] == "M":
            continue
        part = next((s for a, b, s in UNSPACED if a <= ord(c) <= b), 0)
        if part or c == " ":
            if word:
                out.append((word, 6))
            word = ""
        if part:
            out.append((c, part))
        elif c != " ":
            word += c
    return out


def shingles(text, n=5):
    """Windows that end with each word: the shortest of at least n words."""
    all_words, found, first, sixths = words(text), set(), 0, 0
    for i, (_, s) in enumerate(all_words):
        sixths += s
        while sixths - all_words[first][1] >= 6 * n:
            sixths -= all_words[first][1]
            first += 1
        if sixths >= 6 * n:
            found.add(tuple(w for w, _ in all_words[first : i + 1]))
    return found


def pairs_of(language, count, rng):
    """Texts of 60 to 300 words and copies with up to 16 % of the words changed or moved."""
    letters, (low, high), between = LANGUAGES[language]
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(low, high))) for _ in range(5000)]
    for _ in range(count):
        text = rng.choices(vocabulary, k=rng.randint(60, 300))
        rate, copy = rng.random() ** 2 * 0.16, []
        for word in text:
            draw = rng.random()
            if draw < rate / 3:
                continue
            copy.append(rng.choice(vocabulary) if draw < rate * 2 / 3 else word)
            if rate * 2 / 3 <= draw < rate:
                copy.append(rng.choice(vocabulary))
        yield between.join(text), between.join(copy)


def band_keys(path):
    """The set of (band, key) of each document of a file of signatures of one run."""
    data = open(path, "rb").read()
    (bands,) = struct.unpack_from("<I", data, 12)
    (count,) = struct.unpack_from("<Q", data, 48)
    keys, at = collections.defaultdict(set), 48 + 16 + 8 * count
    for band in range(bands):
        values = struct.unpack_from("<%dQ" % count, data, at)
        documents = struct.unpack_from("<%dI" % count, data, at + 8 * count)
        at += 12 * count
        for key, document in zip(values, documents):
            keys[document].add((band, key))
    return keys


def measure(language, count, directory):
    """A list of (similarity, found) of the pairs."""
    rng = random.Random(language)
    pairs = list(pairs_of(language, count, rng))
    with open(directory + "/pairs.jsonl", "w", encoding="utf-8") as f:
        for pair in pairs:
            for text in pair:
                f.write(json.dumps({"text": text}) + "\n")
    sig = directory + "/pairs.sig"
    subprocess.run(["dt-dedup", "sign", "-q", "-o", sig, directory + "/pairs.jsonl"], check=True)
    keys = band_keys(sig)
    out = []
    for i, (a, b) in enumerate(pairs):
        x, y = shingles(a), shingles(b)
        out.append((len(x & y) / len(x | y), bool(keys[2 * i] & keys[2 * i + 1])))
    return out


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    tolerance = float(sys.argv[2]) if len(sys.argv) > 2 else 0.02
    failed = False
    for language in LANGUAGES:
        with tempfile.TemporaryDirectory() as directory:
            measured = measure(language, count, directory)
        bins = collections.defaultdict(list)
        for similarity, found in measured:
            bins[bisect.bisect(BINS, similarity)].append((similarity, found))
        for i in range(1, len(BINS)):
            if not bins[i]:
                continue
            n = len(bins[i])
            expected = sum(1 - (1 - s**8) ** 14 for s, _ in bins[i]) / n
            found = sum(f for _, f in bins[i]) / n
            noise = 3 * math.sqrt(max(expected * (1 - expected), 1e-3) / n)
            wrong = abs(found - expected) > tolerance + noise
            failed = failed or wrong
            print("%s %.2f-%.2f %5d pairs: found %.3f, expected %.3f%s"
                  % (language, BINS[i - 1], min(BINS[i], 1), n, found, expected,
                     " WRONG" if wrong else ""))
    sys.exit(failed)


if __name__ == "__main__":
    main()
