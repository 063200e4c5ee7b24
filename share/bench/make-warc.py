#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a WARC file of HTML files, as a crawler would: make-warc.py [OPTION...] FILE... > web.warc.gz

Directories are searched for .html and .html.gz. Each page is a record in a separate member of gzip, a
response with HTTP headers and SHA-1 digests; every tenth page is preceded by its request, and followed
by a metadata record. The bytes depend on the arguments and files alone.

  --plain      no gzip around the records
  --coding C   Content-Encoding of the bodies: identity (default), gzip, or mix (every third gzip,
               every fifth chunked)
  --wet        conversion records of the files' bytes as they are, instead of responses
  --limit N    the first N pages
"""
import argparse
import base64
import gzip
import hashlib
import os
import sys
import uuid
import zlib

DATE = "2024-01-01T00:00:00Z"


def find(paths):
    for path in paths:
        if not os.path.isdir(path):
            yield path
        for directory, names, files in sorted(os.walk(path)):
            names.sort()
            yield from (os.path.join(directory, f) for f in sorted(files)
                        if f.endswith((".html", ".htm", ".html.gz")))


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    return gzip.decompress(data) if path.endswith(".gz") else data


def digest(data):
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


def record(kind, url, block, mime, more=()):
    name = uuid.uuid5(uuid.NAMESPACE_URL, kind + url)
    fields = [("WARC-Type", kind), ("WARC-Record-ID", f"<urn:uuid:{name}>"), ("WARC-Date", DATE),
              ("WARC-Target-URI", url), ("Content-Type", mime),
              ("WARC-Block-Digest", digest(block)), *more, ("Content-Length", str(len(block)))]
    head = "WARC/1.0\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields if v)
    return head.encode() + b"\r\n" + block + b"\r\n\r\n"


def response(body, number, coding):
    headers = ["HTTP/1.1 200 OK", "Content-Type: text/html"]
    if coding == "gzip" or (coding == "mix" and number % 3 == 2):
        body = gzip.compress(body, mtime=0)
        headers.append("Content-Encoding: gzip")
    if coding == "mix" and number % 5 == 4:
        body = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in
                        (body[i:i + 4000] for i in range(0, len(body), 4000))) + b"0\r\n\r\n"
        headers.append("Transfer-Encoding: chunked")
    return ("\r\n".join(headers) + "\r\n\r\n").encode() + body


def records(paths, args):
    yield record("warcinfo", "", b"software: dt make-warc\r\n", "application/warc-fields")
    for number, path in enumerate(find(paths)):
        if args.limit and number >= args.limit:
            return
        url = "https://pages.example/" + os.path.relpath(path, "/").replace(" ", "%20")
        body = read(path)
        if args.wet:
            yield record("conversion", url, body, "text/plain")
            continue
        if number % 10 == 0:
            yield record("request", url, b"GET / HTTP/1.1\r\nHost: pages.example\r\n\r\n",
                         "application/http; msgtype=request")
        yield record("response", url, response(body, number, args.coding),
                     "application/http; msgtype=response",
                     [("WARC-Identified-Payload-Type", "text/html")])
        if number % 10 == 0:
            yield record("metadata", url, b"fetchTimeMs: 1\r\n", "application/warc-fields")


def member(data):
    z = zlib.compressobj(6, zlib.DEFLATED, 31)
    return z.compress(data) + z.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--wet", action="store_true")
    parser.add_argument("--coding", choices=["identity", "gzip", "mix"], default="identity")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("paths", nargs="+")
    args = parser.parse_args()
    for one in records(args.paths, args):
        sys.stdout.buffer.write(one if args.plain else member(one))


if __name__ == "__main__":
    main()
