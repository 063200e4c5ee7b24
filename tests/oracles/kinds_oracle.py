# SPDX-License-Identifier: MIT
"""Compares dt's ids with those of the reference implementation of a tokenizer file.

  kinds_oracle.py FILE DOCUMENTS IDS [--special] [--pattern NAME] [--nfc] [--offsets]

FILE is a tokenizer.json (`tokenizers`), GPT-2's *vocab.json with *merges.txt in the same directory
(`tokenizers`), a *.tiktoken (`tiktoken`, with the pattern of that name), a tekken*.json
(`mistral-common`), a *.model (`sentencepiece`) or a *vocab.txt (`transformers`). DOCUMENTS are JSON
Lines; IDS has one line of ids per document, without special tokens added. With --special, the text of special tokens becomes
these tokens. With --offsets, IDS has ID:START:END.
"""
import base64
import json
import sys

from split_oracle import PATTERNS


def of_tokenizers(path, special):
    from tokenizers import Tokenizer, models, pre_tokenizers
    if path.endswith("vocab.json"):
        t = Tokenizer(models.BPE.from_file(path, path.replace("vocab.json", "merges.txt")))
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        t = Tokenizer.from_file(path)
    t.encode_special_tokens = not special
    return t


def encode_tokenizers(path, special):
    t = of_tokenizers(path, special)
    return lambda texts: [e.ids for e in t.encode_batch_fast(texts, add_special_tokens=False)]


def encode_tiktoken(path, pattern, nfc):
    import tiktoken
    with open(path) as f:
        ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in f)}
    e = tiktoken.Encoding("dt", pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens={})
    if not nfc:
        return lambda texts: [e.encode_ordinary(t) for t in texts]
    from tokenizers import normalizers
    form = normalizers.NFC()
    return lambda texts: [e.encode_ordinary(form.normalize_str(t)) for t in texts]


def encode_tekken(path):
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    t = Tekkenizer.from_file(path)
    return lambda texts: [t.encode(text, bos=False, eos=False) for text in texts]


def encode_sentencepiece(path):
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_file=path)
    return lambda texts: model.encode(texts, num_threads=1)


def encode_bert(path, special):
    from transformers import BertTokenizer
    cased = any(c.isupper() for line in open(path) if line[0] != "[" for c in line if c < "\x80")
    t = BertTokenizer(vocab=path, do_lower_case=not cased)
    t.backend_tokenizer.encode_special_tokens = not special
    return lambda texts: t(list(texts), add_special_tokens=False, verbose=False)["input_ids"]


def offsets_in_bytes(path, special, texts):
    """The byte range of the text of each token."""
    for text, e in zip(texts, of_tokenizers(path, special).encode_batch(texts, add_special_tokens=False)):
        at = [0]
        for c in text:
            at.append(at[-1] + len(c.encode()))
        yield [(i, at[a], at[b]) for i, (a, b) in zip(e.ids, e.offsets)]


def widened(text, spans):
    """ID:START:END with START and END extended to character boundaries."""
    starts, at = [], 0
    for c in text:
        size = len(c.encode())
        starts += [at] * size
        at += size
    starts.append(at)
    result = []
    for i, a, b in (map(int, s.split(":")) for s in spans):
        while b < at and starts[b] != b:
            b += 1
        result.append((i, starts[a], b))
    return result


def batches(documents, lines):
    """Texts and dt's lines of ids, in batches that fit into memory."""
    texts, mine, size = [], [], 0
    for document in documents:
        line = next(lines, None)
        if line is None:
            sys.exit("there are more documents than lines of ids")
        texts.append(json.loads(document)["text"])
        mine.append(line.split())
        size += len(document)
        if size > 2000000 or len(texts) == 20000:
            yield texts, mine
            texts, mine, size = [], [], 0
    if texts:
        yield texts, mine


def main():
    special, arguments = "--special" in sys.argv, [a for a in sys.argv[1:] if a[0] != "-"]
    pattern = None
    if "--pattern" in sys.argv:
        pattern = sys.argv[sys.argv.index("--pattern") + 1]
        arguments.remove(pattern)
    path, documents, ids = arguments
    if path.endswith(".tiktoken"):
        encode = encode_tiktoken(path, pattern, "--nfc" in sys.argv)
    elif "tekken" in path:
        encode = encode_tekken(path)
    elif path.endswith(".model"):
        encode = encode_sentencepiece(path)
    elif path.endswith("vocab.txt"):
        encode = encode_bert(path, special)
    else:
        encode = encode_tokenizers(path, special)
    count = wrong = total = 0
    with open(documents, newline="\n") as docs, open(ids) as lines:
        for texts, mine in batches(docs, lines):
            if "--offsets" in sys.argv:
                theirs = offsets_in_bytes(path, special, texts)
                mine = [widened(text, line) for text, line in zip(texts, mine)]
            else:
                theirs, mine = encode(texts), [[int(x) for x in line] for line in mine]
            for text, a, b in zip(texts, theirs, mine):
                if a != b:
                    wrong += 1
                    if wrong <= 3:
                        k = next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
                        print(f"{text[:300]!r}: at {k}: theirs {a[k:k + 8]}, dt {b[k:k + 8]}")
            count += len(texts)
            total += sum(map(len, mine))
        if next(lines, None) is not None:
            sys.exit("there are more lines of ids than documents")
    if wrong:
        sys.exit(f"{path}: {wrong} of {count} documents differ")
    print(f"{path}: {count} documents, {total} ids equal")


if __name__ == "__main__":
    main()
