#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""poison-weights.py FROM TO TENSOR INDEX VALUE...: copies a model's directory, without what a
trainer keeps there (the manifest, which has hashes), and puts values into one of its fp32 tensors,
from an index on. TENSOR is the end of a name."""
import json
import os
import shutil
import struct
import sys

source, to, tensor, index, *values = sys.argv[1:]
shutil.copytree(source, to, ignore=shutil.ignore_patterns("trainer"))
path = os.path.join(to, "model.safetensors")
data = bytearray(open(path, "rb").read())
size, = struct.unpack_from("<Q", data)
header = json.loads(data[8:8 + size])
name = next(name for name in header if name.endswith(tensor))
assert header[name]["dtype"] == "F32"
begin = 8 + size + header[name]["data_offsets"][0] + 4 * int(index)
struct.pack_into(f"<{len(values)}f", data, begin, *map(float, values))
with open(path, "wb") as file:
    file.write(data)
