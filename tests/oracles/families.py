# SPDX-License-Identifier: MIT
"""The families that dt computes as transformers does: a row each.

families_oracle.py makes models of every row, in every shape and variant, and compares what dt
computes with them.
"""
import warnings
from typing import NamedTuple

import transformers

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


class Family(NamedTuple):
    model_type: str
    stem: str  # of the names of transformers' classes
    masked: bool = False
    settings: dict = {}  # members of config.json, beside those of the shape
    variants: dict = {}  # name: members that replace some of these
    grouped: bool = True  # num_key_value_heads may be below num_attention_heads
    free: bool = False  # head_dim may differ from hidden_size / num_attention_heads


# V, the longest context, C, layers, heads, key-value heads, head_dim, MLP.
class Shape(NamedTuple):
    vocabulary: int = 97
    positions: int = 32
    width: int = 48
    layers: int = 3
    heads: int = 4
    kv_heads: int = 2
    head: int = 12
    inner: int = 80


SMALL = Shape(29, 16, 16, 2, 4, 2, 4, 24)  # of golden files
SHAPES = {
    "plain": Shape(),
    "five": Shape(width=80, heads=5, kv_heads=1, head=16, inner=136, layers=2),
    "six": Shape(width=80, heads=6, kv_heads=2, head=24, inner=72, layers=4),
    "wide": Shape(vocabulary=50257, width=24, layers=2, heads=3, kv_heads=3, head=8, inner=40),
}

LINEAR = {"rope_type": "linear", "factor": 4.0}
# Changes only contexts above max_position_embeddings, which dt refuses.
DYNAMIC = {"rope_type": "dynamic", "factor": 4.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}
SCALED = {"linear": {"rope_scaling": LINEAR}, "dynamic": {"rope_scaling": DYNAMIC},
          "llama3": {"rope_scaling": LLAMA3}, "yarn": {"rope_scaling": YARN}}


