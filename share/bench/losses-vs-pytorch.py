#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains PyTorch's GPT-2 from dt's weights with dt's batches, and compares losses step by step.

    dt-train "${settings[@]}" --set training.max_steps=1 --set training.learning_rate=0 \\
        -o runs/begin data.dts
    dt-cat --as raw -o ids data.dts
    dt-train "${settings[@]}" --init-from runs/begin/latest -o runs/fp32 data.dts
    share/bench/losses-vs-pytorch.py run --model runs/begin/latest --ids ids \\
        --precision fp32 --output runs/torch-fp32.jsonl "${settings[@]}"
    share/bench/losses-vs-pytorch.py compare runs

The settings, as --set of dt-train, must say training.log_interval=1, data.shuffle=false and
training.schedule=constant, and name model.vocab_size. run computes on a GPU: in bf16 with
autocast and torch.compile, in fp32 without. compare reads what RUNS has of
{bf16,fp32,tf32,fp16}.jsonl (or /metrics.jsonl in folders of these names) and
torch-{bf16,fp32}.jsonl: speed from the hundredth step on, the mean of the last 50 losses, and
how far runs are apart, as the root of the mean square over all steps. It fails if dt and
PyTorch in bf16 are more than twice as far apart as PyTorch in bf16 and in fp32.
"""
import argparse, array, importlib, json, math, os, sys, time

OURS, PEERS = ["bf16", "fp32", "tf32", "fp16"], ["torch-bf16", "torch-fp32"]
PAIRS = [("bf16", "torch-bf16"), ("fp32", "torch-fp32"), ("torch-bf16", "torch-fp32"),
         ("bf16", "fp32"), ("tf32", "fp32"), ("fp16", "fp32")]
RATES = {"learning_rate": 6e-4, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95,
         "epsilon": 1e-8, "grad_clip": 1.0, "warmup_steps": 100, "max_steps": 1000}
NAMES = {"wte": "tokens", "wpe": "positions", "ln_f": "norm", "ln_1": "norm1", "ln_2": "norm2",
         "attn.c_attn": "attention.qkv", "attn.c_proj": "attention.out", "mlp.c_fc": "mlp.up",
         "mlp.c_proj": "mlp.down"}


def place_of(name):
    """transformer.h.3.attn.c_attn.weight is our blocks.3.attention.qkv.weight."""
    parts = name.removeprefix("transformer.").split(".")
    block = []
    if parts[0] == "h":
        block, parts = ["blocks", parts[1]], parts[2:]
    return ".".join(block + [NAMES[".".join(parts[:-1])], parts[-1]])


def load_weights(torch, model, path):
    """Matrices of GPT-2's files lie as input by output, those of nn.Linear the other way."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = bytearray(file.read())
    ours = dict(model.named_parameters())
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        begin, end = tensor["data_offsets"]
        values = torch.frombuffer(data, dtype=torch.float32, count=(end - begin) // 4, offset=begin)
        values = values.view(tensor["shape"])
        parameter = ours.pop(place_of(name))
        linear = name.endswith(".weight") and ".c_" in name
        parameter.data.copy_(values.T if linear else values)
    if ours:
        sys.exit(f"losses-vs-pytorch: {path} has no {', '.join(ours)}")


def read_ids(torch, path, vocabulary):
    ids = array.array("H" if vocabulary <= 1 << 16 else "I")
    with open(path, "rb") as file:
        ids.frombytes(file.read())
    return torch.tensor(ids, dtype=torch.int64)


def run(options):
    import torch
    steps = importlib.import_module("step-vs-pytorch")  # beside this
    s = steps.settings(None, options.set)
    t = {**RATES, **s["training"]}
    batch, length = t["batch_size"], t["sequence_length"] or s["model"]["max_seq_len"]
    model = steps.build(torch, s["model"])
    load_weights(torch, model, os.path.join(options.model, "model.safetensors"))
    model.to(options.device)
    ids = read_ids(torch, options.ids, s["model"]["vocab_size"]).to(options.device)
    bf16 = options.precision == "bf16"
    forward = torch.compile(model) if bf16 else model
    groups = [{"params": [p for p in model.parameters() if (p.dim() >= 2) == decays],
               "weight_decay": t["weight_decay"] * decays} for decays in (True, False)]
    optimizer = torch.optim.AdamW(groups, betas=(t["beta1"], t["beta2"]), eps=t["epsilon"],
                                  fused=True)
    begin = time.perf_counter()
    with open(options.output, "w") as output:
        for step in range(t["max_steps"]):
            for group in optimizer.param_groups:
                group["lr"] = t["learning_rate"] * min(1, (step + 1) / max(t["warmup_steps"], 1))
            first = step * batch * length
            inputs = ids[first:first + batch * length].view(batch, length)
            targets = ids[first + 1:first + batch * length + 1].view(batch, length)
            with torch.autocast(options.device, dtype=torch.bfloat16, enabled=bf16):
                loss = forward(inputs, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), t["grad_clip"])
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if not math.isfinite(loss.item()):
                sys.exit(f"losses-vs-pytorch: step {step + 1}: the loss is {loss.item()}")
            print(json.dumps({"step": step + 1, "tokens": (step + 1) * batch * length,
                              "loss": loss.item(), "time": time.perf_counter() - begin}),
                  file=output)
    print(json.dumps({"precision": options.precision, "version": torch.__version__,
                      "loss": loss.item(),
                      "memory_bytes": torch.cuda.max_memory_allocated()}))


