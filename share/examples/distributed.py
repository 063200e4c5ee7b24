#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Distributed training by PyTorch with dt's loader, whose state is in the checkpoint, as in
torchtitan: dt-python(7).

    torchrun --nproc-per-node 2 share/examples/distributed.py shards --steps 100
    torchrun --nproc-per-node 4 share/examples/distributed.py shards --steps 200    # resumes

Loader is what torchtitan calls a dataloader: an iterable of (inputs, labels) with state_dict() and
load_state_dict(). Its state is the same on all ranks and does not depend on their number, so a
checkpoint has it once. Needs torch and numpy.
"""
import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.stateful import Stateful
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import dt


class Loader(Stateful):
    """A dt.Loader in the form that torchtitan expects."""

    def __init__(self, path, length, batch_size):
        self.loader = dt.Loader(path, length, batch_size, rank=dist.get_rank(),
                                world_size=dist.get_world_size(), to="torch")

    def __iter__(self):
        for inputs, targets in self.loader:
            yield {"input": inputs.long()}, targets.long()

    def state_dict(self):
        return self.loader.state_dict()

    def load_state_dict(self, state_dict):
        self.loader.load_state_dict(state_dict)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("data", help="a directory of dt-shard(1)")
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--length", type=int, default=64)
    p.add_argument("--checkpoint", default="distributed.pt")
    a = p.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(1337)
    loader = Loader(a.data, a.length, a.batch)
    vocabulary = loader.loader.dataset.vocab_size
    model = DistributedDataParallel(nn.Sequential(nn.Embedding(vocabulary, 64),
                                                  nn.Linear(64, vocabulary)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    first = 0
    if os.path.exists(a.checkpoint):
        saved = torch.load(a.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        loader.load_state_dict(saved["loader"])
        first = saved["step"]
    for step, (inputs, labels) in zip(range(first, a.steps), loader):
        loss = F.cross_entropy(model(inputs["input"]).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach(), dist.ReduceOp.AVG if dist.get_backend() == "nccl"
                        else dist.ReduceOp.SUM)
        if dist.get_rank() == 0 and (step % 20 == 0 or step == a.steps - 1):
            print(f"step {step}: loss {loss.item() / dist.get_world_size():.6f}", flush=True)
    if dist.get_rank() == 0:
        torch.save({"model": model.state_dict(), "loader": loader.state_dict(), "step": a.steps},
                   a.checkpoint)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
