#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the encoding of a text by dt and by other tokenizers, side by side.

    share/bench/tokenize-vs-peers.py
    share/bench/tokenize-vs-peers.py --ranks gpt2.tiktoken --pattern gpt2 \\
        --vocabulary gpt2.vocab.json --merges gpt2.merges.txt english.txt

The text is cut into documents of 1 MB; each tool has one thread and takes all of
them, several times; the fastest pass in processor time counts, so that other work
on the machine matters little. Ids are compared. Without operands, GPT-2's tokenizer
and WikiText-2 are read from the folder $TESTDATA. Needs dt-bench and dt-tokenize on
PATH or in build/bin, and of tiktoken, tokenizers and gigatoken those that are to be
compared:

    python3 -m venv venv && venv/bin/pip install tiktoken tokenizers gigatoken
    venv/bin/python share/bench/tokenize-vs-peers.py ...
"""
import argparse, base64, json, os, subprocess, sys, tempfile, time

# Where dt's programs are built, if PATH does not have them.
os.environ["PATH"] += os.pathsep + os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                "../../build/bin")
os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

END = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
WORD, FOLDED = r"[^\r\n\p{L}\p{N}]?", "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
CAPITAL, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PATTERNS = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
              r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "o200k": WORD + CAPITAL + "*" + SMALL + "+" + FOLDED + "?|" + WORD + CAPITAL + "+" + SMALL
             + "*" + FOLDED + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + END,
}


def timed(encode, documents, passes):
    best, ids = None, None
    for _ in range(passes):
        start = time.process_time()
        ids = [encode(d) for d in documents]
        spent = time.process_time() - start
        best = spent if best is None else min(best, spent)
    return best, ids


def peers(a):
    try:
        import tiktoken
        with open(a.ranks) as f:
            ranks = {base64.b64decode(x): int(y) for x, y in (line.split() for line in f)}
        e = tiktoken.Encoding("x", pat_str=PATTERNS[a.pattern], mergeable_ranks=ranks, special_tokens={})
        yield "tiktoken", e.encode_ordinary, 2
    except ImportError:
        print("tiktoken is not installed", file=sys.stderr)
    try:
        from tokenizers import Tokenizer, models, pre_tokenizers
        if a.vocabulary:
            t = Tokenizer(models.BPE.from_file(a.vocabulary, a.merges))
            t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            yield "tokenizers", lambda d: t.encode(d).ids, 1
    except ImportError:
        print("tokenizers is not installed", file=sys.stderr)
    try:
        import gigatoken
        if a.vocabulary:
            g = gigatoken.Tokenizer(t)
            yield "gigatoken", lambda d: g.encode(d), 5
    except Exception as e: # a peer that cannot load the file is left out by name
        print(f"gigatoken: {e}", file=sys.stderr)


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("text", nargs="?")
    p.add_argument("--ranks")
    p.add_argument("--pattern", choices=PATTERNS)
    p.add_argument("--vocabulary")
    p.add_argument("--merges")
    a = p.parse_args()
    data = os.environ.get("TESTDATA")
    if data and not any(vars(a).values()):
        gpt2 = ["--ranks", "gpt2.tiktoken", "--vocabulary", "gpt2.vocab.json", "--merges",
                "gpt2.merges.txt", "wikitext2.test.txt"]
        return p.parse_args(["--pattern", "gpt2"] + [
            word if word[0] == "-" else os.path.join(data, word) for word in gpt2])
    if not (a.text and a.ranks and a.pattern):
        p.error("give a text, --ranks and --pattern, or set TESTDATA to a folder that has GPT-2's "
                "files and wikitext2.test.txt")
    return a


def main():
    a = arguments()
    with open(a.text, newline="") as f:
        text = f.read()
    size = len(text.encode())
    documents = [text[i:i + 1000000] for i in range(0, len(text), 1000000)]
    tokenizer = a.vocabulary or a.ranks
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        for d in documents:
            f.write(json.dumps({"text": d}) + "\n")
        f.flush()
        cut = ["-t", tokenizer, "--pattern", a.pattern]
        mine = subprocess.run(["dt-tokenize", *cut, "--frame", "none", "--ids", f.name],
                              check=True, capture_output=True, text=True).stdout.splitlines()
    out = json.loads(subprocess.run(["dt-bench", "tokenize", *cut, "--json", a.text],
                                    check=True, capture_output=True, text=True).stdout)
    speed = out["mb_per_core_second"]
    print(f"{'dt':12} {speed:8.1f} MB/s")
    for name, encode, passes in peers(a):
        seconds, ids = timed(encode, documents, passes)
        equal = all(list(map(int, line.split())) == list(map(int, x)) for line, x in zip(mine, ids))
        rate = size / seconds * 1e-6
        print(f"{name:12} {rate:8.1f} MB/s, dt is {speed / rate:.2f} times as fast, "
              f"ids {'equal' if equal else 'DIFFER'}")


if __name__ == "__main__":
    main()
