#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Main text of labelled pages: dt-extract beside trafilatura, jusText and resiliparse.

    extract_scores.py [--each] [--only NAME,...] DIRECTORY...

A directory has pages NAME.html and their main text NAME.txt; or html/NAME.html and txt/NAME.txt,
as newspaper4k's source has them below tests/data. Precision, recall and F1 are those of shingles
of four words (letters of scripts without spaces are words), of each page, and their means, as in
the article extraction benchmark. Programs that are not installed are left out; dt-extract is
taken from PATH. One JSON object a line.
"""
import argparse
import collections
import glob
import json
import os
import re
import subprocess
import tempfile

WORD = re.compile(r"[\u0e00-\u0e7f\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]|"
                  r"[^\W\u0e00-\u0e7f\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]+")


def shingles(text, n=4):
    words = WORD.findall(text.lower())
    return collections.Counter(tuple(words[i:i + n]) for i in range(max(len(words) - n + 1, 0)))


def score(found, true):
    a, b = shingles(found), shingles(true)
    both = sum((a & b).values())
    precision = both / sum(a.values()) if a else float(not b)
    recall = both / sum(b.values()) if b else 1.0
    return precision, recall, 2 * precision * recall / (precision + recall) if both else 0.0


def pages(directories):
    for d in directories:
        for path in sorted(glob.glob(f"{d}/*.html") + glob.glob(f"{d}/html/*.html")):
            text = path[:-5].replace("/html/", "/txt/") + ".txt"
            if os.path.exists(text):
                with open(path, "rb") as f, open(text, encoding="utf-8") as g:
                    yield path, f.read(), g.read()


def dt_extract(page):
    with tempfile.NamedTemporaryFile(suffix=".html") as f:
        f.write(page)
        f.flush()
        run = subprocess.run(["dt-extract", "-q", "--from", "text", f.name], capture_output=True)
    return json.loads(run.stdout.splitlines()[0])["text"] if run.stdout else ""


def trafilatura_text(page):
    import trafilatura
    return trafilatura.extract(page, favor_precision=False, include_comments=False,
                               deduplicate=False) or ""


def fineweb_text(page):  # as datatrove calls it
    import trafilatura
    return trafilatura.extract(page, favor_precision=True, include_comments=False,
                               deduplicate=True) or ""


STOPLISTS = {"de": "German", "fr": "French", "es": "Spanish", "ru": "Russian", "ar": "Arabic",
             "hi": "Hindi", "ko": "Korean", "lv": "Latvian"}


def justext_text(page):
    import justext
    language = re.search(rb"<html[^>]* lang=[\"']?([a-z]{2})", page)
    name = STOPLISTS.get(language.group(1).decode() if language else "", "English")
    return "\n".join(p.text for p in justext.justext(page, justext.get_stoplist(name))
                     if not p.is_boilerplate)


def resiliparse_text(page):
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import detect_encoding, bytes_to_str
    return extract_plain_text(bytes_to_str(page, detect_encoding(page)), main_content=True)


PROGRAMS = {"dt-extract": dt_extract, "trafilatura": trafilatura_text,
            "trafilatura-precision": fineweb_text, "jusText": justext_text,
            "resiliparse": resiliparse_text}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", action="store_true", help="also each page")
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("directories", nargs="+")
    args = parser.parse_args()
    labelled = list(pages(args.directories))
    for name in args.only.split(","):
        scores = []
        try:
            for path, page, true in labelled:
                scores.append(score(PROGRAMS[name](page), true))
                if args.each:
                    print(json.dumps({"program": name, "page": os.path.basename(path),
                                      "f1": round(scores[-1][2], 3),
                                      "precision": round(scores[-1][0], 3),
                                      "recall": round(scores[-1][1], 3)}))
        except ImportError as e:
            print(json.dumps({"program": name, "skipped": str(e)}))
            continue
        means = [sum(s) / len(scores) for s in zip(*scores)]
        print(json.dumps({"program": name, "pages": len(scores), "precision": round(means[0], 3),
                          "recall": round(means[1], 3), "f1": round(means[2], 3)}), flush=True)


if __name__ == "__main__":
    main()
