# SPDX-License-Identifier: MIT
"""Trains a small tokenizer with `tokenizers` for each pipeline of a published family: the components
and parameters of its tokenizer.json, with a small vocabulary.

  make_families.py FOLDER SIZE CORPUS...    writes FOLDER/FAMILY.json
  make_families.py ids FOLDER DOCUMENTS     and FOLDER/FAMILY.jsonl: ids of each document in its template, and
                                            the text that they decode to
"""
import json
import os
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

ALPHABET = pre_tokenizers.ByteLevel.alphabet()
BYTES = [f"<0x{b:02X}>" for b in range(256)]
DEEPSEEK = [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
            r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
DEEPSEEK_CODER = [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"]
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def split(regex, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(regex), behavior, invert)


def plain_bytes():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def train(t, size, corpus, **options):
    t.train(corpus, trainers.BpeTrainer(vocab_size=size, show_progress=False, **options))
    return t


def byte_level(size, corpus, steps, normalizer=None, specials=("<|endoftext|>",), **model):
    t = Tokenizer(models.BPE(**model))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]
    t.decoder = decoders.ByteLevel()
    return train(t, size, corpus, initial_alphabet=ALPHABET, special_tokens=list(specials))


def with_fields(t, **fields):
    """The tokenizer with other members of its model, as a trainer cannot set them."""
    root = json.loads(t.to_str())
    root["model"].update(fields)
    return Tokenizer.from_str(json.dumps(root))


def sentence_piece(size, corpus, words=True, **model):
    """BPE over characters with byte fallback, as a converted SentencePiece model."""
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = (split("(?<=[^▁])(?=▁)|\n") if words else split(r"\n"))
    train(t, size, corpus, special_tokens=["<unk>", "<s>", "</s>", *BYTES], max_token_length=12)
    t = with_fields(t, **model)
    root = json.loads(t.to_str())
    root["added_tokens"] = [a for a in root["added_tokens"] if a["id"] < 3]
    t = Tokenizer.from_str(json.dumps(root))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B",
                                                     special_tokens=[("<s>", 1)])
    return t


def undo_marks(strip=True):
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if strip else []))


def llama2(size, corpus):
    t = sentence_piece(size, corpus)
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.pre_tokenizer = None
    t.decoder = undo_marks()
    return t


def mistral(size, corpus):
    t = sentence_piece(size, corpus)
    t.normalizer = None
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", "first", False)
    t.decoder = undo_marks()
    t.add_tokens([AddedToken("[INST]", normalized=False), AddedToken("<word>", single_word=True)])
    return t


def gemma(size, corpus):
    t = sentence_piece(size, corpus, words=False)
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = undo_marks(strip=False)
    t.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("<h1>", normalized=False)])
    return t


def metaspace(size, corpus):
    t = sentence_piece(size, corpus, fuse_unk=False, byte_fallback=False)
    t.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.NFKC(),
                                         normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always", True)
    t.decoder = decoders.Metaspace("▁", "always", True)
    t.add_tokens([AddedToken("the ﬁrst", normalized=True)])
    return t


def roberta(size, corpus):
    t = byte_level(size, corpus, [pre_tokenizers.ByteLevel(add_prefix_space=True)],
                   specials=["<s>", "<pad>", "</s>", "<unk>"])
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return t


def neox(size, corpus):
    t = byte_level(size, corpus, [pre_tokenizers.ByteLevel(add_prefix_space=False)], normalizers.NFC())
    t.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    t.add_tokens([AddedToken("e\u0301t", normalized=True)])
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    return t


def starcoder(size, corpus):
    return byte_level(size, corpus, [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)])


def falcon(size, corpus):
    return byte_level(size, corpus, [pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(False),
                                     pre_tokenizers.Digits(False), split("[0-9][0-9][0-9]")])


def deepseek(size, corpus):
    return byte_level(size, corpus, [*map(split, DEEPSEEK), plain_bytes()])


def deepseek_coder(size, corpus):
    return byte_level(size, corpus, [*map(split, DEEPSEEK_CODER), plain_bytes()])


def claude(size, corpus):
    return byte_level(size, corpus, [pre_tokenizers.ByteLevel(False)], normalizers.NFKC())


def behaviors(size, corpus):
    return byte_level(size, corpus, [
        split(r"\d+", "merged_with_next"), split("[,;]\\s?", "merged_with_previous"),
        split("(?i:THE|OF)", "contiguous"), split("e|s", "removed"), split("[a-m]+", "isolated", True),
        pre_tokenizers.Digits(False), plain_bytes()])


