#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training loop in the style of nanoGPT, with batches of dt: dt-python(7).

    share/examples/nanogpt.py shards --steps 200

The lines marked `dt` are those in which it differs from a loop that has its own loader: they
replace get_batch() and the files that it reads. Needs torch and numpy.
"""
import argparse
import math
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import dt                                                                            # dt


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).transpose(1, 3).unbind(2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary, length, layers, heads, width):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self._init)

    @staticmethod
    def _init(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, x, y):
        places = torch.arange(x.shape[1], device=x.device)
        logits = self.head(self.norm(self.blocks(self.tokens(x) + self.places(places))))
        return F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=-100)


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("data", help="a directory of dt-shard(1)")
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--stop", type=int, help="write a checkpoint after this step, and end")
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--length", type=int, default=64)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--width", type=int, default=128)
    p.add_argument("--rate", type=float, default=1e-3)
    p.add_argument("--checkpoint", default="nanogpt.pt")
    return p.parse_args()


def rate_at(step, a):
    warmup = min(1, (step + 1) / 20)
    return a.rate * warmup * (0.1 + 0.45 * (1 + math.cos(math.pi * step / a.steps)))


def main():
    a = arguments()
    torch.manual_seed(1337)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = dt.Loader(a.data, a.length, a.batch, to="torch")                            # dt
    model = GPT(loader.dataset.vocab_size, a.length, a.layers, a.heads, a.width).to(device)  # dt
    optimizer = torch.optim.AdamW(model.parameters(), lr=a.rate, betas=(0.9, 0.99))
    first = 0
    if os.path.exists(a.checkpoint):
        saved = torch.load(a.checkpoint, map_location=device, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])                                          # dt
        first = saved["step"]
    last = min(a.steps, a.stop or a.steps)
    for step in range(first, last):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, a)
        x, y = (t.to(device).long() for t in next(loader))                               # dt
        loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0 or step == a.steps - 1:
            print(f"step {step}: loss {loss.item():.6f}", flush=True)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "loader": loader.state_dict(), "step": last}, a.checkpoint)              # dt


if __name__ == "__main__":
    main()
