# SPDX-License-Identifier: MIT
"""beam_oracle.py MODEL RESULTS TOKENS BEAMS [REPETITION LENGTH]: beam search by transformers, with
these penalties, from the prompts in dt-generate's results; fails if a text differs."""
import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

directory, results, count, beams = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
repetition, length = map(float, sys.argv[5:7] or (1, 1))
model = AutoModelForCausalLM.from_pretrained(directory).eval()
tokenizer = AutoTokenizer.from_pretrained(directory)
end = model.config.eos_token_id
wrong = 0
for line in map(json.loads, open(results, encoding="utf-8")):
    ids = torch.tensor([[end] + tokenizer(line["prompt"]).input_ids])
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=count,
                         num_beams=beams, do_sample=False, pad_token_id=end,
                         repetition_penalty=repetition, length_penalty=length)[0, ids.shape[1]:]
    text = tokenizer.decode([i for i in out if i != end])
    if text != line["text"]:
        wrong += 1
        print(f"{line['prompt']!r}: transformers {text!r}, dt {line['text']!r}")
sys.exit(wrong > 0)
