#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cost of metrics and tracing in a training step, in instructions, which no other program changes.

    share/bench/cost-of-metrics.py

dt-train takes steps of a small model (by default two layers of width 64 and 128 tokens: a step is
short) in valgrind's callgrind, on one thread with AVX2; steps are the difference of a longer and a shorter
run. Off: all of lib/train, of spans of time and of hashes, as a share of the step, so that each
check of what is off is counted, wherever the compiler put it. On: what each setting adds to a step,
measured in every step. Needs valgrind, and dt's programs on PATH or in build/bin.
"""
import argparse, os, re, subprocess, sys, tempfile

from common import fail, need_programs, synthesize

SETTINGS = {"off": [],
            "log_interval=1": ["training.log_interval=1"],
            "tensor_metrics": ["training.log_interval=1", "training.tensor_metrics=true"],
            "layer_metrics": ["training.log_interval=1",
                              "training.layer_metrics=activation_rms,attention_entropy,dead_units,logits"],
            "timeline_steps": ["training.timeline_steps=1:1000"]}
COUNTED = re.compile(r"(^|/)lib/(train/|device/time-spans|hash/sum-hash|checkpoint/state-hash|model/model\.c:dt_model_trace)")


def train(folder, shape, steps, settings):
    """Instructions by function, as FILE:NAME."""
    out = os.path.join(folder, "callgrind")
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "dt-train", "-q", "-j", "1", "--device",
               "cpu-avx2", "--resume", "none", "-o", os.path.join(folder, f"run-{len(os.listdir(folder))}")]
    for setting in ["training.eval_interval=0", "training.save_interval=0", "training.log_interval=1000000",
                    "training.warmup_steps=1", f"training.max_steps={steps}", *shape, *settings]:
        command += ["--set", setting]
    done = subprocess.run(command + [os.path.join(folder, "data")], capture_output=True, text=True,
                          env=os.environ | {"DT_GEMM_PEAK": "100"})
    if done.returncode != 0:
        fail(done.stderr[-2000:])
    text = subprocess.run(["callgrind_annotate", "--auto=no", "--threshold=100", out], check=True,
                          capture_output=True, text=True).stdout
    counts = {}
    for number, name in re.findall(r"^ *([\d,]+) \([^)]*\)  (\S+)", text, re.M):
        counts[name] = counts.get(name, 0) + int(number.replace(",", ""))
    return counts


def per_step(folder, shape, settings, steps):
    few, many = (train(folder, shape, n, settings) for n in (5, 5 + steps))
    return {name: (count - few.get(name, 0)) / steps for name, count in many.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the model's shape")
    parser.add_argument("-n", "--steps", type=int, default=20, help="steps that are counted (default 20)")
    a = parser.parse_args()
    need_programs("dt-train", "valgrind", "callgrind_annotate")
    shape = ["model.hidden_size=64", "model.num_layers=2", "model.num_heads=4", "model.max_seq_len=16",
             "training.batch_size=8", *a.set]
    with tempfile.TemporaryDirectory() as folder:
        text, tokenizer = synthesize(folder)
        subprocess.run(f"dt-tokenize -q -t {tokenizer} {folder}/stories.jsonl | dt-shard -o {folder}/data",
                       shell=True, check=True)
        costs = per_step(folder, shape, SETTINGS["off"], a.steps)
        off, counted = sum(costs.values()), {name: n for name, n in costs.items() if COUNTED.search(name)}
        print(f"a step: {off / 1e6:.2f} million instructions")
        print(f"off: at most {100 * sum(counted.values()) / off:.3f}% of it")
        for name in sorted(counted, key=counted.get, reverse=True)[:3]:
            print(f"    {counted[name]:10.0f}  {name}", flush=True)
        for name in list(SETTINGS)[1:]:
            on = sum(per_step(folder, shape, SETTINGS[name], a.steps).values())
            print(f"{name}: {100 * (on / off - 1):+.1f}%", flush=True)


if __name__ == "__main__":
    main()
