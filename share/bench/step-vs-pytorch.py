#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times one training step of dt and of PyTorch, side by side.

    share/bench/step-vs-pytorch.py -c share/configs/gpt2-124m.yaml --set training.batch_size=1

The same model, batch, precision (fp32, or bf16 by autocast), clipping and AdamW on the same number of
threads, in one run: `dt-bench step`, PyTorch eager and torch.compile take turns,
each in a separate process. The PyTorch model is written for speed (fused
scaled_dot_product_attention, fused AdamW) and holds no dropout. Reported are the
median step of each, its ratio to dt, and the peak resident memory of the process.
Needs torch, and dt-bench on PATH or in build/bin.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, time

DEFAULTS = {"model": {"name": "gpt2", "hidden_size": 768, "num_layers": 12, "num_heads": 12,
                      "num_kv_heads": 0, "intermediate_size": 0, "max_seq_len": 1024,
                      "tie_word_embeddings": True, "rope_theta": 10000.0},
            "training": {"batch_size": 8, "sequence_length": 0}}


def scalar(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def read(path):
    """Sections of scalars, which is all the YAML that configurations of dt are."""
    given = {}
    with open(path) as file:
        for line in file:
            key, _, value = (part.strip() for part in line.split("#")[0].partition(":"))
            if key and line[0] != " ":
                part = given.setdefault(key, {})
            elif key:
                part[key] = scalar(value)
    return given


def settings(path, overrides):
    given = read(path) if path else {}
    merged = {part: {**DEFAULTS[part], **given.get(part, {})} for part in DEFAULTS}
    for assignment in overrides:
        key, value = assignment.split("=", 1)
        part, name = key.split(".", 1)
        merged.setdefault(part, {})[name] = scalar(value)
    return merged


def build(torch, c):
    nn, F = torch.nn, torch.nn.functional
    width, heads = c["hidden_size"], c["num_heads"]
    llama = c["name"] == "llama"
    kv = c["num_kv_heads"] or heads
    size = width // heads
    inner = c["intermediate_size"] or ((8 * width + 191) // 192 * 64 if llama else 4 * width)

    def rotate(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(width, width + 2 * kv * size, bias=not llama)
            self.out = nn.Linear(width, width, bias=not llama)

        def forward(self, x, turns):
            b, t, _ = x.shape
            q, k, v = self.qkv(x).split([width, kv * size, kv * size], -1)
            q, k, v = (y.view(b, t, -1, size).transpose(1, 2) for y in (q, k, v))
            if turns is not None:
                q, k = rotate(q, *turns), rotate(k, *turns)
            if kv != heads:
                k, v = (y.repeat_interleave(heads // kv, 1) for y in (k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(b, t, width))

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.Linear(width, inner, bias=not llama)
            self.gate = nn.Linear(width, inner, bias=False) if llama else None
            self.down = nn.Linear(inner, width, bias=not llama)

        def forward(self, x):
            if self.gate is None:
                return self.down(F.gelu(self.up(x), approximate="tanh"))
            return self.down(F.silu(self.gate(x)) * self.up(x))

    norm = (lambda: nn.RMSNorm(width, eps=1e-5)) if llama else (lambda: nn.LayerNorm(width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.attention, self.norm2, self.mlp = norm(), Attention(), norm(), MLP()

        def forward(self, x, turns):
            x = x + self.attention(self.norm1(x), turns)
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(c["vocab_size"], width)
            self.positions = None if llama else nn.Embedding(c["max_seq_len"], width)
            self.blocks = nn.ModuleList(Block() for _ in range(c["num_layers"]))
            self.norm = norm()
            self.head = nn.Linear(width, c["vocab_size"], bias=False)
            if c["tie_word_embeddings"]:
                self.head.weight = self.tokens.weight
            for p in self.parameters():
                if p.dim() == 2:
                    nn.init.normal_(p, std=0.02)
            angles = torch.outer(torch.arange(c["max_seq_len"]).float(),
                                 c["rope_theta"] ** (-torch.arange(0, size, 2).float() / size))
            angles = torch.cat((angles, angles), -1)
            self.register_buffer("cos", angles.cos(), persistent=False)
            self.register_buffer("sin", angles.sin(), persistent=False)

        def forward(self, ids, targets):
            t = ids.shape[1]
            x = self.tokens(ids)
            turns = (self.cos[:t], self.sin[:t]) if llama else None
            if not llama:
                x = x + self.positions.weight[:t]
            for block in self.blocks:
                x = block(x, turns)
            return self.loss(x, targets)

        def loss(self, x, targets):
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))

    return Model()


def torch_step(s, threads, compiled=False, build=build):
    """A function that trains one step, and the number of parameters."""
    import torch
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    batch = s["training"]["batch_size"]
    length = s["training"]["sequence_length"] or s["model"]["max_seq_len"]
    bf16 = s["training"].get("precision", "fp32") == "bf16"
    model = build(torch, s["model"])
    forward = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95),
                                  weight_decay=0.1, fused=True)
    ids = torch.randint(s["model"]["vocab_size"], (batch, length + 1))

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = forward(ids[:, :-1], ids[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step, sum(p.numel() for p in model.parameters())


def torch_steps(s, steps, threads, compiled=False, build=build):
    step, parameters = torch_step(s, threads, compiled, build)
    times = []
    for i in range(steps + 2):  # two to warm up: compiling, memory
        start = time.perf_counter()
        step()
        if i >= 2:
            times.append(time.perf_counter() - start)
    length = s["training"]["sequence_length"] or s["model"]["max_seq_len"]
    print(json.dumps({"step_s": statistics.median(times), "parameters": parameters,
                      "tokens": s["training"]["batch_size"] * length}))


# Where dt's programs are built, if PATH does not have them.
os.environ["PATH"] += os.pathsep + os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                "../../build/bin")


def run(command):
    if shutil.which(command[0]) is None:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {command[0]} is neither on PATH nor in "
                 "build/bin: build dt with make")
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {command[0]} failed")
    return {**json.loads(text), "peak_bytes": usage.ru_maxrss * 1024}


def compare(peers, rounds):
    """A row for each peer, {name: command}, which take turns; the first is the baseline."""
    runs = {name: [] for name in peers}
    for _ in range(rounds):
        for name, command in peers.items():
            runs[name].append(run(command))
    sizes = {name: results[0]["parameters"] for name, results in runs.items()}
    if len(set(sizes.values())) > 1:
        sys.exit(f"{os.path.basename(sys.argv[0])}: not the same model: parameters {sizes}")
    rows = {}
    for name, results in runs.items():
        seconds = statistics.median(r["step_s"] for r in results)
        rows[name] = {"step_s": seconds, "tokens_per_second": results[0]["tokens"] / seconds,
                      "peak_bytes": max(r["peak_bytes"] for r in results)}
        if "bytes" in results[0]:
            rows[name]["bytes"] = results[0]["bytes"]
        rows[name]["ratio"] = seconds / next(iter(rows.values()))["step_s"]
    return rows


def main():
    parser = argparse.ArgumentParser(description="Times one training step of dt and of PyTorch.")
    parser.add_argument("-c", "--config", required=True, help="a configuration file of dt-train")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("-n", "--steps", type=int, default=5, help="steps a run (default 5)")
    parser.add_argument("-r", "--rounds", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("-j", "--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--torch", choices=["eager", "compile"], help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.torch:
        torch_steps(settings(a.config, a.set), a.steps, a.threads, a.torch == "compile")
        return
    common = ["-c", a.config, "-n", str(a.steps), "-j", str(a.threads)]
    common += [word for assignment in a.set for word in ("--set", assignment)]
    peers = {"dt": ["dt-bench", "step", "--json"] + common}
    for kind in ("eager", "compile"):
        peers["PyTorch " + kind] = [sys.executable, __file__, "--torch", kind] + common
    rows = compare(peers, a.rounds)
    if a.json:
        print(json.dumps({"config": a.config, "set": a.set, "threads": a.threads, "rows": rows}))
        return
    print(f"{'':16} {'step ms':>9} {'tokens/s':>9} {'dt faster by':>13} {'peak MiB':>9}")
    for name, row in rows.items():
        print(f"{name:16} {row['step_s'] * 1e3:9.1f} {row['tokens_per_second']:9.0f} "
              f"{row['ratio']:12.2f}x {row['peak_bytes'] / 2**20:9.0f}")


if __name__ == "__main__":
    main()
