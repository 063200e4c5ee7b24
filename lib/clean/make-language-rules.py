#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes share/rules/fineweb2.rules: the thresholds and stop words of other languages than English.

    make-language-rules.py DIRECTORY > share/rules/fineweb2.rules

DIRECTORY/text has the packages that lib/language/make-model.py unpacked; dt-clean is on the path.
The method is FineWeb-2's (Penedo et al., 2025): the stop words of a language are its words with a
frequency of at least 0.8 %, at least eight; its thresholds are those of English times the ratio of
the medians of what a rule measures.  FineWeb-2 compares Wikipedia in both languages; here they are
translations, so that both are the same documents.  Where the scripts have no blanks between words,
the repetition of characters is compared, by the ratio of the values that a tenth of the documents
exceed.
"""
import collections
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = open(os.path.join(HERE, "../language/make-model.py"), encoding="utf-8").read()
exec(MODEL[:MODEL.rindex("main(sys.argv[1])")])
RULES = os.path.join(HERE, "../../share/rules/fineweb.rules")

UNSPACED = {"ja": "characters", "zh": "characters", "th": "clusters", "km": "clusters"}
DOCUMENT = 1500    # characters of English
DOCUMENTS = 400
FREQUENCY, LEAST = 0.008, 8
DENSE = 0.7        # of the characters of English: short lines are normal
MEDIANS = ["gopher-words-min", "gopher-word-length-min", "gopher-word-length-max",
           "gopher-alphabetic-words", "fineweb-line-feeds", "fineweb-stopped-lines"]
TENTHS = [f"gopher-top-{n}-gram-chars" for n in (2, 3, 4)] + \
         [f"gopher-duplicate-{n}-gram-chars" for n in range(5, 11)]
# Other codes of the same language: ISO 639-3 and the script, as GlotLID writes them.
CODES = dict(p.split(":") for p in """ar:arb_Arab bg:bul_Cyrl ca:cat_Latn cs:ces_Latn da:dan_Latn
de:deu_Latn el:ell_Grek eo:epo_Latn es:spa_Latn et:ekk_Latn eu:eus_Latn fa:fas_Arab fi:fin_Latn
fr:fra_Latn gl:glg_Latn he:heb_Hebr hi:hin_Deva hr:hrv_Latn hu:hun_Latn id:ind_Latn is:isl_Latn
it:ita_Latn ja:jpn_Jpan km:khm_Khmr ko:kor_Hang lt:lit_Latn lv:lvs_Latn mk:mkd_Cyrl mr:mar_Deva
nl:nld_Latn no:nob_Latn pl:pol_Latn pt:por_Latn ro:ron_Latn ru:rus_Cyrl sk:slk_Latn sl:slv_Latn
sr:srp_Cyrl sv:swe_Latn ta:tam_Taml th:tha_Thai tr:tur_Latn uk:ukr_Cyrl vi:vie_Latn
zh:cmn_Hani""".split())


def pairs(text):
    """Messages and their translations by language, each once, long enough to be sentences."""
    found = {language: {} for language in CODES}
    for path in sorted(glob.glob(text + "/**/*.mo", recursive=True)):
        language = language_of(os.path.relpath(path, text))
        if language not in found:
            continue
        for english, translated in messages(path):
            english, translated = plain(english), plain(translated)
            if len(english) >= 60 and translated != english and fits(language, translated):
                found[language][english] = translated
    return found


def documents(messages):
    """Two lists of texts: English, and its translation."""
    english, other, size = [[]], [[]], 0
    for key in sorted(messages, key=lambda m: hashlib.sha256(m.encode()).digest()):
        english[-1].append(key)
        other[-1].append(messages[key])
        size += len(key)
        if size >= DOCUMENT:
            size = 0
            english.append([])
            other.append([])
    return ["\n".join(d) for d in english[:-1]][:DOCUMENTS], \
        ["\n".join(d) for d in other[:-1]][:DOCUMENTS]


def measure(texts, language):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as f:
        for text in texts:
            f.write(json.dumps({"text": text, "meta": {"lang": language}}) + "\n")
        f.flush()
        out = subprocess.run(["dt-clean", "-q", "--attributes", "--rules", RULES, f.name],
                             check=True, capture_output=True, text=True).stdout
    values = collections.defaultdict(list)
    for line in out.splitlines():
        for name, spans in json.loads(line)["attributes"].items():
            values[name.removeprefix("dt__")].append(spans[0][2])
    return values


def tenth(values):
    return sorted(values)[len(values) * 9 // 10]


def stop_words(texts, language):
    kind = UNSPACED.get(language)
    if kind == "clusters":
        return []
    pattern = r"[\u3040-\u30ff\u4e00-\u9fff]" if kind else r"[^\W\d_][^\W\d_\u0300-\u036f]*"
    if language in ("hi", "mr", "ta"):
        pattern = r"[\u0900-\u0963\u0971-\u097f\u0b80-\u0bff]+"
    words = collections.Counter(w for t in texts for w in re.findall(pattern, t) if w == w.lower())
    total = sum(words.values())
    common = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    return [w for i, (w, n) in enumerate(common) if n / total >= FREQUENCY or i < LEAST]


def rounded(x):
    return f"{x:.3g}" if x < 100 else f"{x:.0f}"


def section(language, english, other, thresholds):
    ours, theirs = measure(english, "en"), measure(other, language)
    yield f"[lang {language} {CODES[language]}]"
    for name in MEDIANS + (TENTHS if language in UNSPACED else []):
        of = statistics.median if name in MEDIANS else tenth
        limit = thresholds[name] * of(theirs[name]) / max(of(ours[name]), 1e-9)
        if name not in ("gopher-words-min", "gopher-word-length-min", "gopher-word-length-max"):
            limit = "off" if limit >= 1 else rounded(limit)
        else:
            limit = rounded(limit)
        yield f"{name}: {limit}"
    if sum(map(len, other)) < DENSE * sum(map(len, english)):
        yield "fineweb-short-lines: off"
    words = stop_words(other, language)
    if not words:
        yield "gopher-stop-words: off"
    for i in range(0, len(words), 20):
        yield "stop-words: " + " ".join(words[i:i + 20])
    yield ""


def main(directory):
    lines = open(RULES, encoding="utf-8").read().splitlines()
    thresholds = {m[1]: float(m[2]) for m in (re.match(r"([a-z0-9-]+): ([0-9.]+)", l) for l in lines)
                  if m}
    print("# FineWeb's rules, and thresholds and stop words of other languages after FineWeb-2's method,")
    print("# by lib/clean/make-language-rules.py.  For dt-clean --identify, or with meta.lang.")
    print(*lines[2:], sep="\n")
    print()
    for language, messages_of in sorted(pairs(os.path.join(directory, "text")).items()):
        english, other = documents(messages_of)
        print(language, len(english), file=sys.stderr)
        if len(english) >= 20:
            print(*section(language, english, other, thresholds), sep="\n")


main(sys.argv[1])
