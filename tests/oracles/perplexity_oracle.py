# SPDX-License-Identifier: MIT
"""perplexity_oracle.py MODEL DOCUMENTS LOSS: scores documents like dt-eval, with transformers; fails
unless the loss agrees to 1e-5."""
import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

directory, documents, loss = sys.argv[1], sys.argv[2], float(sys.argv[3])
model = AutoModelForCausalLM.from_pretrained(directory).eval()
tokenizer = AutoTokenizer.from_pretrained(directory)
begin_of_text, end = model.config.bos_token_id, model.config.eos_token_id
length = model.config.max_position_embeddings
nats = tokens = 0
with torch.no_grad():
    for line in open(documents, encoding="utf-8"):
        ids = tokenizer(json.loads(line)["text"]).input_ids + [end]
        context = [begin_of_text] + ids
        for begin in range(0, len(ids), length):
            end_of_window = min(begin + length, len(ids))
            new = end_of_window - begin
            window = torch.tensor(context[max(0, end_of_window - length) : end_of_window + 1])
            logits = model(window[None, :-1]).logits[0].double()[-new:]
            nats += torch.nn.functional.cross_entropy(logits, window[-new:], reduction="sum").item()
            tokens += new
print(f"transformers {nats / tokens:.6f}, dt {loss:.6f}")
sys.exit(abs(nats / tokens - loss) > 1e-5)
