#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Web pages to cleaned documents, dt and datatrove in turn: processor seconds, and what they keep.

    share/bench/extract-vs-datatrove.py [--rounds N] [--extract-only] [--identifier MODEL] [WARC]

dt runs `dt-extract -j 1 | dt-clean -j 1 --rules fineweb`; datatrove reads the same WARC file, extracts
with trafilatura, applies the filters of its FineWeb example, and writes JSON Lines, on one worker.
With a model of fastText, such as lid.176.ftz, both first keep English of score 0.65. With
--extract-only neither cleans. Seconds are user and system time of all processes of each; the median
of the rounds, which alternate.

Then the filters of both decide on the same documents, those of dt-extract: agreement is the share that
both keep or both drop. With a model, labels is the share of documents whose language is fastText's.
pages_of_both are the pages that both kept of the WARC file, each from the text that it extracted.

Without WARC, 200 HTML pages of /usr/share/doc. Needs dt's programs on PATH or in build/bin, and Python
with datatrove and trafilatura; for a model also fasttext. One JSON object.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

PIPELINE = """
import os, sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader, WarcReader
from datatrove.pipeline.extractors import Trafilatura
from datatrove.pipeline.filters import (C4QualityFilter, FineWebQualityFilter, GopherQualityFilter,
                                        GopherRepetitionFilter, LanguageFilter)
from datatrove.pipeline.writers.jsonl import JsonlWriter
from datatrove.utils import lid
if __name__ == "__main__":
    source, out, clean, model = sys.argv[1:5]
    folder, name = os.path.split(source)
    read = [JsonlReader(folder, glob_pattern=name)] if name.endswith(".jsonl") else \
        [WarcReader(folder, glob_pattern=name), Trafilatura(favour_precision=True, timeout=60)]
    filters = [GopherRepetitionFilter(), GopherQualityFilter(),
               C4QualityFilter(filter_no_terminal_punct=False), FineWebQualityFilter()]
    if model:
        lid.cached_asset_path_or_download = lambda *args, **more: model
        filters.insert(0, LanguageFilter(languages="en"))
    LocalPipelineExecutor([*read, *(filters if clean == "1" else []), JsonlWriter(out, compression=None)],
                          tasks=1, logging_dir=out + "/logs", skip_completed=False).run()
"""


def pages(folder):
    """A WARC file of the pages that this machine has."""
    found = subprocess.run(["find", "/usr/share/doc", "-name", "*.html", "-size", "+2k"], capture_output=True,
                           text=True).stdout.split("\n")[:-1]
    if not found:
        common.fail("/usr/share/doc has no HTML pages; give a WARC file, as `make corpus` writes them")
    with open(f"{folder}/pages.warc.gz", "wb") as f:
        subprocess.run([sys.executable, f"{common.HERE}/make-warc.py", *sorted(found)[:200]], stdout=f, check=True)
    return f"{folder}/pages.warc.gz"


def documents(path, member="id"):
    if not os.path.exists(path):  # datatrove writes no file if it keeps nothing
        return []
    with open(path, encoding="utf-8") as f:
        return [one.get(member) or (one.get("meta") or one["metadata"])[member]
                for one in map(json.loads, f)]


class Comparison:
    def __init__(self, args, work):
        self.work, self.model = work, os.path.abspath(args.identifier) if args.identifier else ""
        self.warc, self.clean = os.path.abspath(args.warc or pages(work)), not args.extract_only
        with open(f"{work}/pipeline.py", "w") as f:
            f.write(PIPELINE)
        language = f"--identify --identifier '{self.model}' --language en --language-score 0.65"
        self.rules = f"dt-clean -q -j 1 {language if self.model else ''} --rules fineweb"

    def dt(self):
        rules = f" | {self.rules}" if self.clean else ""
        return common.shell_seconds(f"dt-extract -q -j 1 '{self.warc}'{rules} >{self.work}/ours.jsonl")

    def datatrove(self, source=None, out="theirs"):
        return common.processor_seconds([sys.executable, f"{self.work}/pipeline.py", source or self.warc, f"{self.work}/{out}",
                    str(int(self.clean)), self.model])

    def decisions(self):
        """Of the same documents."""
        common.shell_seconds(f"dt-extract -q '{self.warc}' -o {self.work}/texts.jsonl")
        common.shell_seconds(f"{self.rules} -o {self.work}/kept.jsonl {self.work}/texts.jsonl")
        self.datatrove(f"{self.work}/texts.jsonl", "filtered")
        names = documents(f"{self.work}/texts.jsonl")
        ours = set(documents(f"{self.work}/kept.jsonl"))
        theirs = set(documents(f"{self.work}/filtered/00000.jsonl"))
        differ = ours ^ theirs
        return {"documents": len(names), "kept_by_dt": len(ours), "kept_by_datatrove": len(theirs),
                "differ": sorted(differ)[:20], "agreement": round(1 - len(differ) / len(names), 5)}

    def labels(self):
        import fasttext
        model = fasttext.load_model(self.model)
        common.shell_seconds(f"dt-clean -q --identify --identifier '{self.model}' -o {self.work}/labelled.jsonl "
              f"{self.work}/texts.jsonl")
        with open(f"{self.work}/labelled.jsonl", encoding="utf-8") as f:
            every = [json.loads(line) for line in f]
        equal = sum(model.predict(d["text"].replace("\n", " "))[0][0] == "__label__" + d["meta"]["lang"]
                    for d in every)
        return {"documents": len(every), "equal": equal}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--extract-only", action="store_true")
    parser.add_argument("--identifier", metavar="MODEL")
    parser.add_argument("warc", nargs="?")
    args = parser.parse_args()
    common.need_programs("dt-extract", "dt-clean")
    common.need_packages(datatrove="datatrove[io]", trafilatura="trafilatura",
                         **({"fasttext": "fasttext-wheel"} if args.identifier else {}))
    work = tempfile.mkdtemp()
    both = Comparison(args, work)
    imports = [sys.executable, "-c", "import datatrove.executor, trafilatura"]
    times = {"dt": [], "datatrove": [], "imports": []}
    for _ in range(args.rounds):
        times["dt"].append(both.dt())
        times["datatrove"].append(both.datatrove())
        times["imports"].append(common.processor_seconds(imports))
    medians = {name: statistics.median(t) for name, t in times.items()}
    ours = set(documents(f"{work}/ours.jsonl", "url"))
    theirs = set(documents(f"{work}/theirs/00000.jsonl", "url")) if both.clean else set()
    result = {
        "warc": os.path.basename(both.warc), "megabytes": round(os.path.getsize(both.warc) / 1e6, 1),
        "seconds": {name: round(t, 3) for name, t in medians.items()},
        "ratio": round(medians["datatrove"] / medians["dt"], 1),
        "ratio_without_imports": round((medians["datatrove"] - medians["imports"]) / medians["dt"], 1)}
    if both.clean:
        result["pages_of_both"] = {"dt": len(ours), "datatrove": len(theirs), "both": len(ours & theirs)}
        result["decisions"] = both.decisions()
    if both.model:
        result["labels"] = both.labels()
    print(json.dumps(result))
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
