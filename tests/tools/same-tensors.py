#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""same-tensors.py DIR DIR [NAME...]: fails unless both model.safetensors have the same tensors, to 1e-6, but for
those of these names."""
import array
import json
import struct
import sys


def tensors(directory):
    with open(f"{directory}/model.safetensors", "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    header.pop("__metadata__", None)
    return {name: array.array("f", data[slice(*entry["data_offsets"])]) for name, entry in header.items()}


one, other = map(tensors, sys.argv[1:3])
for name in sorted((one.keys() | other.keys()) - set(sys.argv[3:])):
    if name not in one or name not in other:
        sys.exit(f"{name} is in one model only")
    if any(abs(a - b) > 1e-6 for a, b in zip(one[name], other[name], strict=True)):
        sys.exit(f"{name} differs")
