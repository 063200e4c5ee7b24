# SPDX-License-Identifier: MIT
#
# From text to a model that calculates, with a program that knows the right answers:
#
#   make -f pipelines/adapt.mk          less than 20 minutes on 2 cores
#
#   stories ─> pre/ ──sums, with answers──> sft/ ─┬─ samples, right and wrong ──> dpo/ ──┐
#                                                 └────────────────────────────────────┴─ grpo/
#
# A small model is pretrained on stories of dt-synth, fine-tuned on sums of two numbers, trained on
# preferences between its own right and wrong answers, and then on the rewards of a program that
# checks its answers. Fine-tuning sees the answers to half of the questions; the other half is only
# asked. After each stage it answers questions that no stage has seen: the results are
# a table with confidence intervals, and plots. The variables below change the sizes.
OUT         ?= build/adapt
CONFIG      ?= share/configs/demo.yaml
STORY_COUNT ?= 12000
VOCAB_SIZE  ?= 1024
# steps of pretraining and fine-tuning
PRE_STEPS   ?= 500
SFT_STEPS   ?= 380
# questions to ask, and how many of them have answers to learn from; questions for the results, and
# of which part: dev is for choosing settings, and test for the table
QUESTIONS   ?= 7000
ANSWERS     ?= 3500
HELD        ?= 2000
PART        ?= test
# questions in a batch of fine-tuning
BATCH       ?= 64
# samples of each question for preferences
SAMPLES     ?= 4
DPO_EPOCHS  ?= 1
DPO_RATE    ?= 1e-4
DPO_BETA    ?= 2
GRPO_STEPS  ?= 300
GRPO_RATE   ?= 3e-4
PROMPTS     ?= 64
GROUP       ?= 8
SET         ?=
LAUNCH      ?=

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := adapt
.NOTPARALLEL:
B           ?= build
export PATH := $(abspath $B/bin):$(PATH)
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1

here   := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
timed   = $(here)/timed $(OUT)/seconds/$1
stages := pre sft dpo grpo
chat   := $(OUT)/chat
answer := dt-generate -t $(chat)/tokenizer.json --template $(chat)/chat_template.jinja --chat -n 4
# 1 for each line whose answer is that of a member, otherwise 0
right   = sed -u -E 's/.*"answer":"([^"]*)".*"$1":"\1".*/1/; t; s/.*/0/'
export REWARD := $(call right,completion)

SETTINGS_data = $(STORY_COUNT) $(VOCAB_SIZE) $(QUESTIONS) $(ANSWERS) $(HELD) $(PART)
SETTINGS_pre  = $(CONFIG) $(PRE_STEPS) $(SET)
SETTINGS_sft  = $(SFT_STEPS) $(BATCH)
SETTINGS_dpo  = $(SAMPLES) $(DPO_EPOCHS) $(DPO_RATE) $(DPO_BETA)
SETTINGS_grpo = $(GRPO_STEPS) $(GRPO_RATE) $(PROMPTS) $(GROUP)
include $(here)/settings.mk

# --- data ---------------------------------------------------------------------------------------
$(OUT)/stories.jsonl: $(OUT)/settings/data
	dt-synth -n $(STORY_COUNT) --seed 1 | dt-clean -q --normalize nfc --dedup -o $@

# A conversation in few tokens. Stories have no digits, so each digit is a token.
# The tokenizer is the last file, since make looks for that.
$(chat)/tokenizer.json: $(OUT)/stories.jsonl
	@mkdir -p $(chat)
	echo '{"eos_token": "<|end|>"}' >$(chat)/tokenizer_config.json
	printf '%s' "{%- for message in messages %}{{- '<|' + message.role + '|>' +" \
	  " message.content + '<|end|>' }}{%- endfor %}" \
	  "{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- endif %}" >$(chat)/chat_template.jinja
	dt-vocab -q -s $(VOCAB_SIZE) --special '<|endoftext|>' --special '<|user|>' \
	  --special '<|assistant|>' --special '<|end|>' -o $@ $<

$(OUT)/stories/index.json: $(OUT)/stories.jsonl $(chat)/tokenizer.json
	dt-tokenize -q -t $(chat) $< | dt-shard -o $(@D) --split val=0.02

$(OUT)/%.jsonl: $(OUT)/settings/data
	$(here)/adapt-sums $(sums_$*) >$@
sums_answers   := -v n=$(ANSWERS) -v seed=1 -v part=learn -v form=answers
sums_questions := -v n=$(QUESTIONS) -v seed=1 -v part=learn -v form=prompts
sums_held-out  := -v n=$(HELD) -v seed=2 -v part=$(PART) -v form=prompts

$(OUT)/sums/index.json: $(OUT)/answers.jsonl $(chat)/tokenizer.json
	dt-tokenize -q -t $(chat) --chat $< | dt-shard -o $(@D) --layout padded --length 12

# --- stages: from the model before; a changed one begins again ----------------------------------
common := --set training.save_interval=0 --set training.log_interval=10 --set training.beta2=0.99

