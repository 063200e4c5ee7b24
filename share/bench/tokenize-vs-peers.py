#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the encoding of texts by dt and by other tokenizers, side by side.

    share/bench/tokenize-vs-peers.py
    share/bench/tokenize-vs-peers.py --ranks gpt2.tiktoken --pattern gpt2 english.txt german.txt

A row per text and tool: MB/s in a first pass, with empty caches, and in the fastest of
later ones; how many times as fast dt is in each; whether the ids are equal. With one
thread, processor time counts, with --threads N time. Texts are cut into documents of
1 MB. Tools take turns, twice, so that other work on the machine slows all of them.

The vocabulary is a file of ranks, as tiktoken's; --pattern says how it cuts text.
Without operands, GPT-2's ranks and WikiText-2 are read from the folder $TESTDATA; if
that is not set, dt-synth makes a text, and dt-vocab a vocabulary from it. Needs
dt-bench and dt-tokenize on PATH or in build/bin, and of tiktoken, tokenizers and
gigatoken those that are to be compared:

    python3 -m venv venv && venv/bin/pip install tiktoken tokenizers gigatoken
    venv/bin/python share/bench/tokenize-vs-peers.py
"""
import argparse, base64, json, os, subprocess, sys, tempfile, time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

END = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
WORD, FOLDED = r"[^\r\n\p{L}\p{N}]?", "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
CAPITAL, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PATTERNS = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": FOLDED + "|" + WORD + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + END,
    "cl100k": FOLDED + "|" + WORD + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
              r"|\s+\z|\s*[\r\n]|\s+(?!\S)|\s",
    "o200k": WORD + CAPITAL + "*" + SMALL + "+" + FOLDED + "?|" + WORD + CAPITAL + "+" + SMALL
             + "*" + FOLDED + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + END,
}
ROUNDS = 2


def read_ranks(path):
    with open(path) as f:
        return {base64.b64decode(x): int(y) for x, y in (line.split() for line in f if line.strip())}


def merge_of(ranks, token):
    """The two parts that the merges of lower rank leave of a token."""
    parts, limit = [token[i:i + 1] for i in range(len(token))], ranks[token]
    while len(parts) > 2:
        best, at = min((ranks.get(a + b, limit), i) for i, (a, b) in enumerate(zip(parts, parts[1:])))
        if best >= limit:
            return None
        parts[at:at + 2] = [parts[at] + parts[at + 1]]
    return parts


def letters():
    """The characters that stand for bytes in a tokenizer.json."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    return {**{b: chr(b) for b in shown}, **{b: chr(256 + i) for i, b in enumerate(hidden)}}


