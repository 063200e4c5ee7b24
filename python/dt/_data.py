# SPDX-License-Identifier: MIT
"""dt.Dataset and dt.Loader: shards, and the batches of a training run."""
import ctypes
import operator
import os
import threading
from array import array
from ctypes import byref, c_int32, c_uint32, c_uint64

from . import _arrays
from ._library import (NO_TOKEN, DatasetInfo, InputError, LoadedBatch, LoaderOptions, checked,
                       open_handle, own, path_bytes, plain, string_bytes, structure, whole)

_read, _document, _samples = (checked("dataset_" + n) for n in ("read", "document", "samples"))
_next = checked("loader_next")
_SCOPES = {"row": 0, "content": 1, "document": 2}
_NO_LOSS = 0x80000000


class Dataset:
    """A split of a data set: a directory of dt-shard(1), a .dts file or a mixture. As a sequence,
    its documents: len(d), d[i]. Threads may share it."""

    def __init__(self, path, split="train"):
        self.path, self.split = os.fspath(path), split
        self._handle = open_handle("dataset", path_bytes(path),
                                   string_bytes("split", split))
        self._self = self._handle.value
        info = DatasetInfo()
        plain("dataset_describe")(self._self, byref(info), ctypes.sizeof(info))
        self.num_tokens, self.num_documents = info.tokens, info.documents
        self.num_targets, self.text_bytes = info.targets, info.text_bytes
        self.vocab_size, self.masked = info.vocab_size, bool(info.masked)
        self.eot_token = None if info.end == NO_TOKEN else info.end
        self.row_length = info.row or None
        self.tokenizer_fingerprint = f"{info.tokenizer:016x}"
        self.hash, self._weights = f"{info.hash:016x}", f"{info.weights:016x}"

    def __repr__(self):
        return (f"<dt.Dataset '{self.path}', split '{self.split}': {self.num_documents} documents, "
                f"{self.num_tokens} tokens>")

    def __reduce__(self):
        return (Dataset, (self.path, self.split))

    def __len__(self):
        return self.num_documents

    def __getitem__(self, i):
        """The ids of document i, uint32; its end-of-text id is the last."""
        i = operator.index(i)  # sums of numpy's small numbers overflow
        if not -len(self) <= i < len(self):
            raise IndexError(f"document {i} of {len(self)}")
        first, count = c_uint64(), c_uint64()
        _document(self._self, i % len(self), byref(first), byref(count))
        return self.tokens(first.value, count.value)

    def tokens(self, first, count):
        """The ids first .. first + count - 1 of the split, uint32."""
        first, count = operator.index(first), operator.index(count)
        if first < 0 or count < 0 or first + count > self.num_tokens:
            raise IndexError(f"tokens {first} to {first + count} of {self.num_tokens}")
        if _arrays.numpy:
            ids = _arrays.numpy.empty(count, "uint32")
            _read(self._self, first, count, ids.ctypes.data)
            return ids
        ids = array("I", bytes(4 * count))
        _read(self._self, first, count, ids.buffer_info()[0])
        return memoryview(ids)

    def num_samples(self, length):
        """Samples of length + 1 ids in an epoch; sample k begins at token k * length."""
        samples = c_uint64()
        _samples(self._self, whole("length", length, c_uint32), byref(samples))
        return samples.value


class Batch:
    """The sequences of this rank: `inputs, targets = batch`.

    ids       [rows, length + 1]: the library's memory, without a copy: uint32 of numpy, or int32
              of torch (to="torch")
    position  samples of all ranks before this batch
    begins, ends  [rows, length], int32: what each token attends to; None with scope "row"
    """
    __slots__ = ("ids", "position", "begins", "ends", "_masked", "_ignore")

    def __init__(self, ids, position, begins, ends, masked, ignore):
        self.ids, self.position = ids, position
        self.begins, self.ends = begins, ends
        self._masked, self._ignore = masked, ignore

    def _signed(self):
        if isinstance(self.ids, memoryview):
            _arrays.need_numpy("inputs and targets of a batch, unlike its ids,")
        return self.ids.view("int32") if hasattr(self.ids, "nbytes") and not hasattr(
            self.ids, "data_ptr") else self.ids

    @property
    def inputs(self):
        """[rows, length], int32: a view of ids; a copy if the data have a loss mask."""
        ids = self._signed()[:, :-1]
        return ids & (_NO_LOSS - 1) if self._masked else ids

    @property
    def targets(self):
        """[rows, length], int32: the same; a target without loss is ignore_index."""
        ids = self._signed()[:, 1:]
        if not self._masked:
            return ids
        ids = ids + 0
        ids[ids < 0] = self._ignore
        return ids

    def __iter__(self):
        return iter((self.inputs, self.targets))


