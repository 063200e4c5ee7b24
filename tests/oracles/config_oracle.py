# SPDX-License-Identifier: MIT
"""config.json of every family: what transformers makes of it.

config_oracle.py golden           configurations of fixed shapes as text, a JSON object a line:
                                  config, and facts of the model that transformers makes of it
config_oracle.py random DIR SEED  the same in DIR/configs, with random values
config_oracle.py check DIR        checks that the line of DIR/written with the same number is a
                                  config.json with the same facts
"""
import contextlib
import copy
import io
import json
import os
import random
import sys
import warnings

import torch
import transformers

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity(transformers.logging.CRITICAL)

LENGTH = 24

LINEAR = {"rope_type": "linear", "factor": 4.0}
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
SCALINGS = [None, LINEAR, DYNAMIC, LLAMA3, YARN,
            {"rope_type": "yarn", "factor": 2.5, "beta_fast": 24.0, "beta_slow": 2.0,
             "attention_factor": 1.25}]

LLAMA = {
    "rms_norm_eps": [1e-6, 1e-5, 0.0123], "rope_theta": [1e4, 5e5, 123.5],
    "attention_dropout": [0.0, 0.25], "tie_word_embeddings": [False, True],
    "num_key_value_heads": [1, 2, 4], "initializer_range": [0.02, 0.5],
}
BIASES = {"attention_bias": [False, True], "mlp_bias": [False, True]}
HEAD = {"head_dim": [4, 6, 10]}
SCALED = {"rope_scaling": SCALINGS}
UPPER = {"use_sliding_window": [False, True], "sliding_window": [5, 9],
         "max_window_layers": [0, 1, 6]}
GEMMA = {"query_pre_attn_scalar": [4, 16, 24, 7.5], "sliding_window": [5, 9],
         "final_logit_softcapping": [30.0, None, 3.3]}
MASKED = {"hidden_dropout_prob": [0.0, 0.1], "attention_probs_dropout_prob": [0.0, 0.25],
          "layer_norm_eps": [1e-12, 1e-5]}


def lists(*choices):
    return {"layer_types": [None if c is None else
                            ["full_attention" if x == "f" else "sliding_attention" for x in c]
                            for c in choices]}


