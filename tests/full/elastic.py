# SPDX-License-Identifier: MIT
"""elastic.py SEED EVENTS REPEATED RUN COMMAND...

Starts processes of an elastic run, kills, stops and continues, ends (SIGTERM) and adds some at
random, and then ends all. Fails if one ends otherwise, if a generation begins more than REPEATED
steps before what was done, or if nothing happens for a minute. 1 to 6 processes are alive.
"""

import json
import random
import signal
import subprocess
import sys
import time

MOST = 6
PATIENCE = 60  # seconds without a step


class Run:
    def __init__(self, repeated, directory, command):
        self.repeated, self.directory, self.command = repeated, directory, command
        self.processes, self.stopped = [], {}
        self.step = self.generations = 0
        self.moved = time.monotonic()

    def start(self):
        said = open(f"said.{len(self.processes)}", "wb")
        self.processes.append(subprocess.Popen(self.command, stdout=said, stderr=said))

    def alive(self):
        return [p for p in self.processes if p.poll() is None and p not in self.stopped]

    def look(self):
        try:
            with open(f"{self.directory}/metrics.jsonl") as file:
                lines = [json.loads(line) for line in file if line.endswith("\n")]
        except (FileNotFoundError, json.JSONDecodeError):  # it is being replaced
            return
        generations = sum("generation" in line for line in lines)
        last = max((line["step"] for line in lines), default=0)
        if generations > self.generations:
            met = [line["step"] for line in lines if "generation" in line][self.generations :]
            if min(met) < self.step - self.repeated:
                raise SystemExit(f"step {self.step} was done, and ranks met at {min(met)}")
        if last > self.step or generations > self.generations:
            self.moved = time.monotonic()
        self.step, self.generations = max(last, self.step), generations

    def check(self):
        for p in self.processes:
            if p.poll() not in (None, -signal.SIGKILL, -signal.SIGTERM):
                raise SystemExit(f"process {self.processes.index(p)} ended with {p.poll()}")
        if self.alive() and time.monotonic() - self.moved > PATIENCE:
            raise SystemExit(f"no step after {self.step} for {PATIENCE} s")

    def wait(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for p in [p for p, when in self.stopped.items() if time.monotonic() > when]:
                p.send_signal(signal.SIGCONT)
                del self.stopped[p]
            self.look()
            self.check()
            time.sleep(0.05)

    def wait_for_ranks(self):
        while self.generations == 0:
            self.wait(0.1)

    def disturb(self, draw):
        alive = self.alive()
        event = draw.choice(["join", "kill", "stop", "leave"] if len(alive) > 1 else ["join"])
        if event == "join" and len(alive) + len(self.stopped) >= MOST:
            return None
        if event == "join":
            self.start()
        else:
            p = draw.choice(alive)
            if event == "stop":
                self.stopped[p] = time.monotonic() + draw.uniform(0.1, 5)
            p.send_signal(
                {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "leave": signal.SIGTERM}[event]
            )
        return event

    def end(self):
        for p in self.stopped:
            p.send_signal(signal.SIGCONT)
        self.stopped = {}
        self.wait(3)
        for p in self.processes:
            p.send_signal(signal.SIGTERM)
        for p in self.processes:
            p.wait(PATIENCE)
        self.check()


def main():
    draw = random.Random(int(sys.argv[1]))
    run = Run(int(sys.argv[3]), sys.argv[4], sys.argv[5:])
    counts = {}
    try:
        for _ in range(3):
            run.start()
        run.wait_for_ranks()
        while sum(counts.values()) < int(sys.argv[2]):
            run.wait(draw.uniform(0.1, 4))
            event = run.disturb(draw)
            if event:
                counts[event] = counts.get(event, 0) + 1
        run.end()
    finally:
        for p in run.processes:
            if p.poll() is None:
                p.kill()
    print(f"{counts}, {run.generations} generations, {run.step} steps")


main()
