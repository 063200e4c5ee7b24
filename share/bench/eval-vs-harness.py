#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times dt-eval tasks and lm-evaluation-harness beside each other, on random data with the fields of public
benchmarks.

  eval-vs-harness.py [--documents N] [--shots N] [--rounds N] [-j THREADS] [TASK ...]

The model is a llama of 6 layers of width 288 with random weights. The two take turns; the table has medians. dt-eval's
time is that of the whole program; the harness's, in one process, is without starting Python and loading the
model. Needs lm_eval, PyTorch and transformers, and dt-eval on PATH or in build/bin.
"""
import argparse
import contextlib
import io
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../tests/oracles")]
import common

common.need_packages(torch="torch", transformers="transformers", lm_eval="lm_eval")
import torch

import make_tasks
import tasks_oracle


def processor():
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def timed(work):
    """Seconds, and seconds of processors."""
    start, used = time.perf_counter(), processor()
    work()
    return time.perf_counter() - start, processor() - used


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--shots", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-j", "--threads", type=int, default=os.cpu_count())
    parser.add_argument("tasks", nargs="*", default=["arc_easy", "boolq", "hellaswag", "lambada_openai", "mmlu", "wikitext"])
    args = parser.parse_args()
    common.need_programs("dt-eval")
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as directory:
        make_tasks.write_data(directory, args.documents)
        make_tasks.write_model(directory, "bench")
        from lm_eval.models.huggingface import HFLM
        lm = HFLM(pretrained=f"{directory}/model", device="cpu", batch_size=16, dtype="float32")

        def ours(task):
            subprocess.run(["dt-eval", "-q", "-j", str(args.threads), "-m", f"{directory}/model", "--data", directory,
                            "--shots", args.shots, "--bootstrap", "1000", "-o", "/dev/null", "tasks", task], check=True)

        def theirs(task):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                tasks_oracle.evaluate(directory, args.shots, [task], samples=False, bootstrap=0, lm=lm)

        print(f"{'':20}{'dt s':>10}{'harness s':>12}{'faster by':>11}{'less processor time by':>24}")
        for task in args.tasks:
            pairs = [(timed(lambda: ours(task)), timed(lambda: theirs(task))) for _ in range(args.rounds)]
            dt, harness = (statistics.median(p[i][0] for p in pairs) for i in (0, 1))
            ratios = [statistics.median(b[i] / a[i] for a, b in pairs) for i in (0, 1)]
            print(f"{task:20}{dt:10.2f}{harness:12.2f}{ratios[0]:10.2f}x{ratios[1]:23.2f}x", flush=True)


if __name__ == "__main__":
    main()