# model_type: stem of transformers' classes, and the values of each member.
FAMILIES = {
    "gpt2": ("GPT2", {"n_inner": [None, 24], "layer_norm_epsilon": [1e-5, 1e-3],
                      "resid_pdrop": [0.125], "embd_pdrop": [0.125], "attn_pdrop": [0.0, 0.25]}),
    "llama": ("Llama", LLAMA | BIASES | HEAD | SCALED),
    "bert": ("Bert", MASKED),
    "distilbert": ("DistilBert", {"dropout": [0.0, 0.1], "attention_dropout": [0.0, 0.2]}),
    "olmo2": ("Olmo2", LLAMA | {"attention_bias": [False, True], "rope_scaling": [
        None, {"type": "linear", "factor": 4.0}, {"type": "dynamic", "factor": 2.0}]}),
    "mistral": ("Mistral", LLAMA | HEAD | SCALED | {"sliding_window": [5, None, 40]}),
    "qwen2": ("Qwen2", LLAMA | SCALED | UPPER),
    "qwen3": ("Qwen3", LLAMA | HEAD | SCALED | UPPER | {"attention_bias": [False, True]}),
    "smollm3": ("SmolLM3", LLAMA | BIASES | SCALED | {
        "no_rope_layer_interval": [2, 3, 4], "pad_token_id": [0],
        "no_rope_layers": [None, [1] * 6, [1, 0] * 3, [1, 1, 0] * 2],
        "sliding_window": [None, 5]} | lists(None, "sfsfsf", "ssssss")),
    "granite": ("Granite", LLAMA | BIASES | SCALED | {
        "embedding_multiplier": [1.0, 12.0, 0.7], "attention_multiplier": [1.0, 0.5, 0.015625],
        "residual_multiplier": [1.0, 0.22], "logits_scaling": [1.0, 8.0, 12.7]}),
    "phi3": ("Phi3", LLAMA | {"partial_rotary_factor": [1.0, 0.5], "sliding_window": [None, 5],
                              "pad_token_id": [0]}),
    "gemma": ("Gemma", LLAMA | HEAD | SCALED | {"attention_bias": [False, True]}),
    "gemma2": ("Gemma2", LLAMA | HEAD | SCALED | GEMMA | {
        "attention_bias": [False, True], "attn_logit_softcapping": [50.0, None, 0.5]} | lists(
            None, "sfsfsf", "ffffff", "sssssf", "fssfss", "ssfsss")),
    "gemma3_text": ("Gemma3", LLAMA | HEAD | SCALED | GEMMA | {
        "attention_bias": [False, True], "rope_local_base_freq": [1e4, 77.0],
        "sliding_window_pattern": [2, 3, 6, 9]} | lists(None, None, "sfsfsf", "ssssss", "fssfss")),
    "gpt_neox": ("GPTNeoX", SCALED | {
        "rotary_pct": [0.25, 0.5, 1.0], "rotary_emb_base": [10000, 500],
        "use_parallel_residual": [True, False], "hidden_dropout": [0.0, 0.125],
        "attention_dropout": [0.0, 0.25], "layer_norm_eps": [1e-5, 1e-3],
        "tie_word_embeddings": [False, True]}),
    "roberta": ("Roberta", MASKED | {"type_vocab_size": [1]}),
    "modernbert": ("ModernBert", {
        "norm_eps": [1e-5, 1e-3], "global_rope_theta": [160000.0, 500.0],
        "local_rope_theta": [10000.0, 99.0, None], "local_attention": [4, 8, 9],
        "global_attn_every_n_layers": [1, 2, 3, 6, 7], "embedding_dropout": [0.0],
        "mlp_dropout": [0.0], "attention_dropout": [0.0], "pad_token_id": [0],
        "reference_compile": [False]}),
    "stablelm": ("StableLm", SCALED | {
        "layer_norm_eps": [1e-5, 1e-3], "rope_theta": [1e4, 123.5], "attention_dropout": [0.0, 0.25],
        "partial_rotary_factor": [0.5, 0.75, 1.0], "use_qkv_bias": [False, True],
        "num_key_value_heads": [1, 2, 4], "tie_word_embeddings": [False, True]}),
}


def shape_of(family):
    names = ("n_embd", "n_layer", "n_head", "n_inner", "n_positions") if family == "gpt2" else (
        "dim", "n_layers", "n_heads", "hidden_dim", "max_position_embeddings") \
        if family == "distilbert" else ("hidden_size", "num_hidden_layers", "num_attention_heads",
                                        "intermediate_size", "max_position_embeddings")
    return dict(zip(names, (32, 6, 4, 40, 48))) | {"vocab_size": 29}


def config_class(family):
    stem = FAMILIES[family][0]
    return getattr(transformers, "Gemma3TextConfig" if stem == "Gemma3" else stem + "Config")


def model_of(config):
    masked = config.model_type in ("bert", "distilbert", "roberta", "modernbert")
    stem = FAMILIES[config.model_type][0]
    model = getattr(transformers, stem + ("ForMaskedLM" if masked else
                                          "LMHeadModel" if stem == "GPT2" else "ForCausalLM"))
    config = copy.deepcopy(config)
    config._attn_implementation = "eager"
    config.initializer_range = 0.02  # so that no attention weight is 0
    return model(config).eval()


def digest(model):
    """FNV-1a of the sorted names and shapes of all tensors, tied ones once."""
    key = 14695981039346656037
    for line in sorted(f"{n}:{'x'.join(map(str, p.shape))}\n" for n, p in model.named_parameters()):
        for byte in line.encode():
            key = (key ^ byte) * 1099511628211 % 2**64
    return f"{key:016x}"


