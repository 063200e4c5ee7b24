# SPDX-License-Identifier: MIT
#
# Trains GPT-2 with 124M parameters on FineWeb or OpenWebText to a validation loss of about
# 3.28 nats per token (the target of llm.c and nanoGPT). A recipe for GPUs:
#
#   make -f pipelines/gpt2-124m.mk CORPUS=FILE TOKENIZER=tokenizer.json LAUNCH='mpirun -n 8'
#   make -f pipelines/gpt2-124m.mk CORPUS=FILE SIZE=small
#
# CORPUS is JSON Lines, which pipelines/openwebtext.mk or DuckDB makes from Parquet (dt(7)).
# TOKENIZER is GPT-2's; without it a tokenizer of 50,257 tokens is trained. 10
# billion tokens are 19,073 steps of half a million. SIZE=small has 1000 steps of a small model,
# 1 to 7 minutes on 2 cores.
NAME   := gpt2-124m
OUT    ?= build/gpt2-124m
SIZE   ?= full
VOCAB_SIZE ?= $(if $(filter small,$(SIZE)),1024,50257)
ifeq ($(SIZE),small)
CONFIG ?= share/configs/demo.yaml
WARMUP ?= 50
SET    ?= training.max_steps=1000 training.warmup_steps=$(WARMUP) training.eval_interval=250
else
CONFIG ?= share/configs/gpt2-124m.yaml
WARMUP ?= 700
SET    ?= training.max_steps=19073 training.warmup_steps=$(WARMUP) training.learning_rate=6e-4 \
          training.batch_size=32 training.gradient_accumulation_steps=16 training.sequence_length=1024 \
          training.precision=bf16 training.eval_interval=250 training.save_interval=1000
endif
SPLIT_FLAGS ?= --split val=0.001
CLEAN_FLAGS ?= --normalize nfc --dedup
PROMPT      ?= In a shocking finding, scientists discovered

gpt2-124m: summary

ifeq ($(origin CORPUS),undefined)
$(error CORPUS=FILE must name the text, as JSON Lines)
endif

include pipelines/rules.mk
