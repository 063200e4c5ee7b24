# SPDX-License-Identifier: MIT
"""gguf_spoil.py FILE TENSOR HEADS: corrupts a tensor of an fp32 GGUF file without changing its
shape. With HEADS 0 it transposes the square matrix TENSOR in place; otherwise it permutes its rows
back to the order of queries and keys in Hugging Face files."""
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
