# SPDX-License-Identifier: MIT
"""Values of the members of config.json that hunt for settings which dt would silently ignore."""
from families import DYNAMIC, FAMILIES, LINEAR, LLAMA3, YARN, config_of, Shape

SHAPE = Shape(29, 24, 16, 4, 4, 2, 4, 24)
ABSENT = object()


class Members(dict):
    """A value that replaces several members."""



# What no member is expected to change: it is about generation, training of other heads, or files.
# dt accepts these whatever their value.
IRRELEVANT = """_name_or_path bos_token_id classifier_dropout dtype eos_token_id
    finetuning_task id2label label2id initializer_range torch_dtype transformers_version
    use_cache""".split()

# What dt's errors call a member.
NAMES = {"partial_rotary_factor": "rotary_dim"}

# Verdicts that are right: (model_type or *, member): verdict. ACCEPTED: transformers fails or checks
# what logits do not depend on. torchscript unties what the file then holds twice. The odd rotary_dim
# that dt names follows from these. Without architectures, or with other labels, a classifier's
# config.json is that of another model.
EXPECTED = {("*", key): "ACCEPTED" for key in """classifier_dropout classifier_pooling early_stopping
    head_dim length_penalty num_return_sequences pad_token_id problem_type rope_scaling
    seq_classif_dropout temperature top_k top_p typical_p""".split()} | {
        ("*", "torchscript"): "UNNAMED", ("gpt_neox", "hidden_size"): "UNNAMED",
        ("gpt_neox", "num_attention_heads"): "UNNAMED",
        ("stablelm", "num_attention_heads"): "UNNAMED",
        ("* labels", "architectures"): "UNNAMED", ("* labels", "id2label"): "UNNAMED REFUSED"}


def is_expected(model_type, head, key, verdict):
    expected = [EXPECTED.get((of + head, key), "") for of in (model_type, "*")]
    expected += [EXPECTED.get((of, key), "") for of in (model_type, "*")]
    return verdict in " ".join(expected).split()


