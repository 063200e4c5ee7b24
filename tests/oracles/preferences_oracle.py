# SPDX-License-Identifier: MIT
"""preferences_oracle.py MODEL REFERENCE IDS LEARNED: trains MODEL on pairs with TRL's DPOTrainer, in
fp64.

IDS and LEARNED are `dt-cat --ids` and `dt-cat --ids --loss` of the pairs: the documents, and of
each the tokens at its end that carry loss. Prints for each loss 20 steps of 4 pairs, in order:
name, step, loss, gradient norm, mean rewards of chosen and rejected answers. tests/tools/
dt-train-preferences.bats compares dt-train's with these lines (golden/preferences.tsv)."""
import sys
import tempfile

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from tokenizers import Tokenizer, models, pre_tokenizers
from trl import DPOConfig, DPOTrainer

STEPS, PAIRS, RATE, BETA = 20, 4, 1e-3, 0.3
LOSSES = {"sigmoid": {}, "smoothed": {"label_smoothing": 0.2}, "ipo": {"loss_type": "ipo"},
          "hinge": {"loss_type": "hinge"}}


def read(path):
    return [[int(i) for i in line.split()] for line in open(path)]


def pad(rows, left):
    width = max(map(len, rows))
    ids = [[0] * (width - len(r)) * left + r + [0] * (width - len(r)) * (not left) for r in rows]
    ones = [[1] * len(r) for r in rows]
    mask = [[0] * (width - len(r)) * left + r + [0] * (width - len(r)) * (not left) for r in ones]
    return torch.tensor(ids), torch.tensor(mask)


def batches(everything, learned):
    split = [(a[:len(a) - len(b)], b) for a, b in zip(everything, learned)]
    assert all(a[len(a) - len(b):] == b for a, b in zip(everything, learned))
    for first in range(0, len(split), 2 * PAIRS):
        batch = {}
        chosen, rejected = split[first:first + 2 * PAIRS:2], split[first + 1:first + 2 * PAIRS:2]
        assert [c[0] for c in chosen] == [r[0] for r in rejected]
        for name, rows, left in (("prompt", [c[0] for c in chosen], True),
                                 ("chosen", [c[1] for c in chosen], False),
                                 ("rejected", [r[1] for r in rejected], False)):
            ids, mask = pad(rows, left)
            batch[name + "_input_ids"], batch[name + "_attention_mask"] = ids, mask
        yield batch


def trainer_of(model, reference, options):
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), pad_token="<p>",
                                        eos_token="<e>", bos_token="<b>")
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    config = DPOConfig(output_dir=tempfile.mkdtemp(), beta=BETA, use_cpu=True, report_to=[],
                       disable_dropout=False, gradient_checkpointing=False, bf16=False, **options)
    text = Dataset.from_dict({"prompt": ["a"], "chosen": ["b"], "rejected": ["c"]})
    return DPOTrainer(model, reference, config, train_dataset=text, processing_class=tokenizer)


def run(name, options, everything, learned):
    model = AutoModelForCausalLM.from_pretrained(sys.argv[1], torch_dtype=torch.float64)
    reference = AutoModelForCausalLM.from_pretrained(sys.argv[2], torch_dtype=torch.float64)
    trainer = trainer_of(model, reference, options)
    trainer.padding_value = 0
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), eps=1e-8,
                                  weight_decay=0)
    given = list(batches(everything, learned))
    for step in range(STEPS):
        loss, metrics = trainer.get_batch_loss_metrics(model, given[step % len(given)], "train")
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(name, step + 1, *(f"{float(x):.9g}" for x in (
            loss, norm, metrics["rewards/chosen"], metrics["rewards/rejected"])), sep="\t")


def main():
    everything, learned = read(sys.argv[3]), read(sys.argv[4])
    for name, options in LOSSES.items():
        run(name, options, everything, learned)


main()
