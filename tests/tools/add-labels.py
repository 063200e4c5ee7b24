#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""add-labels.py FROM TO ARCHITECTURE NAME... [-- MEMBER=VALUE...]: a copy of a model's directory, without
what a trainer keeps there, that is a classifier with labels of these names. Its score.weight is a
formula; members of config.json may be set, as JSON."""
import json
import os
import shutil
import struct
import sys

source, to, architecture, *names = sys.argv[1:]
names, members = (names[:names.index("--")], names[names.index("--") + 1:]) if "--" in names else (names, [])
shutil.copytree(source, to, ignore=shutil.ignore_patterns("trainer"))
path = os.path.join(to, "config.json")
with open(path) as f:
    config = json.load(f)
config["architectures"] = [architecture]
config["id2label"] = {str(i): name for i, name in enumerate(names)}
config.update((name, json.loads(value)) for name, value in (m.split("=") for m in members))
with open(path, "w") as f:
    json.dump(config, f)

path = os.path.join(to, "model.safetensors")
data = open(path, "rb").read()
size, = struct.unpack_from("<Q", data)
header, weights = json.loads(data[8:8 + size]), data[8 + size:]
header.pop("__metadata__", None)
count = len(names) * config["hidden_size"]
values = [(i * 2654435761 % 1000) / 1000 - 0.5 for i in range(1, count + 1)]
header["score.weight"] = {"dtype": "F32", "shape": [len(names), config["hidden_size"]],
                          "data_offsets": [len(weights), len(weights) + 4 * count]}
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(path, "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + weights + struct.pack(f"<{count}f", *values))
