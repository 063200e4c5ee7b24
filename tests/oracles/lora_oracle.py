# SPDX-License-Identifier: MIT
"""Compares adapters with peft, which needs Python's peft beside transformers.

lora_oracle.py golden                prints tests/formats/golden/lora.txt
lora_oracle.py write DIR             writes DIR/FAMILY, models, and DIR/FAMILY-adapter, peft's adapters of them
lora_oracle.py logits MODEL ADAPTER IDS
                                     the logits after the ids, one a line, of an adapter that peft loads
lora_oracle.py losses RUN DATA STEPS BATCH LENGTH
                                     the losses of STEPS steps of peft and torch on the batches of a run of dt

Values of golden are computed in fp64, from formulas that test-adapter.c also computes.
"""
import copy
import json
import sys
import tempfile

import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model

from families import FAMILIES, SHAPES, SMALL, config_of, model_of
from families_oracle import FIRST_ID, NO_TARGET, center, double_precision, scattered, summary

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


def write(directory):
    shape = SHAPES["plain"]
    for name, targets, members in CASES:
        family = family_of(name)
        if family.masked or members:
            continue
        torch.manual_seed(3)
        model = model_of(family, config_of(family, shape))
        model.save_pretrained(f"{directory}/{name}")
        model.config._name_or_path = f"{directory}/{name}"
        model.name_or_path = f"{directory}/{name}"
        wrapped = adapter(model, targets, members)
        with torch.no_grad():
            for p in trained(wrapped).values():
                p.normal_(0, 0.3)
        wrapped.save_pretrained(f"{directory}/{name}-adapter")


def logits(base, directory, ids):
    model = transformers.AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager")
    model = PeftModel.from_pretrained(model, directory).eval()
    with torch.no_grad():
        row = model(input_ids=torch.tensor([[int(i) for i in ids.split(",")]])).logits[0, -1]
    print(*(f"{x:.9g}" for x in row.tolist()), sep="\n")


if __name__ == "__main__":
    {"golden": golden, "write": write, "logits": logits}[sys.argv[1]](*sys.argv[2:])
