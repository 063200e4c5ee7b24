#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Near duplicates in eleven languages: the share of planted pairs that dt-dedup finds, by similarity.

Prints for each language and level of similarity the share found and the mean of 1 - (1 - s^8)^14 over
the similarities s of the pairs; fails where they differ by more than the tolerance (2 points). The
deviation of a share of 20000 pairs, the default, is at most 0.36 points. Texts are random words of each
script. The similarity is computed here, by the definition of dt-rules(5), from the text alone.

    near_duplicates_oracle.py [PAIRS [TOLERANCE [LANGUAGE ...]]]
"""
import json
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
LEVELS = [(0.5, 0.55), (0.6, 0.65), (0.7, 0.75), (0.8, 0.85), (0.9, 0.95)]


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


def shingles(all_words, n=5):
    """Windows that end with each word: the shortest of at least n words."""
    found, first, sixths = set(), 0, 0
    plain = [w for w, _ in all_words]
    for i, (_, s) in enumerate(all_words):
        sixths += s
        while sixths - all_words[first][1] >= 6 * n:
            sixths -= all_words[first][1]
            first += 1
        if sixths >= 6 * n:
            found.add(tuple(plain[first : i + 1]))
    return found


class Pairs:
    """Texts of 40 to 120 words, and copies some of whose words are removed, replaced or preceded by others."""

    def __init__(self, language):
        letters, (low, high), self.between = LANGUAGES[language]
        self.rng = random.Random(language)
        make = lambda: "".join(self.rng.choices(letters, k=self.rng.randint(low, high)))
        # blanks, and scripts without them, end words: those of a text are those of its parts
        self.parts = {word: words(word) for word in {make() for _ in range(5000)}}
        self.vocabulary = sorted(self.parts)
        self.changed_by_edit = 5.0  # shingles; learned from the pairs

    def shingles(self, text):
        return shingles([part for word in text for part in self.parts[word]])

    def copy(self, text, edits):
        out, at = [], set(self.rng.sample(range(len(text)), edits))
        for i, word in enumerate(text):
            kind = self.rng.randrange(3) if i in at else None
            if kind in (1, 2):
                out.append(self.rng.choice(self.vocabulary))
            if kind in (None, 2):
                out.append(word)
        return out

    def draw(self, level):
        """Two texts and their similarity, which is in the level."""
        while True:
            text = self.rng.choices(self.vocabulary, k=self.rng.randint(40, 120))
            ours, want = self.shingles(text), self.rng.uniform(*level)
            edits = round(len(ours) * (1 - want) / (1 + want) / self.changed_by_edit)
            copy = self.copy(text, min(max(edits, 1), len(text)))
            theirs = self.shingles(copy)
            similarity = len(ours & theirs) / len(ours | theirs)
            changed = len(ours) * (1 - similarity) / (1 + similarity) / max(edits, 1)
            self.changed_by_edit += (changed - self.changed_by_edit) / 100
            if level[0] <= similarity < level[1]:
                return self.between.join(text), self.between.join(copy), similarity


def keys_of(path):
    """Of each band the keys of the documents, from a file of signatures of one run."""
    with open(path, "rb") as f:
        data = f.read()
    (bands,) = struct.unpack_from("<I", data, 12)
    (count,) = struct.unpack_from("<Q", data, 48)
    at = 48 + 16 + 8 * count
    for _ in range(bands):
        keys = [0] * count
        values = struct.unpack_from("<%dQ" % count, data, at)
        for key, document in zip(values, struct.unpack_from("<%dI" % count, data, at + 8 * count)):
            keys[document] = key
        at += 12 * count
        yield keys


def measure(pairs, level, count, directory):
    """The share of pairs that is found, and the expected one."""
    expected, found = 0, [False] * count
    with open(directory + "/pairs.jsonl", "w", encoding="utf-8") as f:
        for _ in range(count):
            *texts, similarity = pairs.draw(level)
            expected += 1 - (1 - similarity**8) ** 14
            f.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    sig = directory + "/pairs.sig"
    subprocess.run(["dt-dedup", "sign", "-q", "-o", sig, directory + "/pairs.jsonl"], check=True)
    for keys in keys_of(sig):
        found = [f or keys[2 * i] == keys[2 * i + 1] for i, f in enumerate(found)]
    return sum(found) / count, expected / count


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
    tolerance = float(sys.argv[2]) if len(sys.argv) > 2 else 0.02
    assert 2 * count <= 131072, "one run of signatures"
    failed = False
    for language in sys.argv[3:] or LANGUAGES:
        pairs = Pairs(language)
        for level in LEVELS:
            with tempfile.TemporaryDirectory() as directory:
                found, expected = measure(pairs, level, count, directory)
            wrong = abs(found - expected) > tolerance
            failed = failed or wrong
            print("%s %.2f-%.2f %d pairs: found %.4f, expected %.4f%s"
                  % (language, *level, count, found, expected, " WRONG" if wrong else ""), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
