#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tasks of pipelines/corpus.mk on a cluster of Ray or Dask.

    corpus-tasks.py ray  --tasks 64 INPUTS='...' OUT=/shared/corpus
    corpus-tasks.py dask --tasks 64 --address tcp://head:8786 INPUTS='...' OUT=/shared/corpus

VARIABLE=VALUE are the settings of corpus.mk. All machines have this directory, INPUTS and OUT under
the same paths. Without --address, Ray finds its cluster as ray.init() does, and both else start one
on this machine. A task that fails, or whose worker dies, is started again, on any machine; it makes
only what is not done. Ends with status 1, and the last lines of each task that failed, unless all of
it was made.
"""
import argparse
import ctypes
import os
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PR_SET_PDEATHSIG = 1  # of prctl(2)


def run(command, directory):
    """The exit status of a command, and what it printed. It ends with its worker."""
    libc = ctypes.CDLL(None)
    p = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, errors="replace",
                       preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM))
    return p.returncode, p.stdout


class Ray:
    def __init__(self, address, jobs):
        import ray
        self.ray = ray
        ray.init(address=address, log_to_driver=False, logging_level="warning")
        self.remote = ray.remote(num_cpus=jobs, max_retries=0)(run)

    def submit(self, command, directory):
        return self.remote.remote(command, directory)

    def wait(self, futures):
        return self.ray.wait(futures, num_returns=1)[0][0]

    def result(self, future):
        return self.ray.get(future)

    def close(self):
        self.ray.shutdown()


class Dask:
    def __init__(self, address, jobs):
        from dask.distributed import Client, wait
        self.first_of = wait
        local = {} if address else {"n_workers": max(1, os.cpu_count() // jobs), "threads_per_worker": 1}
        self.client = Client(address, **local)

    def submit(self, command, directory):
        return self.client.submit(run, command, directory, pure=False)

    def wait(self, futures):
        return next(iter(self.first_of(futures, return_when="FIRST_COMPLETED").done))

    def result(self, future):
        return future.result()

    def close(self):
        self.client.close()


def outcome(engine, future):
    try:
        return engine.result(future)
    except Exception as problem:  # of the engine, as when a worker died
        return 1, f"{type(problem).__name__}: {problem}"


def run_phase(engine, commands, retries):
    """Runs commands, by name, and returns the outputs; ends the program if one fails."""
    running = {engine.submit(c, ROOT): (name, 1) for name, c in commands.items()}
    outputs, failed = {}, 0
    while running:
        future = engine.wait(list(running))
        name, attempt = running.pop(future)
        status, outputs[name] = outcome(engine, future)
        if status == 0:
            continue
        lines = outputs[name].strip().splitlines()
        tail = "\n  ".join([line for line in lines if not line.startswith("make")][-4:] or lines[-1:])
        print(f"{name}: attempt {attempt} failed:\n  {tail}", file=sys.stderr)
        if attempt <= retries:
            running[engine.submit(commands[name], ROOT)] = (name, attempt + 1)
        else:
            failed += 1
    if failed:
        sys.exit(f"{failed} of {len(commands)} tasks failed; the same command makes what is missing")
    return outputs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=("ray", "dask"))
    parser.add_argument("--tasks", type=int, required=True, help="into how many tasks the chunks are divided")
    parser.add_argument("--jobs", type=int, default=1, help="processors of a task (default 1)")
    parser.add_argument("--retries", type=int, default=2, help="how often a task is started again (default 2)")
    parser.add_argument("--address", help="of the cluster")
    parser.add_argument("settings", nargs="*", metavar="VARIABLE=VALUE")
    args = parser.parse_intermixed_args()
    if args.tasks < 1 or args.jobs < 1 or not all("=" in s for s in args.settings):
        parser.error("--tasks and --jobs are above 0, and settings are VARIABLE=VALUE")
    make = ["make", "-s", "--no-print-directory", "-f", "pipelines/corpus.mk", "-k", f"-j{args.jobs}", *args.settings]
    try:
        engine = {"ray": Ray, "dask": Dask}[args.engine](args.address, args.jobs)
    except ImportError as missing:
        sys.exit(f"{missing}: pip install {'ray' if args.engine == 'ray' else 'dask[distributed]'}")
    if subprocess.run([*make, "settings"], cwd=ROOT).returncode != 0:
        sys.exit(1)
    try:
        for goal, tasks in (("first", args.tasks), ("middle", 1), ("second", args.tasks), ("summary", 1)):
            names = {f"{goal} {i}/{tasks}": [*make, goal, f"TASK={i}/{tasks}"] for i in range(tasks)}
            outputs = run_phase(engine, names, args.retries)
        print("".join(outputs.values()), end="")
    finally:
        engine.close()


if __name__ == "__main__":
    main()
