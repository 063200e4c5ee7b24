#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What dt-clean and datatrove keep in each language, with the same rules.

    rules_by_language_oracle.py [--most N] LANGUAGE=DOCUMENTS.jsonl ...

The rules are Gopher's and FineWeb's. Stop words are, as in FineWeb-2, the words with a frequency of
at least 0.8 %, at least 8, and the limits of mean word length are those of the documents but for 1 %
at each end, of words by datatrove's tokenizer of the language. dt-clean has the same numbers in a rule
file. For zh, ja and th it takes the words of ICU, and the limits of their mean length. In Korean and
Vietnamese words mean something else to datatrove, morphemes and compounds: there stop words and word
lengths are those of dt's words, and limits of numbers of words, of all and of those with letters, are
those for the ratios of both. Both decide on each document. One line of JSON for each language.

Needs dt on PATH, and datatrove with its tokenizers: pip install datatrove spacy indic-nlp-library
'kiwipiepy<0.21' jieba sudachipy sudachidict_core pythainlp pyvi.
"""
import argparse
import collections
import itertools
import json
import os
import re
import subprocess
import tempfile

from datatrove.data import Document
from datatrove.pipeline.filters import (FineWebQualityFilter, GopherQualityFilter,
                                        GopherRepetitionFilter)
from datatrove.utils.word_tokenizers import load_word_tokenizer

# Names that datatrove has one tokenizer for.
NAMES = {"ar": "arb_Arab", "de": "deu_Latn", "fr": "fra_Latn", "hi": "hin_Deva", "ja": "jpn_Jpan",
         "ko": "kor_Hang", "ru": "rus_Cyrl", "th": "tha_Thai", "vi": "vie_Latn", "zh": "cmn_Hani"}
WITHOUT_BLANKS = ("ja", "th", "zh")
OTHER_WORDS = ("ko", "vi")
WORD = re.compile(r"\w+|[^\w\s]")
RULES = os.path.join(os.path.dirname(__file__), "../../share/rules/fineweb.rules")


def settings(words):
    """Stop words, and the limits of mean word length; words: those of each document."""
    words = [[w for w in one if any(c.isalpha() for c in w)] for one in words]
    counts = collections.Counter(itertools.chain.from_iterable(words))
    total = sum(counts.values())
    stop = [w for i, (w, n) in enumerate(counts.most_common(60)) if n >= 0.008 * total or i < 8]
    return stop, *limits(sum(map(len, w)) / len(w) for w in words if w)


def limits(means):
    """Of the mean lengths but for 1 % at each end."""
    means = sorted(means)
    cut = len(means) // 100
    return round(means[cut] - 0.005, 2), round(means[-1 - cut] + 0.005, 2)


def by_datatrove(language, found, texts):
    name = NAMES.get(language, language)
    stop, low, high = found
    filters = [GopherRepetitionFilter(language=name),
               GopherQualityFilter(language=name, stop_words=stop, min_avg_word_length=low,
                                   max_avg_word_length=high),
               FineWebQualityFilter(language=name)]
    return [all(f.filter(Document(text=t, id="")) is True for f in filters) for t in texts]


def rule_file(language, found, ratio):
    """ratio: of the number of dt's words to datatrove's, all and those with letters."""
    stop, low, high = found
    changed = {"gopher-word-length-min": low, "gopher-word-length-max": high,
               "gopher-words-min": 50 * ratio[0], "fineweb-line-feeds": 0.3 / ratio[0],
               "gopher-alphabetic-words": 0.8 * ratio[1] / (0.8 * ratio[1] + 0.2)}
    yield "words: icu" if language in WITHOUT_BLANKS else "words: characters"
    yield "stop-words: " + " ".join(stop)
    with open(RULES, encoding="utf-8") as f:
        for line in f:
            rule = line.split(":")[0]
            if rule in changed:
                line = f"{rule}: {changed[rule]:.4g}"
            if rule.startswith(("gopher", "fineweb")):
                yield line.strip()


def run_dt(language, rules, texts, *options):
    """The objects that dt-clean writes."""
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/rules", "w", encoding="utf-8") as f:
            f.write("\n".join(rules) + "\n")
        lines = (json.dumps({"id": str(i), "text": t, "meta": {"lang": language}})
                 for i, t in enumerate(texts))
        run = subprocess.run(["dt-clean", "-q", "--line-ends", "keep", "--allow-empty", *options, "--rules",
                              f"{work}/rules"], input="\n".join(lines), capture_output=True, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def count(words):
    """Of all documents: words, and words with letters."""
    return sum(map(len, words)), sum(any(map(str.isalpha, w)) for one in words for w in one)


def by_dt(language, found, ratio, texts):
    kept = {document["id"] for document in run_dt(language, rule_file(language, found, ratio), texts)}
    return [str(i) in kept for i in range(len(texts))]


def limits_of_dt(language, texts):
    """Of mean word length, of ICU's words."""
    name = "gopher-word-length-min"
    found = run_dt(language, ["words: icu", f"{name}: 0"], texts, "--attributes")
    return limits(document["attributes"]["dt__" + name][0][2] for document in found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=200, help="documents of each language")
    parser.add_argument("documents", nargs="+", metavar="LANGUAGE=FILE")
    args = parser.parse_args()
    for operand in args.documents:
        language, path = operand.split("=", 1)
        with open(path, encoding="utf-8") as f:
            texts = [json.loads(line)["text"] for line in itertools.islice(f, args.most)]
        tokenizer = load_word_tokenizer(NAMES.get(language, language))
        words = [tokenizer.word_tokenize(t) for t in texts]
        found, mine, ratio = settings(words), settings(words), (1, 1)
        if language in OTHER_WORDS:
            own = [WORD.findall(t) for t in texts]
            mine, ratio = settings(own), [a / b for a, b in zip(count(own), count(words))]
        if language in WITHOUT_BLANKS:
            mine = found[0], *limits_of_dt(language, texts)
        theirs, ours = by_datatrove(language, found, texts), by_dt(language, mine, ratio, texts)
        differ = sum(a != b for a, b in zip(ours, theirs))
        print(json.dumps({"language": language, "documents": len(texts), "kept_by_dt": sum(ours),
                          "kept_by_datatrove": sum(theirs), "decisions_differ": differ,
                          "percent_apart": round(100 * abs(sum(ours) - sum(theirs)) / len(texts), 2)}),
              flush=True)


if __name__ == "__main__":
    main()
