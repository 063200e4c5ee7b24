# SPDX-License-Identifier: MIT
"""Compares dt with transformers, family by family (families.py).

families_oracle.py golden                     prints tests/model/golden/families.txt
families_oracle.py check PROGRAM DIR [NAME]   every model of families.py
families_oracle.py hunt PROGRAM DIR [NAME]    every value of mutations.py in every config.json
families_oracle.py write DIR VOCABULARY       a random causal model of each family

PROGRAM is tests/oracles/answers, which computes with models that are written to DIR. NAME is a
regular expression for names of models or families.

The expected values are computed in fp64: in fp32, transformers is as far from them as dt is.
"""
import collections
import contextlib
import copy
import json
import math
import os
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

import numpy
import torch
import transformers
from safetensors.torch import load_file

import mutations
from families import (CLASSIFIER, FAMILIES, LABELS, REFUSED, SHAPES, SMALL, cases, config_of, is_classifier,
                      model_of)

torch.set_num_threads(1)
NO_TARGET = -1
FIRST_ID = 2  # of inputs: transformers keeps the embedding of pad_token_id
LOSSES = 16  # as in answers.c
STEP = dict(lr=0.01, betas=(0.9, 0.95), eps=0.1)
DECAY = 0.1


@contextlib.contextmanager
def double_precision():
    """transformers converts to fp32 by name in norms, RoPE and softmax: the name means fp64 here."""
    names = torch.float32, torch.float, torch.Tensor.float
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = names
        torch.set_default_dtype(torch.float32)


def label_targets(family, targets):
    """Targets of a classifier: a label at the token that it classifies."""
    only = torch.full_like(targets, NO_TARGET)
    at = 0 if family.masked else -1
    only[:, at] = targets[:, at] % LABELS
    return only


def run_as_is(model, inputs, targets):
    """Logits, the sum of the losses, and gradients by name."""
    model.zero_grad()
    logits = model(input_ids=inputs, return_dict=True).logits
    if logits.dim() == 2:
        logits, targets = logits[:, None], targets.max(1).values[:, None]
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=NO_TARGET, reduction="sum")
    loss.backward()
    return logits.detach(), loss.item(), {n: p.grad for n, p in model.named_parameters()}


def run(model, inputs, targets):
    """The same in fp64."""
    with double_precision():
        return run_as_is(copy.deepcopy(model).double(), inputs, targets)


# --- what layers do (train/layer-metrics.h) -------------------------------------------------------


class Places(NamedTuple):
    """Modules of a model of transformers, by name, {} for the number of a layer. Residual streams
    are inputs of modules, units of the MLP an output."""
    input: str = "layers.{}.input_layernorm"
    middle: str = "layers.{}.post_attention_layernorm"
    unit: str = "layers.{}.mlp.gate_proj"
    final: str = "norm"
    first: str = None  # in place of the input of layer 0, before a norm of embeddings
    attention: str = None  # whose output added to the input is the middle, with a parallel residual


def after_norms(layer, embeddings, middle, output, unit):
    """Post-norm: a layer's stream before its norm is the input of the norm of the layer before."""
    return Places(f"{layer}.{{}}.{output}", f"{layer}.{{}}.{middle}", f"{layer}.{{}}.{unit}", None, embeddings)


BERT = after_norms("encoder.layer", "embeddings.LayerNorm", "attention.output.LayerNorm",
                   "output.LayerNorm", "intermediate.dense")
