#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the encoding of a text with each of several tokenizer files by dt and by the library of the file.

    share/bench/tokenize-kinds.py [TEXT tokenizer.json spiece.model ...]

tokenizer.json is compared with tokenizers, .model with sentencepiece. The text is cut into documents of --size
characters; each tool has one thread and takes all of them, in turn, --passes times; the fastest pass in processor time
counts. Ids are compared. Without operands, dt-synth makes a text, and dt-vocab a tokenizer from it. Needs dt's
programs on PATH or in build/bin, and

    python3 -m venv venv && venv/bin/pip install tokenizers sentencepiece
"""
import argparse, json, os, subprocess, sys, tempfile, time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

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
    size, speed, least = os.path.getsize(text), 0, None
    for _ in range(passes):
        out = subprocess.run(["dt-bench", "tokenize", "-j", "1", "-t", path, "--json", text], check=True,
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


def main():
    p = argparse.ArgumentParser()
    p.add_argument("text", nargs="?")
    p.add_argument("tokenizers", nargs="*")
    p.add_argument("--size", type=int, default=1000000, help="characters of a document")
    p.add_argument("--passes", type=int, default=3)
    a = p.parse_args()
    if a.text and not a.tokenizers:
        p.error("with a text give tokenizers")
    common.need_programs("dt-bench", "dt-tokenize", "dt-synth", "dt-vocab", "dt-clean")
    with tempfile.TemporaryDirectory() as folder:
        if not a.text:
            a.text, tokenizer = common.synthesize(folder)
            a.tokenizers = [tokenizer]
        kinds = {"tokenizers" if path.endswith(".json") else "sentencepiece" for path in a.tokenizers}
        common.need_packages(**{kind: kind for kind in sorted(kinds)})
        with open(a.text, newline="") as f:
            whole = f.read()
        for path in a.tokenizers:
            compare(path, a.text, [whole[i:i + a.size] for i in range(0, len(whole), a.size)], a.passes)


if __name__ == "__main__":
    main()
