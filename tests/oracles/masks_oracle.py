#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recall and false positives of dt-clean --mask, over layouts made from published formats.

    masks_oracle.py [LEAST]

Personal data is made at random in each layout, put into sentences, and must be replaced as a whole
by its mask. Formats: telephones of 32 countries in the international notation of ITU E.123 and
RFC 3966; IBANs of the registry's lengths, with and without groups (ISO 13616); cards with the
prefixes and groups of their issuers (ISO 7812); addresses of RFC 5322; IP addresses of RFC 5952 and
RFC 4291. Also texts that have none of these, which must stay. Prints a table; fails below LEAST
(default 0.99) of any kind, or if a text without personal data changes.
"""
import collections
import json
import random
import string
import subprocess
import sys

RNG = random.Random(11)

# Country code and groups of digits of the national number, as printed.
PHONES = """
1 3-3-4|7 3-3-2-2|20 2-4-4|27 2-3-4|30 3-3-4|31 2-3-4|31 1-8|32 3-2-2-2|33 1-2-2-2-2|34 3-2-2-2|34 3-3-3
36 1-3-4|39 2-4-4|39 3-7|40 2-3-4|41 2-3-2-2|43 1-3-4-2|43 3-7|44 2-4-4|44 4-6|45 2-2-2-2|45 8|46 2-3-2-2
46 1-3-3-2|47 2-2-2-2|47 3-2-3|48 2-3-2-2|48 3-3-3|49 2-4-4|49 3-8|49 4-5-3|52 2-4-4|54 2-4-4|55 2-5-4
55 2-4-4|56 1-4-4|60 1-4-4|61 1-4-4|61 3-3-3|62 2-4-4|63 1-4-4|64 1-3-4|65 4-4|66 1-3-4|81 1-4-4|81 2-4-4
82 2-4-4|84 2-4-4|86 2-4-4|86 3-4-4|90 3-3-2-2|91 5-5|91 2-4-4|351 3-3-3|353 1-3-4|358 2-3-4|380 2-3-2-2
420 3-3-3|971 1-3-4|972 1-3-4
""".replace("\n", "|").strip("|").split("|")
JOINS = [" ", "-", ".", "", "\u00a0", "\u2011"]

IBANS = {"AD": "4!n4!n12!c", "AT": "16!n", "BE": "12!n", "BG": "4!a6!n8!c", "BR": "23!n1!a1!c",
         "CH": "5!n12!c", "CY": "8!n16!c", "CZ": "20!n", "DE": "18!n", "DK": "14!n", "EE": "16!n",
         "ES": "20!n", "FI": "14!n", "FR": "10!n11!c2!n", "GB": "4!a14!n", "GR": "7!n16!c",
         "HR": "17!n", "HU": "24!n", "IE": "4!a14!n", "IL": "19!n", "IS": "22!n", "IT": "1!a10!n12!c",
         "KW": "4!a22!c", "LT": "16!n", "LU": "3!n13!c", "LV": "4!a13!c", "MC": "10!n11!c2!n",
         "MT": "4!a5!n18!c", "NL": "4!a10!n", "NO": "11!n", "PL": "24!n", "PT": "21!n",
         "RO": "4!a16!c", "SA": "2!n18!c", "SE": "20!n", "SI": "15!n", "SK": "20!n", "TR": "6!n16!c",
         "UA": "6!n19!c", "AE": "19!n", "AL": "8!n16!c", "AZ": "4!a20!c", "BA": "16!n", "BH": "4!a14!c",
         "CR": "18!n", "DO": "4!c20!n", "GE": "2!a16!n", "GI": "4!a15!c", "GT": "4!c20!c",
         "JO": "4!a4!n18!c", "KZ": "3!n13!c", "LB": "4!n20!c", "LI": "5!n12!c", "MD": "20!c",
         "ME": "18!n", "MK": "3!n10!c2!n", "MR": "23!n", "MU": "4!a19!n3!a", "PK": "4!a16!c",
         "PS": "4!a21!c", "QA": "4!a21!c", "RS": "18!n", "SM": "1!a10!n12!c", "TN": "20!n",
         "VG": "4!a16!n", "XK": "16!n"}

# Prefixes, and groups of digits.
CARDS = [(["4"], "4-4-4-4"), (["51", "52", "53", "54", "55", "2221", "2720", "2500"], "4-4-4-4"),
         (["34", "37"], "4-6-5"), (["36", "38", "300", "305"], "4-6-4"),
         (["6011", "65", "644"], "4-4-4-4"), (["3528", "3589"], "4-4-4-4"),
         (["62"], "4-4-4-4"), (["62"], "6-13"), (["5018", "6304", "6759"], "4-4-4-4"),
         (["2200", "2204"], "4-4-4-4"), (["4"], "4-4-4-4-3"), (["6521", "8172"], "4-4-4-4")]

SENTENCES = ["%s", "Please use %s now.", "Contact: %s", "(%s)", "see %s, or ask", "\"%s\"", "is %s; thanks",
             "Kontakt:\t%s\nEnde", "联系 %s 谢谢", "для %s связи"]

CORRECT = """It happened on 2024-12-31 at 10:30:00, and on 31.12.2024 too.
Version 1.2.3.4.5 follows 2.0.17 and 10.4.1.
The value is +52.5200066, near 13.4049540.
It cost 1,234,567.89 dollars, or 10.000.000 pesos, +10.000.000 in all.
ISBN 978-3-16-148410-0 and ISSN 2049-3630.
DOI 10.1000/182 and arXiv:2101.00027v1.
The server 192.168.1.10 talks to 10.0.0.1, 127.0.0.1 and 172.16.5.4.
fe80::1 and ::1 and 2001:db8::1 are not public.
Order 1234567890123456 of 2020-01-01.
MD5 d41d8cd98f00b204e9800998ecf8427e, UUID 123e4567-e89b-12d3-a456-426614174000.
At 12:30 the score was 3-2, 21-19, 15-21.
Write to user@localhost, @handle or a@b.
Pages 123-456, 1999-2005, 100 200 300.
GB00 and DE12 3456 are short.
Bits 0000 0000 0000 0000 and 1111 2222 3333 4444.
Chapter 10.1.2.3.4 and section 256.300.1.1.
The ratio 3.14159265358979323846 and 2.718281828.
Phone models 3310, 6230i and 1100.
C++11 has std::vector<int>, a::b::c and 12::34.
1 000 000 people, 25 000 km2, 4 500 m.
""".splitlines()


def digits(n, first="0123456789"):
    return RNG.choice(first) + "".join(RNG.choices(string.digits, k=n - 1)) if n else ""


def phones():
    for line in PHONES:
        country, groups = line.split()
        sizes = [int(g) for g in groups.split("-")]
        for join in JOINS:
            parts = [digits(sizes[0], "23456789")] + [digits(s) for s in sizes[1:]]
            yield "+" + country + join + join.join(parts)
        if len(parts) == 1:
            continue
        yield "+" + country + " (" + parts[0] + ") " + "-".join(parts[1:])
        yield "+" + country + " (0)" + parts[0] + " " + " ".join(parts[1:])
        yield "+" + country + "-" + parts[0] + "/" + "".join(parts[1:])
        if country == "1":
            area, office, line = digits(3, "23456789"), digits(3, "23456789"), digits(4)
            for form in ("(%s) %s-%s", "%s-%s-%s", "%s.%s.%s", "%s %s %s", "1-%s-%s-%s", "1 (%s) %s-%s",
                         "(%s)%s-%s"):
                yield form % (area, office, line)


def ibans():
    for country, form in IBANS.items():
        body, number = "", ""
        for c in form:
            if c.isdigit():
                number += c
            elif c in "nac":
                letters = {"n": string.digits, "a": string.ascii_uppercase,
                           "c": string.digits + string.ascii_uppercase}[c]
                body += "".join(RNG.choices(letters, k=int(number)))
                number = ""
        whole = int("".join(str(int(c, 36)) for c in body + country + "00"))
        iban = "%s%02d%s" % (country, 98 - whole % 97, body)
        yield iban
        for join in (" ", "-", "\u00a0"):
            yield join.join(iban[i : i + 4] for i in range(0, len(iban), 4))


def luhn(number):
    total = sum(int(c) if i % 2 else sum(divmod(2 * int(c), 10))
                for i, c in enumerate(reversed(number)))
    return str(-total % 10)


def cards():
    for prefixes, groups in CARDS:
        sizes = [int(g) for g in groups.split("-")]
        for prefix in prefixes:
            for join in (" ", "-", "", "\u00a0", "."):
                number = prefix + digits(sum(sizes) - len(prefix) - 1)
                number += luhn(number)
                parts, at = [], 0
                for size in sizes:
                    parts.append(number[at : at + size])
                    at += size
                yield join.join(parts)


def emails():
    locals_ = ["jane", "jane.doe", "jane+news", "j_d", "o'hara", "x", "jane-doe", "1234", "a.b.c.d",
               "jane.doe%example", "def!xyz", "user=name", "ÜserName", "\"jane doe\"", "_jane", "a&b", "~me"]
    hosts = ["example.com", "mail.example.co.uk", "ex-ample.org", "sub.sub2.example.net", "example.museum",
             "123.example.de", "exämple.de", "xn--exmple-cua.de", "EXAMPLE.COM", "a.io"]
    for local in locals_:
        for host in hosts:
            yield local + "@" + host


def addresses():
    for _ in range(60):
        yield "%d.%d.%d.%d" % (RNG.choice([8, 23, 52, 81, 93, 145, 193, 216]), RNG.randrange(256),
                               RNG.randrange(256), RNG.randrange(256))
    for _ in range(40):
        groups = ["%x" % RNG.choice([0x2a02, 0x2600, 0x2404, 0x2003])] + [
            "%x" % RNG.randrange(1, 65536) for _ in range(7)]
        yield ":".join(groups)
        yield ":".join(groups).upper()
        yield ":".join(groups[:4]) + "::" + groups[7]
        yield groups[0] + "::" + groups[7]
        yield ":".join(groups[:6]) + ":%d.%d.2.33" % (RNG.randrange(1, 255), RNG.randrange(256))


KINDS = {"phone": (phones, "PHONE_NUMBER"), "iban": (ibans, "IBAN"), "card": (cards, "CREDIT_CARD"),
         "email": (emails, "EMAIL_ADDRESS"), "ip": (addresses, "IP_ADDRESS")}


def main():
    least = float(sys.argv[1]) if len(sys.argv) > 1 else 0.99
    cases = []
    for kind, (make, mask) in KINDS.items():
        for item in make():
            sentence = RNG.choice(SENTENCES)
            cases.append((kind, item, sentence % item, sentence % ("|||" + mask + "|||")))
    cases += [("none", line, line, line) for line in CORRECT]
    lines = "".join(json.dumps({"text": c[2]}) + "\n" for c in cases)
    out = subprocess.run(["dt-clean", "-q", "--mask", "all"], input=lines, text=True,
                         capture_output=True, check=True).stdout
    count, failed = collections.Counter(), False
    for (kind, item, _, want), line in zip(cases, out.splitlines()):
        got = json.loads(line)["text"]
        count[kind, got == want] += 1
        if got != want:
            print("%s: %s -> %s" % (kind, item, got))
    for kind in [*KINDS, "none"]:
        right, wrong = count[kind, True], count[kind, False]
        share = right / (right + wrong)
        failed = failed or share < (least if kind != "none" else 1)
        print("%-6s %4d layouts, %.2f %% right" % (kind, right + wrong, 100 * share))
    sys.exit(failed)


if __name__ == "__main__":
    main()
