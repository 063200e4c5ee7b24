#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times prefill and decoding of dt and of llama.cpp beside each other.

  generate-vs-llama.py [--shape NAME ...] [--type TYPE ...] [-j THREADS] [--rounds N] [--steps N]

Models have random weights and the shape of GPT-2 124M, or that of a Llama of 350M parameters, with
the same configuration for dt-bench(1) and, written by dt-export(1), for llama.cpp. Prefill is of a
prompt of 512 tokens, decoding of N tokens after a prompt of 128; the programs take turns, and of all
rounds each has its median. First both continue a prompt greedily in fp32, which must agree. llama.cpp
has its own defaults: flash attention as it decides, and a KV cache in fp16. Needs llama-cpp-python,
PyTorch and transformers, and dt-bench, dt-export and dt-generate on PATH or in build/bin.
LLAMA_CPP_LIB_PATH names a directory with another libllama.so, such as one that was compiled for this
processor (GGML_NATIVE). Vocabulary and merges of GPT-2 are read from --data, by default $TESTDATA.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

PROMPT, PAST = 512, 128
TEXT = "The quick brown fox jumps over the lazy dog and"
SHAPES = {
    "gpt2-124m": dict(name="gpt2", vocab_size=50257, hidden_size=768, num_layers=12, num_heads=12,
                      max_seq_len=1024),
    "llama-350m": dict(name="llama", vocab_size=50257, hidden_size=1024, num_layers=24, num_heads=16,
                       num_kv_heads=4, intermediate_size=2816, max_seq_len=1024, tie_word_embeddings=True),
}
TYPES = {"fp32": "f32", "bf16": "bf16"}


def write_model(directory, shape, data):
    """Random weights, by transformers, with GPT-2's tokenizer."""
    import torch
    import transformers
    torch.manual_seed(1)
    sizes = SHAPES[shape]
    if sizes["name"] == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=sizes["vocab_size"], n_layer=sizes["num_layers"], n_embd=sizes["hidden_size"],
            n_head=sizes["num_heads"], n_positions=sizes["max_seq_len"]))
    else:
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=sizes["vocab_size"], hidden_size=sizes["hidden_size"],
            num_hidden_layers=sizes["num_layers"], num_attention_heads=sizes["num_heads"],
            num_key_value_heads=sizes["num_kv_heads"], intermediate_size=sizes["intermediate_size"],
            max_position_embeddings=sizes["max_seq_len"], tie_word_embeddings=True, bos_token_id=50256,
            eos_token_id=50256))
    model.save_pretrained(directory)
    vocabulary, merges = os.path.join(data, "gpt2.vocab.json"), os.path.join(directory, "merges.txt")
    with open(os.path.join(data, "gpt2.merges.txt"), encoding="utf-8") as file:
        text = file.read()
    with open(merges, "w", encoding="utf-8") as file: # transformers passes over the first line
        file.write(text if text.startswith("#version") else "#version: 0.2\n" + text)
    transformers.GPT2TokenizerFast(vocabulary, merges).save_pretrained(directory)
    for name, kind in TYPES.items():
        subprocess.run(["dt-export", "--to", "gguf", "--type", kind, "-m", directory, "-o",
                        os.path.join(directory, name + ".gguf")], check=True)


def check_same_work(directory):
    import llama_cpp
    llama = llama_cpp.Llama(os.path.join(directory, "fp32.gguf"), n_ctx=64, n_threads=1, verbose=False,
                            type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32)
    theirs = llama(TEXT, max_tokens=8, temperature=0)["choices"][0]["text"]
    ours = subprocess.run(["dt-generate", "-m", directory, "-n", "8", "--temperature", "0", "--no-eot",
                           "-p", TEXT], check=True, capture_output=True, text=True).stdout
    if ours.rstrip("\n") != TEXT + theirs.rstrip("\n"):
        common.fail(f"not the same work: dt writes {ours!r}, llama.cpp {TEXT + theirs!r}")


