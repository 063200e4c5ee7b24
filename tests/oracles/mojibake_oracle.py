#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mojibake that dt-clean --mojibake and ftfy mend, by encoding.

    mojibake_oracle.py [CASES.json]

Sentences of many languages are mangled once and twice by every encoding that has all their bytes.
With CASES.json, ftfy's tests/test_cases.json, its wild cases are counted too. Fails if dt-clean
mends fewer than ftfy, or changes a correct sentence.
"""
import collections
import json
import subprocess
import sys

import ftfy

ENCODINGS = ["latin-1", "sloppy-windows-1252", "sloppy-windows-1251", "sloppy-windows-1250",
             "sloppy-windows-1253", "sloppy-windows-1254", "sloppy-windows-1257", "iso-8859-2",
             "macroman", "cp437"]
SENTENCES = [
    "Il était une fois, à Genève, un garçon très sage qui n'aimait pas l'hôpital.",
    "Die Straße führt über die Brücke nach München, „schön“ ist es dort.",
    "El niño comió piñones; ¿qué más quería su mamá?",
    "Já não há ninguém aqui, disse a avó à irmã.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Zażółć gęślą jaźń.",
    "Árvíztűrő tükörfúrógép.",
    "Šiaip įdomu, kaip jūs įsivaizduojate ąžuolą.",
    "Glāžšķūņa rūķīši dzērumā čiepj Baha koncertflīģeļu vākus.",
    "Pijamalı hasta yağız şoföre çabucak güvendi.",
    "Съешь же ещё этих мягких французских булок.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.",
    "Việt Nam có nhiều món ăn ngon.",
    "דג סקרן שט בים מאוכזב.",
    "نص حكيم له سر قاطع.",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा।",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า",
    "天地玄黄，宇宙洪荒。",
    "いろはにほへと ちりぬるを",
    "키스의 고유조건은 입술끼리 만나야 하고.",
    "It’s “quoted” – and … done, for 5 €.",
    "I ❤ you 😀.",
]


def mangled(text, encoding):
    try:
        return text.encode("utf-8").decode(encoding)
    except UnicodeDecodeError:
        return None


def clean(texts):
    lines = "".join(json.dumps({"text": t}) + "\n" for t in texts)
    out = subprocess.run(["dt-clean", "-q", "--mojibake"], input=lines, text=True,
                         capture_output=True, check=True)
    return [json.loads(line)["text"] for line in out.stdout.splitlines()]


def main():
    cases = [("correct", s, s) for s in SENTENCES]
    for encoding in ENCODINGS:
        for sentence in SENTENCES:
            once = mangled(sentence, encoding)
            twice = once and mangled(once, encoding)
            cases += [(encoding, once, sentence)] if once else []
            cases += [(encoding + " twice", twice, sentence)] if twice else []
    if len(sys.argv) > 1:
        for c in json.load(open(sys.argv[1], encoding="utf-8")):
            want = c.get("fixed-encoding", c["fixed"])
            if not any(ord(x) < 32 for x in c["original"]):
                name = "wild" if want != c["original"] else "wild, correct"
                cases.append((name, c["original"], want))
    ours = clean([c[1] for c in cases])
    count = collections.defaultdict(lambda: [0, 0, 0])
    for (name, text, want), got in zip(cases, ours):
        row = count[name]
        row[0] += 1
        row[1] += ftfy.fix_encoding(text) == want
        row[2] += got == want
        if got != want and "correct" in name:
            sys.exit(f"changed: {text!r} to {got!r}")
    for name, (n, theirs, mine) in count.items():
        print(f"{name}: {n} texts, ftfy mends {theirs}, dt-clean {mine}")
    total = [sum(row[i] for row in count.values()) for i in range(3)]
    print(f"all: {total[0]} texts, ftfy {total[1]}, dt-clean {total[2]}")
    sys.exit(total[2] < total[1])


if __name__ == "__main__":
    main()
