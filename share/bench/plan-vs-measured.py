#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Layouts on the processor at hand: what dt-plan predicts beside what is measured.

    share/bench/plan-vs-measured.py [--only alone|ranks] [-n STEPS] [--json]

Two figures of the machine are measured before each layout, since machines change their
speed, by steps of a reference (dt-bench step) with as many threads as a rank will have, and as
many at a time as ranks will compute: the rate of matrix products at which its passes take as
long as they do, and the bandwidth of memory that its update reaches. With these in the place
of those of share/clusters/cpu-box.yaml every layout is predicted; none is fitted individually.

The first ten layouts are one rank on all cores (dt-bench step), the others several ranks
that share them (mpirun, dt-train), the last ones more ranks than cores. Memory is compared to
the byte. Needs dt's programs on PATH or in build/bin; mpirun for the ranks. What cannot run is shown with its
reason.
"""
import argparse, concurrent.futures, json, os, shutil, statistics, subprocess, sys, tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

BASE = {"model.name": "gpt2", "model.vocab_size": 4096, "model.hidden_size": 256,
        "model.num_layers": 4, "model.num_heads": 4, "model.max_seq_len": 512,
        "training.sequence_length": 256, "training.batch_size": 8}

ALONE = [
    ("the reference", {}),
    ("128 channels, 6 layers", {"model.hidden_size": 128, "model.num_layers": 6}),
    ("384 channels, 6 layers", {"model.hidden_size": 384, "model.num_layers": 6,
                                "model.num_heads": 6}),
    ("512 channels", {"model.hidden_size": 512, "model.num_heads": 8}),
    ("length 512, batch 2", {"training.sequence_length": 512, "training.batch_size": 2}),
    ("batch 16", {"training.batch_size": 16}),
    ("llama", {"model.name": "llama"}),
    ("llama, 512 channels, 2 KV heads", {"model.name": "llama", "model.hidden_size": 512,
                                         "model.num_heads": 8, "model.num_kv_heads": 2}),
    ("recompute selective", {"training.recompute": "selective"}),
    ("recompute full", {"training.recompute": "full"}),
]

RANKS = [  # ranks, changes
    (2, "DP 2", {}),
    (2, "DP 2, 512 channels", {"model.hidden_size": 512, "model.num_heads": 8}),
    (2, "DP 2, ZeRO 1", {"distributed.zero_stage": 1}),
    (2, "DP 2, ZeRO 2", {"distributed.zero_stage": 2}),
    (2, "DP 2, ZeRO 3", {"distributed.zero_stage": 3}),
    (2, "2 stages, 1f1b", {"distributed.pp": 2}),
    (2, "2 stages, afab", {"distributed.pp": 2, "distributed.schedule": "afab"}),
    (2, "2 stages, model_parallel", {"distributed.pp": 2,
                                     "distributed.schedule": "model_parallel"}),
    (2, "2 slices", {"distributed.tp": 2}),
    (2, "2 contexts", {"distributed.cp": 2}),
    (4, "PP 2 x DP 2", {"distributed.pp": 2}),
]
ACCUMULATION = 4


class Failed(Exception):
    pass


def call(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines()
        raise Failed(reason[0] if reason else f"status {done.returncode}")
    return done.stdout


def options(settings):
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def bench(settings, threads, steps):
    return json.loads(call(["dt-bench", "--json", "-j", str(threads), "-n", str(steps)]
                           + options(settings) + ["step"]))


def machine_of(threads, ranks, steps):
    """Figures of one rank's cores while as many ranks compute, as options of dt-plan."""
    with concurrent.futures.ThreadPoolExecutor(ranks) as pool:
        each = list(pool.map(lambda _: bench(BASE, threads, steps), range(ranks)))
    step = {name: statistics.mean(one[name] for one in each)
            for name in ("parameters", "update_s", "forward_backward_s", "gemm_gflops")}
    # Of each parameter and two moments: read and written; its gradient: read twice, cleared.
    bandwidth = step["parameters"] * 4 * (3 * 2 + 3) / step["update_s"] * 1e-9
    peak = step["gemm_gflops"] * 1e-3
    for _ in range(8):  # as part of the passes is memory's
        machine = {"device.tflops_32": peak, "device.tflops_16": peak,
                   "device.bandwidth": bandwidth, "device.bandwidth_efficiency": 1}
        passes = predict(BASE, 1, machine)["step"]["computing"]
        peak *= passes / step["forward_backward_s"]
    return machine


