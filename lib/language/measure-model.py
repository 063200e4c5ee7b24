#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often dt-clean --identify is right on texts of other kinds than its model was trained on.

    measure-model.py DIRECTORY [MODEL ...]

Passages of 40 to 400 characters, at most 300 of a language and kind: quotations and jokes (Debian's
fortunes), manual pages in languages of which the training had none, and sentences of news (spaCy's
examples, if Python has it). Prints the share of passages with the right language, by dt's model and by
others, such as lid.176.ftz, by kind, and for each language where one is below 95 %. Packages are downloaded by
apt-get(8) to DIRECTORY. Needs Debian, and dt-clean on PATH.
"""
import collections
import glob
import gzip
import importlib
import json
import os
import random
import re
import subprocess
import sys

FORTUNES = {"bg": "fortunes-bg", "pt": "fortunes-br", "cs": "fortunes-cs", "de": "fortunes-de", "eo": "fortunes-eo",
            "es": "fortunes-es", "it": "fortunes-it", "pl": "fortunes-pl", "ru": "fortunes-ru", "en": "fortunes"}
MANUALS = {code: "manpages-" + code for code in "cs da el fi hu id it nl ro sr sv tr uk vi".split()}
MANUALS.update(no="manpages-nb", pt="manpages-pt-br")
SHORT, LONG, MOST = 40, 400, 300


def unpack(directory, package):
    target = os.path.join(directory, package)
    if not os.path.isdir(target):
        subprocess.run(["apt-get", "-q", "download", package], cwd=directory, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["dpkg-deb", "-x", *glob.glob(f"{directory}/{package}_*.deb"), target], check=True)
    return target


def quotations(directory):
    for language, package in FORTUNES.items():
        for path in sorted(glob.glob(unpack(directory, package) + "/usr/share/games/fortunes/**", recursive=True)):
            if os.path.isfile(path) and not path.endswith((".dat", ".u8")):
                with open(path, "rb") as f:
                    for part in re.split(r"\n%+\n", f.read().decode("utf-8", "replace")):
                        yield language, part


def manuals(directory):
    for language, package in MANUALS.items():
        for path in sorted(glob.glob(unpack(directory, package) + "/usr/share/man/*/man*/*.gz")):
            with gzip.open(path) as f:
                text = re.sub(r"(?m)^['.\\].*$", "\n", f.read().decode("utf-8", "replace"))
            for part in re.split(r"\n\s*\n", re.sub(r"\\f.|\\[&%|,/^]|\\\(..|\\\*?\[[^]]*\]|\\-", "", text)):
                yield language, part


def news(_):
    spacy = os.path.dirname(importlib.import_module("spacy").__file__)
    for path in sorted(glob.glob(spacy + "/lang/*/examples.py")):
        language = path.split("/")[-2]
        for part in importlib.import_module(f"spacy.lang.{language}.examples").sentences:
            yield {"nb": "no", "nn": "no"}.get(language, language), part


def choose(parts, known):
    """Different passages of the model's languages, at most MOST of each."""
    found = collections.defaultdict(set)
    for language, part in parts:
        part = re.sub(r"\s+", " ", part).strip()[:LONG]
        letters = sum(c.isalpha() for c in part)
        if language in known and letters > 0.6 * len(part.replace(" ", "")) and \
                len(part) >= SHORT // (2 if language in ("ja", "ko", "zh") else 1):
            found[language].add(part)
    rng = random.Random(1)
    return [(language, part) for language in sorted(found)
            for part in rng.sample(sorted(found[language]), min(MOST, len(found[language])))]


def identify(passages, model):
    command = ["dt-clean", "-q", "--identify", *(["--identifier", model] if model else [])]
    lines = "".join(json.dumps({"text": text}) + "\n" for _, text in passages)
    out = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout
    return [json.loads(line)["meta"]["lang"] for line in out.splitlines()]


def main(directory, *models):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "make-model.py"), encoding="utf-8") as f:
        known = set(re.search(r'LANGUAGES = """(.*?)"""', f.read(), re.S)[1].split())
    names = ["dt", *(os.path.basename(model) for model in models)]
    for read in (quotations, manuals, news):
        try:
            passages = choose(read(directory), known)
        except ImportError:
            print(f"{read.__name__}: not measured, Python has no spacy")
            continue
        right = {name: collections.Counter() for name in names}
        taken = collections.defaultdict(collections.Counter)
        total = collections.Counter(language for language, _ in passages)
        for name, model in zip(names, [None, *models]):
            for (language, _), label in zip(passages, identify(passages, model)):
                right[name][language] += label == language
                if name == "dt" and label != language:
                    taken[language][label] += 1
        shares = ", ".join(f"{name} {100 * right[name].total() / len(passages):.1f} %" for name in names)
        print(f"{read.__name__}: {len(passages)} passages in {len(total)} languages: {shares}")
        for language in sorted(total, key=lambda one: right["dt"][one] / total[one]):
            each = [right[name][language] / total[language] for name in names]
            if min(each) < 0.95:
                print(f"  {language} {total[language]:4}", *(f"{100 * share:6.1f}" for share in each),
                      " ", *(f"{label} {n}" for label, n in taken[language].most_common(3)))


main(*sys.argv[1:])