def facts(config):
    """What dt must read from the file, taken from the model where it shows there."""
    torch.manual_seed(1)
    model = model_of(config)
    with torch.no_grad():
        weights = model(input_ids=torch.randint(3, 29, (1, LENGTH)),
                        output_attentions=True).attentions
    middle = LENGTH // 2 if config.model_type == "modernbert" else LENGTH - 1
    get = lambda *names: next((getattr(config, n) for n in names if hasattr(config, n)), None)
    found = {
        "digest": digest(model),
        "tied": config.tie_word_embeddings,
        # keys with weight: of a query in the middle, or of the last one
        "seen": [int((w[0, 0, middle] > 0).sum()) for w in weights],
        "epsilon": get("rms_norm_eps", "layer_norm_eps", "norm_eps", "layer_norm_epsilon"),
        "theta": get("rotary_emb_base", "global_rope_theta", "rope_theta"),
        "local_theta": get("rope_local_base_freq", "local_rope_theta") or get("global_rope_theta"),
        "logit_softcap": get("final_logit_softcapping"),
        "attention_softcap": config.attn_logit_softcapping if config.model_type == "gemma2" else None,
        "embedding_scale": get("embedding_multiplier"),
        "residual_scale": get("residual_multiplier"),
        "logit_scale": 1 / config.logits_scaling if hasattr(config, "logits_scaling") else None,
        "parallel": get("use_parallel_residual"),
        "no_rope": [1 - x for x in config.no_rope_layers] if hasattr(config, "no_rope_layers") else None,
    }
    modules = dict(model.named_modules())
    attention = next((m for m in modules.values() if hasattr(m, "scaling")), None)
    found["scale"] = attention.scaling if attention else None
    rotary = next((m for n, m in modules.items() if n.endswith("rotary_emb")), None)
    found["rotary"] = 2 * len(rotary.inv_freq) if rotary else None
    scaling = get("rope_scaling")
    found["scaling"] = (scaling.get("rope_type") or scaling["type"]) if scaling else "default"
    for name in "factor", "low_freq_factor", "high_freq_factor", "attention_factor":
        found[name] = scaling.get(name) if scaling else None
    if config.model_type.startswith("gemma"):
        found["embedding_scale"] = config.hidden_size**0.5
    return {k: v for k, v in found.items() if v is not None}


def line(family, values):
    """A configuration, as save_pretrained writes it, and its facts; None: transformers refuses."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            config = config_class(family)(**shape_of(family) | values)
            text = config.to_dict() if random.random() < 0.5 else json.loads(config.to_json_string())
            return {"config": json.loads(json.dumps(text, default=str)), "facts": facts(config)}
    except (ValueError, KeyError, TypeError, ZeroDivisionError):
        return None


def pick(family, rng):
    return {name: rng.choice(values) for name, values in FAMILIES[family][1].items()}


def golden():
    for family in FAMILIES:
        rng = random.Random(family)
        made = 0
        while made < 3:
            values = pick(family, rng)
            got = line(family, values)
            if got is None:
                continue
            got["config"] = shape_of(family) | values | {"model_type": family}
            print(json.dumps(got))
            made += 1


def make(directory, seed):
    rng = random.Random(seed)
    with open(os.path.join(directory, "configs"), "w") as f:
        for family in FAMILIES:
            made = 0
            while made < 4:
                got = line(family, pick(family, rng))
                if got:
                    print(json.dumps(got), file=f)
                    made += 1


def near(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return abs(a - b) <= 1e-12 * abs(b)
    return a == b


def check(directory):
    wrong = 0
    with open(os.path.join(directory, "configs")) as f, \
            open(os.path.join(directory, "written")) as g:
        for before, after in zip(f, g, strict=True):
            want, written = json.loads(before)["facts"], json.loads(after)
            with contextlib.redirect_stderr(io.StringIO()):
                config = config_class(written["model_type"])(**written)
                got = facts(config)
            for name in sorted(want.keys() | got.keys()):
                if name not in want or name not in got or not near(got[name], want[name]):
                    print(f"{written['model_type']}: {name} is {got.get(name)}, "
                          f"not {want.get(name)}: {before}")
                    wrong += 1
    return wrong == 0


if sys.argv[1] == "golden":
    golden()
elif sys.argv[1] == "random":
    make(sys.argv[2], int(sys.argv[3]))
elif sys.argv[1] == "check":
    sys.exit(not check(sys.argv[2]))
