#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the encoding of a text with each of several tokenizer files by dt and by the library of the file.

    share/bench/tokenize-kinds.py TEXT tokenizer.json spiece.model ...

tokenizer.json is compared with tokenizers, .model with sentencepiece. The text is cut into documents of --size
characters; each tool has one thread and takes all of them, in turn, --passes times; the fastest pass in processor time
counts. Ids are compared. Needs dt-bench and dt-tokenize on PATH or in build/bin, and

    python3 -m venv venv && venv/bin/pip install tokenizers sentencepiece
"""
import argparse, json, os, subprocess, tempfile, time

# Where dt's programs are built, if PATH does not have them.
os.environ["PATH"] += os.pathsep + os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/bin")
os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"


def reference(path):
    if path.endswith(".json"):
        from tokenizers import Tokenizer
        t = Tokenizer.from_file(path)
        return "tokenizers", lambda texts: [e.ids for e in t.encode_batch_fast(texts, add_special_tokens=False)]
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_file=path)
    return "sentencepiece", lambda texts: model.encode(texts, num_threads=1)


def compare(path, text, documents, passes):
    name, encode = reference(path)
    size, speed, least = len(text.encode()), 0, None
    for _ in range(passes):
        out = subprocess.run(["dt-bench", "tokenize", "-j", "1", "-t", path, "--json", a.text], check=True,
                             capture_output=True, text=True).stdout
        speed = max(speed, json.loads(out)["mb_per_core_second"])
        start = time.process_time()
        ids = encode(documents)
        spent = time.process_time() - start
        least = spent if least is None else min(least, spent)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        f.writelines(json.dumps({"text": d}) + "\n" for d in documents)
        f.flush()
        special = ["--special"] if name == "tokenizers" else [] # as it does unless told otherwise
        mine = subprocess.run(["dt-tokenize", "-q", "-t", path, "--frame", "none", *special, "--ids", f.name],
                              check=True, capture_output=True, text=True).stdout.splitlines()
    equal = all(list(map(int, line.split())) == theirs for line, theirs in zip(mine, ids))
    rate = size / least * 1e-6
    print(f"{os.path.basename(path):32} dt {speed:7.1f} MB/s, {name} {rate:6.1f} MB/s, {speed / rate:5.1f} times as fast, "
          f"ids {'equal' if equal else 'DIFFER'}", flush=True)


p = argparse.ArgumentParser()
p.add_argument("text")
p.add_argument("tokenizers", nargs="+")
p.add_argument("--size", type=int, default=1000000, help="characters of a document")
p.add_argument("--passes", type=int, default=3)
a = p.parse_args()
with open(a.text, newline="") as f:
    whole = f.read()
for file in a.tokenizers:
    compare(file, whole, [whole[i:i + a.size] for i in range(0, len(whole), a.size)], a.passes)
