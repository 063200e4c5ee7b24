#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares dt's Python module with tiktoken and tokenizers: encode_batch on some threads.

    share/bench/python-vs-peers.py --ranks gpt2.tiktoken --vocabulary gpt2.vocab.json \\
        --merges gpt2.merges.txt english.txt
    share/bench/python-vs-peers.py --loader shards

The text is repeated up to --mb, with each repetition changed at its start, and cut into documents
of --document bytes. The batch calls of the three take turns in one process, on --threads threads; of
each the median wall time counts. tokenizers encodes a part, --part, of the documents, as it takes
minutes. All ids are compared. Without operands, the files of GPT-2 and WikiText-2 in the folder
$TESTDATA are read. Needs tiktoken, tokenizers and numpy.

--loader measures dt.Loader to torch, read by one thread without workers, from a data set that is
cached: tokens a second of processor time, and that the tensors have the library's memory.
"""
import argparse
import base64
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("text", nargs="?")
    for name in ("ranks", "vocabulary", "merges", "loader"):
        p.add_argument("--" + name)
    p.add_argument("--mb", type=float, default=100)
    p.add_argument("--document", type=int, default=4000)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--part", type=float, default=0.1)
    a = p.parse_args()
    if a.loader:
        return a
    data = os.environ.get("TESTDATA")
    if data and not (a.text or a.ranks or a.vocabulary or a.merges):
        a.text, a.ranks, a.vocabulary, a.merges = (os.path.join(data, name) for name in (
            "wikitext2.test.txt", "gpt2.tiktoken", "gpt2.vocab.json", "gpt2.merges.txt"))
    if not (a.text and a.ranks and a.vocabulary and a.merges):
        p.error("give a text, --ranks, --vocabulary and --merges; or --loader; or set TESTDATA to a folder with "
                "wikitext2.test.txt, gpt2.tiktoken, gpt2.vocab.json and gpt2.merges.txt")
    return a


def make_documents(a):
    """About --mb of documents."""
    with open(a.text, encoding="utf-8", newline="") as file:
        text = file.read()
    documents, size, turn = [], 0, 0
    while size < a.mb * 1e6:
        turned = f"Part {turn}. " + text[turn:] + text[:turn]
        pieces = [turned[i:i + a.document] for i in range(0, len(turned), a.document)]
        documents += pieces
        size += sum(len(piece.encode()) for piece in pieces)
        turn += 1
    return documents, size


def timed(call, documents):
    start = time.perf_counter()
    result = call(documents)
    return time.perf_counter() - start, result


def compare(a):
    common.need_packages(tiktoken="tiktoken", tokenizers="tokenizers", numpy="numpy")
    os.environ["RAYON_NUM_THREADS"] = str(a.threads)
    import tiktoken
    import tokenizers
    import dt
    with open(a.ranks, encoding="ascii") as file:
        ranks = {base64.b64decode(x): int(y) for x, y in map(str.split, file)}
    t = tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    h = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(a.vocabulary, a.merges))
    h.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    own = dt.Tokenizer(a.ranks, pattern="gpt2")
    documents, size = make_documents(a)
    part = documents[:max(1, int(len(documents) * a.part))]
    part_size = sum(len(piece.encode()) for piece in part)
    calls = {
        "dt": (lambda d: own.encode_ordinary_batch(d, num_threads=a.threads), documents, size),
        "tiktoken": (lambda d: t.encode_ordinary_batch(d, num_threads=a.threads), documents, size),
        "tokenizers": (lambda d: h.encode_batch_fast(d), part, part_size),
    }
    own.encode_ordinary_batch(documents, num_threads=a.threads)  # opens its threads
    rates = {name: [] for name in calls}
    results = {}
    for _ in range(a.rounds):
        for name, (call, given, given_size) in calls.items():
            seconds, results[name] = timed(call, given)
            rates[name].append(given_size / seconds / 1e6)
    mine = results["dt"].tolist()
    equal = (mine == results["tiktoken"]
             and all(x.ids == y for x, y in zip(results["tokenizers"], mine)))
    print(f"{size / 1e6:.0f} MB, {len(documents)} documents, {a.threads} threads; "
          f"ids {'equal' if equal else 'DIFFER'}")
    for name, found in rates.items():
        ratios = [x / y for x, y in zip(rates["dt"], found)]
        print(f"{name:12} {statistics.median(found):8.1f} MB/s; dt is "
              f"{statistics.median(ratios):.1f} times as fast (" +
              ", ".join(f"{r:.1f}" for r in ratios) + ")")


def measure_loader(a):
    common.need_packages(torch="torch", numpy="numpy")
    import torch
    import dt
    from dt import _data
    torch.set_num_threads(1)
    addresses = []
    own, _data.own = _data.own, lambda at, *rest: (addresses.append(at), own(at, *rest))[1]
    loader = dt.Loader(a.loader, 1024, 64, workers=0, to="torch")
    shared = all(next(loader).ids.data_ptr() == addresses[-1] for _ in range(20))
    _data.own = own
    epoch = loader.dataset.num_samples(1024) // 64 + 1
    for _ in range(epoch):
        next(loader)
    for _ in range(a.rounds):
        start, count = time.process_time(), 0
        while time.process_time() - start < 3:
            inputs, _ = next(loader)
            count += inputs.numel()
        print(f"{count / (time.process_time() - start) / 1e6:.1f} million tokens a second of one "
              f"core; tensors {'have' if shared else 'DO NOT HAVE'} the library's memory")


def main():
    a = arguments()
    if a.loader:
        measure_loader(a)
    else:
        compare(a)


main()
