#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""flip-bit.py FILE TENSOR: flips the lowest bit of the tensor's last element in a safetensors file."""
import json, struct, sys

with open(sys.argv[1], "r+b") as f:
    size = struct.unpack("<Q", f.read(8))[0]
    at = 8 + size + json.loads(f.read(size))[sys.argv[2]]["data_offsets"][1] - 4
    f.seek(at)
    byte = f.read(1)[0]
    f.seek(at)
    f.write(bytes([byte ^ 1]))