def hugging_face(ranks, pattern):
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    table = letters()
    spell = lambda token: "".join(table[b] for b in token)
    pairs = [merge_of(ranks, t) for t in sorted(ranks, key=ranks.get) if len(t) > 1]
    t = Tokenizer(models.BPE({spell(x): y for x, y in ranks.items()},
                             [tuple(map(spell, p)) for p in pairs if p], ignore_merges=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERNS[pattern]), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return t


def load_tiktoken(a):
    import tiktoken
    e = tiktoken.Encoding("x", pat_str=PATTERNS[a.pattern], mergeable_ranks=read_ranks(a.ranks),
                          special_tokens={})
    if a.threads > 1:
        return lambda: lambda docs: e.encode_ordinary_batch(docs, num_threads=a.threads)
    return lambda: lambda docs: [e.encode_ordinary(d) for d in docs]


def load_tokenizers(a):
    from tokenizers import Tokenizer
    t = hugging_face(read_ranks(a.ranks), a.pattern) if a.pattern else Tokenizer.from_file(a.ranks)
    return lambda: lambda docs: [e.ids for e in t.encode_batch_fast(docs, add_special_tokens=False)]


def load_gigatoken(a):
    import gigatoken
    def fresh():
        g = (gigatoken.Tokenizer.from_tiktoken(a.ranks, "cl100k" if a.pattern == "llama3" else a.pattern)
             if a.pattern else gigatoken.Tokenizer(a.ranks))
        if a.threads > 1:
            return lambda docs: g.encode_batch(docs, parallel=True)
        return lambda docs: [g.encode(d) for d in docs]
    return fresh


PEERS = {"gigatoken": (load_gigatoken, 5), "tiktoken": (load_tiktoken, 1),
         "tokenizers": (load_tokenizers, 1)}


def peers(a):
    for name, (load, passes) in PEERS.items():
        try:
            yield name, load(a), passes
        except ImportError:
            print(f"{name} is not installed", file=sys.stderr)
        except KeyError:
            print(f"{name} does not read {a.ranks}", file=sys.stderr)


def time_peer(a, fresh, passes, documents):
    """Seconds of the first pass, and of the fastest of the others; ids."""
    try:
        encode, seconds = fresh(), []
    except BaseException as e: # a panic of Rust is not an Exception
        return None, None, f"cannot load it: {str(e).splitlines()[0]}"
    clock = time.perf_counter if a.threads > 1 else time.process_time
    for _ in range(1 + passes):
        start = clock()
        ids = encode(documents)
        seconds.append(clock() - start)
    return seconds[0], min(seconds[1:]), ids


def time_dt(a, path, size):
    """The same of dt, without ids."""
    out = json.loads(subprocess.run(["dt-bench", "tokenize", *cut(a), "-j", str(a.threads), "--seconds",
                                     "0.5", "--json", path], check=True, capture_output=True,
                                    text=True).stdout)
    kind = "" if a.threads > 1 else "core_"
    return size / 1e6 / out[f"first_mb_per_{kind}second"], size / 1e6 / out[f"mb_per_{kind}second"]


def cut(a):
    return ["-t", a.ranks, *(["--pattern", a.pattern] if a.pattern else [])]


def ids_of_dt(a, documents):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        for d in documents:
            f.write(json.dumps({"text": d}) + "\n")
        f.flush()
        lines = subprocess.run(["dt-tokenize", *cut(a), "--frame", "none", "--ids", f.name],
                               check=True, capture_output=True, text=True).stdout.splitlines()
    return [list(map(int, line.split())) for line in lines]


def compare(a, path):
    with open(path, newline="") as f:
        text = f.read()
    size = len(text.encode())
    documents = [text[i:i + 1000000] for i in range(0, len(text), 1000000)]
    times, equal, mine = {"dt": []}, {}, ids_of_dt(a, documents)
    tools = list(peers(a))
    for _ in range(ROUNDS):
        times["dt"].append(time_dt(a, path, size))
        for name, fresh, passes in tools:
            first, later, ids = time_peer(a, fresh, passes, documents)
            if first is None:
                equal[name] = ids
                continue
            times.setdefault(name, []).append((first, later))
            equal[name] = "equal" if all(list(map(int, x)) == y for x, y in zip(ids, mine)) else "DIFFER"
    best = {name: [size / 1e6 / min(t[i] for t in seen) for i in (0, 1)] for name, seen in times.items()}
    for name in ("dt", *equal):
        if name not in best:
            print(f"{os.path.basename(path):20} {name:10} {equal[name]}", flush=True)
            continue
        first, later = best[name]
        ratio = "" if name == "dt" else (f"{best['dt'][0] / first:7.2f} {best['dt'][1] / later:7.2f}"
                                         f"  ids {equal[name]}")
        print(f"{os.path.basename(path):20} {name:10} {first:7.1f} {later:7.1f} {ratio}", flush=True)


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("texts", nargs="*")
    p.add_argument("--ranks")
    p.add_argument("--pattern", choices=PATTERNS)
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    if a.ranks and not (a.pattern and a.texts):
        p.error("with --ranks give --pattern and texts")
    if a.texts and not a.ranks:
        p.error("with texts give --ranks and --pattern")
    return a


def choose_defaults(a, folder):
    data = os.environ.get("TESTDATA")
    if data:
        a.ranks, a.pattern = os.path.join(data, "gpt2.tiktoken"), "gpt2"
        a.texts = [os.path.join(data, "wikitext2.test.txt")]
        return
    text, a.ranks = common.synthesize(folder)
    a.texts = [text]


def main():
    a = arguments()
    common.need_programs("dt-bench", "dt-tokenize", "dt-synth", "dt-vocab", "dt-clean")
    os.environ["RAYON_NUM_THREADS"] = str(a.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if a.threads > 1 else "false"
    with tempfile.TemporaryDirectory() as folder:
        if not a.ranks:
            choose_defaults(a, folder)
        print(f"{'text':20} {'tool':10} {'first':>7} {'later':>7}  dt is ... times as fast: first, later")
        for path in a.texts:
            compare(a, path)


if __name__ == "__main__":
    main()
