# SPDX-License-Identifier: MIT
"""Classifiers of texts with transformers.

labels_oracle.py make DIR TYPE TOKENIZER        a small random classifier of that model_type
labels_oracle.py check DIR DOCUMENTS ITEMS      fails unless answers are equal, and logits and
                                                log-likelihoods within 1e-5, in the file of --items
"""
import json
import os
import shutil
import sys

import torch
import transformers
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedTokenizerFast

transformers.logging.set_verbosity_error()
NAMES = ["bad", "fair", "good"]
SIZES = dict(max_position_embeddings=34, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=8, intermediate_size=48, n_inner=48, hidden_dim=48,
             initializer_range=0.1)
IDS = dict(bos_token_id=None, eos_token_id=None, cls_token_id=None, sep_token_id=None)


def make(directory, kind, file):
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=file)
    known = AutoConfig.for_model(kind).to_dict()
    sizes = {k: v for k, v in SIZES.items() if k in known or k in ("max_position_embeddings",
             "hidden_size", "num_hidden_layers", "num_attention_heads")}
    pad = 1 if kind == "roberta" else 0
    config = AutoConfig.for_model(kind, **IDS | sizes, vocab_size=len(tokenizer), pad_token_id=pad,
                                  **dict(type_vocab_size=1) if kind == "roberta" else {},
                                  id2label=dict(enumerate(NAMES)))
    torch.manual_seed(1)
    model = AutoModelForSequenceClassification.from_config(config, attn_implementation="eager")
    model.save_pretrained(directory)
    shutil.copy(file, os.path.join(directory, "tokenizer.json"))


def check(directory, documents, items):
    model = AutoModelForSequenceClassification.from_pretrained(directory, attn_implementation="eager")
    model = model.eval().double()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(directory, "tokenizer.json"))
    offset = 2 if model.config.model_type == "roberta" else 0
    length = model.config.max_position_embeddings - offset
    worst, lines = 0, open(items).readlines()
    for line, item in zip(open(documents), map(json.loads, lines), strict=True):
        ids = tokenizer(json.loads(line)["text"], truncation=True, max_length=length).input_ids
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0]
        if item["answer"] != logits.argmax().item():
            sys.exit(f"{item}: transformers has {logits.tolist()}")
        log_p = logits.log_softmax(0)[item["label"]].item()
        errors = [a - b for a, b in zip(item["logits"], logits.tolist(), strict=True)]
        worst = max(worst, abs(log_p - item["log_likelihood"]), *map(abs, errors))
    print(f"{len(lines)} documents, largest error {worst:.2g}")
    sys.exit(not worst < 1e-5)


(make if sys.argv[1] == "make" else check)(*sys.argv[2:])