def time_llama(path, threads, steps):
    """In this process, which ends after it: tokens per second of prefill and of decoding."""
    import llama_cpp as lib
    import numpy
    model = lib.llama_model_load_from_file(path.encode(), lib.llama_model_default_params())
    how = lib.llama_context_default_params()
    how.n_ctx, how.n_batch, how.n_ubatch = 1024, PROMPT, PROMPT
    how.n_threads = how.n_threads_batch = threads
    context = lib.llama_init_from_model(model, how)
    ids = numpy.random.default_rng(1).integers(0, 50000, PROMPT).astype(numpy.int32)
    memory = lib.llama_get_memory(context)

    def feed(count):
        batch = lib.llama_batch_get_one(ids.ctypes.data_as(lib.llama_token_p), count)
        if lib.llama_decode(context, batch) != 0:
            common.fail("llama_decode failed")
        lib.llama_get_logits(context)

    def timed(count):
        start = time.perf_counter()
        feed(count)
        return time.perf_counter() - start

    prefill = []
    for _ in range(min(steps, 3)):
        lib.llama_memory_clear(memory, True)
        prefill.append(timed(PROMPT))
    lib.llama_memory_clear(memory, True)
    feed(PAST)
    decode = [timed(1) for _ in range(steps)]
    return {"prefill": PROMPT / statistics.median(prefill), "decode": 1 / statistics.median(decode)}


def run_llama(path, args):
    command = [sys.executable, os.path.abspath(__file__), "--worker", path, "-j", str(args.threads),
               "--steps", str(args.steps)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return json.loads(done.stdout)


def run_dt(shape, kind, args):
    """The streams that dt-bench measures second are not timed here, but cost time."""
    command = ["dt-bench", "--json", "-j", str(args.threads), "-n", str(args.steps)]
    for name, value in SHAPES[shape].items():
        command += ["--set", f"model.{name}={str(value).lower()}"]
    command += ["--set", f"training.precision={kind}", "decode"]
    # what dt-bench compares with is not printed here
    environment = dict(os.environ, DT_GEMM_PEAK="1000", DT_READ_SPEED="100")
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    result = json.loads(done.stdout)["streams_1"]
    return {"prefill": result["prefill_tokens_per_second"], "decode": result["tokens_per_second"]}


def compare(directory, shape, kind, args):
    ours, theirs = [], []
    for _ in range(args.rounds):
        ours.append(run_dt(shape, kind, args))
        theirs.append(run_llama(os.path.join(directory, kind + ".gguf"), args))
    for what in ("prefill", "decode"):
        a, b = (statistics.median(r[what] for r in rounds) for rounds in (ours, theirs))
        print(f"{shape:12} {kind:5} {what:8} {args.threads} threads: dt {a:8.1f}, llama.cpp {b:8.1f} tokens/s, "
              f"{a / b:.2f} times", flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--type", nargs="+", choices=TYPES, default=list(TYPES))
    parser.add_argument("-j", "--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=16, help="tokens to decode")
    parser.add_argument("--data", default=os.environ.get("TESTDATA"))
    parser.add_argument("--models", help="keep the models in this folder, and find them there the next time")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = parse()
    if args.worker:
        print(json.dumps(time_llama(args.worker, args.threads, args.steps)))
        return
    common.need_programs("dt-bench", "dt-export", "dt-generate")
    common.need_packages(llama_cpp="llama-cpp-python", torch="torch", transformers="transformers")
    with tempfile.TemporaryDirectory() as temporary:
        for shape in args.shape:
            directory = os.path.join(args.models or temporary, shape)
            if not os.path.exists(os.path.join(directory, "bf16.gguf")):
                if args.data is None:
                    common.fail("--data or TESTDATA is needed: a folder with gpt2.vocab.json and gpt2.merges.txt")
                os.makedirs(directory, exist_ok=True)
                write_model(directory, shape, args.data)
                check_same_work(directory)
            for kind in args.type:
                compare(directory, shape, kind, args)


if __name__ == "__main__":
    main()
