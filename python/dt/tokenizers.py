# SPDX-License-Identifier: MIT
"""The common calls of Hugging Face's tokenizers, by dt:

    from dt.tokenizers import Tokenizer
    Tokenizer.from_file("tokenizer.json").encode("text").ids

Pairs of texts, padding, truncation and changes of the tokenizer are not among them.
"""
import json
import os
from ctypes import byref, c_char_p, c_size_t

from . import _tokenizer
from ._library import InputError, plain, text_bytes


class Encoding:
    """The ids of a text with their tokens and offsets, in characters of the text."""

    def __init__(self, tokenizer, data, ids, spans):
        self._tokenizer, self._data, self.ids, self._spans = tokenizer, data, ids, spans

    def __len__(self):
        return len(self.ids)

    @property
    def tokens(self):
        return [self._tokenizer.id_to_token(i) for i in self.ids]

    @property
    def offsets(self):
        """First character, and that after the last, of each id; (0, 0) of tokens around the
        text."""
        places, count = [], -1
        for byte in self._data:
            count += byte & 0xC0 != 0x80
            places.append(count)
        return [(places[a], places[b - 1] + 1) if b > a else (0, 0) for a, b in self._spans]

    @property
    def attention_mask(self):
        return [1] * len(self.ids)

    @property
    def type_ids(self):
        return [0] * len(self.ids)

    @property
    def special_tokens_mask(self):
        return [int(a == b) for a, b in self._spans]


class Tokenizer:
    """A tokenizer.json, or another file that dt reads, whose tokens then have no names."""

    def __init__(self, path):
        self._dt = _tokenizer.Tokenizer(path)
        self._vocab = self._names = None
        try:
            self._dt._batch([], b"template", 0, 1)
            self._frame = b"template"
        except InputError:
            self._frame = b"none"  # the file has no post-processor

    @classmethod
    def from_file(cls, path):
        return cls(path)

    @classmethod
    def from_pretrained(cls, directory):
        """The tokenizer of a model's directory on this machine."""
        _tokenizer.Tokenizer.from_pretrained(directory)
        return cls(directory)

    def __reduce__(self):
        return (Tokenizer, (self._dt.path,))

    # --- encoding and decoding

    def _encodings(self, texts, add_special_tokens, threads):
        data = [text_bytes(text) for text in texts]
        count = len(data)
        result = self._dt._call((c_char_p * count)(*data), (c_size_t * count)(*map(len, data)),
                                count, self._frame if add_special_tokens else b"none",
                                _tokenizer._SPECIAL | _tokenizer._SPANS, threads)
        ids, ends, spans = result.ids, result.ends[:count], result.spans
        found = []
        for text, a, b in zip(data, [0] + ends, ends):
            places = spans[2 * a:2 * b] if b > a else []
            found.append(Encoding(self, text, ids[a:b] if b > a else [],
                                  list(zip(places[::2], places[1::2]))))
        plain("encoding_release")(byref(result))
        return found

    def encode(self, sequence, *, add_special_tokens=True):
        return self._encodings([sequence], add_special_tokens, 1)[0]

    def encode_batch(self, input, *, add_special_tokens=True):
        """Encodings with offsets; where ids are enough, dt.Tokenizer.encode_batch is faster."""
        return self._encodings(input, add_special_tokens, 0)

    encode_batch_fast = encode_batch

    def decode(self, ids, *, skip_special_tokens=True):
        if skip_special_tokens:
            ids = [i for i in ids if not self._dt.is_special_token(i)]
        return self._dt.decode(ids)

    def decode_batch(self, sequences, *, skip_special_tokens=True):
        return [self.decode(ids, skip_special_tokens=skip_special_tokens) for ids in sequences]

    # --- the vocabulary, as the file spells it

    def _read_names(self):
        if self._vocab is not None:
            return
        path = self._dt.path
        path = os.path.join(path, "tokenizer.json") if os.path.isdir(path) else path
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            vocab = found["model"]["vocab"]
        except (ValueError, KeyError, TypeError, FileNotFoundError):
            raise InputError(f"{path}: names of tokens are in tokenizer.json alone") from None
        self._model = vocab if isinstance(vocab, dict) else {
            piece[0]: i for i, piece in enumerate(vocab)}
        self._vocab = {**self._model, **{token["content"]: token["id"]
                                         for token in found.get("added_tokens", [])}}
        self._names = {i: name for name, i in self._vocab.items()}

    def get_vocab(self, with_added_tokens=True):
        self._read_names()
        return dict(self._vocab if with_added_tokens else self._model)

    def get_vocab_size(self, with_added_tokens=True):
        return len(self.get_vocab(with_added_tokens))

    def token_to_id(self, token):
        self._read_names()
        return self._vocab.get(token)

    def id_to_token(self, id):
        self._read_names()
        return self._names.get(id)