ACTIVATIONS = ["silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "gelu_fast"]
EPSILONS = [1e-2, 0.0]
SCALINGS = [
    None, LINEAR, DYNAMIC, LLAMA3, YARN, {"type": "linear", "factor": 4.0}, {"rope_type": "default"},
    {"type": "dynamic", "factor": 4.0}, DYNAMIC | {"original_max_position_embeddings": 6},
    LLAMA3 | {"low_freq_factor": 2.0, "high_freq_factor": 3.0}, LLAMA3 | {"factor": 2.0},
    YARN | {"beta_fast": 4, "beta_slow": 2}, YARN | {"attention_factor": 0.7},
    YARN | {"mscale": 0.7, "mscale_all_dim": 0.4}, YARN | {"truncate": False},
    {"rope_type": "yarn", "factor": 2.0}, LINEAR | {"rope_theta": 77.0},
    LINEAR | {"type": "linear"}, LINEAR | {"type": "yarn"}, LINEAR | {"strange": 3},
    {"rope_type": "longrope", "long_factor": [2.0, 3.0], "short_factor": [1.0, 1.5]},
    {"rope_type": "strange", "factor": 2.0}, {"factor": 2.0},
]
KINDS = [["sliding_attention", "full_attention"] * 2, ["full_attention", "sliding_attention"] * 2,
         ["sliding_attention"] * 4, ["full_attention"] * 4,
         ["sliding_attention"] * 3 + ["full_attention"], ["full_attention"] + ["sliding_attention"] * 3,
         ["full_attention"] * 2 + ["sliding_attention"] * 2, ["full_attention"] * 3]
WINDOW = {"use_sliding_window": True, "sliding_window": 5}

VALUES = {
    "vocab_size": [31], "max_position_embeddings": [48], "n_positions": [48], "n_ctx": [48],
    "hidden_size": [24, 18], "n_embd": [24], "dim": [24], "num_hidden_layers": [3], "n_layer": [3],
    "n_layers": [3], "num_attention_heads": [2, 8, 3], "n_head": [2], "n_heads": [2],
    "num_key_value_heads": [1, 4, 3], "head_dim": [6, 8, 5], "intermediate_size": [40],
    "hidden_dim": [40], "n_inner": [40], "layer_types": KINDS, "type_vocab_size": [1, 3],
    "hidden_act": ACTIVATIONS, "activation_function": ACTIVATIONS, "activation": ACTIVATIONS,
    "hidden_activation": ACTIVATIONS, "classifier_activation": ["silu"],
    "rms_norm_eps": EPSILONS, "layer_norm_eps": EPSILONS, "layer_norm_epsilon": EPSILONS,
    "norm_eps": EPSILONS, "rope_theta": [300.0, 300, 1e6], "rotary_emb_base": [300],
    "rope_local_base_freq": [33.0], "global_rope_theta": [33.0], "local_rope_theta": [33.0],
    "rope_scaling": SCALINGS, "sliding_window": [3, 1, 100, 0, Members(WINDOW)],
    "use_sliding_window": [True, Members(WINDOW)], "local_attention": [4, 7, 100],
    "max_window_layers": [0, 1, 2, Members(WINDOW, max_window_layers=1),
                          Members(WINDOW, max_window_layers=3)],
    "sliding_window_pattern": [1, 2, 3], "_sliding_window_pattern": [1, 3],
    "global_attn_every_n_layers": [1, 2, 4], "no_rope_layer_interval": [1, 2, 3],
    "no_rope_layers": [[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0],
                       [0, 1, 0, 1]],
    "partial_rotary_factor": [0.5, 1.0, 0.25], "rotary_pct": [0.25, 1.0],
    "original_max_position_embeddings": [8], "query_pre_attn_scalar": [3, 7],
    "final_logit_softcapping": [1.5, None], "attn_logit_softcapping": [1.5, None],
    "embedding_multiplier": [2.5], "attention_multiplier": [0.7], "residual_multiplier": [0.5],
    "logits_scaling": [4.0, 2], "position_embedding_type": ["relative_key", "relative_key_query"],
    "pruned_heads": [{"0": [1]}], "quantization_config": [{"quant_method": "gptq", "bits": 4}],
    "chunk_size_feed_forward": [4], "pad_token_id": [1, 3], "pretraining_tp": [2],
    "sep_token_id": [3], "decoder_start_token_id": [3], "bos_token_id": [3], "eos_token_id": [3],
    "architectures": [["StrangeForCausalLM"]], "dtype": ["float16"], "torch_dtype": ["float16"],
    "model_type": ["strange"], "tie_encoder_decoder": [True], "is_encoder_decoder": [True],
    "num_experts": [4], "num_local_experts": [4], "n_routed_experts": [4], "strange": [3, None],
    "clip_qkv": [0.1], "use_mup": [True], "alibi": [True], "qk_layernorm": [True], "use_qk_norm": [True],
    "logit_scale": [0.5], "use_qkv_bias": [True], "qkv_bias": [True, False], "rope_interleaved": [True],
    "cross_attention_hidden_size": [8], "id2label": [{"0": "a"}], "label2id": [{"a": 0}],
    "attention_chunk_size": [4], "task_specific_params": [{"a": 1}], "rope_parameters": [],
}


def values_of(key, value):
    """Other values of a member."""
    if key in VALUES:
        return VALUES[key]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, float):
        return [value + 0.25]
    return ["strange"] if isinstance(value, str) else [3]


def mutations(base):
    """(member, config.json) of every mutation; base: what transformers writes."""
    every = set(VALUES).union(*(config_of(f, SHAPE).to_dict() for f in FAMILIES))
    for key in sorted(every):
        value = base.get(key, ABSENT)
        for other in values_of(key, value) + [None, ABSENT] * (value is not ABSENT):
            changed = base | (other if isinstance(other, Members) else {key: other})
            changed = {k: v for k, v in changed.items() if v is not ABSENT}
            if changed != base:
                yield key, changed