def partial(size, corpus):
    """Tokens that lack many bytes, which are unknown."""
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    return train(t, size, corpus, special_tokens=["<unk>"])


def dropping(size, corpus):
    """Tokens that lack many bytes, which are dropped."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    return train(t, size, corpus)


def spelled(size, corpus):
    """Tokens that are text, a zero byte and others of the byte-level alphabet among them, and its decoder."""
    t = Tokenizer(models.BPE(unk_token="[unknown]", fuse_unk=True))
    t.normalizer = normalizers.NFD()
    t.pre_tokenizer = split(r" ?\d+\.|\. ?| ?[-\w]+|[#+]\s+")
    t.decoder = decoders.ByteLevel()
    return train(t, size, corpus, special_tokens=["[unknown]"], initial_alphabet=["\0", "\u0120", "\u010a"])


def twins(size, corpus):
    """Tokens outside the byte-level alphabet, which text does not reach, with the bytes of others before them."""
    t = byte_level(size - 4, corpus, [pre_tokenizers.ByteLevel(add_prefix_space=False)], specials=(), ignore_merges=True)
    root = json.loads(t.to_str())
    own = [" ", "\u4e2d", "e\u0301", " the"]
    root["model"]["vocab"] = {token: i for i, token in enumerate(own + list(root["model"]["vocab"]))}
    root["model"]["vocab"]["\u4e2d\u4e2d"] = len(root["model"]["vocab"])
    root["model"]["merges"].insert(0, ["\u4e2d", "\u4e2d"])
    return Tokenizer.from_str(json.dumps(root))


def clip(size, corpus):
    t = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<|endoftext|>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "),
                                         normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([split(CLIP, "removed", True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    ends = [a + "</w>" for a in sorted(ALPHABET)]
    train(t, size + 256, corpus, initial_alphabet=ALPHABET, end_of_word_suffix="</w>",
          special_tokens=["<|startoftext|>", "<|endoftext|>", *ends])
    root = json.loads(t.to_str())
    root["added_tokens"] = root["added_tokens"][:2]
    t = Tokenizer.from_str(json.dumps(root))
    t.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0),
                                                    add_prefix_space=False, trim_offsets=False)
    return t


def openai_gpt(size, corpus):
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=False))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.BPEDecoder(suffix="</w>")
    return train(t, size, corpus, end_of_word_suffix="</w>", special_tokens=["<unk>"])


def prefixed(size, corpus):
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                               pre_tokenizers.Punctuation("isolated")])
    t.decoder = decoders.WordPiece("##", True)
    return train(t, size, corpus, continuing_subword_prefix="##", special_tokens=["<unk>"])


def word_level(size, corpus):
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.normalizer = normalizers.Lowercase()
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.train(corpus, trainers.WordLevelTrainer(vocab_size=size, show_progress=False,
                                              special_tokens=["[UNK]", "[PAD]"]))
    t.add_tokens([AddedToken("new york", normalized=True, single_word=True)])
    return t


def bert_steps(size, corpus):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.BertNormalizer(lowercase=True)])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(),
                                               pre_tokenizers.CharDelimiterSplit("x")])
    t.decoder = decoders.WordPiece()
    t.train(corpus, trainers.WordPieceTrainer(vocab_size=size, show_progress=False,
                                              special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"]))
    t.add_tokens([AddedToken("Ünïcode", normalized=True)])
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


FAMILIES = {f.__name__.replace("_", "-"): f for f in (
    llama2, mistral, gemma, metaspace, roberta, neox, starcoder, falcon, deepseek, deepseek_coder, claude,
    behaviors, clip, partial, dropping, spelled, twins, openai_gpt, prefixed, word_level, bert_steps)}


def write_ids(folder, documents):
    for name in FAMILIES:
        t = Tokenizer.from_file(os.path.join(folder, name + ".json"))
        t.encode_special_tokens = True
        with open(documents, newline="\n") as f, open(os.path.join(folder, name + ".jsonl"), "w") as out:
            for line in f:
                text = json.loads(line)["text"]
                plain = t.encode(text, add_special_tokens=False).ids
                print(json.dumps({"ids": t.encode(text).ids, "text": t.decode(plain, skip_special_tokens=False)}),
                      file=out)


if __name__ == "__main__":
    if sys.argv[1] == "ids":
        sys.exit(write_ids(*sys.argv[2:]))
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, family in FAMILIES.items():
        family(int(sys.argv[2]), sys.argv[3:]).save(os.path.join(sys.argv[1], name + ".json"), pretty=False)
