# SPDX-License-Identifier: MIT
"""datatrove's decisions on documents, with the rule names of dt-rules(5).

    datatrove_oracle.py DOCUMENTS.jsonl

prints one line per document, separated by tabs: its id, and for each of gopher, c4 and fineweb
"keep" or the name of the first rule that drops it.
"""
import json
import sys

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)

NAMES = {
    "dup_para_frac": "gopher-duplicate-paragraphs",
    "dup_para_char_frac": "gopher-duplicate-paragraph-chars",
    "dup_line_frac": "gopher-duplicate-lines",
    "dup_line_char_frac": "gopher-duplicate-line-chars",
    "gopher_short_doc": "gopher-words-min",
    "gopher_long_doc": "gopher-words-max",
    "gopher_below_avg_threshold": "gopher-word-length-min",
    "gopher_above_avg_threshold": "gopher-word-length-max",
    "gopher_too_many_hashes": "gopher-number-signs",
    "gopher_too_many_ellipsis": "gopher-ellipses",
    "gopher_too_many_bullets": "gopher-bullet-lines",
    "gopher_too_many_end_ellipsis": "gopher-ellipsis-lines",
    "gopher_below_alpha_threshold": "gopher-alphabetic-words",
    "gopher_enough_stop_words": "gopher-stop-words",
    "lorem_ipsum": "c4-lorem-ipsum",
    "curly_bracket": "c4-braces",
    "too_few_sentences": "c4-sentences",
    "empty": "fineweb-stopped-lines",
    "line_punct_ratio": "fineweb-stopped-lines",
    "short_line_ratio": "fineweb-short-lines",
    "char_dup_ratio": "fineweb-duplicate-line-chars",
    "list_ratio": "fineweb-line-feeds",
}
for n in (2, 3, 4):
    NAMES[f"top_{n}_gram"] = f"gopher-top-{n}-gram-chars"
for n in range(5, 11):
    NAMES[f"duplicated_{n}_n_grams"] = f"gopher-duplicate-{n}-gram-chars"

GOPHER = [GopherRepetitionFilter(), GopherQualityFilter()]
SETS = [
    GOPHER,
    [C4QualityFilter()],
    GOPHER + [C4QualityFilter(filter_no_terminal_punct=False), FineWebQualityFilter()],
]


def decide(filters, text):
    document = Document(text=text, id="")
    for one in filters:
        result = one.filter(document)
        if result is not True:
            return NAMES[result[1]]
    return "keep"


def main():
    for line in open(sys.argv[1], encoding="utf-8"):
        document = json.loads(line)
        print(document["id"], *(decide(s, document["text"]) for s in SETS), sep="\t")


main()
