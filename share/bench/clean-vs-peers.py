#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Quality rules and near duplicates, by dt and by others in turn: processor seconds, and what they keep.

    share/bench/clean-vs-peers.py [--rounds N] [--copies SHARE] [DOCUMENTS.jsonl]

Rules: those of FineWeb, by dt-clean and by the filters of datatrove's example.

Near duplicates: MinHash of sequences of 5 words in 14 bands of 8 rows; by dt-dedup sign, match and
dt-clean --drop; by the four steps of datatrove; by text-dedup's minhash; by rensa's R-MinHash and LSH,
with sequences and clusters made in Python, and, as the row "rensa, no input", its signatures and
queries alone. A copy with one word changed follows every fifth document (--copies 0.2) that has 100
words, so that there is something to find.

All have one thread, and read and write JSON Lines (text-dedup writes Arrow). Seconds are user and system
time of all processes, without those of starting Python and importing the packages; dt's are whole. The
median of the rounds, which alternate. kept: documents; of a document and its copy either may stay.
differ: those that only dt or only the other keeps. copies: pairs of which both stay.

Without DOCUMENTS, the English texts of $TESTDATA are cut into documents, or dt-synth makes some. Needs
dt's programs on PATH or in build/bin, and of datatrove, rensa and text-dedup those that are to be compared:

    python3 -m venv venv
    venv/bin/pip install datatrove spacy nltk fasteners orjson regex 'xxhash<4' rensa
    venv/bin/pip install datasets click click-option-group ftfy scipy rich
    venv/bin/pip install --no-deps text-dedup
    venv/bin/python share/bench/clean-vs-peers.py
"""
import argparse
import importlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

WORDS, BANDS, ROWS = 5, 14, 8
ONE_THREAD = {name: "1" for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                     "ARROW_NUM_THREADS", "POLARS_MAX_THREADS")}

DATATROVE_NEAR = f"""
import sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.dedup import (MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter,
                                      MinhashDedupSignature)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.writers.jsonl import JsonlWriter
from datatrove.utils.hashing import HashConfig
if __name__ == "__main__":
    folder, name, out = sys.argv[1:4]
    config = MinhashConfig(n_grams={WORDS}, num_buckets={BANDS}, hashes_per_bucket={ROWS},
                           hash_config=HashConfig(precision=64))
    read = JsonlReader(folder, glob_pattern=name)
    for tasks, steps in ((1, [read, MinhashDedupSignature(out + "/sig", config)]),
                         ({BANDS}, [MinhashDedupBuckets(out + "/sig", out + "/buckets", config=config)]),
                         (1, [MinhashDedupCluster(out + "/buckets", out + "/drop", config=config)]),
                         (1, [read, MinhashDedupFilter(out + "/drop"), JsonlWriter(out, compression=None)])):
        LocalPipelineExecutor(steps, tasks=tasks, workers=1, skip_completed=False).run()
"""

RENSA = f"""
import json, re, resource, sys
from rensa import RMinHash, RMinHashLSH
def seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
path, out, alone = sys.argv[1:4]
with open(path, encoding="utf-8") as f:
    lines = list(f)
sets = []
for line in lines:
    words = re.findall(r"\\w+", json.loads(line)["text"].lower())
    sets.append([" ".join(words[i:i + {WORDS}]) for i in range(max(1, len(words) - {WORDS - 1}))])
start = seconds()
hashes = RMinHash.from_token_sets(sets, {BANDS * ROWS}, 1)
index = RMinHashLSH(threshold=0.72, num_perm={BANDS * ROWS}, num_bands={BANDS})
index.insert_many(hashes)
similar = index.query_all(hashes)
with open(alone, "w") as f:
    print(seconds() - start, file=f)
first = list(range(len(lines)))
def find(x):
    while first[x] != x:
        first[x] = x = first[first[x]]
    return x
for i, others in enumerate(similar):
    for other in others:
        a, b = sorted((find(i), find(other)))
        first[b] = a
with open(out, "w", encoding="utf-8") as f:
    f.writelines(line for i, line in enumerate(lines) if first[i] == i)
"""

# What each writes, as JSON Lines.
ARROW = """
import sys
from datasets import load_from_disk
load_from_disk(sys.argv[1]).to_json(sys.argv[2], force_ascii=False)
"""


class Rules:
    """FineWeb's."""

    name = "rules"

    def __init__(self, work):
        self.work = work
        self.peers = {"datatrove": self.datatrove} if common.has_package("datatrove") else {}
        self.imports = {"datatrove": "import datatrove.executor, datatrove.pipeline.filters, spacy"}

    def dt(self):
        seconds = common.shell_seconds(f"dt-clean -q -j 1 --rules fineweb --allow-empty -o {self.work}/dt "
                                       f"{self.work}/docs.jsonl")
        return seconds, f"{self.work}/dt"

    def datatrove(self):
        code = importlib.import_module("extract-vs-datatrove").PIPELINE
        seconds = python(code, f"{self.work}/docs.jsonl", f"{self.work}/datatrove", "1", "")
        return seconds, f"{self.work}/datatrove/00000.jsonl"


