#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Telephone numbers as they are written in their countries, by the phonenumbers package.

    phones_oracle.py > tests/repair/golden/phones.txt

For each region valid numbers of its numbering plan are made at random from the examples of fixed lines and
mobile telephones, and written as libphonenumber does nationally, and with the separators that the
region also uses. A line is REGION, tab, number. The package has the published plans (ITU-T E.129).
"""
import random
import sys

import phonenumbers
from phonenumbers import PhoneNumberFormat, PhoneNumberType

RNG = random.Random(5)
REGIONS = "DE AT CH FR ES PT BR RU JP KR CN IN TH VN GB US EG SA AE MA DZ JO IT NL PL TR ID MX UA".split()
EACH = 38

# Beside the national format: what replaces its spaces, or a bracket around the area code.
ALSO = {"DE": ["/", "-", "()"], "AT": ["/", "()"], "CH": ["nbsp"], "FR": [".", "-", "nbsp"], "ES": ["-", "nbsp"],
        "PT": ["nbsp"], "BR": ["bare"], "RU": ["-", "bare"], "JP": ["()", "wide"], "KR": ["()"], "CN": ["-", "()"],
        "IN": ["-"], "TH": ["-"], "VN": [".", "-"], "GB": ["()", "-"], "US": ["-", ".", "bare"], "EG": ["-"],
        "SA": ["-"], "AE": ["-"], "MA": ["-"], "IT": ["-", "/"], "NL": ["-"], "PL": ["-"], "TR": ["bare"],
        "ID": ["bare"], "UA": ["-", "()"]}


def numbers(region):
    examples = [phonenumbers.example_number_for_type(region, kind)
                for kind in (PhoneNumberType.FIXED_LINE, PhoneNumberType.MOBILE)]
    for i in range(10**6):
        if i % 200 == 0:
            example = phonenumbers.national_significant_number(RNG.choice([e for e in examples if e]))
            kept = RNG.choice([1, 2, 3])
        text = example[:kept] + "".join(RNG.choice("0123456789") for _ in example[kept:])
        try:
            number = phonenumbers.parse(text, region)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number_for_region(number, region):
            yield number
            kept = RNG.choice([1, 2, 3])
            example = phonenumbers.national_significant_number(RNG.choice([e for e in examples if e]))


def rewrite(text, way):
    if way == "nbsp":
        return text.replace(" ", "\u00a0")
    if way == "wide":
        return text.translate({i: i + 0xFEE0 for i in range(ord("0"), ord("9") + 1)})
    if way == "bare":
        return text.replace("(", "").replace(")", "")
    if way == "()":
        first, gap, rest = text.partition(" " if " " in text else "-")
        return "(%s) %s" % (first, rest) if gap and "(" not in first else text
    if way == "/":
        return text.replace(" ", "/", 1)
    return text.replace(" ", way)


def main():
    for region in REGIONS:
        found, made = {}, numbers(region)
        while len(found) < EACH:
            text = phonenumbers.format_number(next(made), PhoneNumberFormat.NATIONAL)
            way = RNG.choice([None] * 3 + ALSO.get(region, []))
            found[rewrite(text, way) if way else text] = True
        for text in found:
            sys.stdout.write("%s\t%s\n" % (region, text))


if __name__ == "__main__":
    main()
