# SPDX-License-Identifier: MIT
"""Reads and writes token data with the reference implementations of its formats.

  foreign_oracle.py mds DIR             ids read by MosaicML Streaming, one document per line
  foreign_oracle.py megatron PREFIX     ids read by megatron-core, one document per line
  foreign_oracle.py write-mds DIR       writes lines of ids (stdin) by MosaicML Streaming
  foreign_oracle.py write-megatron P    writes lines of ids (stdin) by megatron-core
"""
import sys

import numpy


def lines():
    for line in sys.stdin:
        yield numpy.array([int(word) for word in line.split()], dtype=numpy.uint16)


def mds(directory):
    from streaming.base.format import reader_from_json
    import json
    with open(directory + "/index.json") as f:
        index = json.load(f)
    for entry in index["shards"]:
        reader = reader_from_json(directory, None, entry)
        for i in range(reader.samples):
            print(*reader.get_item(i)["tokens"])


def write_mds(directory):
    from streaming import MDSWriter
    with MDSWriter(out=directory, columns={"tokens": "ndarray:uint16"}, size_limit=1 << 16) as out:
        for ids in lines():
            out.write({"tokens": ids})


def megatron(prefix):
    from megatron.core.datasets.indexed_dataset import IndexedDataset
    data = IndexedDataset(prefix)
    assert len(data.document_indices) == len(data) + 1
    for i in range(len(data)):
        print(*data[i])


def write_megatron(prefix):
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
    import torch
    builder = IndexedDatasetBuilder(prefix + ".bin", dtype=numpy.uint16)
    for ids in lines():
        builder.add_document(torch.tensor(ids.astype(numpy.int64)), [len(ids)])
    builder.finalize(prefix + ".idx")


COMMANDS = {"mds": mds, "megatron": megatron, "write-mds": write_mds,
            "write-megatron": write_megatron}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](sys.argv[2])
