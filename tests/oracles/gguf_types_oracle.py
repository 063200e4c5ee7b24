# SPDX-License-Identifier: MIT
"""gguf_types_oracle.py DIRECTORY: compares the values that tests/gguf/test-gguf-types decoded, with
DT_GGUF_VALUES=DIRECTORY, with those of the Python package gguf, bit for bit. A file is named by the
code of its type, and has 1024 elements encoded, then decoded."""
import os
import sys

import gguf
import numpy as np

names = sorted(os.listdir(sys.argv[1]), key=int)
assert len(names) == 10, names
for name in names:
    data = np.fromfile(os.path.join(sys.argv[1], name), np.uint8)
    encoded, found = data[:-4096], data[-4096:].view(np.float32)
    kind = gguf.GGMLQuantizationType(int(name))
    encoded = encoded.view(np.float16) if kind == gguf.GGMLQuantizationType.F16 else encoded
    expected = gguf.quants.dequantize(encoded, kind).astype(np.float32).reshape(-1)
    assert (found.view(np.uint32) == expected.view(np.uint32)).all(), kind.name
    print(kind.name, "equal")