def longrope(shape, members):
    pairs = int(shape.width // shape.heads * members.get("partial_rotary_factor", 1)) // 2
    return {"type": "longrope", "short_factor": [1 + i / 8 for i in range(pairs)],
            "long_factor": [2 + i / 4 for i in range(pairs)]}


# Members that depend on the shape and on the others. The context is long enough for the sequences compared.
LONGROPE = {"rope_scaling": longrope,
            "original_max_position_embeddings": lambda shape, _: shape.positions * 3 // 4}
# The sequences compared are longer than the original context.
LONGROPE_BEYOND = {"rope_scaling": longrope,
                   "original_max_position_embeddings": lambda shape, _: shape.positions // 2,
                   "dt_context_length": lambda shape, _: shape.positions}
TIED = {"tied": {"tie_word_embeddings": True}}
THETA = {"theta": {"rope_theta": 300.0, "rms_norm_eps": 1e-3}}

# A classifier of texts.
LABELS = 3
CLASSIFIER = {"labels": {"num_labels": LABELS}}
SCORE = {"labels": {"num_labels": LABELS, "pad_token_id": 0}}

FAMILIES = [
    Family("gpt2", "GPT2", grouped=False, variants=SCORE | {"erf": {"activation_function": "gelu"}},
           settings=dict(embd_pdrop=0.0, resid_pdrop=0.0, attn_pdrop=0.0)),
    Family("llama", "Llama", free=True, variants=TIED | SCORE | THETA | SCALED | {
        "biased": {"attention_bias": True, "mlp_bias": True}}),
    Family("mistral", "Mistral", free=True, settings=dict(sliding_window=5),
           variants=TIED | SCORE | {"global": {"sliding_window": None}}),
    Family("qwen2", "Qwen2", variants=TIED | SCORE | SCALED | {
        "window": {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0},
        "lower": {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}}),
    Family("qwen3", "Qwen3", free=True, variants=TIED | SCORE | THETA | SCALED | {
        "biased": {"attention_bias": True},
        "window": {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0}}),
    Family("smollm3", "SmolLM3", settings=dict(
        no_rope_layer_interval=2, tie_word_embeddings=True, pad_token_id=0), variants=SCORE | SCALED | {
            "untied": {"tie_word_embeddings": False},
            "biased": {"attention_bias": True, "mlp_bias": True}}),
    Family("granite", "Granite", settings=dict(
        embedding_multiplier=7.0, attention_multiplier=0.2, residual_multiplier=0.3,
        logits_scaling=3.0), variants=TIED | SCALED | {
            "biased": {"attention_bias": True, "mlp_bias": True}}),
    Family("phi3", "Phi3", settings=dict(pad_token_id=0), variants=TIED | SCORE | {
        "window": {"sliding_window": 5}, "partial": {"partial_rotary_factor": 0.5}, "longrope": LONGROPE,
        "longrope-partial": LONGROPE | {"partial_rotary_factor": 0.5},
        "longrope-beyond": LONGROPE_BEYOND,
        "longrope-beyond-partial": LONGROPE_BEYOND | {"partial_rotary_factor": 0.5}}),
    Family("olmo2", "Olmo2", settings=dict(rms_norm_eps=1e-6), variants=TIED | THETA | {
        "linear": {"rope_scaling": {"type": "linear", "factor": 4.0}},
        "biased": {"attention_bias": True}}),
    Family("gemma", "Gemma", free=True, variants=SCORE | {
        "untied": {"tie_word_embeddings": False}, "biased": {"attention_bias": True},
        "erf": {"hidden_act": "gelu"}}),
    Family("gemma2", "Gemma2", free=True, settings=dict(
        sliding_window=5, query_pre_attn_scalar=20, final_logit_softcapping=3.0,
        attn_logit_softcapping=2.0), variants=SCORE | {
            "uncapped": {"final_logit_softcapping": None, "attn_logit_softcapping": None},
            "erf": {"hidden_activation": "gelu"}}),
    Family("gemma3_text", "Gemma3", free=True, settings=dict(
        sliding_window=5, query_pre_attn_scalar=20, sliding_window_pattern=2,
        rope_local_base_freq=100.0), variants=SCORE | {
            "linear": {"rope_scaling": LINEAR}, "capped": {"final_logit_softcapping": 3.0}}),
    Family("gpt_neox", "GPTNeoX", grouped=False, settings=dict(rotary_pct=0.5),
           variants=TIED | SCORE | {"serial": {"use_parallel_residual": False},
                            "unbiased": {"attention_bias": False},
                            "tanh": {"hidden_act": "gelu_pytorch_tanh"},
                            "linear": {"rope_scaling": LINEAR}}),
    Family("bert", "Bert", masked=True, grouped=False, variants=CLASSIFIER, settings=dict(
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)),
    Family("distilbert", "DistilBert", masked=True, grouped=False, variants=CLASSIFIER, settings=dict(
        dropout=0.0, attention_dropout=0.0)),
    Family("roberta", "Roberta", masked=True, grouped=False, variants=CLASSIFIER, settings=dict(
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, pad_token_id=1,
        type_vocab_size=1)),
    Family("modernbert", "ModernBert", masked=True, grouped=False, settings=dict(
        global_attn_every_n_layers=2, local_attention=6, local_rope_theta=100.0),
           variants=CLASSIFIER | {"biased": {"attention_bias": True, "mlp_bias": True, "norm_bias": True},
                     "unbiased": {"decoder_bias": False}}),
    Family("stablelm", "StableLm", settings=dict(partial_rotary_factor=0.5), variants=TIED | SCORE | {
        "linear": {"rope_scaling": LINEAR}, "biased": {"use_qkv_bias": True},
        "parallel": {"use_parallel_residual": True}}),
]

# Models that dt refuses.
REFUSED = ("gpt_neox-unbiased", "modernbert-biased", "modernbert-unbiased", "stablelm-parallel")


def config_of(family, shape, members=None):
    """A configuration of transformers."""
    special = dict(bos_token_id=None, eos_token_id=None, pad_token_id=None)
    dims = dict(vocab_size=shape.vocabulary, max_position_embeddings=shape.positions,
                hidden_size=shape.width, num_hidden_layers=shape.layers,
                num_attention_heads=shape.heads)
    if not family.free and shape.width % shape.heads:
        dims["hidden_size"] = shape.heads * shape.head
    kind = getattr(transformers, config_class(family))
    known = kind().to_dict()
    inner = next(n for n in ("n_inner", "hidden_dim", "intermediate_size") if n in known)
    dims[inner] = shape.inner
    if "num_key_value_heads" in known:
        dims["num_key_value_heads"] = shape.kv_heads
    if family.free:
        dims["head_dim"] = shape.head
    if family.model_type == "roberta":
        dims["max_position_embeddings"] += 2  # positions begin at pad_token_id + 1
    members = members or {}
    members = {k: v(shape, members) if callable(v) else v for k, v in members.items()}
    return kind(**(special | dims | family.settings | members))


def config_class(family):
    return ("Gemma3Text" if family.stem == "Gemma3" else family.stem) + "Config"


def is_classifier(config):
    return config.num_labels == LABELS


def model_of(family, config):
    stem = config_class(family).removesuffix("Config")
    name = stem + "ForSequenceClassification" if is_classifier(config) else family.stem + {"gpt2": "LMHeadModel"}.get(
        family.model_type, "ForMaskedLM" if family.masked else "ForCausalLM")
    config._attn_implementation = "eager"
    return getattr(transformers, name)(config).eval()


def cases():
    """(name, family, shape, members) of every model to compare."""
    for family in FAMILIES:
        for name, shape in SHAPES.items():
            yield f"{family.model_type}-{name}", family, shape, {}
        for name, members in family.variants.items():
            yield f"{family.model_type}-{name}", family, SHAPES["plain"], members
