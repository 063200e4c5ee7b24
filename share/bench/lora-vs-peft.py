#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times training of a low-rank adapter by dt-train and by peft, of the same model, side by side.

    share/bench/lora-vs-peft.py [-b 2] [-t 256] [--rank 8] [--layers 12] [--targets all-linear]
    share/bench/lora-vs-peft.py --data translations ...

The model has GPT-2's shape (124 million parameters with 12 layers) and random weights, in fp32; both
train on the same number of threads with AdamW, fused in PyTorch, and load the model from the same
directory. They take turns, each in a separate process. Reported are the median of the steps and the
peak resident memory of each process.

Data is text, whose tokens all have loss, or with --masked a share of them has none; both then have the
same sequences of equal length. Or it is translations, prompts in English and answers in German from
Multi30k in the folder TESTDATA, with loss on the answers, in GPT-2's tokens: dt packs whole records
into rows, and peft's batches have as many records a step, padded to the longest, as trainers of
transformers and TRL make them. Needs torch, transformers and peft; dt's programs on PATH or in
build/bin.
"""
import argparse
import gzip
import itertools
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

WIDTH, HEADS, VOCABULARY = 768, 12, 50257


def random_batches(a):
    """Inputs, None, and labels of sequences of equal length."""
    import torch
    while True:
        ids = torch.randint(VOCABULARY, (a.batch, a.length + 1))
        labels = ids[:, 1:].clone()
        labels[torch.rand(labels.shape) < a.masked] = -100
        yield ids[:, :-1], None, labels


def padded_batches(folder, count):
    """Inputs, attention mask and labels of count records a batch, padded to the longest."""
    import random
    import torch
    import transformers
    from torch.nn.utils.rnn import pad_sequence
    tokenizer = transformers.GPT2TokenizerFast.from_pretrained(folder)
    with open(os.path.join(folder, "records.jsonl")) as f:
        records = [json.loads(line) for line in f]
    random.Random(1).shuffle(records)
    for at in itertools.count(0, count):
        ids, labels = [], []
        for i in range(at, at + count):
            record = records[i % len(records)]
            prompt, answer = (tokenizer(record[name])["input_ids"] for name in ("prompt", "completion"))
            whole = torch.tensor(prompt + answer + [tokenizer.eos_token_id])
            ids.append(whole[:-1])
            labels.append(whole[1:].masked_fill(torch.arange(1, len(whole)) < len(prompt), -100))
        inputs = pad_sequence(ids, batch_first=True, padding_value=tokenizer.eos_token_id)
        mask = pad_sequence([torch.ones_like(x) for x in ids], batch_first=True)
        yield inputs, mask, pad_sequence(labels, batch_first=True, padding_value=-100)


def train_peft(model, a):
    """The seconds of steps, printed as JSON."""
    import time
    import peft
    import torch
    import transformers
    torch.set_num_threads(a.threads)
    model = transformers.AutoModelForCausalLM.from_pretrained(model).train()
    targets = a.targets if a.targets == "all-linear" else a.targets.split(",")
    model = peft.get_peft_model(model, peft.LoraConfig(
        r=a.rank, lora_alpha=16, target_modules=targets, task_type="CAUSAL_LM"))
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=True)
    seconds = []
    batches = padded_batches(*a.padded) if a.padded else random_batches(a)
    for ids, mask, labels in itertools.islice(batches, a.steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        logits = model(input_ids=ids, attention_mask=mask).logits
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    print(json.dumps(seconds))


def make_model(path, layers):
    import transformers
    config = transformers.GPT2Config(vocab_size=VOCABULARY, n_layer=layers, n_head=HEADS, n_embd=WIDTH,
                                     embd_pdrop=0.0, resid_pdrop=0.0, attn_pdrop=0.0)
    transformers.GPT2LMHeadModel(config).save_pretrained(path)


def make_data(folder, masked):
    """Shards; with masked, of records whose prompts have that share of the text and no loss."""
    text, tokenizer = common.synthesize(folder)
    data = os.path.join(folder, "data")
    if masked == 0:
        source = f"dt-tokenize -q -t {tokenizer} {text}"
    else:
        records = os.path.join(folder, "records.jsonl")
        with open(text) as f, open(records, "w") as out:
            for line in f:
                at = line.rfind(" ", 0, int(len(line) * masked))
                if at > 0:
                    out.write(json.dumps({"prompt": line[:at], "completion": line[at:].rstrip()}) + "\n")
        template = os.path.join(folder, "template.jinja")
        with open(template, "w") as out:
            out.write("{% for message in messages %}{{ message.content }}{% endfor %}")
        source = f"dt-tokenize -q --chat --template {template} -t {tokenizer} {records}"
    subprocess.run(f"{source} | dt-shard -o {data}", shell=True, check=True)
    return data


def write_translations(folder):
    """records.jsonl, and the files of GPT-2's tokenizer."""
    import transformers
    data = os.environ.get("TESTDATA") or common.fail("TESTDATA names no folder with multi30k.train.en.gz")
    def lines(name):
        with gzip.open(os.path.join(data, name), "rt") as f:
            return f.read().splitlines()
    with open(os.path.join(folder, "records.jsonl"), "w") as out:
        for english, german in zip(lines("multi30k.train.en.gz"), lines("multi30k.train.de.gz")):
            out.write(json.dumps({"prompt": f"Translate into German.\n{english.strip()}\n",
                                  "completion": german.strip()}) + "\n")
    transformers.GPT2TokenizerFast(*(os.path.join(data, name) for name in ("gpt2.vocab.json", "gpt2.merges.txt"))
                                   ).save_pretrained(folder)


