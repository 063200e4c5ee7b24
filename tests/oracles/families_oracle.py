# SPDX-License-Identifier: MIT
"""Each family of models, computed by transformers.

families_oracle.py golden         losses and gradients of tiny models whose
                                  parameters and batches are formulas, as text
families_oracle.py make DIR       random models in DIR/NAME (fp32, bf16 and in
                                  several files), each with a batch, its loss,
                                  gradients and log-probabilities
families_oracle.py check DIR ...  checks that each model loads unchanged, with the
                                  log-probabilities in its directory to 1e-4
"""
import copy
import os
import sys
import warnings

import numpy
import torch
import transformers
from safetensors.torch import save_file

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

NO_TARGET = -1


def families(v, t, c, layers, heads, kv_heads, inner):
    llama = dict(
        vocab_size=v, max_position_embeddings=t, hidden_size=c, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=kv_heads, intermediate_size=inner,
        rms_norm_eps=1e-6, tie_word_embeddings=False)
    none = dict(bos_token_id=None, eos_token_id=None, pad_token_id=None)
    return {
        "gpt2": transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=v, n_positions=t, n_embd=c, n_layer=layers, n_head=heads, n_inner=inner,
            embd_pdrop=0.0, resid_pdrop=0.0, attn_pdrop=0.0, **none)),
        "llama": transformers.LlamaForCausalLM(transformers.LlamaConfig(**llama, **none)),
        "qwen3": transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
            head_dim=c // heads, **llama, **none)),
        "olmo2": transformers.Olmo2ForCausalLM(transformers.Olmo2Config(**llama, **none)),
        "bert": transformers.BertForMaskedLM(transformers.BertConfig(
            vocab_size=v, max_position_embeddings=t, hidden_size=c, num_hidden_layers=layers,
            num_attention_heads=heads, intermediate_size=inner, hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0, **none)),
        "distilbert": transformers.DistilBertForMaskedLM(transformers.DistilBertConfig(
            vocab_size=v, max_position_embeddings=t, dim=c, n_layers=layers, n_heads=heads,
            hidden_dim=inner, dropout=0.0, attention_dropout=0.0, **none)),
    }


def run(model, inputs, targets):
    """Sum of the losses, gradients by name, and log-probabilities of every position."""
    model.eval()
    model.zero_grad()
    logits = model(input_ids=inputs).logits
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=NO_TARGET, reduction="sum")
    loss.backward()
    gradients = {n: p.grad.clone() for n, p in model.named_parameters()}
    return loss.item(), gradients, torch.log_softmax(logits.detach(), -1)


# --- golden: all values are formulas, which test-families.c also computes -----------------------


def scattered(name, count):
    """Numbers from -1/2 to 1/2, a function of name and index."""
    key = 2166136261
    for byte in name.encode():
        key = (key ^ byte) * 16777619 & 0xFFFFFFFF
    x = (key + numpy.arange(count, dtype=numpy.uint64)) * 2654435761 & 0xFFFFFFFF
    x = (x ^ x >> 16) * 2246822507 & 0xFFFFFFFF
    x ^= x >> 13
    return (x >> 8).astype(numpy.float64) / 2**24 - 0.5


def golden():
    v, t, rows = 29, 10, 3
    ids = torch.tensor((scattered("inputs", rows * t) + 0.5) * v).long().view(rows, t)
    targets = torch.tensor((scattered("targets", rows * t) + 0.5) * v).long().view(rows, t)
    targets[torch.tensor(scattered("chosen", rows * t)).view(rows, t) > 0.2] = NO_TARGET
    for family, model in families(v, 16, 16, 2, 4, 2, 24).items():
        with torch.no_grad():
            for name, p in model.named_parameters():
                values = 0.5 * scattered(name, p.numel()) + (1.0 if p.dim() == 1 and p[0] == 1 else 0.0)
                p.copy_(torch.tensor(values).view(p.shape))
        loss, gradients, _ = run(model.double(), ids, targets)
        print(f"family {family} {loss:.12g}")
        for name, g in gradients.items():
            along = (g.flatten() * torch.tensor(scattered("along " + name, g.numel()))).sum()
            print(f"{name} {g.norm().item():.12g} {along.item():.12g}")


# --- random models --------------------------------------------------------------------------------


def write(directory, model, inputs, targets, dtype=torch.float32, **how):
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.to(dtype))
    loss, gradients, log_probabilities = run(model, inputs, targets)
    copy.deepcopy(model).to(dtype).save_pretrained(directory, **how)
    save_file(gradients, os.path.join(directory, "gradients"))
    batch = torch.cat([torch.tensor(inputs.shape), inputs.flatten(), targets.flatten()])
    batch.numpy().astype(numpy.int32).tofile(os.path.join(directory, "batch"))
    log_probabilities.numpy().tofile(os.path.join(directory, "log-probabilities"))
    with open(os.path.join(directory, "loss"), "w") as f:
        print(f"{loss:.9g}", file=f)


def make(directory):
    torch.manual_seed(1)
    v, t, rows = 97, 20, 3
    for family, model in families(v, 32, 48, 3, 4, 2, 80).items():
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.normal_(1.0 if p.dim() == 1 and p[0] == 1 else 0.0, 0.15)
        inputs = torch.randint(v, (rows, t))
        targets = torch.randint(v, (rows, t))
        targets[torch.rand(rows, t) < 0.5] = NO_TARGET
        path = os.path.join(directory, family)
        write(path, model, inputs, targets)
        for dtype in torch.bfloat16, torch.float16:
            rounded = f"{path}-{str(dtype)[6:]}"
            write(rounded, copy.deepcopy(model), inputs, targets, dtype, max_shard_size="50KB")
            assert os.path.exists(f"{rounded}/model.safetensors.index.json")


def check(directory):
    config = transformers.AutoConfig.from_pretrained(directory)
    masked = config.architectures[0].endswith("MaskedLM")
    auto = transformers.AutoModelForMaskedLM if masked else transformers.AutoModelForCausalLM
    model, info = auto.from_pretrained(directory, output_loading_info=True)
    wrong = [k for k in ("missing_keys", "unexpected_keys", "mismatched_keys") if info.get(k)]
    batch = torch.from_numpy(numpy.fromfile(os.path.join(directory, "batch"), numpy.int32)).long()
    rows, length = batch[0].item(), batch[1].item()
    inputs = batch[2 : 2 + rows * length].view(rows, length)
    want = numpy.fromfile(os.path.join(directory, "log-probabilities"), numpy.float32)
    with torch.no_grad():
        got = torch.log_softmax(model.eval()(input_ids=inputs).logits, -1)
    worst = (got - torch.from_numpy(want).view(got.shape)).abs().max().item()
    print(f"# {type(model).__name__}: log-probabilities differ by {worst:.2g} at most {wrong}")
    return worst <= 1e-4 and not wrong


if sys.argv[1] == "golden":
    golden()
elif sys.argv[1] == "make":
    make(sys.argv[2])
elif sys.argv[1] == "check":
    sys.exit(not all([check(directory) for directory in sys.argv[2:]]))
