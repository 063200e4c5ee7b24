# SPDX-License-Identifier: MIT
"""dt's tokenizers, shards, batches and cleaning in Python, over libdt.so.0: see dt-python(7).

    ids = dt.Tokenizer("tokenizer.json").encode_batch(texts)          # numpy, on all processors
    for inputs, targets in dt.Loader("shards", 1024, 64, to="torch"): ...
    dt.clean(text, "gopher", normalize="nfc").kept
    dt.read_metrics("run", into="pandas")
"""
from ._clean import Cleaned, Cleaner, clean
from ._data import Dataset, Loader
from ._library import Error, InputError, MissingError, ResourceError, plain
from ._metrics import read_metrics
from ._tokenizer import Tokenizer

__version__ = plain("version")().decode()
__all__ = ["Cleaned", "Cleaner", "Dataset", "Error", "InputError", "Loader", "MissingError",
           "ResourceError", "Tokenizer", "clean", "read_metrics"]
