#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares a training step with torch.compile's in a grid of shapes, and names the worst cell.

    share/bench/step-grid.py -o rows.jsonl
    share/bench/step-grid.py -o rows.jsonl --widths 64,768 --lengths 4096 --precisions bf16

A cell is a GPT-2 of two layers (heads of 64 channels, or 16 if it is narrow): width, length T,
vocabulary, precision and threads. Its batch has at least --tokens tokens. In each round `dt-bench
step` and a process with the compiled model, which stays, take turns; a row is a round. Ratios are
torch.compile's time over dt's, above 1 where dt is faster: medians of the rounds with the interval
of their order statistics. On one thread time is processor time, which other programs disturb
least; on several it is wall time. Rounds that ROWS has of this processor are not repeated, those of
others are shown apart; --seconds ends after that time. Needs torch, and dt-bench on PATH or in
build/bin.
"""
import argparse, importlib.util, itertools, json, math, os, platform, re, statistics, subprocess, sys, tempfile, time

from common import HERE, fail, need_packages, need_programs

AXES = ("processor", "width", "length", "vocabulary", "precision", "threads")


def find_processor():
    """The name of the first processor, with its family, model and stepping, which the name may not tell."""
    with open("/proc/cpuinfo") as file:
        lines = file.read().split("\n\n")[0].split("\n")
    facts = dict(re.split(r"\s*:\s*", line, maxsplit=1) for line in lines if ":" in line)
    numbers = (("family", "cpu family"), ("model", "model"), ("stepping", "stepping"))
    return ", ".join([facts.get("model name", platform.machine())] +
                     [f"{word} {facts[key]}" for word, key in numbers if key in facts])


def load_pytorch():
    spec = importlib.util.spec_from_file_location("pytorch", os.path.join(HERE, "step-vs-pytorch.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def settings(cell, tokens):
    size = 64 if cell["width"] % 64 == 0 and cell["width"] >= 256 else 16
    return {"model": {"name": "gpt2", "hidden_size": cell["width"], "num_layers": 2,
                      "num_heads": cell["width"] // size, "vocab_size": cell["vocabulary"],
                      "max_seq_len": cell["length"]},
            "training": {"batch_size": max(1, tokens // cell["length"]), "precision": cell["precision"]}}


def serve(cell, tokens):
    """For each line of stdin, the number of steps, a line with their times."""
    pytorch = load_pytorch()
    s = {part: {**pytorch.DEFAULTS[part], **given} for part, given in settings(cell, tokens).items()}
    step, parameters = pytorch.torch_step(s, cell["threads"], compiled=True)
    for line in sys.stdin:
        walls, processor = [], time.process_time()
        for _ in range(int(line)):
            start = time.perf_counter()
            step()
            walls.append(time.perf_counter() - start)
        print(json.dumps({"step_s": statistics.median(walls), "parameters": parameters,
                          "processor_s": (time.process_time() - processor) / len(walls)}), flush=True)


class Peer:
    """A process with the compiled model. Code is compiled into `cache`, or into a new one: a file that
    was cut off by a kill would be loaded again."""

    def __init__(self, cell, tokens, cache=None):
        command = [sys.executable, __file__, "--serve", json.dumps(cell), "--tokens", str(tokens)]
        self.own = tempfile.TemporaryDirectory()
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      env=os.environ | {"TORCHINDUCTOR_CACHE_DIR": cache or self.own.name})

    def run(self, steps):
        self.child.stdin.write(f"{steps}\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        return json.loads(line) if line else fail("the process of torch ended")

    def close(self):
        self.child.stdin.close()
        self.child.wait()
        self.own.cleanup()


def run_dt(cell, tokens, steps):
    words = ["dt-bench", "step", "--json", "-n", str(steps), "-j", str(cell["threads"])]
    for part, values in settings(cell, tokens).items():
        for name, value in values.items():
            words += ["--set", f"{part}.{name}={value}"]
    done = subprocess.run(words, stdout=subprocess.PIPE, env=os.environ | {"DT_GEMM_PEAK": "1000"})
    return json.loads(done.stdout) if done.returncode == 0 else fail("dt-bench failed")


def measure(cell, a, done, file, end):
    """The rounds that are missing, up to the time `end`."""
    peer = Peer(cell, a.tokens, a.cache)
    peer.run(2)  # compiles
    if a.compile:
        peer.close()
        return
    steps = max(1, min(200, math.ceil(a.round_seconds / peer.run(1)["step_s"])))
    for _ in range(done, a.rounds):
        if time.time() > end:
            break
        dt, torch = run_dt(cell, a.tokens, steps), peer.run(steps)
        if dt["parameters"] != torch["parameters"]:
            fail(f"not the same model: {dt['parameters']} and {torch['parameters']} parameters")
        row = {**cell, "tokens": a.tokens, "steps": steps}
        row |= {f"{who}_{what}": result[what] for who, result in (("dt", dt), ("torch", torch))
                for what in ("step_s", "processor_s")}
        file.write(json.dumps(row) + "\n")
        file.flush()
    peer.close()


def ratio(row):
    what = "processor_s" if row["threads"] == 1 else "step_s"
    return row[f"torch_{what}"] / row[f"dt_{what}"]


def interval(values):
    """Of the median, by order statistics: at least 95% where there are 6 values or more."""
    n, k = len(values), 0
    while sum(math.comb(n, i) for i in range(k + 2)) * 2 <= 0.05 * 2 ** n:
        k += 1
    return values[k], values[n - 1 - k]


def key_of(row, tokens):
    return tuple(row[axis] for axis in AXES) + (tokens,)


def read(path):
    rows = {}
    if os.path.exists(path):
        with open(path) as file:
            for number, line in enumerate(file, 1):
                try:
                    row = json.loads(line)
                    rows.setdefault(key_of(row, row["tokens"]), []).append(row)
                except (ValueError, KeyError):
                    fail(f"{path}:{number}: not a row of this program; remove that line")
    return rows


def show(rows):
    """A table for each processor, with its worst cell."""
    for processor in sorted({key[0] for key in rows}):
        print(processor)
        show_processor({key[1:]: measured for key, measured in rows.items() if key[0] == processor})


def show_processor(rows):
    print(f"{'width':>6}{'T':>6}{'vocabulary':>11}{'precision':>10}{'threads':>8}{'rounds':>7}"
          f"{'dt ms':>9}{'ratio':>7}  interval")
    worst = None
    for key, measured in sorted(rows.items()):
        values = sorted(ratio(row) for row in measured)
        low, high = interval(values)
        middle, what = statistics.median(values), "processor_s" if key[4] == 1 else "step_s"
        milliseconds = 1e3 * statistics.median(row[f"dt_{what}"] for row in measured)
        print(f"{key[0]:6}{key[1]:6}{key[2]:11}{key[3]:>10}{key[4]:8}{len(values):7}{milliseconds:9.2f}"
              f"{middle:7.2f}  {low:.2f} to {high:.2f}")
        worst = min(worst or (middle, key), (middle, key))
    if worst:
        print(f"worst: {worst[0]:.2f} at " + ", ".join(f"{a} {v}" for a, v in zip(AXES[1:], worst[1])))


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", metavar="ROWS")
    parser.add_argument("--widths", type=numbers, default=[64, 256, 768])
    parser.add_argument("--lengths", type=numbers, default=[64, 256, 1024, 4096])
    parser.add_argument("--vocabularies", type=numbers, default=[1024, 50257])
    parser.add_argument("--precisions", type=lambda text: text.split(","), default=["fp32", "bf16"])
    parser.add_argument("--threads", type=numbers, default=sorted({1, os.cpu_count()}))
    parser.add_argument("--tokens", type=int, default=1024, help="of a batch, at least (default 1024)")
    parser.add_argument("-r", "--rounds", type=int, default=7, help="of each cell (default 7)")
    parser.add_argument("--round-seconds", type=float, default=1, help="steps of a turn (default 1)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no round after this time")
    parser.add_argument("--cache", metavar="DIR", help="keep torch's compiled code there, for the next run")
    parser.add_argument("--compile", action="store_true", help="only compile into --cache: measure nothing")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.serve:
        serve(json.loads(a.serve), a.tokens)
        return
    if a.output is None:
        parser.error("-o ROWS is needed: it is read, and rounds are appended to it")
    if a.compile and a.cache is None:
        parser.error("--compile needs --cache DIR")
    cells = [dict(zip(AXES, values)) for values in
             itertools.product([find_processor()], a.widths, a.lengths, a.vocabularies, a.precisions, a.threads)]

    def missing(rows):
        return [cell for cell in cells if len(rows.get(key_of(cell, a.tokens), [])) < a.rounds]

    rows, end = read(a.output), time.time() + a.seconds
    if missing(rows):
        need_programs("dt-bench")
        need_packages(torch="torch")
    with open(a.output, "a") as file:
        for cell in missing(rows):
            if time.time() < end:
                measure(cell, a, len(rows.get(key_of(cell, a.tokens), [])), file, end)
    rows = read(a.output)
    show(rows)
    if missing(rows):
        print(f"{len(missing(rows))} cells have fewer than {a.rounds} rounds: the same command goes on")


if __name__ == "__main__":
    main()