def make_translations(folder, a):
    """Shards of packed records; and what peft's child needs: the folder, and its records a step."""
    data, template = os.path.join(folder, "data"), os.path.join(common.HERE, "../templates/plain.jinja")
    apart(write_translations, folder)
    subprocess.run(f"dt-tokenize -q -t {folder}/tokenizer.json --chat --template {template} {folder}/records.jsonl"
                   f" | dt-shard -o {data} --layout packed --length {a.length}", shell=True, check=True)
    with open(os.path.join(data, "index.json")) as f:
        split = json.load(f)["splits"]["train"]
    records = round(a.batch * split["documents"] * a.length / split["tokens"])
    print(f"{records} records a step: {split['tokens'] / split['documents']:.0f} tokens each, of which "
          f"{100 * sum(s['targets'] for s in split['shards']) / split['tokens']:.0f}% have loss")
    return data, (folder, records)


def apart(work, *arguments):
    """Calls a function in another process: the peak memory of the programs that this process starts is at least
    its own."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    process.start()
    process.join()
    if process.exitcode != 0:
        common.fail(f"{work.__name__} failed")


def run(command, **how):
    """Its output, and its peak memory in bytes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        common.fail(f"{command[0]}: {err[-2000:]}")
    return out, usage.ru_maxrss * 1024


def run_dt(model, data, folder, a):
    command = ["dt-train", "-q", "-j", str(a.threads), "--init-from", model, "-o",
               tempfile.mkdtemp(dir=folder)]
    for setting in (f"lora.rank={a.rank}", f"lora.targets={a.targets}", f"training.max_steps={a.steps}",
                    f"training.batch_size={a.batch}", f"training.sequence_length={a.length}",
                    "training.warmup_steps=0", "training.eval_interval=0", "training.save_interval=0",
                    "training.log_interval=1", *(["data.document_mask=true"] if a.padded else [])):
        command += ["--set", setting]
    _, peak = run(command + [data], env=os.environ | {"DT_GEMM_PEAK": "1000"})
    with open(os.path.join(command[command.index("-o") + 1], "metrics.jsonl")) as f:
        lines = [json.loads(line) for line in f]
    return [a.batch * a.length / line["tokens_per_second"] for line in lines if "loss" in line], peak


def run_peft(model, a):
    padded = ["--padded", *map(str, a.padded)] if a.padded else []
    out, peak = run([sys.executable, "-W", "ignore", __file__, "--child", model, *sys.argv[1:], *padded])
    return json.loads(out.splitlines()[-1]), peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-b", "--batch", type=int, default=2, help="sequences of a step (default 2)")
    parser.add_argument("-t", "--length", type=int, default=256, help="tokens of each (default 256)")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--targets", default="all-linear")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--data", choices=["text", "translations"], default="text")
    parser.add_argument("--masked", type=float, default=0, help="share of tokens without loss (default 0)")
    parser.add_argument("-n", "--steps", type=int, default=4, help="steps a run, of which the first is not timed")
    parser.add_argument("-r", "--rounds", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("-j", "--threads", type=int, default=os.cpu_count())
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--padded", nargs=2, help=argparse.SUPPRESS)
    a = parser.parse_args()
    common.need_packages(torch="torch", transformers="transformers", peft="peft")
    if a.padded:
        a.padded[1] = int(a.padded[1])
    if a.child:
        train_peft(a.child, a)
        return
    common.need_programs("dt-train", "dt-tokenize", "dt-shard", "dt-synth", "dt-vocab", "dt-clean")
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model")
        data, a.padded = make_translations(folder, a) if a.data == "translations" else (make_data(folder, a.masked), None)
        apart(make_model, model, a.layers)
        results = {"dt": ([], []), "peft": ([], [])}
        for _ in range(a.rounds):
            for name, (seconds, peaks) in results.items():
                times, peak = run_dt(model, data, folder, a) if name == "dt" else run_peft(model, a)
                seconds += times[1:]
                peaks.append(peak)
    for name, (seconds, peaks) in results.items():
        print(f"{name:5} {1000 * statistics.median(seconds):8.0f} ms a step, peak memory "
              f"{max(peaks) / 2**20:6.0f} MiB")
    ours, theirs = (statistics.median(r[0]) for r in results.values())
    print(f"dt is {theirs / ours:.2f} times as fast, with "
          f"{max(results['dt'][1]) / max(results['peft'][1]):.2f} of the memory")


if __name__ == "__main__":
    main()
