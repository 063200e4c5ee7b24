#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times dt and PyTorch on one GPU, side by side: a training step, or attention alone.

    share/bench/gpu-vs-pytorch.py step -c share/configs/gpt2-124m.yaml --set training.batch_size=32
    share/bench/gpu-vs-pytorch.py attention

A step computes in bf16 and keeps fp32 parameters: `dt-bench step`, and torch.compile with
autocast, scaled_dot_product_attention and fused AdamW (the model of step-vs-pytorch.py
beside this). Attention is causal, in bf16: `dt-bench attention`, without and with
DT_CUDA_WGMMA, and PyTorch's with its FlashAttention and cuDNN backends; the fastest of all times. One JSON object a line: the
median step of each, tokens a second, memory, the share of the fastest product of matrices
that each shows (MFU). Without torch, or with --no-torch, only dt's; with --no-dt only
PyTorch's. attention is the default. Needs dt-bench on PATH or in build/bin.
"""
import argparse, importlib, importlib.util, json, os, shutil, statistics, subprocess, sys

os.environ["PATH"] += os.pathsep + os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/bin")

# Batch, heads, length, channels of a head.
SHAPES = [(64, 12, 1024, 64), (16, 12, 4096, 64), (32, 16, 1024, 128), (8, 16, 4096, 128)]


def dt_bench(what, options, arguments, **environment):
    command = ["dt-bench", "--json", "--device", options.device,
               "--set", "training.precision=bf16"] + arguments + [what]
    done = subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(done.stderr.strip() or f"dt-bench ended with status {done.returncode}")
    return json.loads(done.stdout)


def assignments(pairs):
    return [word for pair in pairs for word in ("--set", pair)]


def milliseconds(torch, work):
    """Of one call, on the device."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def torch_gflops(torch):
    """The fastest of some large products of bf16."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * 8192**3 / min(milliseconds(torch, lambda: a @ b) for _ in range(30)) * 1e-6


def compiled(torch, model, how):
    """All of the model at once, or block by block: one block is compiled, and serves for
    all, which is much sooner done with many of them."""
    if how == "model":
        return torch.compile(model)
    for block in model.blocks:
        block.compile()
    model.loss = torch.compile(model.loss)
    return model


# --- steps ------------------------------------------------------------------------------------

def torch_step(options):
    import torch
    steps = importlib.import_module("step-vs-pytorch")  # beside this
    s = steps.settings(options.config, options.set)
    batch = s["training"]["batch_size"]
    length = s["training"]["sequence_length"] or s["model"]["max_seq_len"]
    torch.manual_seed(1)
    peak = torch_gflops(torch)
    with torch.device("cuda"):
        model = steps.build(torch, s["model"])
    forward = compiled(torch, model, options.compile)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95),
                                  weight_decay=0.1, fused=True)
    ids = torch.randint(s["model"]["vocab_size"], (batch, length + 1), device="cuda")

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = forward(ids[:, :-1], ids[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(5):  # compiling, memory
        step()
    seconds = statistics.median(milliseconds(torch, step) for _ in range(options.steps)) / 1e3
    return {"version": torch.__version__, "gemm_gflops": peak, "tokens": batch * length,
            "step_s": seconds, "tokens_per_second": batch * length / seconds,
            "memory_bytes": torch.cuda.max_memory_allocated(),
            "reserved_bytes": torch.cuda.max_memory_reserved()}


def report_step(options):
    report = {}
    if not options.no_dt:
        report["dt"] = dt_bench("step", options, ["-c", options.config, "-n", str(options.steps)] +
                                assignments(options.set))
    if not options.no_torch:
        report["pytorch"] = torch_step(options)
    print(json.dumps(report), flush=True)


# --- attention --------------------------------------------------------------------------------

def dt_attention(options, shape):
    batch, heads, length, size = shape
    settings = {"training.batch_size": batch, "model.num_heads": heads, "model.num_layers": 1,
                "model.hidden_size": heads * size, "model.max_seq_len": length,
                "model.vocab_size": 1}
    arguments = ["--seconds", str(options.seconds)]
    arguments += assignments(f"{key}={value}" for key, value in settings.items())

    def times(wgmma):
        speed = dt_bench("attention", options, arguments, DT_CUDA_WGMMA=wgmma)
        return {"forward_ms": 1e3 * speed["forward_s"], "backward_ms": 1e3 * speed["backward_s"]}

    speeds = {"dt": times("0")}
    try:
        speeds["wgmma"] = times("1")
    except SystemExit as refused:  # by a GPU that has none
        speeds["wgmma"] = {"refused": str(refused)}
    return speeds


def torch_backend(torch, backend, shape):
    from torch.nn.attention import sdpa_kernel
    batch, heads, length, size = shape
    q, k, v = (torch.randn(batch, length, heads, size, device="cuda", dtype=torch.bfloat16)
               .transpose(1, 2).requires_grad_() for _ in range(3))
    with sdpa_kernel(backend):
        def forward():
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

        y = forward()
        dy = torch.randn_like(y)

        def backward():
            torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)

        times = [min(milliseconds(torch, work) for _ in range(20)) for work in (forward, backward)]
    return {"forward_ms": times[0], "backward_ms": times[1]}


def torch_attention(shape):
    import torch
    from torch.nn.attention import SDPBackend
    speeds = {}
    for name, backend in (("flash", SDPBackend.FLASH_ATTENTION),
                          ("cudnn", SDPBackend.CUDNN_ATTENTION)):
        try:
            speeds[name] = torch_backend(torch, backend, shape)
        except RuntimeError as refused:
            speeds[name] = {"refused": str(refused).splitlines()[0]}
    return speeds


def report_attention(options):
    for shape in SHAPES:
        batch, heads, length, size = shape
        product = batch * heads * length * length * size * 1e-9  # 2 operations, half of them causal
        speeds = {} if options.no_dt else dt_attention(options, shape)
        if not options.no_torch:
            speeds.update(torch_attention(shape))
        for speed in speeds.values():
            for name, products in (("forward", 2), ("backward", 5)):
                if name + "_ms" in speed:
                    speed[name + "_tflops"] = products * product / speed[name + "_ms"]
        print(json.dumps({"batch": batch, "heads": heads, "length": length, "channels": size,
                          **speeds}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["step", "attention"], default="attention")
    parser.add_argument("-c", "--config", help="step: a configuration file of dt-train")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("-n", "--steps", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1, help="attention: for each shape of dt's")
    parser.add_argument("--compile", choices=["model", "blocks"], default="model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--no-dt", action="store_true")
    options = parser.parse_args()
    if options.what == "step" and options.config is None:
        parser.error("step needs --config")
    if not options.no_dt and not shutil.which("dt-bench"):
        sys.exit("gpu-vs-pytorch.py: dt-bench is neither on PATH nor in build/bin")
    options.no_torch = options.no_torch or importlib.util.find_spec("torch") is None
    (report_step if options.what == "step" else report_attention)(options)


main()
