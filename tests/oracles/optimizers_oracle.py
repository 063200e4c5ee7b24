# SPDX-License-Identifier: MIT
"""Prints the expected values of tests/optim/test-optimizer.c: for each optimizer, the sum of
sin(i + 1) * parameter[i] of each tensor of a small GPT-2 after five steps."""
import math

import torch

# Newton-Schulz iterations in fp32, as in dt: torch uses torch.bfloat16 by name.
torch.bfloat16 = torch.float32

SHAPES = [(5, 4), (3, 4), (4,), (4,), (4, 12), (12,), (4, 4), (4,), (4,), (4,), (4, 8), (8,),
          (8, 4), (4,), (4,), (4,)]
HIDDEN = {4, 6, 10, 12}  # the matrices of the block; 4 holds queries, keys and values
RATE, DECAY, STEPS = 0.02, 0.1, 5


def numbers(tensor, step, shape):
    """Parameters at step 0, gradients of step s at s + 1."""
    count = math.prod(shape)
    flat = [0.3 * math.cos(0.7 * i + 1.3 * tensor + 2.1 * step) for i in range(count)]
    return torch.tensor(flat, dtype=torch.float32).reshape(shape)


def parts(i, tensor):
    """Queries, keys and values are three matrices."""
    return list(tensor.chunk(3, dim=1)) if i == 4 else [tensor]


def run(name):
    whole = [numbers(i, 0, shape) for i, shape in enumerate(SHAPES)]
    split = [[p.clone().requires_grad_() for p in parts(i, w)] for i, w in enumerate(whole)]
    groups = {}
    for i, shape in enumerate(SHAPES):
        kind = "adamw" if name == "muon" and i not in HIDDEN else name
        groups.setdefault((kind, len(shape) == 2), []).extend(split[i])
    optimizers = []
    for (kind, decays), params in groups.items():
        decay = DECAY if decays else 0.0
        if kind == "adamw":
            optimizers.append(torch.optim.AdamW(params, lr=RATE, betas=(0.9, 0.95), eps=1e-8,
                                                weight_decay=decay))
        elif kind == "muon":
            optimizers.append(torch.optim.Muon(params, lr=RATE, momentum=0.95, weight_decay=decay,
                                               adjust_lr_fn="match_rms_adamw"))
        else:
            optimizers.append(torch.optim.SGD(params, lr=RATE, momentum=0.95))
    for step in range(STEPS):
        for i, shape in enumerate(SHAPES):
            for p, g in zip(split[i], parts(i, numbers(i, step + 1, shape))):
                p.grad = g.clone()
                if name == "sgd" and len(shape) == 2:  # decoupled weight decay
                    p.data.mul_(1 - RATE * DECAY)
        for optimizer in optimizers:
            optimizer.step()
    sums = []
    for tensors in split:
        flat = torch.cat([t.detach() for t in tensors], dim=-1).flatten().double()
        sums.append(sum(math.sin(j + 1) * x for j, x in enumerate(flat.tolist())))
    print(f"/* {name} */ {{" + ", ".join(f"{x:.7f}" for x in sums) + "},")


def run_lion():
    """Chen et al. 2023, algorithm 2, in double precision; PyTorch has none."""
    sums = []
    for i, shape in enumerate(SHAPES):
        count, decay = math.prod(shape), DECAY if len(shape) == 2 else 0.0
        flat = lambda step: [0.3 * math.cos(0.7 * j + 1.3 * i + 2.1 * step) for j in range(count)]
        parameters, momentum = flat(0), [0.0] * count
        for step in range(STEPS):
            for j, g in enumerate(flat(step + 1)):
                sign = math.copysign(1, 0.9 * momentum[j] + 0.1 * g)
                momentum[j] = 0.95 * momentum[j] + 0.05 * g
                parameters[j] -= RATE * (sign + decay * parameters[j])
        sums.append(sum(math.sin(j + 1) * x for j, x in enumerate(parameters)))
    print("/* lion */ {" + ", ".join(f"{x:.7f}" for x in sums) + "},")


for name in ("adamw", "sgd", "muon"):
    run(name)
run_lion()