$(OUT)/pre/finished: $(OUT)/stories/index.json $(OUT)/settings/pre
	rm -rf $(@D)
	$(call timed,pre) $(LAUNCH) dt-train -q -c $(CONFIG) --set training.max_steps=$(PRE_STEPS) \
	  --set training.warmup_steps=$$(($(PRE_STEPS)/20+1)) $(SET:%=--set %) -t $(chat)/tokenizer.json \
	  -o $(@D) $(OUT)/stories
	@touch $@

$(OUT)/sft/finished: $(OUT)/pre/finished $(OUT)/sums/index.json $(OUT)/settings/sft
	rm -rf $(@D)
	$(call timed,sft) $(LAUNCH) dt-train -q --init-from $(OUT)/pre/latest $(common) \
	  --set training.sequence_length=12 --set training.batch_size=$(BATCH) \
	  --set training.max_steps=$(SFT_STEPS) --set training.warmup_steps=$$(($(SFT_STEPS)/20+1)) \
	  --set training.learning_rate=2e-3 -t $(chat)/tokenizer.json -o $(@D) $(OUT)/sums
	@touch $@

$(OUT)/pairs.dts: $(OUT)/sft/finished $(OUT)/questions.jsonl $(OUT)/settings/dpo
	$(call timed,samples) $(answer) -m $(OUT)/sft/latest --temperature 1 -s $(SAMPLES) --seed 1 \
	  --prompts $(OUT)/questions.jsonl -o $(OUT)/samples.jsonl
	$(here)/adapt-pairs $(OUT)/samples.jsonl >$(OUT)/pairs.jsonl
	dt-tokenize -q -t $(chat) --chat --pairs -o $@ $(OUT)/pairs.jsonl

$(OUT)/dpo/finished: $(OUT)/pairs.dts
	rm -rf $(@D)
	$(call timed,dpo) $(LAUNCH) dt-train -q --init-from $(OUT)/sft/latest $(common) \
	  --set training.objective=dpo --set dpo.beta=$(DPO_BETA) --set training.sequence_length=12 \
	  --set training.batch_size=32 --set training.max_epochs=$(DPO_EPOCHS) \
	  --set training.learning_rate=$(DPO_RATE) --set training.warmup_steps=0 \
	  -t $(chat)/tokenizer.json -o $(@D) $(OUT)/pairs.dts
	@touch $@

$(OUT)/grpo/finished: $(OUT)/dpo/finished $(OUT)/settings/grpo
	rm -rf $(@D)
	$(call timed,grpo) $(LAUNCH) dt-train -q --init-from $(OUT)/dpo/latest $(common) \
	  --set training.objective=grpo --set grpo.group=$(GROUP) --set grpo.max_new_tokens=4 \
	  --set training.sequence_length=12 --set training.batch_size=$(PROMPTS) \
	  --set training.max_steps=$(GRPO_STEPS) --set training.learning_rate=$(GRPO_RATE) \
	  --set training.warmup_steps=0 --reward "$$REWARD" \
	  -t $(chat)/tokenizer.json -o $(@D) $(OUT)/questions.jsonl
	@touch $@

# --- results ------------------------------------------------------------------------------------
$(OUT)/right-%: $(OUT)/%/finished $(OUT)/held-out.jsonl
	$(answer) -m $(OUT)/$*/latest --temperature 0 --prompts $(OUT)/held-out.jsonl | \
	  $(call right,text) >$@

# Accuracy with its 95% interval (Wilson 1927), and the seconds of the stage.
$(OUT)/table.txt: $(stages:%=$(OUT)/right-%)
	@{ printf '%-28s %9s %17s %9s\n' 'held-out questions' accuracy '95% interval' seconds; \
	  for stage in $(stages); do \
	    awk -v stage=$$stage -v seconds=$$(cat $(OUT)/seconds/$$stage) '{ n++; k += $$1 } END { \
	      z = 1.96; p = k / n; d = 1 + z * z / n; m = (p + z * z / (2 * n)) / d; \
	      w = z / d * sqrt(p * (1 - p) / n + z * z / (4 * n * n)); \
	      name["pre"] = "pretrained on stories"; name["sft"] = "fine-tuned on answers"; \
	      name["dpo"] = "trained on preferences"; name["grpo"] = "trained on rewards"; \
	      printf "%-28s %8.1f%% %7.1f%% to %5.1f%% %9.1f\n", name[stage], 100 * p, 100 * (m > w ? m - w : 0), \
	        100 * (m + w), seconds }' $(OUT)/right-$$stage; \
	  done; } >$@

$(OUT)/loss.%: $(stages:%=$(OUT)/%/finished)
	dt-plot loss $(OUT)/pre $(OUT)/sft --log y --title 'pretraining and fine-tuning' -o $@

$(OUT)/reward.%: $(OUT)/grpo/finished
	dt-plot reward $(OUT)/grpo --title 'share of right answers while training on rewards' -o $@

adapt: $(OUT)/table.txt $(foreach p,loss reward,$(OUT)/$p.svg $(OUT)/$p.png) ## train through all stages, and show the table
	@cat $(OUT)/table.txt
	@echo
	@echo 'plots: $(OUT)/loss.svg, $(OUT)/reward.svg, and the same as .png'

remove: ## remove all that the experiment made
	rm -rf $(OUT)

.PHONY: adapt remove
.SECONDARY:
