# SPDX-License-Identifier: MIT
"""hub.py DIRECTORY LOG PORT: a hub on 127.0.0.1. DIRECTORY/OWNER/NAME has the files of the model
OWNER/NAME, of one commit, and DIRECTORY/datasets/OWNER/NAME those of a data set. Files of model.safetensors* are redirected to a store, another port, as
large files are, and named by SHA-256; others by git's hash. Requests are appended to LOG, with their
Authorization and Range. Files in DIRECTORY change behaviour while they exist: "cut" (the store ends
a transfer after 10000 bytes, once each time it is written), "no-range", "corrupt", "token" (that it
demands), "missing-hash", "odd" (what it says of each model), "busy" (the store answers with its first
number, as often as the second, after "cut"). The port of the hub is written to PORT."""
import hashlib
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

root, log, port_file = sys.argv[1:4]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
REVISIONS = ("main", "v1/x", "refs/convert/parquet", COMMIT)


def switch(name):
    return os.path.exists(os.path.join(root, name))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def note(self):
        with open(log, "a") as out:
            kind = "store" if self.server is store else "hub"
            print(kind, self.command, self.path, self.headers.get("Authorization"),
                  self.headers.get("Range"), file=out)

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def send_file(self, path, **headers):
        data = open(path, "rb").read()
        if switch("corrupt"):
            data = data[:-1] + b"?"
        start = 0
        given = self.headers.get("Range")
        if given and not switch("no-range"):
            start = int(given.removeprefix("bytes=").split("-")[0])
            if start >= len(data):
                return self.answer(416)
        part = data[start:]
        if switch("cut") and self.command == "GET" and len(part) > 10000:
            os.remove(os.path.join(root, "cut"))
            self.answer(206 if start else 200, part[:10000], Content_Length=str(len(part)), **headers)
            self.close_connection = True
            return self.wfile.flush()
        if switch("busy") and self.command == "GET" and self.server is store:
            status, often = map(int, open(os.path.join(root, "busy")).read().split())
            if often > 0:
                with open(os.path.join(root, "busy"), "w") as busy:
                    print(status, often - 1, file=busy)
                return self.answer(status)
        self.answer(206 if start else 200, part, **headers)

    def do_GET(self):
        self.note()
        parts = [unquote(part) for part in self.path.strip("/").split("/")]
        if self.server is store:
            return self.send_file(os.path.join(root, *parts))
        if switch("token"):
            token = open(os.path.join(root, "token")).read().strip()
            if self.headers.get("Authorization") != "Bearer " + token:
                return self.answer(401, X_Error_Code="RepoNotFound")
        if parts[0] == "api":
            return self.describe(parts)
        if parts[0] == "datasets":
            parts[:2] = ["/".join(parts[:2])]
        name, revision, file = "/".join(parts[:2]), parts[3], "/".join(parts[4:])
        path = os.path.join(root, name, file)
        if revision not in REVISIONS or not os.path.isfile(path):
            return self.answer(404, X_Error_Code="EntryNotFound")
        data = open(path, "rb").read()
        if file.startswith("model") and not switch("missing-hash"):
            return self.answer(302, Location=f"http://127.0.0.1:{store.server_port}/{name}/{file}",
                               X_Linked_Etag=f'"{hashlib.sha256(data).hexdigest()}"',
                               X_Linked_Size=str(len(data)), X_Repo_Commit=COMMIT)
        headers = {} if switch("missing-hash") else {
            "ETag": '"' + hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest() + '"'}
        self.send_file(path, X_Repo_Commit=COMMIT, **headers)

    def describe(self, parts):
        revision = parts[5]
        directory = os.path.join(root, *(["datasets"] if parts[1] == "datasets" else []), *parts[2:4])
        if not os.path.isdir(directory):
            return self.answer(404, X_Error_Code="RepoNotFound")
        if revision not in REVISIONS:
            return self.answer(404, X_Error_Code="RevisionNotFound")
        files = [os.path.relpath(os.path.join(where, file), directory)
                 for where, _, names in os.walk(directory) for file in names]
        body = json.dumps({"sha": COMMIT, "siblings": [{"rfilename": file} for file in files]})
        if switch("odd"):
            with open(os.path.join(root, "odd")) as odd:
                body = odd.read()
        self.answer(200, body.encode())


class Server(ThreadingHTTPServer):
    def handle_error(self, request, address):
        pass  # a client that closes early


hub, store = (Server(("127.0.0.1", 0), Handler) for _ in range(2))
threading.Thread(target=store.serve_forever, daemon=True).start()
with open(port_file + ".new", "w") as out:
    print(hub.server_port, file=out)
os.rename(port_file + ".new", port_file)
hub.serve_forever()
