# SPDX-License-Identifier: MIT
"""llama_cpp_oracle.py MODEL FILE.gguf TOLERANCE ...: runs llama.cpp on each FILE and transformers
in fp32 on the directory MODEL; fails if logits differ by more than TOLERANCE times the largest.
llama.cpp's KV cache is fp32 here, so that only the file's type rounds; its GELU is a table of fp16
from -10 to 10, and so is that of transformers here."""
import sys

import llama_cpp
import numpy as np
import torch
from transformers import AutoModelForCausalLM, activations


def gelu_of_llama_cpp(_, x):
    table = torch.nn.functional.gelu(x.half().float(), approximate="tanh").half().float()
    return torch.where(x <= -10, 0, torch.where(x >= 10, x, table))


for name in "NewGELUActivation", "PytorchGELUTanh", "GELUTanh":  # the last two by version
    if hasattr(activations, name):
        getattr(activations, name).forward = gelu_of_llama_cpp


def expected_logits(directory):
    model = AutoModelForCausalLM.from_pretrained(directory).float().eval()
    ids = torch.randint(model.config.vocab_size, (1, 32), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return ids[0].tolist(), model(ids).logits[0].numpy()


def logits_of_llama_cpp(path, ids):
    llama = llama_cpp.Llama(path, n_ctx=len(ids), n_threads=1, n_threads_batch=1, logits_all=True,
                            type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32,
                            verbose=False)
    llama.eval(ids)
    logits = np.array(llama.scores[:len(ids)])
    llama.close()
    return logits


failed = False
arguments = iter(sys.argv[1:])
for directory, path, tolerance in zip(arguments, arguments, arguments):
    ids, expected = expected_logits(directory)
    found = logits_of_llama_cpp(path, ids)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    difference = np.abs(found - expected).max() / np.abs(expected).max()
    print(f"{path}: llama.cpp's logits differ by {difference:.2g} of the largest")
    failed |= not difference <= float(tolerance)
sys.exit(failed)