class Loader:
    """The batches of dt-train(1) of the same data, seed, sequence length and batch size, in its
    order, for any rank; an iterator without end, which reads ahead on threads of the library.

        loader = dt.Loader("shards", length=1024, batch_size=64, rank=rank, world_size=world,
                           to="torch")
        for inputs, targets in loader: ...

    batch_size is that of all ranks together. The state to resume from is one number, so that
    state_dict() may be loaded with other ranks and workers. A batch stays valid as long as it, or
    an array of it, is used. Open a loader in the process that uses it, after fork().
    """

    def __init__(self, data, length, batch_size, *, split="train", seed=1337, shuffle=True,
                 shuffle_block=0, shuffle_window=64, rank=0, world_size=1, workers=1, scope="row", position=0, memory=0,
                 to="numpy", ignore_index=-100):
        """data: a Dataset or its path. seed: training.seed of dt-train, whose default it has.
        shuffle_block, shuffle_window: tokens of blocks and blocks of a window, as data.shuffle_block
        and data.shuffle_window of dt-config(5).
        scope: "row", "content" or "document": fills begins and ends of batches. position: samples
        consumed before. memory: bytes of the cache of decoded tokens, 0: 1 GiB. to: "numpy" or
        "torch"."""
        if to not in ("numpy", "torch"):
            raise InputError(f"to='{to}': numpy or torch expected")
        if scope not in _SCOPES:
            raise InputError(f"scope='{scope}': row, content or document expected")
        self.dataset = data if isinstance(data, Dataset) else Dataset(data, split)
        self.ignore_index = ignore_index
        self._torch = _torch() if to == "torch" else None
        self._lock = os.getpid(), threading.Lock()
        numbers = dict(seed=seed, length=length, batch=batch_size, ranks=world_size, rank=rank,
                       workers=workers, memory=memory, shuffle_block=shuffle_block,
                       shuffle_window=shuffle_window)
        # A state has no numbers of numpy, whose sums overflow and which JSON does not take.
        self._options = dict({name: operator.index(value) for name, value in numbers.items()},
                             shuffle=bool(shuffle), scope=_SCOPES[scope])
        self._open(self._options_at(position))

    def _options_at(self, position):
        return structure(LoaderOptions, size=ctypes.sizeof(LoaderOptions),
                         first=whole("position", position, c_uint64), **self._options)

    def _alone(self):
        """The lock by which no thread closes the loader while another reads. In a child of fork() it
        is another, as nobody there would release the parent's."""
        if self._lock[0] != os.getpid():
            self._lock = os.getpid(), threading.Lock()
        return self._lock[1]

    def _open(self, options):
        self._handle = open_handle("loader", self.dataset._self, byref(options))
        self.position = options.first

    def __iter__(self):
        return self

    def __next__(self):
        batch = LoadedBatch()
        with self._alone():
            _next(self._handle.get(), byref(batch))
            self.position = batch.position + self._options["batch"]
        rows, length = batch.rows, batch.length
        ids = self._array(batch.ids, c_uint32, "I", rows, length + 1)
        begins, ends = (self._array(at, c_int32, "i", rows, length) if at else None
                        for at in (batch.begins, batch.ends))
        # Not by the targets: a row's first id may be marked, which is an input alone.
        return Batch(ids, batch.position, begins, ends, self.dataset.masked, self.ignore_index)

    def _array(self, address, kind, code, *shape):
        found = _arrays.view(own(address, kind, shape[0] * shape[1]), code, *shape)
        return self._torch.from_numpy(found.view("int32")) if self._torch else found

    def _identity(self):
        o = self._options
        blocks = {name: o[name] for name in ("shuffle_block", "shuffle_window")
                  if o["shuffle_block"]}
        return {"version": 1, "data": self.dataset.hash, "weights": self.dataset._weights,
                "seed": o["seed"], "shuffle": o["shuffle"], "length": o["length"],
                "batch_size": o["batch"], **blocks}

    def state_dict(self):
        """What a loader needs to continue after the batch returned last: numbers and strings."""
        return {**self._identity(), "position": self.position}

    def load_state_dict(self, state):
        """Continues where state_dict() was called; InputError if data or order are others."""
        own_state = self._identity()
        for name in {**own_state, **state}:
            then, now = state.get(name), own_state.get(name)
            if name != "position" and then != now:
                raise InputError(f"the state was saved with {name} {then!r}; this loader has "
                                 f"{now!r}")
        if "position" not in state:
            raise InputError("the state has no position")
        options = self._options_at(state["position"])
        with self._alone():
            self._handle.close()
            self._open(options)

    def close(self):
        """Ends the threads; batches stay valid. A thread that reads has an InputError."""
        with self._alone():
            self._handle.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def _torch():
    _arrays.need_numpy('to="torch"')
    import torch
    return torch
