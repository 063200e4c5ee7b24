# SPDX-License-Identifier: MIT
"""Compares dt's tokenizer with `tokenizers` and `tiktoken`, built from local files.

  tokenizers_oracle.py strings SEED COUNT            random documents as JSON Lines
  tokenizers_oracle.py words SEED COUNT              documents of words that recur, with spaces
  tokenizers_oracle.py compare TESTDATA DOCS IDS     ids of documents, a line each
  tokenizers_oracle.py encode TOKENIZER.json DOCS    ids by `tokenizers`, a line each
  tokenizers_oracle.py train SIZE FILE...            merges by `tokenizers`, one a line
"""
import base64
import json
import random
import sys
import unicodedata

# Implementations with different versions of Unicode differ in new characters: only characters of the
# oldest table, Python's, are drawn.
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2007\u200a\u2028\u2029\u202f\u205f\u3000"
NO_WHITE_SPACE = "\x1c\x1d\x1e\x1f\u180e\u200b\u200c\u200d\u2060\ufeff"
CONTRACTIONS = ["'s", "'S", "'\u017f", "'t", "'re", "'RE", "'ve", "'m", "'ll", "'d", "\u2019s",
                "'l", "'v", "'r", "''", "'", " 's", " 'll", "\n's"]
SEQUENCES = ["\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "\u1112\u1161\u11ab",
             "e\u0301", "n\u0303\u0323", "\u0627\u0644\u0633\u0644\u0627\u0645", "\u05e9\u05dc\u05d5\u05dd",
             "<|endoftext|>", "\r\n", "\x00", "the", " of", "2024", "\u0967\u0968", "\u2163", "\u00bd"]


def pools():
    by_kind = {}
    for code in range(0x110000):
        category = unicodedata.category(chr(code))
        if category not in ("Cs", "Cn") or 0x40000 <= code < 0xE0000:
            by_kind.setdefault(category[0], []).append(chr(code))
    kinds = [by_kind[k] for k in "LNMPSZC"]
    basic = [chr(c) for c in range(128)] + list("    eeeaainnorst")
    latin = [chr(c) for c in range(0x80, 0x250)]
    return kinds + [basic, basic, basic, latin, list(WHITE_SPACE), list(WHITE_SPACE),
                    list(NO_WHITE_SPACE), CONTRACTIONS, CONTRACTIONS, SEQUENCES]


def random_text(rng, choices):
    text = []
    for _ in range(rng.randint(0, 12)):
        pool = rng.choice(choices)
        run = rng.choice((1, 1, 1, 2, 3, 6))
        text += rng.choices(pool, k=run) if rng.random() < 0.7 else [rng.choice(pool)] * run
    return "".join(text)


def write_strings(seed, count):
    rng, choices = random.Random(int(seed)), pools()
    for _ in range(int(count)):
        print(json.dumps({"text": random_text(rng, choices)}))


def write_words(seed, count):
    """For caches of words: words that recur, some of strange characters, between all kinds of spaces."""
    rng, choices = random.Random(int(seed)), pools()
    letters = [chr(c) for c in range(33, 127)] + list("eeeaainnorst")
    spaces = [" "] * 6 + ["  ", "   ", "\n", " \n", "\n ", "\t", "\xa0", "\u3000", ""]
    for block in range(0, int(count), 500):
        words = ["".join(rng.choices(letters, k=rng.randint(1, 9))) for _ in range(200)]
        words += [random_text(rng, choices) for _ in range(100)]
        words += ["\u2581", "\u2581a", "a\u2581b", "x\u2581", "<s>", "</s>", "<unk>", "the", "The", "end."]
        for _ in range(min(500, int(count) - block)):
            text = rng.choice(["", "", " ", "  ", "\n"])
            for _ in range(rng.randint(1, 12)):
                text += rng.choice(words) + rng.choice(spaces)
            print(json.dumps({"text": text}))


def hugging_face(data):
    from tokenizers import Tokenizer, models, pre_tokenizers
    t = Tokenizer(models.BPE.from_file(data + "/gpt2.vocab.json", data + "/gpt2.merges.txt"))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return lambda texts: [e.ids for e in t.encode_batch(texts)]


def tik_token(data):
    import tiktoken
    with open(data + "/gpt2.tiktoken") as f:
        ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in f)}
    pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    e = tiktoken.Encoding("gpt2", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda texts: [e.encode_ordinary(t) for t in texts]


def read_ids(path):
    with open(path) as f:
        return [[int(x) for x in line.split()] for line in f]


def read_documents(path):
    with open(path, newline="\n") as f:
        return [json.loads(line)["text"] for line in f]


def compare_texts(data, texts, ours):
    if len(texts) != len(ours):
        sys.exit(f"{len(texts)} documents, but {len(ours)} lines of ids")
    for name, encode in (("tokenizers", hugging_face(data)), ("tiktoken", tik_token(data))):
        wrong = [(t, a, b) for t, a, b in zip(texts, encode(texts), ours) if a != b]
        for text, theirs, mine in wrong[:3]:
            print(f"{text[:200]!r}: {name} {theirs[:20]}, dt {mine[:20]}")
        if wrong:
            sys.exit(f"{len(wrong)} of {len(texts)} documents differ from {name}")
        print(f"{name}: {len(texts)} documents, {sum(map(len, ours))} ids equal")


def encode(tokenizer, path):
    from tokenizers import Tokenizer
    for e in Tokenizer.from_file(tokenizer).encode_batch(read_documents(path)):
        print(*e.ids)


def train(size, *paths):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=int(size), min_frequency=2, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator([open(p, newline="").read() for p in paths], trainer=trainer)
    for left, right in json.loads(t.to_str())["model"]["merges"]:
        print(left, right)


COMMANDS = {"strings": write_strings, "words": write_words, "encode": encode, "train": train,
            "compare": lambda data, docs, ids: compare_texts(data, read_documents(docs), read_ids(ids))}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
