# SPDX-License-Identifier: MIT
"""groups_oracle.py MODEL REFERENCE TOKENIZER NAME=RECORDED ...: trains MODEL with TRL's GRPO loss.

RECORDED are the lines that `dt-train --reward` has given to the program: 32 completions a step, 8
of each prompt. The reward is how often the completion has the text "want". Prints for each name,
which is that of a variant below, and each step: name, step, loss, gradient norm, mean reward,
divergence, computed in fp64. tests/tools/dt-train-rewards.bats compares dt-train's with these lines
(golden/groups.tsv)."""
import json
import sys
from collections import defaultdict
from types import SimpleNamespace

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM
from trl import GRPOTrainer

RATE, GROUP, SEQUENCES, MOST = 3e-3, 8, 32, 8
VARIANTS = {"dapo": {}, "grpo": {"loss_type": "grpo", "beta": 0.1, "temperature": 0.7},
            "dr_grpo": {"loss_type": "dr_grpo", "scale": False}}


def trainer_of(beta=0.0, loss_type="dapo", temperature=1.0, scale=True):
    trainer = GRPOTrainer.__new__(GRPOTrainer)
    trainer.beta, trainer.loss_type, trainer.temperature = beta, loss_type, temperature
    trainer.epsilon_low = trainer.epsilon_high = 0.2
    trainer.args = SimpleNamespace(delta=None, report_to=[])
    trainer.importance_sampling_level, trainer.top_entropy_quantile = "token", 1.0
    trainer.use_vllm, trainer.model_kwarg_keys = False, []
    trainer.accelerator = SimpleNamespace(gather=lambda x: x, num_processes=1)
    trainer._metrics = {"train": defaultdict(list), "eval": defaultdict(list)}
    trainer.current_gradient_accumulation_steps, trainer.max_completion_length = 1, MOST
    trainer.scale = scale
    return trainer


def pad(rows, left):
    width = max(map(len, rows))
    filled = [([0] * (width - len(r)), r) for r in rows]
    ids = [z + r if left else r + z for z, r in filled]
    mask = [z + [1] * len(r) if left else [1] * len(r) + z for z, r in filled]
    return torch.tensor(ids), torch.tensor(mask)


def inputs_of(trainer, reference, tokenizer, records):
    prompts = [tokenizer.encode(r["prompt"], add_special_tokens=False).ids for r in records]
    completions = [r["completion_ids"] for r in records]
    rewards = torch.tensor([float(r["completion"].count(r["want"])) for r in records], dtype=torch.float64)
    grouped = rewards.view(-1, GROUP)
    advantages = rewards - grouped.mean(dim=1).repeat_interleave(GROUP)
    if trainer.scale:
        advantages = advantages / (grouped.std(dim=1).repeat_interleave(GROUP) + 1e-4)
    inputs = {"advantages": advantages}
    inputs["prompt_ids"], inputs["prompt_mask"] = pad(prompts, True)
    inputs["completion_ids"], inputs["completion_mask"] = pad(completions, False)
    inputs["num_items_in_batch"] = inputs["completion_mask"].sum()
    with torch.no_grad():
        inputs["ref_per_token_logps"], _ = trainer._get_per_token_logps_and_entropies(
            reference, torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1),
            torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1),
            inputs["completion_ids"].size(1))
    return inputs, float(rewards.mean())


def run(name, path, tokenizer):
    trainer = trainer_of(**VARIANTS[name])
    model = AutoModelForCausalLM.from_pretrained(sys.argv[1], torch_dtype=torch.float64)
    reference = AutoModelForCausalLM.from_pretrained(sys.argv[2], torch_dtype=torch.float64)
    trainer.model = model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), eps=1e-8,
                                  weight_decay=0)
    records = [json.loads(line) for line in open(path)]
    for step in range(len(records) // SEQUENCES):
        some = records[step * SEQUENCES:(step + 1) * SEQUENCES]
        inputs, reward = inputs_of(trainer, reference, tokenizer, some)
        loss = trainer._compute_loss(model, inputs)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        kl = trainer._metrics["train"]["kl"]
        print(name, step + 1, *(f"{float(x):.9g}" for x in (
            loss, norm, reward, kl[-1] if kl else 0)), sep="\t")


def main():
    tokenizer = Tokenizer.from_file(sys.argv[3])
    for argument in sys.argv[4:]:
        name, path = argument.split("=")
        run(name, path, tokenizer)


main()
