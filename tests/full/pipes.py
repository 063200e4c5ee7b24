#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pipes of README.md and the man pages, as typed there, with programs that are killed.

    pipes.py list                 each pipe of dt programs that ends in a file, or why it is left out
    pipes.py kill N SEED [TEXT]   runs each pipe (with TEXT in it) in the current directory until N of
                                  its dt programs were killed, each at a random moment
    pipes.py bad N SEED [TEXT]       runs each pipe that begins with a file of documents with one bad line
                                  in 10,000, and compares the time of N runs with and without

After a kill the output is absent, or it has the bytes of a run that nothing stopped. Each bad line is
in quarantine with its file and line, and the output has all other documents.
"""
import gzip
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def joined(lines):
    """Lines of which one that ends with \\ or | continues on the next."""
    text = ""
    for line in lines:
        text += line[:-1] if line.endswith("\\") else line + " "
        if not line.endswith(("\\", "|")):
            yield text.strip()
            text = ""


def commands_of_readme(text):
    block, inside = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = not inside
        elif inside or line.startswith("    "):
            block.append(line.strip())
    yield from joined(block)
    for code in re.findall(r"`([^`\n]*)`", text):
        yield from (c.strip() for c in code.replace("\\|", "|").split(";"))


def commands_of_page(text):
    for roff, plain in (("\\e", "\\"), ("\\(dq", '"'), ("\\&", ""), ("\\-", "-")):
        text = text.replace(roff, plain)
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("$ "):
            yield next(joined([line[2:], *(l.strip() for l in lines[i + 1:i + 9]), "end"]))


def find_pipes():
    """{command: file of the first that has it, or one that differs in names of files only}"""
    found, shapes = {}, set()
    for path in [ROOT / "README.md", *sorted(ROOT.glob("man/man*/*.[1-9]"))]:
        read = commands_of_readme if path.name == "README.md" else commands_of_page
        for command in read(path.read_text()):
            shape = re.sub(r"(-o +)?[\w-]+(\.[a-z]+)+|-o [\w-]+", "FILE", command)
            if re.search(r"dt-[a-z]+ .*\|\s*dt-[a-z]+ ", command) and shape not in shapes:
                found[command] = path.name
                shapes.add(shape)
    return found


def stages_of(command):
    words, stages = shlex.shlex(command, posix=True, punctuation_chars="|"), [[]]
    words.whitespace_split = True
    for word in words:
        if word == "|":
            stages.append([])
        else:
            stages[-1].append(word)
    return stages


def output_of(words):
    for option in ("-o", "--output"):
        if option in words:
            return words[words.index(option) + 1]
    return None


def why_not(command):
    """Why a pipe cannot be killed with this promise; None if it can."""
    stages = stages_of(command)
    while stages[-1][0] in ("true", "false"):
        stages.pop()
    if "--partial" in command:
        return "takes streams that were cut"
    if not stages[-1][0].startswith("dt-") or not output_of(stages[-1]):
        return "ends in no file"
    first = next(i for i, s in enumerate(stages) if s[0].startswith("dt-"))
    if not all(s[0].startswith("dt-") for s in stages[first:]):
        return "has a filter that drops the end record"
    return None


# --- what the pipes read --------------------------------------------------------------------------

def make_warc(path, stories):
    """Pages of five stories each, which FineWeb's rules keep."""
    with gzip.open(path, "wb") as warc:
        for i in range(0, len(stories) - 4, 5):
            body = "".join(f"<p>{story}</p>\n" for story in stories[i:i + 5])
            http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body>{body}</body></html>".encode()
            warc.write(b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.com/%d\r\n"
                       b"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n"
                       % (i, len(http), http))


def sh(command):
    subprocess.run(["bash", "-euo", "pipefail", "-c", command], check=True, stderr=subprocess.DEVNULL)


def prepare(documents):
    sh(f"dt-synth -n {documents} -o docs.jsonl; dt-vocab -q -s 300 -o tok.json <(head -n 500 docs.jsonl);"
       "dt-tokenize -q -t tok.json -o x.dts docs.jsonl; jq -r .text docs.jsonl >x.txt; ")
    make_warc("x.warc.gz", [json.loads(line)["text"] for line in open("docs.jsonl") if '"text"' in line])


MAKERS = [(r".*\.jsonl", "docs.jsonl"), (r"tok(enizer)?\.json", "tok.json"), (r".*\.txt", "x.txt"),
          (r".*\.dts", "x.dts"), (r".*\.warc\.gz", "x.warc.gz")]


def provide(command):
    """Links files under the names that the pipe reads."""
    for words in stages_of(command):
        for word in words[1:]:
            for pattern, source in MAKERS:
                if re.fullmatch(pattern, word) and word != output_of(words) and not os.path.exists(word):
                    os.symlink(source, word)
    if "train |" in command:  # of dt-cat --from megatron
        sh("[ -e train.idx ] || dt-cat --as megatron -o train x.dts")


# --- killing --------------------------------------------------------------------------------------

