#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small MLflow server that fails on purpose: faulty-mlflow.py PORT READY STORE [KIND].

Writes its port to the file READY when it listens on PORT (0: any), and keeps what it was sent in STORE, a JSON
file, written before each answer. KIND: "well" answers all; "badly" answers every
third request with status 503, and closes the connection of every fifth after it has acted;
"refusing" refuses every log-batch with status 400; "odd" answers each request whose path the file
odd.json has with its [status, text, header...], though it has acted; "halfway" ends at the second
log-batch, "halfway-late" does after it has acted. As a proxy it is every server.
"""
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

port, ready, store = sys.argv[1:4]
kind = sys.argv[4] if len(sys.argv) > 4 else "well"
data = {"experiments": [], "runs": [], "requests": 0, "logins": []}
batches = 0
if os.path.exists(store):
    data = json.load(open(store))


def run_of(run_id):
    return next((r for r in data["runs"] if r["info"]["run_id"] == run_id), None)


def view(run):
    last = {}
    for m in run["metrics"]:
        if m["key"] not in last or m["step"] >= last[m["key"]]["step"]:
            last[m["key"]] = m
    return {"info": run["info"], "data": {"metrics": list(last.values()), "params": run["params"],
                                          "tags": run["tags"]}}


def answer(method, path, query, body):
    if path == "experiments/get-by-name":
        for i, name in enumerate(data["experiments"]):
            if name == query["experiment_name"]:
                return 200, {"experiment": {"experiment_id": str(i), "name": name}}
        return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such experiment"}
    if path == "experiments/create":
        data["experiments"].append(body["name"])
        return 200, {"experiment_id": str(len(data["experiments"]) - 1)}
    if path == "runs/create":
        run_id = "run%d" % len(data["runs"])
        run = {"info": {"run_id": run_id, "status": "RUNNING", "run_name": body.get("run_name"),
                        "start_time": body["start_time"],
                        "artifact_uri": "mlflow-artifacts:/0/%s" % run_id},
               "metrics": [], "params": [], "tags": body["tags"], "files": {}}
        data["runs"].append(run)
        return 200, {"run": view(run)}
    if path == "runs/search":
        key = body["filter"].split("'")[1]
        found = [r for r in data["runs"] if {"key": "dt.key", "value": key} in r["tags"]]
        return 200, {"runs": [view(r) for r in found]} if found else {}
    if path == "runs/get":
        run = run_of(query["run_id"])
        return (200, {"run": view(run)}) if run else (404, {"message": "no such run"})
    if path == "runs/log-batch":
        run = run_of(body["run_id"])
        if kind == "refusing":
            return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "not today"}
        assert len(body.get("metrics", [])) <= 1000 and len(body.get("params", [])) <= 100
        run["metrics"] += body.get("metrics", [])
        run["params"] += body.get("params", [])
        run["tags"] += body.get("tags", [])
        return 200, {}
    if path == "runs/update":
        run_of(body["run_id"])["info"].update({k: body[k] for k in ("status", "end_time") if k in body})
        return 200, {}
    return 404, {"message": path}


class Handler(BaseHTTPRequestHandler):
    def act(self):
        global batches
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        data["requests"] += 1
        number = data["requests"]
        if kind == "badly" and number % 3 == 0:
            self.reply(503, {"message": "busy"})
            return
        batches += self.path.endswith("runs/log-batch")
        if kind == "halfway" and batches == 2:
            os._exit(0)
        login = self.headers.get("Authorization")
        if login not in data["logins"]:
            data["logins"].append(login)
        path, _, query = self.path[max(0, self.path.find("/api/")):].partition("?")
        if "/mlflow-artifacts/" in path:
            parts = path.split("/")
            run_of(parts[-2])["files"][parts[-1]] = raw.decode()
            status, body = 200, {}
        else:
            query = dict(p.split("=") for p in query.split("&")) if query else {}
            status, body = answer(self.command, path.replace("/api/2.0/mlflow/", ""), query,
                                  json.loads(raw) if raw else {})
        with open(store + ".new", "w") as f:
            json.dump(data, f)
        os.replace(store + ".new", store)
        if kind == "halfway-late" and batches == 2:
            os._exit(0)
        if kind == "badly" and number % 5 == 0:
            self.connection.close()
            return
        if kind == "odd":
            odd = json.load(open("odd.json")).get(path.replace("/api/2.0/mlflow/", ""))
            if odd:
                self.reply_text(odd[0], odd[1].encode(), *odd[2:])
                return
        self.reply(status, body)

    def reply(self, status, body):
        self.reply_text(status, json.dumps(body).encode())

    def reply_text(self, status, text, *headers):
        self.send_response(status)
        for header in headers:
            self.send_header(*header.split(": ", 1))
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = act

    def log_message(self, *args):
        pass


class Server(HTTPServer):
    def handle_error(self, request, address):
        pass


server = Server(("127.0.0.1", int(port)), Handler)
with open(ready, "w") as f:
    f.write(str(server.server_port))
server.serve_forever()
