#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints how far a model's loss is from that computed in fp64, in dt and in PyTorch.

    share/bench/loss-error.py
    share/bench/loss-error.py -c share/configs/llama-15m.yaml --set model.vocab_size=512

dt-train trains a GPT-2 in fp32 on text of dt-synth for some steps. Then the losses of the next
batches are computed from these weights, with a learning rate of 0: by dt in fp32 and in bf16, with
canonical and fast arithmetic, by PyTorch in fp32, and in fp64, which is the reference. Needs torch,
and dt's programs on PATH or in build/bin. Without -c, nanogpt-cpu.yaml with a vocabulary of 257.
"""
import argparse, importlib, json, os, subprocess, sys, tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

steps = importlib.import_module("step-vs-pytorch")  # both beside this
losses = importlib.import_module("losses-vs-pytorch")

DTS = {"dt fp32": [], "dt bf16 canonical": ["precision=bf16", "arithmetic=canonical"],
       "dt bf16 fast": ["precision=bf16"]}


def shell(command, folder):
    subprocess.run(["bash", "-o", "pipefail", "-ec", command], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)


def train(a, output, data, settings, begin=None):
    """The losses of all steps."""
    command = ["dt-train", "-q", "-c", a.config, "-o", output]
    for setting in [*a.set, "data.shuffle=false",
                    *("training." + s for s in ["log_interval=1", "eval_interval=0", *settings])]:
        command += ["--set", setting]
    subprocess.run(command + (["--init-from", begin] if begin else []) + [data], check=True,
                   stdout=subprocess.DEVNULL)
    with open(os.path.join(output, "metrics.jsonl")) as file:
        return [line["loss"] for line in map(json.loads, file) if "loss" in line]


def torch_losses(torch, a, model_path, ids, dtype):
    s = steps.settings(a.config, a.set)
    batch = s["training"]["batch_size"]
    length = s["training"]["sequence_length"] or s["model"]["max_seq_len"]
    model = steps.build(torch, s["model"])
    losses.load_weights(torch, model, model_path)
    model.to(dtype)
    for step in range(a.batches):
        first = step * batch * length
        rows = [ids[at:at + batch * length].view(batch, length) for at in (first, first + 1)]
        with torch.no_grad():
            yield model(*rows).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-c", "--config", help="a configuration file of dt-train")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--steps", type=int, default=100, help="of training (default 100)")
    parser.add_argument("--batches", type=int, default=20, help="whose losses are compared")
    a = parser.parse_args()
    common.need_programs("dt-synth", "dt-vocab", "dt-tokenize", "dt-shard", "dt-cat", "dt-train")
    common.need_packages(torch="torch")
    import torch
    if a.config is None:
        a.config = os.path.join(common.HERE, "../configs/nanogpt-cpu.yaml")
        a.set.insert(0, "model.vocab_size=257")
    vocabulary = steps.settings(a.config, a.set)["model"].get("vocab_size", 0)
    if vocabulary == 0:
        sys.exit("loss-error.py: --set model.vocab_size is needed")
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        shell(f"dt-synth --bytes 2M -o text.jsonl; dt-vocab --size {vocabulary} -o t.json text.jsonl;"
              "dt-tokenize -t t.json text.jsonl | dt-shard -o data; dt-cat --as raw -o ids data/*.dts",
              folder)
        train(a, at("begin"), at("data"), [f"max_steps={a.steps}", f"warmup_steps={a.steps // 4}"])
        still = [f"max_steps={a.batches}", "warmup_steps=0", "learning_rate=0", "save_interval=0"]
        found = {name: train(a, at(name), at("data"), still + more, at("begin/latest"))
                 for name, more in DTS.items()}
        ids = losses.read_ids(torch, at("ids"), vocabulary)
        path = at("begin/latest/model.safetensors")
        found["PyTorch fp32"] = list(torch_losses(torch, a, path, ids, torch.float32))
        exact = list(torch_losses(torch, a, path, ids, torch.float64))
    for name, values in found.items():
        errors = [value / x - 1 for value, x in zip(values, exact)]
        rms = (sum(e * e for e in errors) / len(errors)) ** 0.5
        print(f"{name:18} relative error {rms:.2e}, largest {max(map(abs, errors)):.2e}")


if __name__ == "__main__":
    main()
