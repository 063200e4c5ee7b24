#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times a training step of dt and of PyTorch on one GPU, side by side.

    share/bench/gpu-vs-pytorch.py -c share/configs/gpt2-124m.yaml --set training.batch_size=32

Both compute in bf16 and keep fp32 parameters: `dt-bench step`, and torch.compile with
autocast, fused scaled_dot_product_attention and fused AdamW (the model of
step-vs-pytorch.py beside this). One JSON object: the median step of each, tokens a second,
dt's speed against PyTorch's, and PyTorch's peak of device memory. Without torch, or with
--no-torch, only dt's; with --no-dt only PyTorch's. Needs dt-bench on PATH.
"""
import argparse, importlib.util, json, os, statistics, subprocess, sys


def dt_step(options):
    command = ["dt-bench", "--json", "-c", options.config, "-n", str(options.steps),
               "--device", options.device, "--set", "training.precision=bf16"]
    for assignment in options.set:
        command += ["--set", assignment]
    done = subprocess.run(command + ["step"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip() or "dt-bench failed")
    return json.loads(done.stdout)


def torch_step(options):
    import torch
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "step-vs-pytorch.py")
    spec = importlib.util.spec_from_file_location("step_vs_pytorch", path)
    peer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peer)
    s = peer.settings(options.config, options.set)
    s["model"].setdefault("vocab_size", 50304)
    batch, length = s["training"]["batch_size"], s["model"]["max_seq_len"]
    torch.manual_seed(1)
    model = peer.build(torch, s["model"]).cuda()
    forward = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95),
                                  weight_decay=0.1, fused=True)
    ids = torch.randint(s["model"]["vocab_size"], (batch, length + 1), device="cuda")
    times = []
    for i in range(options.steps + 5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = forward(ids[:, :-1], ids[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        end.record()
        end.synchronize()
        if i >= 5:
            times.append(begin.elapsed_time(end) / 1e3)
    step = statistics.median(times)
    return {"version": torch.__version__, "step_s": step, "tokens_per_second": batch * length / step,
            "memory_bytes": torch.cuda.max_memory_allocated()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-c", "--config", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("-n", "--steps", type=int, default=20)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--no-dt", action="store_true")
    options = parser.parse_args()
    report = {} if options.no_dt else {"dt": dt_step(options)}
    if not options.no_torch:
        try:
            report["pytorch"] = torch_step(options)
        except ImportError as missing:
            report["pytorch"] = {"missing": str(missing)}
    peer = report.get("pytorch", {}).get("tokens_per_second")
    ours = report.get("dt", {}).get("tokens_per_second")
    if peer and ours:
        report["dt_against_pytorch"] = ours / peer
    print(json.dumps(report))


main()