def read_run(folder, name):
    for path in (os.path.join(folder, name + ".jsonl"), os.path.join(folder, name, "metrics.jsonl")):
        if os.path.exists(path):
            with open(path) as file:
                lines = [line for line in map(json.loads, file) if "loss" in line]
            for line in lines:
                if line["loss"] is None:
                    sys.exit(f"{path}: the loss of step {line['step']} is not finite")
            return lines
    return []


def speed(lines):
    """Tokens a second, without the beginning, when products are tuned and models compiled."""
    from_step = lines[min(100, len(lines) // 2)]
    seconds = lines[-1]["time"] - from_step["time"]
    return (lines[-1]["tokens"] - from_step["tokens"]) / seconds if seconds > 0 else None


def compare(options):
    runs = {name: read_run(options.runs, name) for name in OURS + PEERS}
    for name, lines in runs.items():
        if lines:
            last = [line["loss"] for line in lines[-50:]]
            print(json.dumps({"run": name, "steps": len(lines), "tokens_per_second": speed(lines),
                              "first_loss": lines[0]["loss"], "loss": sum(last) / len(last)}))
    apart = {}
    for one, other in PAIRS:
        differences = [a["loss"] - b["loss"] for a, b in zip(runs[one], runs[other])]
        if differences:
            apart[one, other] = (sum(d * d for d in differences) / len(differences)) ** 0.5
            print(json.dumps({"pair": [one, other], "steps": len(differences),
                              "first": differences[0], "rms": apart[one, other],
                              "mean_of_last_50": sum(differences[-50:]) / len(differences[-50:])}))
    missing = [name for name in OURS if not runs[name]]
    if missing:
        sys.exit(f"losses-vs-pytorch: {options.runs} lacks losses of {', '.join(missing)}")
    if len({len(lines) for lines in runs.values() if lines}) > 1:
        sys.exit("losses-vs-pytorch: the runs have different numbers of steps")
    ours, noise = (apart.get(pair) for pair in (PAIRS[0], PAIRS[2]))
    if ours is not None and noise is not None and not ours <= 2 * noise:
        sys.exit(f"losses-vs-pytorch: in bf16 dt and PyTorch are {ours:.3g} apart, "
                 f"more than twice the {noise:.3g} of PyTorch in bf16 and fp32")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="what", required=True)
    one = commands.add_parser("run")
    one.add_argument("--model", required=True, help="a checkpoint of dt-train")
    one.add_argument("--ids", required=True, help="what dt-cat --as raw wrote")
    one.add_argument("--output", required=True)
    one.add_argument("--precision", choices=["bf16", "fp32"], required=True)
    one.add_argument("--device", default="cuda")
    one.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    all_runs = commands.add_parser("compare")
    all_runs.add_argument("runs")
    options = parser.parse_args()
    (run if options.what == "run" else compare)(options)


if __name__ == "__main__":
    main()
