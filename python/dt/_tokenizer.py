# SPDX-License-Identifier: MIT
"""dt.Tokenizer: text to ids and back."""
import ctypes
import os
import re
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint32, c_uint64

from . import _arrays
from ._library import (NO_TOKEN, Encoding, InputError, MissingError, checked, free, open_handle,
                       own, path_bytes, plain, string_bytes, text_bytes, whole)

_encode, _decode = checked("tokenizer_encode"), checked("tokenizer_decode")
_release, _token = plain("encoding_release"), plain("tokenizer_token")
_one_text, _one_size = c_char_p * 1, c_size_t * 1
_SPECIAL, _SPANS = 1, 2


class Batch(Sequence):
    """The ids of documents, one after the other: document i has ids[offsets[i]:offsets[i + 1]],
    which batch[i] is. ids and offsets are arrays of numpy over the library's memory, or without
    numpy memoryviews."""

    def __init__(self, ids, offsets):
        self.ids, self.offsets = ids, offsets

    def __len__(self):
        return len(self.offsets) - 1

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        i = range(len(self))[i]
        return self.ids[self.offsets[i]:self.offsets[i + 1]]

    def tolist(self):
        """Lists of numbers, as other tokenizers return."""
        ids, ends = self.ids.tolist(), self.offsets.tolist()
        return [ids[a:b] for a, b in zip(ends, ends[1:])]


