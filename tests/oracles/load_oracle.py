# SPDX-License-Identifier: MIT
"""load_oracle.py MODEL TOKENIZER: fails unless transformers loads the directory unchanged, with a
tokenizer equivalent to the tokenizer.json."""
import sys

import tokenizers
import transformers

directory, path = sys.argv[1], sys.argv[2]
name = transformers.AutoConfig.from_pretrained(directory).architectures[0]
masked = name.endswith("MaskedLM")
auto = transformers.AutoModelForMaskedLM if masked else transformers.AutoModelForCausalLM
model, info = auto.from_pretrained(directory, output_loading_info=True)
assert type(model).__name__ == name
assert not (info["missing_keys"] or info["unexpected_keys"] or info["mismatched_keys"]), info
tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
text = "Once upon a [MASK], there was<|endoftext|>"
# GPT-2 would add the embedding of token 0 for each token_type_id.
assert set(tokenizer(text)) == {"input_ids", "attention_mask"}
assert tokenizer(text).input_ids == tokenizers.Tokenizer.from_file(path).encode(text).ids
assert (tokenizer.mask_token, tokenizer.eos_token) == ("[MASK]", "<|endoftext|>")
assert tokenizer.model_max_length == model.config.max_position_embeddings