def predict(settings, ranks, machine, devices=1):
    figures = {**machine, "cluster.devices": devices, "device.ranks": ranks // devices}
    changes = [word for key, value in figures.items() for word in ("--machine", f"{key}={value}")]
    return json.loads(call(["dt-plan", "--json", "--cluster", "cpu-box", "-n", str(ranks)]
                           + changes + options(settings)))


def measure_alone(settings, threads, steps):
    step = bench(settings, threads, steps)
    return step["step_s"], step["bytes"]


def measure_ranks(settings, ranks, threads, steps, scratch):
    """Median of the steps after the first, from the times that metrics.jsonl states."""
    run = os.path.join(scratch, "run")
    shutil.rmtree(run, ignore_errors=True)
    own = {**settings, "training.max_steps": steps + 2, "training.log_interval": 1,
           "training.warmup_steps": 0, "training.eval_interval": 0, "training.save_interval": 0}
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    call(["mpirun", "--oversubscribe", "-n", str(ranks), "dt-train", "-q", "-j", str(threads),
          "-o", run] + options(own) + [os.path.join(scratch, "data")], env=environment)
    with open(os.path.join(run, "metrics.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    times = [line["time"] for line in lines if "loss" in line]
    return statistics.median(b - a for a, b in zip(times[1:], times[2:])), None


def make_data(scratch):
    name = lambda *parts: os.path.join(scratch, *parts)
    call(["dt-synth", "-n", "4000", "-o", name("docs.jsonl")])
    call(["dt-vocab", "-q", "-s", "400", "-o", name("tok.json"), name("docs.jsonl")])
    call(["dt-tokenize", "-q", "-t", name("tok.json"), "-o", name("all.dts"), name("docs.jsonl")])
    call(["dt-shard", "-o", name("data"), name("all.dts")])


def row_of(name, settings, ranks, cores, steps, scratch):
    threads = max(1, cores // ranks)
    row = {"layout": name, "ranks": ranks}
    try:
        devices = min(ranks, cores)
        row["machine"] = machine_of(threads, devices, steps)
        plan = predict(settings, ranks, row["machine"], devices)
        row["predicted_s"] = plan["step"]["seconds"]
        row["predicted_bytes"] = plan["memory"]["total"]
        measured, taken = (measure_alone(settings, threads, steps) if ranks == 1 else
                           measure_ranks(settings, ranks, threads, steps, scratch))
        row.update(measured_s=measured, error=row["predicted_s"] / measured - 1)
        if taken is not None:
            row["measured_bytes"] = taken
    except Failed as reason:
        row["failed"] = str(reason)
    return row


def show(row):
    if "failed" in row:
        return f"{row['layout']:<34} {row['failed'][:44]}"
    memory = ""
    if "measured_bytes" in row:
        difference = row["predicted_bytes"] - row["measured_bytes"]
        memory = "memory exact" if difference == 0 else f"memory {difference:+d} bytes"
    return (f"{row['layout']:<34} {row['measured_s'] * 1e3:9.1f} {row['predicted_s'] * 1e3:9.1f} "
            f"{row['error'] * 100:+7.1f}%  {memory}").rstrip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["alone", "ranks"])
    parser.add_argument("-n", "--steps", type=int, default=10)
    parser.add_argument("-j", "--cores", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    args = parser.parse_args()
    common.need_programs("dt-bench", "dt-plan", "dt-train", "dt-synth", "dt-vocab", "dt-tokenize", "dt-shard")
    rows = []
    layouts = [(1, name, changes) for name, changes in ALONE if args.only != "ranks"]
    layouts += [(r, name, {"training.gradient_accumulation_steps": ACCUMULATION,
                           "training.batch_size": 2, **changes})
                for r, name, changes in RANKS if args.only != "alone"]
    with tempfile.TemporaryDirectory() as scratch:
        if args.only != "alone":
            make_data(scratch)
        if not args.json:
            print(f"{'layout':<34} {'measured':>9} {'predicted':>9}    error  (ms)")
        for ranks, name, changes in layouts:
            rows.append(row_of(name, {**BASE, **changes}, ranks, args.cores, args.steps, scratch))
            if not args.json:
                print(show(rows[-1]), flush=True)
    errors = [abs(row["error"]) for row in rows if "error" in row]
    near = sum(error <= 0.15 for error in errors)
    if args.json:
        print(json.dumps(rows))
    elif errors:
        print(f"{near} of {len(errors)} within 15%; median error "
              f"{statistics.median(errors) * 100:.1f}%, largest {max(errors) * 100:.1f}%")
    return 0 if errors else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as reason:
        sys.exit(f"plan-vs-measured.py: {reason}")
