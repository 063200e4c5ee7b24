# SPDX-License-Identifier: MIT
"""Compares adapters with peft, which needs Python's peft beside transformers.

lora_oracle.py golden                prints tests/formats/golden/lora.txt
lora_oracle.py check PROGRAM DIR     adapters that peft writes to DIR, which tests/oracles/answers reads
lora_oracle.py same MODEL RUN MERGED
                                     fails unless peft, with the model and dt's adapter RUN, has the logits of MERGED

Values of golden are computed in fp64, from formulas that test-adapter.c also computes.
"""
import copy
import json
import shutil
import sys
import tempfile

import numpy
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model

from families import FAMILIES, SHAPES, SMALL, config_of, model_of
from families_oracle import FIRST_ID, NO_TARGET, Case, center, compute, double_precision, scattered, summary

ROWS, LENGTH, BATCHES, STEPS = 3, 10, 4, 20
OPTIMIZER = dict(lr=0.01, betas=(0.9, 0.95), eps=1e-3, weight_decay=0.1)
# Of families of families.py: name, targets, and other members of adapter_config.json.
CASES = [
    ("gpt2", ["c_attn", "c_proj", "c_fc"], {}),
    ("llama", ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], {}),
    ("llama", ["q_proj", "v_proj"], {"use_rslora": True}),
    ("qwen3", ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], {}),
    ("phi3", ["qkv_proj", "gate_up_proj"], {}),
    ("gpt_neox", ["query_key_value", "dense_4h_to_h"], {}),
    ("modernbert", ["Wqkv", "Wi", "mlp.Wo"], {}),
    ("gemma2", ["k_proj", "down_proj"], {}),
]


def family_of(name):
    return next(f for f in FAMILIES if f.model_type == name)


def adapter(model, targets, members):
    config = LoraConfig(r=2, lora_alpha=3, target_modules=targets,
                        **({"task_type": "CAUSAL_LM"} | members))
    return get_peft_model(model, config)


def file_name(name):
    """A trained tensor's name in peft's files."""
    return name.replace(".default.", ".")


def trained(model):
    return {file_name(n): p for n, p in model.named_parameters() if p.requires_grad}


def set_formulas(model):
    """Weights that depend on the names in files and on the indices."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_((0.5 * scattered(name, p.numel()) + center(p)).view(p.shape))


def batch(i, vocabulary, masked):
    count = ROWS * LENGTH
    ids = ((scattered(f"inputs {i}", count) + 0.5) * (vocabulary - FIRST_ID)).long() + FIRST_ID
    targets = ((scattered(f"targets {i}", count) + 0.5) * vocabulary).long()
    targets[scattered(f"chosen {i}", count) > 0.2] = NO_TARGET
    return ids.view(ROWS, LENGTH), targets


def loss_of(model, inputs, targets):
    logits = model(input_ids=inputs, return_dict=True).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets, ignore_index=NO_TARGET)


def train(model, batches):
    """The losses of all steps, and the gradients of the first."""
    parameters = trained(model)
    optimizer = torch.optim.AdamW(parameters.values(), **OPTIMIZER)
    losses, first = [], None
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, *batches[step % len(batches)])
        loss.backward()
        first = first or {n: p.grad.clone() for n, p in parameters.items()}
        losses.append(loss.item())
        optimizer.step()
    return losses, first


def written_config(model):
    with tempfile.TemporaryDirectory() as directory:
        model.save_pretrained(directory)
        with open(f"{directory}/adapter_config.json") as f:
            config = json.load(f)
    return config | {"base_model_name_or_path": "base"}


def print_golden(name, targets, members):
    family = family_of(name)
    config = config_of(family, SMALL)
    model = model_of(family, config)
    base = [(n, list(p.shape), center(p)) for n, p in model.named_parameters()]
    set_formulas(model)
    wrapped = adapter(model, targets, members if not family.masked else members | {"task_type": None})
    saved = written_config(wrapped)
    saved["target_modules"] = targets
    with torch.no_grad():
        for n, p in trained(wrapped).items():
            p.copy_((0.5 * scattered(n, p.numel())).view(p.shape))
    batches = [batch(i, SMALL.vocabulary, family.masked) for i in range(BATCHES)]
    with double_precision():
        double = copy.deepcopy(wrapped).double()
        losses, first = train(double, batches)
    print(f"model {name}-{len(targets)} {len(base)} {len(first)}")
    print(json.dumps(config.to_diff_dict() | {"model_type": config.model_type,
                                              "architectures": [type(model).__name__]}))
    print(json.dumps(saved))
    print(*(f"{x:.9g}" for x in losses))
    for n, shape, middle in base:
        print(n, *(shape + [1])[:2], int(middle))
    for n, p in trained(double).items():
        print(n, *p.shape, summary(n, first[n]), summary(n, p.detach()))


def golden():
    for case in CASES:
        print_golden(*case)


def check(program, directory):
    failed = []
    for number, (name, targets, members) in enumerate(CASES):
        family = family_of(name)
        if family.masked:
            continue
        base, path = f"{directory}/{number}-base", f"{directory}/{number}"
        case = Case(base, family, model_of(family, config_of(family, SHAPES["plain"])))
        case.write()
        wrapped = adapter(case.model, targets, members)
        with torch.no_grad():
            for p in trained(wrapped).values():
                p.normal_(0, 0.3)
        wrapped.peft_config["default"].base_model_name_or_path = base
        wrapped.save_pretrained(path)
        shutil.copy(f"{base}/batch", path)
        compute(program, "all", [path])
        with double_precision(), torch.no_grad():
            want = copy.deepcopy(wrapped).double()(input_ids=case.inputs, return_dict=True).logits
        got = torch.from_numpy(numpy.fromfile(f"{path}/answers/logits", numpy.float32)).view(want.shape)
        error = ((got - want).abs().max() / want.abs().max()).item()
        print(f"{name} {','.join(targets)}: {error:.1g}")
        failed += [name] if not error < 1e-5 else []
    return not failed


def same(base, run, merged):
    """Whether the logits of random ids are equal."""
    load = transformers.AutoModelForCausalLM.from_pretrained
    adapted = PeftModel.from_pretrained(load(base, attn_implementation="eager"), run).eval().double()
    plain, whole = (load(m, attn_implementation="eager").eval().double() for m in (base, merged))
    length = min(20, plain.config.max_position_embeddings)
    ids = torch.randint(FIRST_ID, plain.config.vocab_size, (3, length), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        a, b, c = (m(input_ids=ids).logits for m in (adapted, whole, plain))
    scale = b.abs().max()
    print(f"{plain.config.model_type}: {((a - b).abs().max() / scale).item():.1g}, without the adapter "
          f"{((c - b).abs().max() / scale).item():.1g}")
    return ((a - b).abs().max() < 1e-5 * scale < (c - b).abs().max()).item()


if __name__ == "__main__":
    sys.exit({"golden": golden, "check": check, "same": same}[sys.argv[1]](*sys.argv[2:]) is False)
