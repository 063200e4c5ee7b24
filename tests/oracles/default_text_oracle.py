# SPDX-License-Identifier: MIT
"""default_text_oracle.py PROMPT TOKENS PATH ...: continues PROMPT greedily with each PATH, a model's
directory or GGUF file, by the default calls of transformers and llama.cpp, and prints the texts."""
import sys

prompt, count = sys.argv[1], int(sys.argv[2])


def of_transformers(path):
    from transformers import AutoModelForCausalLM, AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModelForCausalLM.from_pretrained(path).eval()
    out = model.generate(**tokenizer(prompt, return_tensors="pt"), max_new_tokens=count, do_sample=False)
    return tokenizer.decode(out[0], skip_special_tokens=True)


def of_llama_cpp(path):
    import llama_cpp
    llama = llama_cpp.Llama(path, n_ctx=64, n_threads=1, verbose=False)
    text = llama(prompt, max_tokens=count, temperature=0)["choices"][0]["text"]
    llama.close()
    return prompt + text


for path in sys.argv[3:]:
    print(of_llama_cpp(path) if path.endswith(".gguf") else of_transformers(path))
