# SPDX-License-Identifier: MIT
"""greedy_oracle.py MODEL PROMPT TOKENS: greedy continuation by transformers, after the
end-of-text token, which tokenizers of exported models add, as dt-generate writes it."""
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

directory, prompt, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
model = AutoModelForCausalLM.from_pretrained(directory, attn_implementation="eager").eval()
tokenizer = AutoTokenizer.from_pretrained(directory)
end = model.config.eos_token_id
ids = tokenizer(prompt).input_ids
if ids[0] != end:
    ids = [end] + ids
out = model.generate(torch.tensor([ids]), max_new_tokens=count, do_sample=False, pad_token_id=end)[0]
sys.stdout.write(tokenizer.decode([i for i in out if i != end]) + "\n")