class NearDuplicates:
    """By MinHash."""

    name = "near duplicates"

    def __init__(self, work):
        self.work, self.alone = work, []
        every = {"datatrove": ("datatrove", self.datatrove), "text-dedup": ("text_dedup", self.text_dedup),
                 "rensa": ("rensa", self.rensa)}
        self.peers = {name: call for name, (module, call) in every.items() if common.has_package(module)}
        self.imports = {"datatrove": "import datatrove.executor, datatrove.pipeline.dedup, spacy",
                        "text-dedup": "import text_dedup.minhash", "rensa": "import rensa, json, re"}

    def dt(self):
        seconds = common.shell_seconds("""
            dt-dedup sign -q -j 1 -o docs.sig docs.jsonl
            dt-dedup match -q -o . docs.sig
            dt-clean -q -j 1 --drop docs.drop -o dt docs.jsonl""", cwd=self.work)
        return seconds, f"{self.work}/dt"

    def datatrove(self):
        code = f"{self.work}/near.py"  # its tasks are processes, which read the file again
        with open(code, "w", encoding="utf-8") as f:
            f.write(DATATROVE_NEAR)
        seconds = common.processor_seconds([sys.executable, code, self.work, "docs.jsonl", f"{self.work}/near"])
        return seconds, f"{self.work}/near/00000.jsonl"

    def text_dedup(self):
        with tempfile.TemporaryDirectory(dir=self.work) as cache:
            seconds = common.processor_seconds(
                [sys.executable, "-m", "text_dedup.minhash", "--path", "json", "--data_files",
                 f"{self.work}/docs.jsonl", "--split", "train", "--cache_dir", cache, "--output",
                 f"{self.work}/arrow", "--column", "text", "--ngram", str(WORDS), "--min_length", "1",
                 "--num_perm", str(BANDS * ROWS), "--b", str(BANDS), "--r", str(ROWS), "--hash_func", "xxh3",
                 "--num_proc", "1"], env={**os.environ, "HF_HOME": cache, "HF_HUB_OFFLINE": "1"})
            python(ARROW, f"{self.work}/arrow", f"{self.work}/text-dedup")
        return seconds, f"{self.work}/text-dedup"

    def rensa(self):
        seconds = python(RENSA, f"{self.work}/docs.jsonl", f"{self.work}/rensa", f"{self.work}/alone")
        with open(f"{self.work}/alone", encoding="utf-8") as f:
            self.alone.append(float(f.read()))
        return seconds, f"{self.work}/rensa"


def python(code, *arguments):
    return common.processor_seconds([sys.executable, "-c", code, *arguments])


def names_of(path):
    """The ids of documents, a copy's as that of its original, with their number."""
    counts = {}
    if os.path.exists(path):  # datatrove writes no file if it keeps nothing
        with open(path, encoding="utf-8") as f:
            for line in f:
                name = json.loads(line)["id"].removesuffix(" copy")
                counts[name] = counts.get(name, 0) + 1
    return counts


def compare(task, rounds, size):
    """Prints a line for each tool."""
    seconds, kept = {}, {}
    for _ in range(rounds):
        for name, call in {"dt": task.dt, **task.peers}.items():
            used, path = call()
            if name != "dt":
                used -= python(task.imports[name])
            seconds.setdefault(name, []).append(used)
            kept[name] = names_of(path)
    if getattr(task, "alone", None):
        seconds["rensa, no input"] = task.alone
    ours = statistics.median(seconds["dt"])
    for name, times in seconds.items():
        used = statistics.median(times)
        line = f"{task.name:16} {name:16} {used:9.3f} {size / used / 1e6:9.2f} {used / ours:8.1f}"
        if name in kept:
            line += (f" {sum(kept[name].values()):8} {len(kept[name].keys() ^ kept['dt'].keys()):7}"
                     f" {sum(n == 2 for n in kept[name].values()):7}")
        print(line, flush=True)


def cut(text, size=2000):
    """Documents that end at a blank line."""
    document = ""
    for paragraph in text.split("\n\n"):
        document += paragraph + "\n\n"
        if len(document) >= size:
            yield document
            document = ""


def texts(path, work):
    """Of the documents of JSON Lines, of $TESTDATA, or of dt-synth."""
    folder = os.environ.get("TESTDATA")
    if path is None and folder:
        found = []
        for name in ("grimm", "tinyshakespeare", "wikitext2.test", "wikitext2.valid"):
            with open(f"{folder}/{name}.txt", encoding="utf-8") as f:
                found += cut(f.read().replace("\n \n", "\n\n"))
        return found
    if path is None:
        path = f"{work}/made.jsonl"
        subprocess.run(["dt-synth", "-n", "5000", "-o", path], check=True)
    with open(path, encoding="utf-8") as f:
        return [json.loads(line)["text"] for line in f]


def write_documents(every, share, work):
    """Texts with their copies; returns the number of documents, and the bytes of text."""
    rng, count, size = random.Random(1), 0, 0
    with open(f"{work}/docs.jsonl", "w", encoding="utf-8") as f:
        for i, text in enumerate(every):
            spans = [m.span() for m in re.finditer(r"\w+", text)]
            documents = [(str(i), text)]
            if len(spans) >= 100 and rng.random() < share:
                a, b = rng.choice(spans)
                documents.append((f"{i} copy", text[:a] + "otherwise" + text[b:]))
            for name, one in documents:
                count += 1
                size += len(one.encode())
                f.write(json.dumps({"id": name, "text": one}, ensure_ascii=False) + "\n")
    return count, size


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("documents", nargs="?", metavar="DOCUMENTS.jsonl")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--copies", type=float, default=0.2)
    args = parser.parse_args()
    common.need_programs("dt-clean", "dt-dedup", "dt-synth")
    os.environ.update(ONE_THREAD)
    with tempfile.TemporaryDirectory() as work:
        count, size = write_documents(texts(args.documents, work), args.copies, work)
        print(f"{size / 1e6:.1f} MB of text in {count} documents")
        print(f"{'task':16} {'tool':16} {'cpu s':>9} {'MB/s':>9} {'times dt':>8} {'kept':>8} {'differ':>7} {'copies':>7}")
        for task in (Rules(work), NearDuplicates(work)):
            compare(task, args.rounds, size)


if __name__ == "__main__":
    main()
