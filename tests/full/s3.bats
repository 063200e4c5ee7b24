#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Objects of S3 from moto's server, and requests that must be signed as botocore signs them.
load ../helper

setup() {
    cd "$T"
    need_python moto.server boto3
    need_plugin http libcurl
    "$PYTHON" - >log 2>&1 3>&- <<'END' &
import time
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
server.start()
open("port", "w").write(str(server.get_host_and_port()[1]))
time.sleep(600)
END
    SERVER=$!
    await $SERVER test -s port
    export AWS_ENDPOINT_URL=http://127.0.0.1:$(cat port) AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1
}

teardown() {
    [ -z "${SERVER:-}" ] || kill "$SERVER"
}

@test "objects of a store of S3 are read, whatever their keys, with and without keys to it" {
    dt-synth --bytes 20M -o docs.jsonl
    zstd -q docs.jsonl
    dt-clean -q -o expected docs.jsonl
    "$PYTHON" - <<'END'
import boto3, os
s3 = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
s3.create_bucket(Bucket="data")
for key in ("docs.jsonl", "a b+c/\u00e9 (1)*.jsonl"):
    s3.upload_file("docs.jsonl", "data", key)
s3.upload_file("docs.jsonl.zst", "data", "x/docs.jsonl.zst")
END
    for key in docs.jsonl 'a b+c/é (1)*.jsonl' x/docs.jsonl.zst; do
        dt-clean -q --to nul -o out "s3://data/$key"
        cmp out <(dt-clean -q --to nul expected)
    done
    env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY dt-clean -q --to nul -o out s3://data/docs.jsonl
    AWS_SESSION_TOKEN=t dt-clean -q --to nul -o out s3://data/docs.jsonl
    run dt-clean -q s3://data/absent
    [[ "$output" == *"s3://data/absent: does not exist: the server answers 404" ]]
}

@test "requests are signed as botocore signs them" {
    "$PYTHON" - <<'END'
import http.server, os, re, subprocess, threading
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

got = []
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass
    def do_GET(self):
        got.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
env = dict(os.environ, AWS_ENDPOINT_URL=url, AWS_ACCESS_KEY_ID="AK", AWS_SECRET_ACCESS_KEY="SK", AWS_REGION="eu-west-1")
for token in ("", "TOK/+="):
    for key in ("x", "a b+c/\u00e9 (1)*.jsonl", "a=b&c?d~e"):
        subprocess.run(["dt-clean", "-q", "s3://data/" + key], env=dict(env, AWS_SESSION_TOKEN=token), stderr=subprocess.DEVNULL)
        path, headers = got[-1]
        signed = re.search("SignedHeaders=([^,]*)", headers["authorization"])[1].split(";")
        assert {"host", "x-amz-content-sha256", "x-amz-date"} <= set(signed) and bool(token) == ("x-amz-security-token" in signed)
        request = AWSRequest("GET", url + path, headers={k: headers[k] for k in signed})
        request.context["timestamp"] = headers["x-amz-date"]
        auth = S3SigV4Auth(Credentials("AK", "SK"), "s3", "eu-west-1")
        text = auth.string_to_sign(request, auth.canonical_request(request))
        assert auth.signature(text, request) == re.search(r"Signature=(\w+)", headers["authorization"])[1], path
END
}