def contents(path):
    """{file: hash} of an output; of a directory of shards only if it has an index."""
    path = pathlib.Path(path)
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file() and ".incomplete" not in p.parts]
    hashes = {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
    if path.is_dir() and path / "index.json" not in files:
        for name in hashes:  # of a dt-shard that was killed while it moved them, which readers refuse
            if name.endswith(".dts"):
                read = subprocess.run(["dt-cat", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                assert read.returncode == 1, f"{name} is taken without an index"
        return None
    if path.is_dir():  # other files are none of its shards
        splits = json.loads((path / "index.json").read_text())["splits"]
        listed = {"index.json", *(shard["file"] for split in splits.values() for shard in split["shards"])}
        return {file: hashes[str(path / file)] for file in listed}
    return hashes or None


def remove(path):
    shutil.rmtree(path, ignore_errors=True)
    for p in (path, path + ".lineage.json"):
        if os.path.isfile(p):
            os.unlink(p)


def start(command):
    """Each dt program is started by a shell that writes its process id to pid.K first."""
    numbers = iter(range(99))
    marked = re.sub(r"(^|\|\s*)(dt-[a-z]+ )", lambda m: f"{m[1]}as {next(numbers)} {m[2]}", command)
    script = 'as() { echo $BASHPID >pid.$1; shift; exec "$@"; }\n' + marked
    return subprocess.Popen(["bash", "-c", script], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL), next(numbers)


def kill_one(count, rng):
    try:
        pid = int(pathlib.Path(f"pid.{rng.randrange(count)}").read_text())
        os.kill(pid, rng.choice((signal.SIGKILL, signal.SIGTERM)))
        return 1
    except (OSError, ValueError):
        return 0


def kill_pipe(command, runs, rng):
    output = output_of(stages_of(command.split("||")[0])[-1])
    provide(command)
    before = None

    def begin():
        """The output as it is before the pipe: absent, or what the pipe appends to."""
        remove(output)
        if before:
            shutil.copytree("before", output)

    if "--append" in command:
        remove(output)
        start(command.replace("--append", ""))[0].wait()
        remove("before")
        before = contents(shutil.copytree(output, "before") and output)
    begin()
    started = time.monotonic()
    process, count = start(command)
    process.wait()
    seconds, whole = time.monotonic() - started, contents(output)
    assert whole and whole != before, "the pipe writes nothing"
    killed = complete = tried = 0
    while killed < runs:
        tried += 1
        for k in range(count):
            pathlib.Path(f"pid.{k}").unlink(missing_ok=True)
        begin()
        process, _ = start(command)
        time.sleep(rng.random() * seconds)
        killed += kill_one(count, rng)
        process.wait()
        now = contents(output)
        assert now == before or now == whole, f"{output} is neither absent nor whole: {now}"
        complete += now == whole
    return f"{tried} runs, {killed} killed, {complete} complete"


# --- bad lines ------------------------------------------------------------------------------------

BAD = (77, 10077)  # lines of docs.jsonl, from 1


def make_bad():
    lines = open("docs.jsonl").read().splitlines()
    for name, text in (("good", ""), ("bad", "x{}")):  # a blank line keeps the numbers of the others
        for n in BAD:
            lines[n - 1] = text
        pathlib.Path(name).write_text("\n".join(lines) + "\n")


def documents_of(output):
    if os.path.isdir(output):
        return subprocess.run(["dt-cat", "--ids", output], stdout=subprocess.PIPE, check=True).stdout
    text = pathlib.Path(output).read_bytes()
    return b"".join(l for l in text.splitlines(True) if b"dt_stream" not in l)


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cost_of(times):
    return 100 * (min(times["bad"]) / min(times["good"]) - 1)


def bad_lines(command, runs, _):
    stages = stages_of(command)
    names = [w for w in stages[0] if w.endswith(".jsonl") and w != output_of(stages[0])]
    if not stages[0][0].startswith("dt-") or not names:
        return None
    first, rest = command.split("|", 1)
    marked = f"{first} -j 1 --on-error quarantine=q |{rest}"
    output, results = output_of(stages_of(command.split("||")[0])[-1]), []
    times = {"good": [], "bad": []}
    provide(command)
    for kind in times:
        shutil.copyfile(kind, "docs.jsonl")
        remove(output)
        remove("q")
        sh(marked)
        results.append(documents_of(output))
    assert results[0] == results[1], "documents are lost"
    where = [(e["file"], e["line"]) for e in (json.loads(l) for l in open("q") if l.startswith('{"file"'))]
    assert where == [(names[0], n) for n in BAD], f"quarantine has {where}"
    for i in range(6 * runs):  # the first program, with bad lines in quarantine, and without either
        if i >= 2 * runs and cost_of(times) < 2:  # other work on the machine takes more rounds
            break
        kind = ("good", "bad")[(i + i // 2) % 2]
        pathlib.Path("docs.jsonl").write_bytes(5 * pathlib.Path(kind).read_bytes())  # the file q itself costs 2 ms
        remove("q")
        survival = ["--on-error", "quarantine=q"] if kind == "bad" else []
        times[kind].append(cpu_seconds([*shlex.split(first), "-j", "1", *survival]))
    cost = cost_of(times)
    assert runs < 9 or cost < 2, f"costs {cost:.2f}%"
    return f"{len(where)} of {len(where)} bad lines in quarantine, {cost:+.2f}%"


# --- all ------------------------------------------------------------------------------------------

def main(arguments):
    pipes = find_pipes()
    if arguments[:1] == ["list"]:
        for command, source in pipes.items():
            print(f"{source}\t{why_not(command) or 'tested'}\t{command}")
        return
    test, documents = {"kill": (kill_pipe, 1500), "bad": (bad_lines, 20000)}[arguments[0]]
    runs, rng, text = int(arguments[1]), random.Random(int(arguments[2])), "".join(arguments[3:])
    prepare(documents)
    if test is bad_lines:
        make_bad()
    for command, source in pipes.items():
        if why_not(command) is None and text in command:
            try:
                result = test(command, runs, rng)
            except AssertionError as problem:
                sys.exit(f"{source}: {command}: {problem}")
            if result:
                print(f"{result}: {source}: {command}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
