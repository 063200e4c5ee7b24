# SPDX-License-Identifier: MIT
"""objects.py DIRECTORY LOG PORT: an HTTP server on 127.0.0.1 for the files of DIRECTORY, with
Range and If-Range. Requests are appended to LOG, with Range and Authorization; the port is written
to PORT. The first parts of a path change the answer: /cut/N/FILE ends each after N bytes,
/once/N/FILE the first only, /stuck/... always at the start after that, /fail/N/FILE answers the
first N requests with 503, /plain/FILE has no Range and no tags, /endless/FILE no length,
/identity/FILE none and a Transfer-Encoding, /norange/N/FILE no Range and is cut after N bytes once, /changes/N/FILE is cut after N bytes and
then has another tag, /to/URL redirects, /status/N answers N, /signed/N/FILE redirects to a URL that
answers once and is cut after N bytes, /hints/N/FILE is cut after N bytes and has other tags in an
answer 103 before, /silent/N/FILE sends nothing after N bytes."""
import hashlib
import os
import sys
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

root, log, port_file = sys.argv[1:4]
seen = Counter()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with open(log, "a") as out:
            print(self.path, self.headers.get("Range"), self.headers.get("Authorization"), file=out)
        path = self.path.split("?")[0]
        seen[path] += 1
        kind, _, rest = path[1:].partition("/")
        number, _, name = rest.partition("/")
        first = seen[path] == 1
        if kind == "to":
            return self.answer(302, Location=rest if "://" in rest else "/" + rest)
        if kind == "signed":
            return self.answer(302, Location=f"/expiring/{rest}?{seen[path]}")
        if kind == "expiring":
            seen[self.path] += 1
            if seen[self.path] > 1:
                return self.answer(403)
        if kind == "hints":
            self.send_response_only(103)
            self.send_header("ETag", f'"{seen[path]}"')
            self.end_headers()
        if kind == "status":
            return self.answer(int(number), **{"x-amz-bucket-region": "eu-west-3"} if number == "301" else {})
        if kind == "fail" and seen[path] <= int(number):
            return self.answer(503)
        numbered = kind in ("cut", "once", "fail", "norange", "changes", "stuck", "expiring", "hints", "silent")
        name = name if numbered else rest if kind in ("plain", "endless", "identity") else path[1:]
        try:
            data = open(os.path.join(root, name or "index"), "rb").read()
        except OSError:
            return self.answer(404)
        tag = '"%s%s"' % (hashlib.md5(data).hexdigest(), "" if kind != "changes" else seen[path])
        start, given = 0, self.headers.get("Range")
        if given and kind not in ("plain", "norange") and self.headers.get("If-Range", tag) == tag:
            start = int(given.removeprefix("bytes=").split("-")[0])
        part = data[start:]
        self.send_response(206 if start else 200)
        if kind not in ("plain", "endless", "identity"):
            self.send_header("ETag", tag)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        if kind in ("endless", "identity"):
            self.send_header("Connection", "close")
            if kind == "identity":
                self.send_header("Transfer-Encoding", kind)
        else:
            self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        stop = len(part)
        if kind in ("cut", "expiring", "hints", "silent") or kind == "plain" and "cut" in name or (
                kind in ("once", "norange", "changes", "stuck") and first):
            stop = int(number) if numbered else 1000
        if kind == "stuck" and not first:
            stop = 0
        self.wfile.write(part[:stop])
        if kind == "silent":
            self.wfile.flush()
            self.connection.recv(1)  # until the client closes
        if stop < len(part) or kind in ("endless", "identity"):
            self.wfile.flush()
            self.close_connection = True


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(port_file + ".new", "w") as f:
    f.write(str(server.server_port))
os.rename(port_file + ".new", port_file)
server.serve_forever()
