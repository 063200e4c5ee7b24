# SPDX-License-Identifier: MIT
"""masked_oracle.py MODEL DOCUMENTS LOSS: masks one token at a time with transformers; fails unless
the mean of -ln p agrees to 1e-4."""
import json
import sys

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForMaskedLM

directory, documents, loss = sys.argv[1], sys.argv[2], float(sys.argv[3])
model = AutoModelForMaskedLM.from_pretrained(directory).eval()
tokenizer = Tokenizer.from_file(directory + "/tokenizer.json")
mask, end = tokenizer.token_to_id("[MASK]"), tokenizer.token_to_id("[SEP]")
special = {i for i, t in tokenizer.get_added_tokens_decoder().items() if t.special}
length, nats, tokens = model.config.max_position_embeddings, 0, 0
with torch.no_grad():
    for line in open(documents, encoding="utf-8"):
        ids = tokenizer.encode(json.loads(line)["text"], add_special_tokens=False).ids + [end]
        for begin in range(0, len(ids), length):
            window = torch.tensor(ids[begin : begin + length])
            places = [i for i, x in enumerate(window.tolist()) if x not in special]
            inputs = window.repeat(len(places), 1)
            inputs[range(len(places)), places] = mask
            if places:
                logits = model(inputs).logits[range(len(places)), places].double()
                nats += torch.nn.functional.cross_entropy(logits, window[places], reduction="sum").item()
                tokens += len(places)
print(f"transformers {nats / tokens:.6f}, dt {loss:.6f}")
sys.exit(abs(nats / tokens - loss) > 1e-4)