PLACES = {
    "gpt2": Places("h.{}.ln_1", "h.{}.ln_2", "h.{}.mlp.c_fc", "ln_f"),
    "phi3": Places(unit="layers.{}.mlp.gate_up_proj"),
    "olmo2": Places(input="layers.{}", middle="layers.{}.mlp"),
    "gemma2": Places(middle="layers.{}.pre_feedforward_layernorm"),
    "gemma3_text": Places(middle="layers.{}.pre_feedforward_layernorm"),
    "gpt_neox": Places(unit="layers.{}.mlp.dense_h_to_4h", final="final_layer_norm"),
    "bert": BERT,
    "roberta": BERT,
    "distilbert": after_norms("transformer.layer", "embeddings.LayerNorm", "sa_layer_norm",
                              "output_layer_norm", "ffn.lin1"),
    "modernbert": Places("layers.{}.attn_norm", "layers.{}.mlp_norm", "layers.{}.mlp.Wi", "final_norm",
                         "embeddings.norm"),
}


def places_of(config):
    places = PLACES.get(config.model_type, Places())
    if getattr(config, "use_parallel_residual", False):
        attention = "attention" if config.model_type == "gpt_neox" else "self_attn"
        return places._replace(attention="layers.{}." + attention, middle=None)
    return places


class Watched:
    """The inputs and outputs of modules in the last forward of a model, by name."""

    def __init__(self, model, names):
        self.inputs, self.outputs = {}, {}
        for name in names:
            model.get_submodule(name).register_forward_hook(
                lambda module, args, kwargs, out, name=name: self.note(name, args, kwargs, out),
                with_kwargs=True)

    def note(self, name, args, kwargs, output):
        self.inputs[name] = args[0] if args else kwargs.get("hidden_states")
        self.outputs[name] = output[0] if isinstance(output, tuple) else output


def rms(x):
    return x.double().pow(2).mean().sqrt().item()


def entropies(weights):
    """The mean of each head, of attention's weights (B, H, T, T)."""
    return -torch.xlogy(weights, weights).sum(-1).mean((0, 2))


def layer_values(model, inputs, targets):
    """The numbers of answers.c's file layers, computed in fp64."""
    with double_precision(), torch.no_grad():
        return layer_values_of(copy.deepcopy(model).double(), inputs, targets)


def layer_values_of(model, inputs, targets):
    config, base = model.config, getattr(model, model.base_model_prefix, None) or model.model
    places, count = places_of(config), config.num_hidden_layers
    names = [n.format(i) for n in (places.input, places.middle, places.unit, places.attention) if n
             for i in range(count)]
    watched = Watched(base, names + [n for n in (places.first, places.final) if n])
    answer = model(input_ids=inputs, output_attentions=True, return_dict=True)
    post_norm = places.final is None  # the output's norm stands in the stream

    def stream(i):
        if i == 0 and places.first:
            return watched.inputs[places.first]
        if i == count and not post_norm:
            return watched.inputs[places.final]
        return watched.inputs[places.input.format(i - post_norm)]

    for i in range(count):
        units = watched.outputs[places.unit.format(i)]
        if places.unit.endswith(("gate_up_proj", "Wi")):
            units = units.chunk(2, -1)[0]
        middle = (watched.inputs[places.middle.format(i)] if places.middle
                  else stream(i) + watched.outputs[places.attention.format(i)])
        dead = (units.flatten(0, -2) <= 0).all(0).double().mean().item()
        capped = getattr(config, "attn_logit_softcapping", None)
        heads = [math.nan] * config.num_attention_heads if capped else entropies(answer.attentions[i]).tolist()
        yield from (rms(stream(i)), rms(middle), dead, *heads)
    last = places.final or places.input.format(count - 1)
    logits = answer.logits[targets != NO_TARGET] if answer.logits.dim() == 3 else answer.logits
    yield from (rms(stream(count)), rms(watched.outputs[last]), rms(logits), logits.abs().max().item())


def forward(model, inputs):
    with double_precision(), torch.no_grad():
        return copy.deepcopy(model).double()(input_ids=inputs, return_dict=True).logits


def step(model, gradients):
    """One step of AdamW; dt's matrices decay."""
    parameters = dict(model.named_parameters())
    for name, p in parameters.items():
        p.grad = gradients[name].to(p.dtype)
    groups = [dict(params=[p for p in parameters.values() if p.dim() == 2], weight_decay=DECAY),
              dict(params=[p for p in parameters.values() if p.dim() < 2], weight_decay=0.0)]
    torch.optim.AdamW(groups, **STEP).step()


def center(p):
    """Norms' weights are near 1, unless 1 is added to them."""
    return float(p.dim() == 1 and p[0].item() == 1)


# --- golden: all values are formulas, which test-families.c also computes -------------------------


def scattered(name, count):
    """Numbers from -1/2 to 1/2, a function of name and index."""
    key = 2166136261
    for byte in name.encode():
        key = (key ^ byte) * 16777619 & 0xFFFFFFFF
    x = (key + numpy.arange(count, dtype=numpy.uint64)) * 2654435761 & 0xFFFFFFFF
    x = (x ^ x >> 16) * 2246822507 & 0xFFFFFFFF
    x ^= x >> 13
    return torch.from_numpy((x >> 8).astype(numpy.float64) / 2**24 - 0.5)


def summary(name, values):
    along = (values.double().flatten() * scattered("along " + name, values.numel())).sum()
    return f"{values.double().norm().item():.9g} {along.item():.9g}"


def print_golden(name, family, members):
    config = config_of(family, SMALL, members)
    model = model_of(family, config)
    centers = {}
    with torch.no_grad():
        for n, p in model.named_parameters():
            centers[n] = center(p)
            p.copy_((0.5 * scattered(n, p.numel()) + centers[n]).view(p.shape))
    length, rows, v = 10, 3, SMALL.vocabulary
    ids = ((scattered("inputs", rows * length) + 0.5) * (v - FIRST_ID)).long() + FIRST_ID
    targets = ((scattered("targets", rows * length) + 0.5) * v).long()
    if is_classifier(config):
        targets = label_targets(family, targets.view(rows, length)).flatten()
    else:
        targets[scattered("chosen", rows * length) > 0.2] = NO_TARGET
    logits, loss, gradients = run(model, ids.view(rows, length), targets.view(rows, length))
    print(f"model {name} {len(centers)} {loss:.9g}")
    print(json.dumps(config.to_diff_dict() | {"model_type": config.model_type,
                                              "architectures": [type(model).__name__]}))
    print(f"logits {summary('logits', logits)}")
    layers = list(layer_values(model, ids.view(rows, length), targets.view(rows, length)))
    print("layers", len(layers), *(f"{x:.9g}" for x in layers))
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    step(model, gradients)
    for n, p in model.named_parameters():
        print(n, *(list(p.shape) + [1])[:2], int(centers[n]), summary(n, gradients[n]),
              summary(n, (p.detach() - before[n])))


def golden():
    for family in FAMILIES:
        for name, members in ({"plain": {}} | family.variants).items():
            print_golden(f"{family.model_type}-{name}", family, members)


# --- random models --------------------------------------------------------------------------------


