#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times training of a low-rank adapter by dt-train and by peft, of the same model, side by side.

    share/bench/lora-vs-peft.py [-b 2] [-t 256] [--rank 8] [--layers 12] [--targets all-linear]

The model has GPT-2's shape (124 million parameters with 12 layers) and random weights, in fp32; both
train on the same number of threads with AdamW, fused in PyTorch, and load the model from the same
directory. They take turns, each in a separate process. Reported are the median of the steps and the
peak resident memory of each process. A share of tokens without loss, --masked, is what data of
conversations has. Needs torch, transformers and peft; dt's programs on PATH or in build/bin.
"""
import argparse
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
    for _ in range(a.steps):
        ids = torch.randint(VOCABULARY, (a.batch, a.length + 1))
        labels = ids[:, 1:].clone()
        labels[torch.rand(labels.shape) < a.masked] = -100
        start = time.perf_counter()
        optimizer.zero_grad()
        logits = model(input_ids=ids[:, :-1]).logits
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
                    "training.log_interval=1"):
        command += ["--set", setting]
    _, peak = run(command + [data], env=os.environ | {"DT_GEMM_PEAK": "1000"})
    with open(os.path.join(command[command.index("-o") + 1], "metrics.jsonl")) as f:
        lines = [json.loads(line) for line in f]
    return [a.batch * a.length / line["tokens_per_second"] for line in lines if "loss" in line], peak


def run_peft(model, a):
    out, peak = run([sys.executable, "-W", "ignore", __file__, "--child", model, *sys.argv[1:]])
    return json.loads(out.splitlines()[-1]), peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-b", "--batch", type=int, default=2, help="sequences of a step (default 2)")
    parser.add_argument("-t", "--length", type=int, default=256, help="tokens of each (default 256)")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--targets", default="all-linear")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--masked", type=float, default=0, help="share of tokens without loss (default 0)")
    parser.add_argument("-n", "--steps", type=int, default=4, help="steps a run, of which the first is not timed")
    parser.add_argument("-r", "--rounds", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("-j", "--threads", type=int, default=os.cpu_count())
    parser.add_argument("--child", help=argparse.SUPPRESS)
    a = parser.parse_args()
    common.need_packages(torch="torch", transformers="transformers", peft="peft")
    if a.child:
        train_peft(a.child, a)
        return
    common.need_programs("dt-train", "dt-tokenize", "dt-shard", "dt-synth", "dt-vocab", "dt-clean")
    with tempfile.TemporaryDirectory() as folder:
        model, data = os.path.join(folder, "model"), make_data(folder, a.masked)
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
