# SPDX-License-Identifier: MIT
"""fastText's answers, with which dt's reader of its models is compared.

    fasttext_oracle.py golden DIR                 small models of every kind, and their answers
    fasttext_oracle.py check MODEL < DOCUMENTS    compares meta.lang and meta.lang_score, which
                                                  dt-clean --identify wrote, with fastText's: at most 1, and
                                                  of texts with letters

The golden files are tests/language/golden.  `pip install fasttext-wheel 'numpy<2'`.
"""
import json
import os
import struct
import sys

import fasttext

fasttext.FastText.eprint = lambda text: None

SENTENCES = {
    "en": ["the dog runs over the green field", "she reads a book in the old house",
           "we have seen that the water is cold", "a man with a red hat walks to the shop",
           "the children play and the sun shines", "he wrote a letter to his sister"],
    "de": ["der Hund läuft über das grüne Feld", "sie liest ein Buch in dem alten Haus",
           "wir haben gesehen, dass das Wasser kalt ist", "ein Mann mit rotem Hut geht zum Laden",
           "die Kinder spielen und die Sonne scheint", "er schrieb einen Brief an seine Schwester"],
    "ja": ["犬は 緑の 野原を 走る", "彼女は 古い 家で 本を 読む", "水が 冷たいのを 見た",
           "赤い 帽子の 男が 店へ 行く", "子供たちは 遊び 太陽は 輝く", "彼は 妹に 手紙を 書いた"],
}
TEXTS = ["the dog", "der Hund und die Katze", "彼女は 本を", "", " ", "x", "unknown wörds Überall",
         "a\tb\vc\fd\re", "__label__de is a label", "__label__none", "before </s> after das Haus",
         "two  blanks ", "😀 grüne 🏠", "the " * 40]
KINDS = {  # options of fasttext supervised, and of fasttext quantize
    "softmax": (dict(loss="softmax", minn=2, maxn=3, bucket=280), dict(qnorm=True, cutoff=270)),
    "tree": (dict(loss="hs", minn=0, maxn=0, wordNgrams=3, bucket=50), None),
    "each": (dict(loss="ova", minn=1, maxn=2, bucket=30, wordNgrams=2), None),
    "samples": (dict(loss="ns", minn=0, maxn=0), None),
}


def answers(model, path, out):
    for text in TEXTS:
        found = model.f.predict(text + "\n", -1, 0.0, "strict")
        scores = {label.removeprefix("__label__"): float(f"{score:.9g}") for score, label in found}
        line = {"model": os.path.basename(path), "text": text, "scores": scores}
        out.write(json.dumps(line, ensure_ascii=False) + "\n")


def golden(directory):
    text = os.path.join(directory, "training.txt")
    with open(text, "w", encoding="utf-8") as f:
        for k in range(6):
            for language in SENTENCES:
                f.write(f"__label__{language} {SENTENCES[language][k]}\n")
    with open(os.path.join(directory, "answers.jsonl"), "w", encoding="utf-8") as out:
        for kind, (options, quantize) in KINDS.items():
            model = fasttext.train_supervised(text, dim=4, epoch=200, lr=0.8, minCount=1, thread=1,
                                              verbose=0, **options)
            path = os.path.join(directory, kind + ".bin")
            model.save_model(path)
            answers(model, path, out)
            if quantize:
                model.quantize(text, verbose=0, thread=1, **quantize)
                path = os.path.join(directory, kind + ".ftz")
                model.save_model(path)
                answers(model, path, out)
    os.remove(text)


def bits(score):
    """The fp32 number as a whole number: neighbours differ by 1."""
    return struct.unpack("i", struct.pack("f", score))[0]


def check(path):
    model, count, different = fasttext.load_model(path), 0, 0
    for line in sys.stdin:
        document = json.loads(line)
        text, meta = document["text"].replace("\n", " "), document["meta"]
        found = model.f.predict(text + "\n", 1, 0.0, "strict") if any(map(str.isalpha, text)) else []
        (score, label), count = (found or [(0.0, "__label__und")])[0], count + 1
        score = min(score, 1)
        if label != "__label__" + meta["lang"] or abs(bits(score) - bits(meta["lang_score"])) > 4:
            different += 1
            print(label, score, meta, text[:60], file=sys.stderr)
    print(count, "documents,", different, "differ")
    return different > 0 or count == 0


if sys.argv[1] == "golden":
    golden(sys.argv[2])
else:
    sys.exit(check(sys.argv[2]))
