# SPDX-License-Identifier: MIT
"""sft_oracle.py MODEL RECORDS STEPS RATE: the losses of steps of TRL's SFTTrainer, one a line, each of
all records of prompt and completion, with loss on what the template writes in generation blocks."""
import json
import sys
import tempfile

import torch
import transformers
from datasets import Dataset
from trl import SFTConfig, SFTTrainer

transformers.logging.set_verbosity_error()


class Trainer(SFTTrainer):
    def training_step(self, *args, **how):
        loss = super().training_step(*args, **how)
        print(f"{loss.item():.9g}")
        return loss


def main(model, records, steps, rate):
    with open(records) as f:
        rows = [json.loads(line) for line in f]
    rows = [{"messages": row["prompt"] + row["completion"]} for row in rows]
    with tempfile.TemporaryDirectory() as directory:
        how = SFTConfig(
            output_dir=directory, per_device_train_batch_size=len(rows), max_steps=int(steps), logging_strategy="no",
            learning_rate=float(rate), lr_scheduler_type="constant", weight_decay=0.0, adam_beta2=0.999,
            adam_epsilon=1e-8, max_grad_norm=1.0, report_to=[], save_strategy="no",
            use_cpu=True, bf16=False, gradient_checkpointing=False, max_length=None, assistant_only_loss=True, disable_tqdm=True)
        trainer = Trainer(
            model=transformers.AutoModelForCausalLM.from_pretrained(model, attn_implementation="eager",
                                                                    torch_dtype=torch.float32),
            args=how, train_dataset=Dataset.from_list(rows),
            processing_class=transformers.AutoTokenizer.from_pretrained(model))
        trainer.train()


main(*sys.argv[1:])
