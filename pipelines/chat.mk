# SPDX-License-Identifier: MIT
#
# Supervised fine-tuning of a model on conversations, by its chat template, with loss on
# the answers:
#
#   make -f pipelines/chat.mk MODEL=DIR DATA=chats.jsonl            trains an adapter (LoRA)
#   make -f pipelines/chat.mk MODEL=DIR DATA=chats.jsonl LORA=0     trains the whole model
#
# DATA is JSON Lines or Parquet in any form of dt-chat(7); MODEL a directory with weights,
# tokenizer and chat template, as transformers has. The result is a model directory,
# $(OUT)/model, and the command that talks to it is printed. Interrupted training resumes.
OUT        ?= build/chat
# rank of the adapter; 0: the whole model is trained
LORA       ?= 16
# a chat template for a model without one: share/templates/chatml.jinja, plain.jinja
TEMPLATE   ?=
# messages with loss: assistant, last or all
LOSS       ?= assistant
# share of the conversations that validate; 0: none
VAL        ?= 0.05
# tokens of a row of packed conversations
LENGTH     ?= 1024
EPOCHS     ?= 1
BATCH      ?= 4
ACCUMULATE ?= 4
RATE       ?= $(if $(filter 0,$(LORA)),2e-5,2e-4)
# before dt-train: mpirun -n 8, srun, ...
LAUNCH     ?=
# key=value settings of dt-train that replace those here
SET        ?=

ifneq ($(MAKECMDGOALS),remove)
$(if $(DATA),,$(error DATA=FILE must name conversations, as dt-chat(7) describes))
$(if $(wildcard $(DATA)),,$(error DATA='$(DATA)': cannot be found))
$(if $(MODEL),,$(error MODEL=DIR must name a model directory))
$(if $(wildcard $(MODEL)),,$(error MODEL='$(MODEL)': cannot be found))
endif

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := chat
.NOTPARALLEL:
B           ?= build
export PATH := $(abspath $B/bin):$(PATH)

here   := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
timed   = $(here)/timed $(OUT)/seconds/$1
chosen := training.max_epochs=$(EPOCHS) training.max_steps=1000000000 training.warmup_steps=0 \
          training.batch_size=$(BATCH) training.gradient_accumulation_steps=$(ACCUMULATE) \
          training.sequence_length=$(LENGTH) training.learning_rate=$(RATE) \
          training.weight_decay=0 training.beta2=0.999 training.save_interval=100 \
          data.document_mask=true checkpoint.keep_last=1 \
          $(if $(filter 0,$(LORA)),,lora.rank=$(LORA) lora.alpha=$(LORA)) $(SET)

SETTINGS_data   = $(strip $(MODEL) $(DATA) $(TEMPLATE) $(LOSS) $(VAL) $(LENGTH))
SETTINGS_train  = $(strip $(MODEL) $(chosen))
SETTINGS_export = $(strip $(TEMPLATE))
include $(here)/settings.mk

$(OUT)/data/index.json: $(DATA) $(TEMPLATE) $(OUT)/settings/data
	rm -rf $(OUT)/data
	dt-tokenize -q -t '$(MODEL)' --chat $(TEMPLATE:%=--template %) --loss $(LOSS) '$(DATA)' | \
	  $(call timed,shard) dt-shard -o $(OUT)/data --layout packed --length $(LENGTH) \
	  $(if $(filter 0,$(VAL)),,--split val=$(VAL))

# With new data or settings a new run starts, and the previous one is kept in run.before.
$(OUT)/run/begun: $(OUT)/data/index.json $(OUT)/settings/train
	@if [ -e $(OUT)/run ]; then rm -rf $(OUT)/run.before; mv $(OUT)/run $(OUT)/run.before; fi
	@mkdir -p $(OUT)/run
	@touch $@

$(OUT)/run/finished: $(OUT)/run/begun
	$(call timed,train) $(LAUNCH) dt-train --init-from '$(MODEL)' $(chosen:%=--set %) \
	  -o $(OUT)/run $(OUT)/data
	@touch $@

# With its adapter merged.
$(OUT)/model/config.json: $(OUT)/run/finished $(TEMPLATE) $(OUT)/settings/export
	rm -rf $(OUT)/model
	dt-export -m $(OUT)/run/latest -o $(OUT)/model --verify
	$(if $(TEMPLATE),cp '$(TEMPLATE)' $(OUT)/model/chat_template.jinja)

chat: $(OUT)/model/config.json ## train on the conversations, and write a model that answers
	@echo 'The model is in $(OUT)/model. Talk to it with:'
	@echo
	@echo '    dt-generate -m $(OUT)/model --chat'

remove: ## remove all that was made
	rm -rf $(OUT)

.PHONY: chat remove
