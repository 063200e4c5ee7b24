# SPDX-License-Identifier: MIT
"""export_oracle.py MODEL EXPORTED TOLERANCE: loads a model and its export by dt-export (a directory
or a GGUF file) with transformers; fails if logits differ by more than TOLERANCE times the largest."""
import os
import sys

import torch
from transformers import AutoModelForCausalLM

directory, exported, tolerance = sys.argv[1], sys.argv[2], float(sys.argv[3])
model = AutoModelForCausalLM.from_pretrained(directory).float().eval()
if exported.endswith(".gguf"):
    folder, name = os.path.split(os.path.abspath(exported))
    # (It does not take the number of positions of a GPT-2 from the file.)
    again = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name,
                                                 config=model.config).float().eval()
else:
    again = AutoModelForCausalLM.from_pretrained(exported).float().eval()
ids = torch.randint(model.config.vocab_size, (2, 32), generator=torch.Generator().manual_seed(1))
with torch.no_grad():
    a, b = model(ids).logits, again(ids).logits
difference = ((a - b).abs().max() / a.abs().max()).item()
print(f"{exported}: logits differ by {difference:.2g} of the largest")
sys.exit(not difference <= tolerance)
