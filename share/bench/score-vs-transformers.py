#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times scoring and generating of dt and of transformers beside each other.

  score-vs-transformers.py [--data DIR] [--lines N] [--layers N] [--width N] [-j THREADS]

The model has the shape of GPT-2 124M and random weights; DIR holds gpt2.vocab.json,
gpt2.merges.txt and lambada.test.jsonl, of which the first N lines are scored (5153: all).
What a program needs to start and to load the model is taken off: from the fastest run over
much the time of the fastest over little. The two take turns. With
generating at one stream stands, from `dt-bench decode`, which share of the speed of reading
memory is reached. DIR is $TESTDATA without --data. Needs PyTorch and transformers, and dt-eval,
dt-generate and dt-bench on PATH or in build/bin.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

common.need_packages(torch="torch", transformers="transformers")
import torch
import transformers


def make_model(directory, args):
    torch.manual_seed(1)
    config = transformers.GPT2Config(n_layer=args.layers, n_embd=args.width, n_head=args.width // 64)
    model = transformers.GPT2LMHeadModel(config).eval()
    model.save_pretrained(directory)
    shutil.copy(os.path.join(args.data, "gpt2.vocab.json"), os.path.join(directory, "vocab.json"))
    with open(os.path.join(args.data, "gpt2.merges.txt"), encoding="utf-8") as file:
        merges = file.read()
    with open(os.path.join(directory, "merges.txt"), "w", encoding="utf-8") as file:
        # transformers passes over the first line, whatever it holds
        file.write(merges if merges.startswith("#version") else "#version: 0.2\n" + merges)
    tokenizer = transformers.GPT2TokenizerFast(os.path.join(directory, "vocab.json"),
                                               os.path.join(directory, "merges.txt"))
    return model, tokenizer


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True).stdout


def lambada_ids(tokenizer, lines):
    for line in lines:
        context, _, word = json.loads(line)["text"].rpartition(" ")
        before = tokenizer(context).input_ids
        yield tokenizer(context + " " + word).input_ids, len(before)


@torch.inference_mode()
def transformers_score(model, requests, batch=16):
    """As lm-evaluation-harness does it: longest first, filled up at the end."""
    total = 0.0
    requests = sorted(requests, key=lambda r: -len(r[0]))
    for i in range(0, len(requests), batch):
        some = requests[i:i + batch]
        length = max(len(ids) for ids, _ in some) - 1
        rows = torch.zeros(len(some), length, dtype=torch.long)
        for row, (ids, _) in zip(rows, some):
            row[:len(ids) - 1] = torch.tensor(ids[:-1])
        logits = torch.log_softmax(model(rows).logits, -1)
        for row, (ids, first) in zip(logits, some):
            targets = torch.tensor(ids[first:])
            total += row[first - 1:len(ids) - 1].gather(1, targets[:, None]).sum().item()
    return total


def score(model, tokenizer, directory, args):
    with open(os.path.join(args.data, "lambada.test.jsonl"), encoding="utf-8") as file:
        lines = file.readlines()[:args.lines]
    paths = {}
    for name, part in (("all", lines), ("one", lines[:1])):
        paths[name] = os.path.join(directory, name + ".jsonl")
        with open(paths[name], "w", encoding="utf-8") as file:
            for line in part:
                context, _, word = json.loads(line)["text"].rpartition(" ")
                file.write(json.dumps({"context": context, "target": word}) + "\n")
    requests = list(lambada_ids(tokenizer, lines))
    items = os.path.join(directory, "items")
    ours, theirs = {name: [] for name in paths}, []
    for _ in range(args.rounds):
        for name, path in paths.items():
            ours[name].append(timed(lambda: run(
                "dt-eval", "-q", "-j", args.threads, "-m", directory,
                "--items", items if name == "all" else "/dev/null", "choice", path))[0])
        theirs.append(timed(lambda: transformers_score(model, requests)))
    with open(items, encoding="utf-8") as file:
        total = sum(json.loads(line)["choices"][0]["log_likelihood"] for line in file)
    difference = abs(total - theirs[0][1]) / len(lines)
    if difference > 1e-3:
        raise SystemExit(f"not the same work: log-likelihoods differ by {difference:.2g} a line")
    return min(ours["all"]) - min(ours["one"]), min(t for t, _ in theirs), f"log-likelihoods differ by {difference:.2g} a line"


@torch.inference_mode()
def transformers_generate(model, prompts, tokens):
    return model.generate(prompts, attention_mask=torch.ones_like(prompts), do_sample=False,
                          min_new_tokens=tokens, max_new_tokens=tokens, pad_token_id=50256)


def generate(model, tokenizer, directory, streams, args):
    text = "The quick brown fox jumps over the lazy dog and"
    path = os.path.join(directory, "prompts.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"prompt": text}) + "\n" for _ in range(streams))
    prompts = torch.tensor([tokenizer(text).input_ids] * streams)
    counts = few, many = 4, 4 + args.tokens
    ours, theirs = {n: [] for n in counts}, {n: [] for n in counts}
    precision = ["--precision", args.precision] if args.precision else []
    for _ in range(args.rounds):
        for n in (None, *counts): # the first time, the file may have left the memory
            seconds, _ = timed(lambda: run("dt-generate", "-j", args.threads, "-m", directory,
                                           "--no-eot", "--prompts", path, "--temperature", 0,
                                           "-n", n or few, *precision))
            if n:
                ours[n].append(seconds)
        for n in counts:
            theirs[n].append(timed(lambda: transformers_generate(model, prompts, n))[0])
    return min(ours[many]) - min(ours[few]), min(theirs[many]) - min(theirs[few])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("TESTDATA"))
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", choices=["bf16"], help="of dt-generate; fp32 otherwise")
    parser.add_argument("-j", "--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if not args.data:
        parser.error("give --data, or set TESTDATA: a folder with gpt2.vocab.json, gpt2.merges.txt and "
                     "lambada.test.jsonl")
    common.need_programs("dt-eval", "dt-generate", "dt-bench")
    torch.set_num_threads(args.threads)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as directory:
        model, tokenizer = make_model(directory, args)
        print(f"{'':24}{'dt s':>10}{'transformers s':>16}{'faster by':>11}")
        ours, theirs, note = score(model, tokenizer, directory, args)
        print(f"{'LAMBADA, %d lines' % args.lines:24}{ours:10.2f}{theirs:16.2f}{theirs / ours:10.2f}x"
              f"\n  {note}", flush=True)
        for streams in (1, 16):
            ours, theirs = generate(model, tokenizer, directory, streams, args)
            rate = streams * args.tokens
            print(f"{'%d stream%s, tokens/s' % (streams, 's' * (streams > 1)):24}{rate / ours:10.1f}"
                  f"{rate / theirs:16.1f}{theirs / ours:10.2f}x", flush=True)
        settings = {"vocab_size": 50257, "num_layers": args.layers, "hidden_size": args.width,
                    "num_heads": args.width // 64}
        print(run("dt-bench", "-j", args.threads, "-n", 60, "--set",
                  "training.precision=" + (args.precision or "fp32"),
                  *[word for name, value in settings.items()
                    for word in ("--set", f"model.{name}={value}")], "decode"))


if __name__ == "__main__":
    main()
