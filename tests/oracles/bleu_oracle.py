# SPDX-License-Identifier: MIT
"""bleu_oracle.py REFERENCE SYSTEM...: scores files with dt-eval and sacrebleu, with all options
that both have; fails unless scores agree to 1e-9 and signatures are equal."""
import json
import subprocess
import sys

from sacrebleu.metrics import BLEU, CHRF


def lines(path):
    return [line.rstrip() for line in open(path, encoding="utf-8", newline="\n")]


reference, systems = sys.argv[1], sys.argv[2:]
for references in ([reference], [reference, systems[0]]):
    for words in ("13a", "char", "intl", "none"):
        command = ["dt-eval", "--json", "--words", words, "bleu"] + systems
        for path in references:
            command += ["-r", path]
        ours = json.loads(subprocess.check_output(command))["systems"]
        metrics = {"BLEU": BLEU(tokenize=words), "chrF2": CHRF(), "chrF2++": CHRF(word_order=2)}
        for system in ours:
            for name, metric in metrics.items():
                theirs = metric.corpus_score(lines(system["file"]), [lines(p) for p in references])
                signature = str(metric.get_signature())
                mine = system[name]
                print(f"{system['file']} {name} {theirs.score:.12f} {mine['score']:.12f} {signature}")
                if abs(theirs.score - mine["score"]) > 1e-9 or mine["signature"] != signature:
                    sys.exit(f"dt-eval: {mine}")
