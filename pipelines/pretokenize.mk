# SPDX-License-Identifier: MIT
#
# Compares tokenizing before and during training: four ways to make samples of the same
# documents, in isolation and in training:
#
#   fly-padded    tokenized during training, a padded sample per document
#   fly-list      tokenized during training, documents concatenated
#   pre-padded    shards of padded rows
#   pre-list      shards of a list
#
#   make pretokenize                stories from dt-synth; two minutes on 2 idle cores
#   make pretokenize CORPUS=FILE    your text
#
# The results are a table, results.json and a plot of storage, samples, tokens and targets per
# second and padding, for batches of 1, 2, 4 and 8. If PYTHON=... has the package `tokenizers`,
# the table shows its speed on the same documents too.
NAME        := pretokenize
OUT         ?= build/pretokenize
CONFIG      := share/configs/demo.yaml
CLEAN_FLAGS ?= --normalize nfc --dedup
VOCAB_SIZE  ?= 4096
STORY_COUNT ?= 20000
LENGTH      ?= 256
BATCHES     ?= 1 2 4 8
STEPS       ?= 40
SECONDS     ?= 0.5
MODEL       ?= model.hidden_size=128 model.num_layers=4 model.num_heads=4
PYTHON      ?= python3
SPLIT_FLAGS :=
SETTINGS_compare = $(strip $(LENGTH) $(BATCHES) $(STEPS) $(SECONDS) $(MODEL) $(LAUNCH))

pretokenize:

include pipelines/rules.mk
.DEFAULT_GOAL := pretokenize

MODES   := fly-padded fly-list pre-padded pre-list
data_of  = $(if $(findstring fly,$1),$(OUT)/documents.jsonl,$(OUT)/$(if $(findstring list,$1),data,padded))
shape_of = --set data.layout=$(if $(findstring list,$1),list,padded) \
           --set model.max_seq_len=$(LENGTH) --set training.batch_size=$2
prepared := $(OUT)/data/index.json $(OUT)/padded/index.json $(OUT)/settings/compare

$(OUT)/padded/index.json: $(OUT)/tokenizer.json $(OUT)/documents.jsonl $(OUT)/settings/compare
	dt-tokenize -t $(OUT)/tokenizer.json $(OUT)/documents.jsonl | \
	  $(call timed,padded) dt-shard -o $(OUT)/padded --layout padded --length $(LENGTH)

# Reading alone, on one core, in the order of training.
define measure
$(OUT)/reading/$1-$2.json: $(prepared)
	@mkdir -p $$(@D)
	dt-bench --json --seconds $(SECONDS) $(call shape_of,$1,$2) \
	  $(if $(findstring fly,$1),-t $(OUT)/tokenizer.json) load $(call data_of,$1) >$$@

$(OUT)/training/$1-$2/finished: $(prepared)
	@rm -rf $$(@D)
	$(LAUNCH) dt-train -q --config $(CONFIG) $(call shape_of,$1,$2) $(MODEL:%=--set %) \
	  --set training.sequence_length=$(LENGTH) --set training.max_steps=$(STEPS) \
	  --set training.warmup_steps=1 --set training.eval_interval=0 \
	  --set training.save_interval=0 --set training.gradient_accumulation_steps=1 \
	  --set training.log_interval=$$$$(($(STEPS) / 2)) \
	  -t $(OUT)/tokenizer.json -o $$(@D) $(call data_of,$1)
	@touch $$@
endef
$(foreach m,$(MODES),$(foreach b,$(BATCHES),$(eval $(call measure,$m,$b))))

# The same with a tiny cache, as with large shards: each sample decodes its frames.
$(OUT)/reading/cold-%.json: $(prepared)
	@mkdir -p $(@D)
	dt-bench --json --seconds $(SECONDS) --memory 64k $(call shape_of,$*,$(lastword $(BATCHES))) \
	  load $(call data_of,$*) >$@

readings  := $(OUT)/reading/cold-padded.json $(OUT)/reading/cold-list.json
readings  += $(foreach m,$(MODES),$(BATCHES:%=$(OUT)/reading/$m-%.json))
trainings := $(foreach m,$(MODES),$(BATCHES:%=$(OUT)/training/$m-%/finished))

# Another tokenizer's speed, or nothing if it is not installed.
$(OUT)/hugging-face: $(prepared)
	@$(PYTHON) -c 'import tokenizers' 2>/dev/null || { echo 'no Python package tokenizers' >&2; : >$@; exit; }; \
	  set -x; $(PYTHON) $(here)/pretokenize-hugging-face $(OUT)/tokenizer.json \
	    $(OUT)/documents.jsonl $(LENGTH) $(SECONDS) >$@

$(OUT)/table.txt: $(readings) $(trainings) $(OUT)/hugging-face
	$(here)/pretokenize-table $(OUT) $(LENGTH) '$(BATCHES)' >$@

$(OUT)/plot.%: $(OUT)/table.txt
	gnuplot -e "format='$*'; batches='$(BATCHES)'; directory='$(OUT)'; output='$@'" \
	  share/plots/pretokenize.gnuplot

pretokenize: $(OUT)/table.txt $(OUT)/plot.svg $(OUT)/plot.png ## compare, and show the table
	@cat $(OUT)/table.txt
	@echo
	@echo 'plots: $(OUT)/plot.svg, $(OUT)/plot.png; numbers: $(OUT)/results.json'

.PHONY: pretokenize
