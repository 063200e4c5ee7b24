# SPDX-License-Identifier: MIT
"""Trains a small tokenizer of each kind with `tokenizers` and encodes documents, for
tests/token/kinds and for larger comparisons.

  make_kinds.py FOLDER SIZE CORPUS...              the tokenizers
  make_kinds.py ids TOKENIZER DOCUMENTS [special]  ids, one document per line
"""
import base64
import json
import os
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

from split_oracle import PATTERNS

ALPHABET = pre_tokenizers.ByteLevel.alphabet()


def byte_level(pattern, size, corpus, specials=(), normalizer=None, ignore_merges=False):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERNS[pattern]), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train(corpus, trainers.BpeTrainer(vocab_size=size, initial_alphabet=ALPHABET, show_progress=False,
                                        special_tokens=list(specials)))
    return t


def llama3(size, corpus):
    t = byte_level("llama3", size, corpus, ["<|begin_of_text|>", "<|end_of_text|>"], ignore_merges=True)
    begin = processors.TemplateProcessing(single="<|begin_of_text|> $A",
                                          special_tokens=[("<|begin_of_text|>", 0)])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), begin])
    return t


def nemo(size, corpus):
    t = byte_level("tekken", size, corpus, ["<unk>", "<s>", "</s>", "[INST]"], ignore_merges=True)
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return t


def qwen(size, corpus):
    t = byte_level("qwen", size, corpus, ["<|endoftext|>"], normalizer=normalizers.NFC())
    t.add_tokens([AddedToken("<think>", normalized=False), AddedToken("<word>", single_word=True),
                  AddedToken("<left>", lstrip=True), AddedToken("<right>", rstrip=True, normalized=False),
                  AddedToken("zz top", single_word=True, lstrip=True, rstrip=True)])
    t.add_special_tokens(["<|im_start|>"])
    return t


def bert(size, corpus, lower):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lower)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train(corpus, trainers.WordPieceTrainer(
        vocab_size=size, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def save_ranks(t, path):
    """Writes the bytes of all tokens except special ones, by rank, in tiktoken's format."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    byte_of = {chr(b): b for b in printable}
    byte_of.update({chr(256 + n): b for n, b in enumerate(b for b in range(256) if b not in printable)})
    tokens = [k for k, _ in sorted(t.get_vocab().items(), key=lambda x: x[1])]
    with open(path, "w") as f:
        for rank, token in enumerate(tokens):
            print(base64.b64encode(bytes(byte_of[c] for c in token)).decode(), rank, file=f)


def save_tekken(ranks, path):
    """Writes a tekken.json with the tokens of a .tiktoken file, single bytes first as mistral-common
    requires, and five special tokens."""
    with open(ranks) as f:
        tokens = [base64.b64decode(line.split()[0]) for line in f]
    tokens.sort(key=lambda token: (token[0] if len(token) == 1 else 256))
    vocabulary = [{"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
                  for rank, token in enumerate(tokens)]
    specials = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    config = {"pattern": PATTERNS["tekken"], "num_vocab_tokens": len(vocabulary),
              "default_vocab_size": len(vocabulary) + len(specials),
              "default_num_special_tokens": len(specials), "version": "v3"}
    special_tokens = [{"rank": n, "token_str": s, "is_control": True} for n, s in enumerate(specials)]
    with open(path, "w") as f:
        json.dump({"config": config, "vocab": vocabulary, "special_tokens": special_tokens}, f)


def make(folder, size, *corpus):
    size, corpus = int(size), list(corpus)
    os.makedirs(folder, exist_ok=True)
    made = {"llama3": llama3(size, corpus), "nemo": nemo(size, corpus), "qwen": qwen(size, corpus),
            "bert": bert(size, corpus, True), "bert-cased": bert(size, corpus, False)}
    for name, t in made.items():
        t.save(os.path.join(folder, name + ".json"), pretty=False)
    with open(os.path.join(folder, "uncased-vocab.txt"), "w") as f:
        f.writelines(k + "\n" for k, _ in sorted(made["bert"].get_vocab().items(), key=lambda x: x[1]))
    ranks = os.path.join(folder, "ranks.tiktoken")
    save_ranks(byte_level("o200k", size, corpus), ranks)
    save_tekken(ranks, os.path.join(folder, "tekken.json"))


def ids(path, documents, special=""):
    t = Tokenizer.from_file(path)
    t.encode_special_tokens = not special
    with open(documents, newline="\n") as f:
        for line in f:
            print(*t.encode(json.loads(line)["text"]).ids)


if __name__ == "__main__":
    if sys.argv[1] == "ids":
        ids(*sys.argv[2:])
    else:
        make(*sys.argv[1:])
