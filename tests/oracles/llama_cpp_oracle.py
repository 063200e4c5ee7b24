# SPDX-License-Identifier: MIT
"""llama_cpp_oracle.py MODEL FILE.gguf TOLERANCE ...: runs llama.cpp on each FILE and transformers
in fp64 on the directory MODEL; fails if logits differ by more than TOLERANCE times the largest.

With weights of 16 or 8 bits, llama.cpp rounds the other factor of a product to the type of the weights, too:
bf16 has 8 bits, fp16 11, q8_0 8 for blocks of 32 with one scale in fp16. That is most of its
difference from the model in the file. The inputs of all linear maps are rounded so here, and what remains is
that a sum in fp32 may round another way. The difference without this is printed beside. llama.cpp's KV cache is
fp32 here; its GELU is by tanh, also of GPT-NeoX, and a table of fp16 from -10 to 10: so is that of transformers
here."""
import sys

import gguf
import llama_cpp
import numpy as np
import torch
from transformers import AutoModelForCausalLM, activations


def gelu_of_llama_cpp(_, x):
    table = torch.nn.functional.gelu(x.half().float(), approximate="tanh").half().to(x.dtype)
    return torch.where(x <= -10, 0, torch.where(x >= 10, x, table))


for name in "GELUActivation", "NewGELUActivation", "PytorchGELUTanh", "GELUTanh":  # the last two by version
    if hasattr(activations, name):
        getattr(activations, name).forward = gelu_of_llama_cpp


def round_q8_0(x):
    blocks = x.float().unflatten(-1, (-1, 32))
    scale = blocks.abs().amax(-1, keepdim=True) / 127
    inverse = torch.where(scale > 0, 1 / scale, 0)
    return ((blocks * inverse).round() * scale.half().float()).flatten(-2).to(x.dtype)


ROUND = {"F32": lambda x: x, "F16": lambda x: x.half().to(x.dtype), "BF16": lambda x: x.bfloat16().to(x.dtype),
         "Q8_0": round_q8_0}


def type_of(path):
    """Of the matrices of the blocks."""
    return next(t.tensor_type.name for t in gguf.GGUFReader(path).tensors if "attn_output" in t.name)


def expected_logits(directory, rounding):
    """Logits of random tokens, with the inputs of linear maps rounded."""
    model = AutoModelForCausalLM.from_pretrained(directory).double().eval()
    for m in model.modules():
        if isinstance(m, torch.nn.Linear) or type(m).__name__ == "Conv1D":
            m.register_forward_pre_hook(lambda _, inputs: (rounding(inputs[0]),))
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
    ids, expected = expected_logits(directory, ROUND[type_of(path)])
    exact = expected_logits(directory, ROUND["F32"])[1]
    found = logits_of_llama_cpp(path, ids)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    difference, plain = (np.abs(found - x).max() / np.abs(x).max() for x in (expected, exact))
    print(f"{path}: llama.cpp's logits differ by {difference:.2g} of the largest; by {plain:.2g} from those "
          "without rounding")
    failed |= not difference <= float(tolerance)
sys.exit(failed)
