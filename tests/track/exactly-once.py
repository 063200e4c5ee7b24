#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""exactly-once.py METRICS STORE: the only run in STORE has each number of each line of METRICS
once, with its step and value, and nothing else. (Steps repeated by a resumed run count once:
the file then has them once as well.)"""
import json, sys

lines = [json.loads(l) for l in open(sys.argv[1])]
# Where a step has a line of training and one of validation, the first one's counts.
expected = {(k, l["step"]): v for l in reversed(lines) if "step" in l for k, v in l.items()
            if k != "step" and isinstance(v, (int, float))}
runs = json.load(open(sys.argv[2]))["runs"]
assert len(runs) == 1, "%d runs" % len(runs)
points = runs[0]["metrics"]
got = {(p["key"], p["step"]): p["value"] for p in points}
assert len(points) == len(got), "%d of %d points are doubled" % (len(points) - len(got), len(points))
assert set(got) == set(expected), "missing %s, too many %s" % (
    sorted(set(expected) - set(got))[:3], sorted(set(got) - set(expected))[:3])
# What depends on the clock differs where a resumed run repeats a step.
timed = ("time", "tokens_per_second", "samples_per_second", "mfu", "peak_gflops", "threads",
         "resident_memory", "peak_memory", "loader_seconds")
wrong = [k for k in got if got[k] != expected[k] and k[0] not in timed]
assert not wrong, wrong[:3]
print(runs[0]["info"]["status"])
