# SPDX-License-Identifier: MIT
"""Frequencies of RoPE and YaRN's attention factor, as transformers computes them.

    build/oracles/bin/python tests/oracles/rope_oracle.py > tests/model/golden/rope.txt

A line a case: scaling, theta, head_dim, rotary_dim, longest context, original context (0: not
given), factor, low and high frequency factor, beta_fast, beta_slow, attention_factor (0: not
given); then the attention factor that follows, and the inverse frequencies.
"""
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

NAMES = {"none": "default"}
CASES = [
    ("none", 10000.0, 16, 16, 2048, 0, 0, 0, 0, 0, 0, 0),
    ("none", 10000.0, 32, 8, 2048, 0, 0, 0, 0, 0, 0, 0),
    ("linear", 10000.0, 16, 16, 8192, 0, 4.0, 0, 0, 0, 0, 0),
    ("dynamic", 10000.0, 16, 16, 2048, 2048, 4.0, 0, 0, 0, 0, 0),
    ("dynamic", 10000.0, 24, 24, 6144, 2048, 2.5, 0, 0, 0, 0, 0),
    ("llama3", 500000.0, 64, 64, 131072, 8192, 8.0, 1.0, 4.0, 0, 0, 0),
    ("llama3", 500000.0, 64, 64, 131072, 8192, 32.0, 1.0, 4.0, 0, 0, 0),
    ("llama3", 10000.0, 24, 24, 4096, 512, 3.0, 2.0, 8.0, 0, 0, 0),
    ("yarn", 10000.0, 64, 64, 32768, 4096, 8.0, 0, 0, 0, 0, 0),
    ("yarn", 1000000.0, 48, 48, 131072, 32768, 4.0, 0, 0, 16.0, 2.0, 0),
    ("yarn", 10000.0, 40, 20, 4096, 0, 2.0, 0, 0, 32.0, 1.0, 0.75),
    ("yarn", 10000.0, 8, 8, 64, 32, 2.0, 0, 0, 1.0, 1.0, 0),
]

for case in CASES:
    kind, theta, head, rotary, longest, original, factor, low, high, fast, slow, amplitude = case
    scaling = {"rope_type": NAMES.get(kind, kind), "factor": factor, "low_freq_factor": low,
               "high_freq_factor": high, "beta_fast": fast, "beta_slow": slow,
               "attention_factor": amplitude or None,
               "original_max_position_embeddings": original or None}
    config = LlamaConfig(hidden_size=2 * head, num_attention_heads=2, head_dim=head,
                         rope_theta=theta, max_position_embeddings=longest)
    config.partial_rotary_factor = rotary / head
    config.rope_scaling = scaling
    length = None
    if kind == "dynamic":  # transformers calls the original context max_position_embeddings
        config.max_position_embeddings, length = original, longest
    frequencies, height = ROPE_INIT_FUNCTIONS[scaling["rope_type"]](config, "cpu", seq_len=length)
    print(*case, f"{height:.9g}", *(f"{f:.9g}" for f in frequencies.tolist()))
