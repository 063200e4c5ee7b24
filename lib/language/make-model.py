#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes languages.ftz, the identifier of languages that dt-clean --identify uses.

    make-model.py DIRECTORY         writes DIRECTORY/languages.ftz and DIRECTORY/held-out.tsv

The text is translations in packages of Debian: messages (.mo), help and manual pages.  Packages are
downloaded by apt-get(8) to DIRECTORY/packages and unpacked; an existing directory is used again.
Needs Debian, and `pip install fasttext-wheel 'numpy<2'`.  The same packages give the same model.
"""
import collections
import gettext
import glob
import gzip
import hashlib
import html
import os
import re
import subprocess
import sys

PACKAGES = """gimp-data vlc-l10n krita-l10n gnome-user-docs installation-guide-amd64 gnucash-common
kdenlive-data digikam-data evolution-common wesnoth-1.16-data audacity-data libreoffice-l10n-th
libreoffice-l10n-vi libreoffice-l10n-ar libreoffice-l10n-fa libreoffice-l10n-he libreoffice-l10n-hi
libreoffice-l10n-ko libreoffice-l10n-el libreoffice-help-vi libreoffice-help-hi libreoffice-help-ko
libreoffice-help-ja libreoffice-help-zh-cn libreoffice-help-km libreoffice-help-el
libreoffice-help-id libreoffice-help-tr manpages-de manpages-fr manpages-ja manpages-ru manpages-zh
manpages-pl manpages-es""".split()
# Languages with enough text, and the names of locales that are the same language.
LANGUAGES = """ar bg ca cs da de el en eo es et eu fa fi fr gl he hi hr hu id is it ja km ko lt lv mk
mr nl no pl pt ro ru sk sl sr sv ta th tr uk vi zh""".split()
SAME = {"nb": "no", "nn": "no", "iw": "he", "in": "id"}
ENGLISH = frozenset("the and that with this which are from".split())
CHARACTERS = (40, 400)  # of a sample
SAMPLES = 12000         # of a language, at most
HELD_OUT = 300


def unpack(directory):
    packages, text = os.path.join(directory, "packages"), os.path.join(directory, "text")
    if os.path.isdir(text):
        return text
    os.makedirs(packages, exist_ok=True)
    subprocess.run(["apt-get", "-q", "download", *PACKAGES], cwd=packages, check=True)
    for package in sorted(glob.glob(packages + "/*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, text + ".part"], check=True)
    os.rename(text + ".part", text)
    return text


def language_of(path):
    """The code of the locale that a path names, or None."""
    for part in path.split("/"):
        code = re.fullmatch(r"([a-z]{2,3})([_-][A-Za-z]{2})?(\.UTF-8)?", part)
        if code and SAME.get(code[1], code[1]) in LANGUAGES and not part.startswith("man"):
            return SAME.get(code[1], code[1])
    return None


def plain(text):
    """Text without markup, formats, options and keys."""
    text = re.sub(r"(?s)<(script|style|code|pre)\b.*?</\1>", " ", text)
    text = html.unescape(re.sub(r"<[^>]*>", " ", text))
    text = re.sub(r"%[-+0-9.$]*[a-z]|%[0-9]+|\$[\w{(\[]+[\])}]?|\{\w*\}|https?://\S+|\S+@\S+", " ", text)
    return re.sub(r"\s+", " ", text.replace("_", "").replace("&", "")).strip()


def messages(path):
    """The English text and the translation of each message."""
    try:
        catalog = gettext.GNUTranslations(open(path, "rb"))._catalog
    except (OSError, UnicodeDecodeError, ValueError):
        return
    for key, value in catalog.items():
        key = key[0] if isinstance(key, tuple) else key
        if key and value and value != key:
            yield key.split("\x04")[-1], value


def manual(data):
    """Paragraphs of a page in troff."""
    text = re.sub(r"(?m)^['.\\].*$", "\n", data)
    text = re.sub(r"\\f.|\\[&%|,/^]|\\\(..|\\\*?\[[^]]*\]|\\-", "", text)
    return re.split(r"\n\s*\n", text)


def paragraphs(path, data):
    if "/man/" in path:
        return manual(data)
    return re.split(r"(?i)</?(?:p|title|h\d|li|td|div|dd|dt)\b[^>]*>|\n\s*\n", data)


def read(path):
    data = (gzip.open(path) if path.endswith(".gz") else open(path, "rb")).read()
    return data.decode("utf-8", "replace")


def is_english(text):
    """Whether a paragraph of a translation was left in English: most words of other languages are not these."""
    words = re.findall(r"\w+", text.lower())
    return sum(w in ENGLISH for w in words) > 0.1 * len(words)


def samples(text):
    """Pairs of language and text, in the order of paths."""
    for path in sorted(glob.glob(text + "/**", recursive=True)):
        if not os.path.isfile(path) or os.path.islink(path):
            continue
        language = language_of(os.path.relpath(path, text))
        if path.endswith(".mo") and language:
            for english, translated in messages(path):
                yield "en", english
                yield language, translated
        elif language and re.search(r"\.(page|html|[1-8]\.gz)$", path):
            for part in paragraphs(path, read(path)):
                yield "en" if is_english(part) else language, part


# Scripts whose letters a text must mostly have.
SCRIPTS = {"ar": "\u0600-\u06ff", "fa": "\u0600-\u06ff", "bg": "\u0400-\u04ff", "el": "\u0370-\u03ff",
           "he": "\u0590-\u05ff", "hi": "\u0900-\u097f", "mr": "\u0900-\u097f", "th": "\u0e00-\u0e7f",
           "ja": "\u3040-\u30ff\u4e00-\u9fff", "zh": "\u4e00-\u9fff", "ko": "\uac00-\ud7a3",
           "km": "\u1780-\u17ff", "mk": "\u0400-\u04ff", "ru": "\u0400-\u04ff",
           "uk": "\u0400-\u04ff", "ta": "\u0b80-\u0bff"}


def fits(language, text):
    letters = sum(c.isalpha() for c in text)
    wanted = SCRIPTS.get(language, "A-Za-z\u00c0-\u024f\u1e00-\u1eff\u0400-\u04ff")
    short = CHARACTERS[0] // (2 if language in ("ja", "zh", "ko") else 1)
    return len(text) >= short and letters > 0.6 * len(text.replace(" ", "")) and \
        len(re.findall(f"[{wanted}]", text)) > 0.5 * letters


def collect(text):
    """Different texts of each language, by the order of their hashes: mixed, and always the same."""
    found = {language: {} for language in LANGUAGES}
    for language, part in samples(text):
        part = plain(part)[:CHARACTERS[1]]
        if fits(language, part):
            found[language][hashlib.sha256(part.encode()).digest()] = part
    times = collections.Counter(key for parts in found.values() for key in parts)
    return {language: [parts[k] for k in sorted(parts) if times[k] == 1 or language == "en"]
            [:SAMPLES + HELD_OUT] for language, parts in found.items()}  # not untranslated ones


def train(directory, corpus):
    import fasttext
    fasttext.FastText.eprint = lambda text: None
    path = os.path.join(directory, "training.txt")
    lines = [(hashlib.sha256((language + part).encode()).digest(), f"__label__{language} {part}\n")
             for language, parts in corpus.items() for part in parts[HELD_OUT:]]
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(line for _, line in sorted(lines))
    model = fasttext.train_supervised(path, dim=16, minn=1, maxn=4, minCount=1000, bucket=200000,
                                      epoch=6, lr=0.2, thread=1, seed=1, verbose=0)
    model.quantize(path, cutoff=20000, retrain=True, epoch=2, lr=0.1, qnorm=True, dsub=4, thread=1,
                   verbose=0)
    model.save_model(os.path.join(directory, "languages.ftz"))


def main(directory):
    corpus = collect(unpack(directory))
    with open(os.path.join(directory, "held-out.tsv"), "w", encoding="utf-8") as f:
        for language, parts in corpus.items():
            print(language, len(parts), file=sys.stderr)
            f.writelines(f"{language}\t{part}\n" for part in parts[:HELD_OUT])
    train(directory, corpus)


main(sys.argv[1])
