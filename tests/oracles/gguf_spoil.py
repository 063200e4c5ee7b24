# SPDX-License-Identifier: MIT
"""gguf_spoil.py FILE TENSOR HEADS: the mistakes that a GGUF file of fp32 can hide. With 0
heads the square matrix TENSOR is transposed in place; otherwise its rows are put back into
the order that queries and keys have in Hugging Face's files."""
import sys

import gguf

path, name, heads = sys.argv[1], sys.argv[2], int(sys.argv[3])
reader = gguf.GGUFReader(path, "r+")
data = next(t for t in reader.tensors if t.name == name).data
if heads == 0:
    data[:] = data.T.copy()
else:
    rows, columns = data.shape
    data[:] = data.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns).copy()
data.flush()
