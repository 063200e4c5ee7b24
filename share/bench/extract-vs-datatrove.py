#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Web pages to cleaned documents, dt and datatrove in turn: processor seconds of each.

    share/bench/extract-vs-datatrove.py [--rounds N] [--extract-only] WARC

dt runs `dt-extract -j 1 | dt-clean -j 1 --rules fineweb --dedup`, datatrove's pipeline reads the
same WARC file, extracts with trafilatura, applies the filters of FineWeb and writes JSON Lines, on
one worker. With --extract-only neither cleans. Seconds are user and system time of all
processes of each; the median of the rounds, which alternate. Needs dt on PATH, and Python
with datatrove and trafilatura. One JSON object.
"""
import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

PIPELINE = """
import sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import WarcReader
from datatrove.pipeline.extractors import Trafilatura
from datatrove.pipeline.filters import (C4QualityFilter, FineWebQualityFilter, GopherQualityFilter,
                                        GopherRepetitionFilter)
from datatrove.pipeline.writers.jsonl import JsonlWriter
if __name__ == "__main__":
    folder, name, out, clean = sys.argv[1:5]
    filters = [GopherRepetitionFilter(), GopherQualityFilter(),
               C4QualityFilter(filter_no_terminal_punct=False), FineWebQualityFilter()]
    LocalPipelineExecutor([WarcReader(folder, glob_pattern=name),
                           Trafilatura(favour_precision=True, timeout=60),
                           *(filters if clean == "1" else []),
                           JsonlWriter(out, compression=None)],
                          tasks=1, logging_dir=out + "/logs", skip_completed=False).run()
"""


def seconds(command, **more):
    """Processor seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def documents(path):
    with open(path, "rb") as f:
        return sum(1 for _ in f)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--extract-only", action="store_true")
    parser.add_argument("warc")
    args = parser.parse_args()
    warc = os.path.abspath(args.warc)
    work = tempfile.mkdtemp()
    with open(f"{work}/pipeline.py", "w") as f:
        f.write(PIPELINE)
    ours = f"dt-extract -q -j 1 '{warc}' -o {work}/ours.jsonl" if args.extract_only else \
        f"dt-extract -q -j 1 '{warc}' | dt-clean -q -j 1 --rules fineweb --dedup -o {work}/ours.jsonl"
    theirs = [sys.executable, f"{work}/pipeline.py", os.path.dirname(warc), os.path.basename(warc),
              f"{work}/theirs", "0" if args.extract_only else "1"]
    empty = [sys.executable, "-c", "import datatrove.executor, trafilatura"]
    times = {"dt": [], "datatrove": [], "imports": []}
    for _ in range(args.rounds):
        times["dt"].append(seconds(["bash", "-o", "pipefail", "-c", ours]))
        times["datatrove"].append(seconds(theirs))
        times["imports"].append(seconds(empty))
    medians = {name: statistics.median(t) for name, t in times.items()}
    print(json.dumps({
        "warc": os.path.basename(warc), "megabytes": round(os.path.getsize(warc) / 1e6, 1),
        "seconds": {name: round(t, 3) for name, t in medians.items()},
        "ratio": round(medians["datatrove"] / medians["dt"], 1),
        "ratio_without_imports":
            round((medians["datatrove"] - medians["imports"]) / medians["dt"], 1),
        "documents": {"dt": documents(f"{work}/ours.jsonl"),
                      "datatrove": documents(f"{work}/theirs/00000.jsonl")}}))
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
