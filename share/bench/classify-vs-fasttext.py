#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Classifiers of texts, trained by dt-classify and by fastText in turn: accuracy on other texts, and seconds.

    share/bench/classify-vs-fasttext.py [--rounds N] [--seeds N] [--word-ngrams N] [DOCUMENTS.jsonl]

DOCUMENTS have a label each; they are shuffled, since fastText learns in the order of its file, and every
fifth is kept for the test. Without them the lines of $TESTDATA's
WikiText, fairy tales and Shakespeare are told apart. Options are fastText's defaults on both sides, one
thread learns, and seconds are processor time of the training process, with reading the texts and writing
the model. Accuracies of dt are those of several seeds; fastText's, with one thread, has one.

    python3 -m venv venv
    venv/bin/pip install fasttext-numpy2-wheel
    venv/bin/python share/bench/classify-vs-fasttext.py
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

TRAIN = """
import sys
import fasttext
fasttext.train_supervised(sys.argv[1], wordNgrams=int(sys.argv[3]), thread=1, verbose=0).save_model(sys.argv[2])
"""


def documents(path):
    """Pairs of a text on one line and its label."""
    if path:
        with open(path, encoding="utf-8") as f:
            for line in f:
                document = json.loads(line)
                yield " ".join(document["text"].split()), str(document["label"])
        return
    for name in ("wikitext2.test", "wikitext2.valid", "grimm", "tinyshakespeare"):
        with open(f"{os.environ['TESTDATA']}/{name}.txt", encoding="utf-8") as f:
            lines = [line.strip() for line in f if len(line) > 40]
        for i in range(0, len(lines), 2):
            yield " ".join(lines[i:i + 2]), name.split(".", maxsplit=1)[0]


def write(work, every):
    files = {name: open(f"{work}/{name}", "w", encoding="utf-8")
             for name in ("train.jsonl", "test.jsonl", "train.txt", "test.txt")}
    every = list(every)
    random.Random(1).shuffle(every)
    for i, (text, label) in enumerate(every):
        part = "test" if i % 5 == 4 else "train"
        print(json.dumps({"text": text, "label": label}), file=files[part + ".jsonl"])
        print(f"__label__{label} {text}", file=files[part + ".txt"])
    for f in files.values():
        f.close()


def accuracy(work, model):
    """By dt-classify, whose answers are fastText's."""
    out = subprocess.run(["dt-classify", "test", "-q", "--json", f"{work}/{model}", f"{work}/test.jsonl"],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)["accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("documents", nargs="?", metavar="DOCUMENTS.jsonl")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--word-ngrams", type=int, default=1)
    args = parser.parse_args()
    common.need_programs("dt-classify")
    seconds, found = {"dt": [], "fastText": []}, {"dt": [], "fastText": []}
    with tempfile.TemporaryDirectory() as work:
        write(work, documents(args.documents))
        for i in range(max(args.rounds, args.seeds)):
            used = common.shell_seconds(f"dt-classify train -q -j 1 --seed {i} --word-ngrams {args.word_ngrams} "
                                        f"-o {work}/dt.bin {work}/train.jsonl")
            seconds["dt"] += [used] if i < args.rounds else []
            found["dt"].append(accuracy(work, "dt.bin"))
            if i < args.rounds:
                used = common.processor_seconds([sys.executable, "-c", TRAIN, f"{work}/train.txt",
                                                 f"{work}/fasttext.bin", str(args.word_ngrams)])
                seconds["fastText"].append(used - common.processor_seconds(
                    [sys.executable, "-c", "import fasttext"]))
                found["fastText"].append(accuracy(work, "fasttext.bin"))
    for name, used in seconds.items():
        print(f"{name:10} accuracy {min(found[name]):.4f} to {max(found[name]):.4f}, "
              f"{statistics.median(used):.2f} s")


if __name__ == "__main__":
    main()