class Tokenizer:
    """A tokenizer of any file that dt-tokenize(1) reads. Its calls are those of tiktoken's
    Encoding; dt.tokenizers has those of tokenizers. Threads may share it."""

    def __init__(self, path, *, pattern=None):
        """path: tokenizer.json, tokenizer.model, vocab.txt, ranks of tiktoken, or the directory of
        one. pattern: "gpt2", "cl100k", ... instead of the file's."""
        self.path = os.fspath(path)
        self._pattern = pattern
        self._handle = open_handle("tokenizer", path_bytes(path),
                                   None if pattern is None else string_bytes("pattern", pattern))
        self._self = self._handle.value
        self._special = None

    @classmethod
    def from_file(cls, path, *, pattern=None):
        return cls(path, pattern=pattern)

    @classmethod
    def from_pretrained(cls, directory, *, pattern=None):
        """The tokenizer of a model's directory on this machine."""
        if not os.path.isdir(directory):
            raise MissingError(f"'{directory}': not a directory; download the model first, for "
                               "example with: hf download " + str(directory))
        return cls(directory, pattern=pattern)

    def __reduce__(self):
        return (_reopen, (type(self), self.path, self._pattern))

    def __repr__(self):
        return f"<dt.Tokenizer '{self.path}', {self.n_vocab} ids>"

    # --- the vocabulary

    @property
    def n_vocab(self):
        """The highest id, and 1."""
        return plain("tokenizer_size")(self._self)

    @property
    def max_token_value(self):
        return self.n_vocab - 1

    @property
    def eot_token(self):
        """The id that ends documents, or None."""
        end = plain("tokenizer_end")(self._self)
        return None if end == NO_TOKEN else end

    @property
    def fingerprint(self):
        """16 digits, which shards and models of this tokenizer record."""
        return f"{plain('tokenizer_fingerprint')(self._self):016x}"

    @property
    def special_tokens(self):
        """Ids of special tokens by their text."""
        if self._special is None:
            is_special = plain("tokenizer_is_special")
            self._special = {self.decode_single_token_bytes(i).decode("utf-8", "replace"): i
                             for i in range(self.n_vocab) if is_special(self._self, i)}
        return self._special

    @property
    def special_tokens_set(self):
        return set(self.special_tokens)

    def is_special_token(self, token):
        return 0 <= token < self.n_vocab and bool(
            plain("tokenizer_is_special")(self._self, token))

    def encode_single_token(self, token):
        """The id of a whole token; KeyError if there is none."""
        data = text_bytes(token)
        found = plain("tokenizer_find")(self._self, data, len(data))
        if found == NO_TOKEN:
            raise KeyError(token)
        return found

    def decode_single_token_bytes(self, token):
        """The bytes of a token; KeyError beyond the vocabulary."""
        if not 0 <= token < self.n_vocab:
            raise KeyError(token)
        size = c_size_t()
        found = _token(self._self, token, byref(size))
        return ctypes.string_at(found, size.value)

    def token_byte_values(self):
        """The bytes of every token that is not special, sorted."""
        return sorted(self.decode_single_token_bytes(i) for i in range(self.n_vocab)
                      if not self.is_special_token(i))

    # --- encoding

    def _call(self, texts, sizes, count, frame, flags, threads):
        result = Encoding()
        _encode(self._self, texts, sizes, count, frame, flags, threads, byref(result))
        return result

    def _encode_one(self, data, frame=b"none", flags=0):
        result = self._call(_one_text(data), _one_size(len(data)), 1, frame, flags, 1)
        count = result.ends[0]
        ids = result.ids[:count] if count else []
        _release(byref(result))
        return ids

    def encode_ordinary(self, text):
        """A list of ids; the text of special tokens is ordinary text."""
        return self._encode_one(text_bytes(text))

    def encode(self, text, *, allowed_special=frozenset(), disallowed_special="all"):
        """A list of ids. The text of a token in allowed_special ("all": of any) becomes that
        token; that of one in disallowed_special, by default every other, is a ValueError."""
        special = self.special_tokens
        if not allowed_special and disallowed_special == "all":
            self._refuse(text, special)
            return self._encode_one(text_bytes(text))
        allowed = set(special) if allowed_special == "all" else set(allowed_special)
        if disallowed_special == "all":
            disallowed_special = set(special) - allowed
        self._refuse(text, disallowed_special)
        if allowed >= special.keys() and allowed:
            return self._encode_one(text_bytes(text), flags=_SPECIAL)
        ids = []
        for i, part in enumerate(_split(text, allowed & special.keys())):
            ids += [special[part]] if i % 2 else self.encode_ordinary(part) if part else []
        return ids

    @staticmethod
    def _refuse(text, tokens):
        for found in tokens:
            if found not in text:
                continue
            raise InputError(f"the text has the special token {found!r}: pass "
                             f"allowed_special={{{found!r}}} to encode it as that token, or "
                             "disallowed_special=() as text")

    def _batch(self, texts, frame, flags, threads):
        data = [text_bytes(text) for text in texts]
        count = len(data)
        result = self._call((c_char_p * count)(*data), (c_size_t * count)(*map(len, data)), count,
                            frame, flags, whole("num_threads", threads, c_int))
        ends = own(result.ends, c_uint64, count)
        total = ends[-1] if count else 0
        ids = own(result.ids, c_uint32, total) if result.ids else None
        return Batch(_arrays.view(ids, "I", total), _arrays.offsets(ends, count))

    def encode_ordinary_batch(self, texts, *, num_threads=0):
        """A Batch of the ids of many texts; num_threads 0: one per processor."""
        return self._batch(texts, b"none", 0, num_threads)

    def encode_batch(self, texts, *, num_threads=0, allowed_special=frozenset(),
                     disallowed_special="all", frame="none"):
        """A Batch of the ids of many texts. Special tokens as in encode(), but those allowed are
        all or none. frame: the tokens around each text, as --frame of dt-tokenize(1)."""
        texts = list(texts)
        special = self.special_tokens.keys()
        allowed = special if allowed_special == "all" else set(allowed_special)
        if allowed and not allowed >= special:
            raise InputError("encode_batch: allowed_special must be \"all\" or empty; "
                             "encode() takes some")
        if disallowed_special == "all":
            disallowed_special = special - allowed
        for token in disallowed_special:
            for text in texts:
                if token in text:
                    self._refuse(text, [token])
        return self._batch(texts, string_bytes("frame", frame), _SPECIAL if allowed else 0, num_threads)

    def encode_to_numpy(self, text, *, allowed_special=frozenset(), disallowed_special="all"):
        """encode() as an array of uint32."""
        import numpy
        return numpy.array(self.encode(text, allowed_special=allowed_special,
                                       disallowed_special=disallowed_special), numpy.uint32)

    # --- decoding

    def decode_bytes(self, tokens):
        """The bytes of a list or array of ids."""
        address, count, keep = _arrays.ids(tokens)
        text, size = ctypes.c_void_p(), c_size_t()
        _decode(self._self, address, count, byref(text), byref(size))
        data = ctypes.string_at(text, size.value)
        free(text)
        del keep
        return data

    def decode(self, tokens, errors="replace"):
        """The text of a list or array of ids."""
        return self.decode_bytes(tokens).decode("utf-8", errors)

    def decode_batch(self, batch, *, errors="replace", num_threads=0):
        return [self.decode(tokens, errors) for tokens in batch]

    def decode_bytes_batch(self, batch, *, num_threads=0):
        return [self.decode_bytes(tokens) for tokens in batch]

    def decode_tokens_bytes(self, tokens):
        return [self.decode_single_token_bytes(token) for token in tokens]


def _reopen(cls, path, pattern):
    return cls(path, pattern=pattern)


def _split(text, tokens):
    """Text and tokens in turn; the longest token where several begin."""
    if not tokens:
        return [text]
    longest_first = sorted(tokens, key=len, reverse=True)
    return re.split("(" + "|".join(map(re.escape, longest_first)) + ")", text)
