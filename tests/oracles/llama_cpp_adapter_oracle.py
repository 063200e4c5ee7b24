# SPDX-License-Identifier: MIT
"""llama_cpp_adapter_oracle.py BASE.gguf ADAPTER.gguf MERGED.gguf: fails unless llama.cpp computes the
same logits with the adapter as with the merged model, and others without it."""
import sys

import llama_cpp
import numpy as np

IDS = [5, 17, 99, 42, 7, 250, 13, 88]


def logits(path, adapter=None):
    llama = llama_cpp.Llama(path, lora_path=adapter, n_ctx=32, n_threads=1, n_threads_batch=1,
                            logits_all=True, type_k=llama_cpp.GGML_TYPE_F32,
                            type_v=llama_cpp.GGML_TYPE_F32, verbose=False)
    llama.eval(IDS)
    return np.array(llama.scores[:len(IDS)])


base, adapter, merged = sys.argv[1:]
want, got, without = logits(merged), logits(base, adapter), logits(base)
scale = np.abs(want).max()
print(np.abs(got - want).max() / scale, np.abs(without - want).max() / scale)
assert np.abs(got - want).max() < 1e-5 * scale < np.abs(without - want).max()