class Case:
    """A random model in a directory, with a batch, and what dt computes with them."""

    def __init__(self, directory, family, model, length=20, rows=3):
        self.directory, self.model = directory, model
        length = min(length, model.config.max_position_embeddings)
        random = torch.Generator().manual_seed(1)
        v = model.config.vocab_size
        self.inputs = torch.randint(FIRST_ID, v, (rows, length), generator=random)
        self.targets = torch.randint(v, (rows, length), generator=random)
        if is_classifier(model.config):
            self.targets = label_targets(family, self.targets)
        else:
            self.targets[torch.rand(rows, length, generator=random) < 0.5] = NO_TARGET
        with torch.no_grad():
            for p in model.parameters():
                p.normal_(center(p), model.config.hidden_size**-0.5, generator=random)

    def write(self, dtype=torch.float32, **how):
        shutil.rmtree(self.directory, ignore_errors=True)
        with torch.no_grad():
            for p in self.model.parameters():
                p.copy_(p.to(dtype))
        copy.deepcopy(self.model).to(dtype).save_pretrained(self.directory, **how)
        batch = [torch.tensor(self.inputs.shape), self.inputs.flatten(), self.targets.flatten()]
        torch.cat(batch).numpy().astype(numpy.int32).tofile(f"{self.directory}/batch")

    def path(self, answer):
        return f"{self.directory}/answers/{answer}"

    def error(self):
        """Why dt refuses the model, or None."""
        if not os.path.exists(self.path("error")):
            return None
        with open(self.path("error")) as f:
            return f.read()

    def numbers(self, answer, shape):
        return torch.from_numpy(numpy.fromfile(self.path(answer), numpy.float32)).view(shape)

    def differences(self):
        """What dt computes, compared with transformers: (what, error, bound)."""
        logits, loss, gradients = run(self.model, self.inputs, self.targets)
        yield from self.logit_differences(logits)
        with open(self.path("loss")) as f:
            yield "loss", abs(float(f.read()) / loss - 1), 1e-6
        yield from self.layer_differences()
        yield from self.gradient_differences(gradients)
        yield from self.step_differences(gradients)

    def logit_differences(self, logits):
        scale = max(1, logits.abs().max().item())
        if os.path.exists(self.path("logits")):
            got = self.numbers("logits", logits.shape)
            yield "logits", (got - logits).abs().max().item() / scale, 1e-5
        if is_classifier(self.model.config):
            return
        asked = [i * logits.shape[-1] // LOSSES for i in range(LOSSES)]
        want = -torch.log_softmax(logits, -1)[..., asked].permute(2, 0, 1)
        got = self.numbers("losses", want.shape)
        yield "losses", (got - want).abs().max().item() / scale, 1e-5

    def layer_differences(self):
        want = list(layer_values(self.model, self.inputs, self.targets))
        with open(self.path("layers")) as f:
            got = [float(x) for x in f.read().split()]
        yield "numbers of layers", float(len(got) != len(want)), 0
        for i, (a, b) in enumerate(zip(got, want)):
            yield f"number {i} of layers", 0 if math.isnan(a) and math.isnan(b) else abs(a - b) / max(1, abs(b)), 1e-5

    def gradient_differences(self, gradients):
        got = load_file(self.path("gradients/model.safetensors"))
        yield "names", float(got.keys() != gradients.keys()), 0
        noisy = run_as_is(self.model, self.inputs, self.targets)[2]
        for name in gradients.keys() & got.keys():
            # Without RoPE, softmax is invariant to a bias of keys: its gradient is rounding error.
            scale = name.replace("key.bias", "query.bias").replace("k_lin.bias", "q_lin.bias")
            error, noise = ((x[name] - gradients[name]).norm().item() for x in (got, noisy))
            norm = gradients[scale].norm().item() or 1
            # transformers may be as far off in fp32, where large terms cancel.
            bound = max(3e-6, 3 * noise / norm) if scale == name else 1e-5
            yield f"gradient of {name}", error / norm, bound

    def step_differences(self, gradients):
        stepped = copy.deepcopy(self.model)
        step(stepped, gradients)
        try:
            model, info = type(stepped).from_pretrained(
                self.path("stepped"), output_loading_info=True, attn_implementation="eager")
        except Exception as e:
            yield f"loading fails: {e}", 1, 0
            return
        yield "loading", float(any(info[k] for k in info)), 0
        got = dict(model.named_parameters())
        for name, want in stepped.named_parameters():
            yield f"step of {name}", (got[name] - want).abs().max().item(), 1e-5
        a, b = (run(m.eval(), self.inputs, self.targets)[0] for m in (model, stepped))
        yield "export", ((a - b).abs().max() / max(1, b.abs().max())).item(), 1e-4
        yield from config_differences(model.config.to_dict(), stepped.config.to_dict())


# What these give by rule, dt gives by layer.
RULES = {"pad_token_id", "max_window_layers", "no_rope_layer_interval", "sliding_window_pattern",
         "_sliding_window_pattern"}


def unused(config):
    """Members about kinds of layers that the model does not have."""
    if "sliding_attention" not in config.get("layer_types", ["sliding_attention"]):
        return {"sliding_window"}
    return {"local_attention"} if config.get("global_attn_every_n_layers") == 1 else set()


TANH = {"gelu_new", "gelu_fast", "gelu_pytorch_tanh"}  # the same function


def config_differences(got, want):
    """Of members that transformers reads from a written config.json and from the original."""
    for key in sorted(want.keys() - set(mutations.IRRELEVANT) - RULES - unused(want)):
        value = got.get(key)
        expected = want[key]
        if isinstance(expected, dict):
            expected = {k: v for k, v in expected.items() if k != "type"}  # the old name of rope_type
            value = {k: v for k, v in (value or {}).items() if k in expected}
        same = value == expected or {value, expected} <= TANH if isinstance(expected, str) else value == expected
        if expected is not None and not same:  # defaults may be written out
            yield f"config: {key} is {value} instead of {expected}", 1, 0


def compute(program, how, directories):
    for i in range(0, len(directories), 200):
        subprocess.run([program, how] + directories[i : i + 200], check=True)


def report(name, case):
    """Prints the largest errors; True if all are within their bounds."""
    if case.error() or name in REFUSED:
        print(f"{name}: refused: {case.error()}")
        return bool(case.error()) and name in REFUSED
    worst, wrong = {}, []
    for what, error, bound in case.differences():
        kind = what.split()[0]
        worst[kind] = max(worst.get(kind, 0), error)
        if not error <= bound:
            wrong.append(f"  WRONG: {name}: {what} {error:.2g}")
    print(f"{name}: " + ", ".join(f"{k} {e:.1g}" for k, e in worst.items()))
    print(*wrong[:8], sep="\n", end="\n" if wrong else "")
    return not wrong


def models(directory, pattern):
    """Writes a model at a time; its name and case. Plain ones are also in 16 bits and several files."""
    for name, family, shape, members in cases():
        if not re.search(pattern, name):
            continue
        case = Case(f"{directory}/{name}", family, model_of(family, config_of(family, shape, members)))
        case.write()
        yield name, case
        if shape is SHAPES["plain"] and not members:
            for dtype in torch.bfloat16, torch.float16:
                case.write(dtype, max_shard_size="50KB")
                assert os.path.exists(f"{case.directory}/model.safetensors.index.json")
                yield f"{name} {dtype}", case


def check(program, directory, pattern=""):
    failed = []
    for name, case in models(directory, pattern):
        compute(program, "all", [case.directory])
        if not report(name, case):
            failed.append(name)
    print(f"{len(failed)} models are wrong: {', '.join(failed)}")
    return not failed


def write(directory, vocabulary):
    shape = SHAPES["plain"]._replace(vocabulary=int(vocabulary))
    for family in FAMILIES:
        if not family.masked:
            Case(f"{directory}/{family.model_type}", family,
                 model_of(family, config_of(family, shape))).write()
    return True


# --- the hunt -------------------------------------------------------------------------------------


class Mutation(Case):
    """A model whose config.json is a base's with another value, and at first the base's weights."""

    def __init__(self, directory, family, base, key, members):
        self.directory, self.family, self.key, self.members = directory, family, key, members
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        for file in "model.safetensors", "batch":
            os.link(f"{base.directory}/{file}", f"{directory}/{file}")
        self.write_config()
        self.changed = {k: v for k, v in members.items() if k not in base.members
                        or base.members[k] != v}

    def write_config(self):
        with open(f"{self.directory}/config.json", "w") as f:
            json.dump(self.members, f)

    def rewrite(self):
        """The model as transformers understands it; otherwise returns why it does not."""
        try:
            config = transformers.AutoConfig.from_pretrained(self.directory)
            super().__init__(self.directory, self.family, model_of(self.family, config), 12, 2)
            self.logits = forward(self.model, self.inputs)
            self.write()
            self.write_config()
        except Exception as e:
            return f"{type(e).__name__}: {e}".split("\n")[0][:100]

    def refusal(self):
        """How dt refuses the model, if it does: by the name of a changed member, or not."""
        error = self.error()
        if not error:
            return None
        keys = [self.key, *self.changed]
        names = keys + [mutations.NAMES[key] for key in keys if key in mutations.NAMES]
        words = re.findall(r"\w+", error)
        named = any(name in words for name in names)
        error = error.replace(self.directory, "")
        if self.key in mutations.IRRELEVANT and None not in self.changed.values() and self.changed:
            return "REFUSED", error
        return ("refused" if named else "UNNAMED"), error

    def forward_verdict(self, base):
        if self.refusal():
            return self.refusal()
        wrong = [f"{what} {e:.2g}" for what, e, bound in self.logit_differences(self.logits)
                 if not e <= bound]
        if wrong:
            return "WRONG", ", ".join(wrong)
        same = self.logits.shape == base.logits.shape and torch.equal(self.logits, base.logits)
        return ("ignored" if same else "obeyed"), ""

    def whole_verdict(self):
        # Terms cancel more than in larger models; a setting that is not obeyed shows all the same.
        wrong = [f"{what} {e:.2g}" for what, e, bound in self.differences() if not e <= 10 * bound]
        return ("WRONG" if wrong else "obeyed"), ", ".join(wrong[:3])


def base_of(family, members, directory):
    config = config_of(family, mutations.SHAPE, members)
    base = Case(directory, family, model_of(family, config), 12, 2)
    base.write()
    base.logits = forward(base.model, base.inputs)
    with open(f"{directory}/config.json") as f:
        base.members = json.load(f)
    return base


def verdicts(program, directory, family, members):
    """(mutation, verdict, detail) of every value: dt refuses or ignores most with the base's weights,
    so that transformers computes few models."""
    base = base_of(family, members, f"{directory}/{family.model_type}")
    made = [Mutation(f"{directory}/{family.model_type}-{i}", family, base, key, members)
            for i, (key, members) in enumerate(mutations.mutations(base.members))]
    compute(program, "forward", [m.directory for m in made])
    understood, obeyed = [], []
    for m in made:
        found = m.refusal()
        if found and found[0] == "refused":
            yield m, *found
            continue
        trouble = m.rewrite()
        if not trouble:
            understood.append(m)
        elif found:
            yield m, "refused", found[1]
        else:
            yield m, "ACCEPTED", f"transformers: {trouble}"
    compute(program, "forward", [m.directory for m in understood])
    for m in understood:
        verdict, detail = m.forward_verdict(base)
        if verdict == "obeyed":
            obeyed.append(m)
        else:
            yield m, verdict, detail
    compute(program, "all", [m.directory for m in obeyed])
    for m in obeyed:
        yield m, *m.whole_verdict()
    for m in made:
        shutil.rmtree(m.directory)


def hunt(program, directory, pattern=""):
    counts = collections.Counter()
    for family in FAMILIES:
        if not re.search(pattern, family.model_type):
            continue
        heads = {"": {}} | ({" labels": CLASSIFIER["labels"]} if family.masked else {})
        for head, members in heads.items():
            for m, verdict, detail in verdicts(program, directory, family, members):
                value = json.dumps(m.changed) if m.changed else f"no {m.key}"
                if verdict.isupper() and mutations.is_expected(family.model_type, head, m.key, verdict):
                    verdict = verdict.lower()
                print(f"{verdict:8} {family.model_type}{head}: {value} {detail}", flush=True)
                counts[verdict] += 1
    print(", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items())))
    return not any(verdict.isupper() for verdict in counts)


if __name__ == "__main__":
    if sys.argv[1] == "golden":
        golden()
    else:
        commands = {"check": check, "hunt": hunt, "write": write}
        sys.exit(not commands[sys.argv[1]](*sys.argv[2:]))
