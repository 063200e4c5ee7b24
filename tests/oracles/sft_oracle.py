# SPDX-License-Identifier: MIT
"""sft_oracle.py MODEL RECORDS STEPS RATE: the losses of steps of TRL's SFTTrainer, one a line, each of
all records of prompt and completion."""
import json
import sys
import tempfile

import torch
import transformers
from datasets import Dataset
from trl import SFTConfig, SFTTrainer

transformers.logging.set_verbosity_error()


class Losses(transformers.TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            print(f"{logs['loss']:.9g}")


def main(model, records, steps, rate):
    with open(records) as f:
        rows = [json.loads(line) for line in f]
    with tempfile.TemporaryDirectory() as directory:
        how = SFTConfig(
            output_dir=directory, per_device_train_batch_size=len(rows), max_steps=int(steps),
            learning_rate=float(rate), lr_scheduler_type="constant", weight_decay=0.0, adam_beta2=0.999,
            adam_epsilon=1e-8, max_grad_norm=1.0, logging_steps=1, report_to=[], save_strategy="no",
            use_cpu=True, bf16=False, gradient_checkpointing=False, max_length=None, disable_tqdm=True)
        trainer = SFTTrainer(
            model=transformers.AutoModelForCausalLM.from_pretrained(model, attn_implementation="eager",
                                                                    torch_dtype=torch.float32),
            args=how, train_dataset=Dataset.from_list(rows),
            processing_class=transformers.AutoTokenizer.from_pretrained(model), callbacks=[Losses()])
        trainer.log = lambda logs, *_: [c.on_log(None, None, None, logs) for c in [Losses()]]
        trainer.train()


main(*sys.argv[1:])
